"""Boundary Forest beside cover tree: comparisons of training and of a query against N."""

from typing import Any

import numpy as np

from paper import plots, streams
from paper.baselines import make
from paper.context import Context
from paper.growth import LEARNED_AT_ONCE, line, sizes
from paper.item import Item, Result, Row, Table, close, holds
from paper.laws import fitted_line, straight_in_logs
from paper.streams import Stream
from paper.timing import timed

N_TREES, K = 50, 50
COVER_TREE = "CT(1.3, 10)"  # b and epsilon
NEAR_POWER = 0.2
RULED_OUT = 5.0

RULE = (
    "the cover tree's powers, over the upper half of log N, must be within "
    f"{NEAR_POWER:g} of 2 for training and of 1 for queries. For the forest the paper's laws, "
    f"a (N log N - N) and a log N + b, must have at most 1 / {RULED_OUT:g} of the error of the "
    "cover tree's, a N² and a N, all fitted to all points as in the paper. At the largest N that "
    "both have come to, the cover tree must cost more."
)


def cover_tree_line(context: Context, stream: Stream, ends: list[int]) -> list[dict[str, Any]]:
    """Return totals at each N, one step each, until the time for training is spent."""
    budget = context.pick(tiny=1.0, quick=12.0, full=3600.0)
    tree: Any = make(COVER_TREE)
    learned, spent = 0, 0.0

    def point(N: int) -> dict[str, Any]:
        nonlocal learned, spent  # what earlier runs have measured is learned again when needed
        for start in range(learned, N, LEARNED_AT_ONCE):
            rows = stream.rows(start, min(start + LEARNED_AT_ONCE, N))
            spent += timed(tree.partial_fit, rows)[1]
        learned = N
        before = tree.stats()["comparisons"]
        tree.kneighbors(stream.queries, 1)
        made = tree.stats()["comparisons"]["query"] - before["query"]
        learn_total, n_queries = before["learn"], len(stream.queries)
        return {"N": N, "learn": learn_total, "query": made / n_queries, "seconds": spent}

    points: list[dict[str, Any]] = []
    for N in ends:
        points.append(context.step(f"cover tree N={N}", point, N))
        # The next point costs as much as its share of N says, if training is quadratic.
        ahead = points[-1]["seconds"] * (ends[1] / ends[0]) ** 2
        if ahead > budget:
            break
    return points


def forest_line(context: Context, stream: Stream, ends: list[int]) -> list[dict[str, Any]]:
    """Return totals over all trees at each N."""
    grown = line(
        stream,
        ends,
        k=K,
        n_trees=N_TREES,
        seed=context.seed,
        n_jobs=context.n_jobs,
        structure=False,
    )
    return [
        {"N": N, "learn": N_TREES * learn, "query": N_TREES * query}
        for N, learn, query in zip(ends, grown["learn"], grown["query"], strict=True)
    ]


def run(context: Context) -> Result:
    """Measure both on uniform data in 100 dimensions."""
    stream = streams.hypercube(context, 100, context.pick(tiny=50, quick=300, full=1_000))
    most = context.pick(tiny=1_000, quick=100_000, full=1_000_000)
    ends = sizes(most // 100, most, context.pick(tiny=6, quick=17, full=17))
    context.expect(len(ends) + 1)
    forest = context.step(f"forest to N={most}", forest_line, context, stream, ends)
    tree = cover_tree_line(context, stream, ends)
    figures = {"forest": forest, "tree": tree}
    rows = [power_row(figures, "learn", 2.0), power_row(figures, "query", 1.0)]
    rows += [law_row(figures, "learn"), law_row(figures, "query")]
    rows += [more_row(figures, "learn"), more_row(figures, "query")]
    table = Table(
        "Comparisons in all",
        ("N", "training, forest", "training, cover tree", "a query, forest", "a query, cover tree"),
        [
            [f["N"], f["learn"], t["learn"], f["query"], t["query"]]
            for f, t in zip(forest, tree, strict=False)
        ],
    )
    return Result(rows, figures, [table], remark(figures, most))


NAMES = {"learn": "training", "query": "a query"}


def column(points: list[dict[str, Any]], name: str) -> list[float]:
    """Return one figure of all points."""
    return [point[name] for point in points]


def power_row(figures: dict[str, Any], name: str, paper: float) -> Row:
    """Return the row on the cover tree's power."""
    points = figures["tree"][len(figures["tree"]) // 2 :]
    what = f"cover tree, {NAMES[name]}: power of N"
    if len(points) < 3:
        return Row(what, paper, "too few points")
    law = straight_in_logs([p["N"] for p in points], column(points, name))
    return Row(what, paper, law["p"], close(law["p"], paper, absolute=NEAR_POWER))


def forest_laws(figures: dict[str, Any], name: str) -> dict[str, Any]:
    """Fit the paper's laws of the forest and of the cover tree, both to the forest's figures."""
    N, y = (column(figures["forest"], which) for which in ("N", name))
    n = np.array(N, dtype=float)
    terms = {
        "learn": ([n * np.log(n) - n], [n * n]),
        "query": ([np.log(n), np.ones_like(n)], [n]),
    }[name]
    own, other = (fitted_line(shape, y) for shape in terms)
    return {"own": own, "factor": other["rms"] / own["rms"]}


def law_row(figures: dict[str, Any], name: str) -> Row:
    """Return the row on how much better the forest's law fits than the cover tree's."""
    law = forest_laws(figures, name)
    shape = {"learn": "a (N log N - N)", "query": "a log N + b"}[name]
    return Row(
        f"forest, {NAMES[name]}: {shape}",
        "fits",
        f"the error of the cover tree's law is {law['factor']:.1f} times as large",
        holds(law["factor"] >= RULED_OUT),
    )


def more_row(figures: dict[str, Any], name: str) -> Row:
    """Return the row on which of them costs more at the largest common N."""
    tree = figures["tree"][-1]
    forest = next(point for point in figures["forest"] if point["N"] == tree["N"])
    ratio = tree[name] / forest[name]
    return Row(
        f"{NAMES[name]}: cover tree / forest at N = {tree['N']:,}",
        "> 1",
        ratio,
        holds(ratio > 1),
    )


def remark(figures: dict[str, Any], most: int) -> str:
    """Describe how close the cover tree is to an exhaustive search, and where it was stopped."""
    end = figures["tree"][-1]
    N, pairs = end["N"], end["N"] * (end["N"] - 1) / 2
    text = (
        f"At N = {N:,} the cover tree has compared {end['learn'] / pairs:.1%} of all pairs in "
        f"training, and compares {end['query'] / N:.1%} of the examples with a query."
    )
    if most > N:
        text += (
            f" It was stopped there, after {end['seconds']:.0f} s of training: the next point "
            "would have gone beyond the time it is given."
        )
    return text


def draw(figures: dict[str, Any]) -> Any:
    """Draw both costs of both learners, with the laws."""
    figure, axes = plots.panels(["Training, in all", "A query"])
    for ax, name in zip(axes, ("learn", "query"), strict=True):
        for color, who in zip(plots.COLORS, ("tree", "forest"), strict=False):
            label = {"tree": "cover tree", "forest": f"forest, n_T = {N_TREES}, k = {K}"}[who]
            points = figures[who]
            ax.plot(column(points, "N"), column(points, name), "o", color=color, label=label)
            x = plots.smooth(column(points, "N"))
            plots.fit_line(ax, x, *_curve(points, name, who, x), color)
        plots.named_axes(ax, "examples N", "comparisons", log_x=True, log_y=True)
    return figure


def _curve(points: list[dict[str, Any]], name: str, who: str, x: Any) -> tuple[Any, str]:
    """Fit the paper's law for this line; return its values at x, and its name."""
    shapes: dict[tuple[str, str], tuple[Any, str]] = {
        ("tree", "learn"): (lambda n: [n * n, n, np.ones_like(n)], "a N² + b N + c"),
        ("tree", "query"): (lambda n: [n], "a N"),
        ("forest", "learn"): (lambda n: [n * np.log(n) - n], "a (N log N - N)"),
        ("forest", "query"): (lambda n: [np.log(n), np.ones_like(n)], "a log N + b"),
    }
    shape, label = shapes[who, name]
    found = fitted_line(shape(np.array(column(points, "N"), dtype=float)), column(points, name))
    y = sum(c * term for c, term in zip(found["parameters"], shape(x), strict=True))
    return np.where(y > 0, y, np.nan), label


ITEMS = (
    Item(
        name="cover-tree-scaling",
        title="Boundary Forest and cover tree: comparisons against N",
        where="Section 4, Figure 4",
        chapter="Scaling",
        rule=RULE,
        run=run,
        plots={"": draw},
    ),
)
