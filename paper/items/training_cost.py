"""What training costs: the integral of the query cost over N, and its time, linear in D."""

from typing import Any

import numpy as np

from boundary_forest import BoundaryForestNeighbors
from paper import plots, streams
from paper.context import Context
from paper.growth import line, query_comparisons, sizes
from paper.item import Item, Result, Row, Table, close, holds
from paper.laws import linear
from paper.timing import plain_path, timed

N_TREES = 10
LIMITS = (50, None)
TOLERANCE = 0.02
STRAIGHT = 0.99
TURNS = 3  # of which the quickest counts: whatever else runs can only slow one down
LEAST_JUDGED = 50  # shorter rows are dominated by what a comparison costs besides the distance


def integral(N: list[int], cost: list[float]) -> list[float]:
    """Return the integral of the cost from the first N to each, by trapezoids in log N."""
    x, y = np.log(np.array(N, dtype=float)), np.array(cost) * np.array(N)
    pieces = np.diff(x) * (y[1:] + y[:-1]) / 2
    return [0.0, *np.cumsum(pieces).tolist()]


def run_integral(context: Context) -> Result:
    """Compare training with the integral: it is a query and a new node, which costs nothing."""
    stream = streams.hypercube(context, 100, context.pick(tiny=100, quick=1_000, full=2_000))
    ends = sizes(100, context.pick(tiny=1_000, quick=50_000, full=1_000_000), 33)
    context.expect(len(LIMITS))
    lines = {}
    for k in LIMITS:
        grown = context.step(f"k={k} to N={ends[-1]}", _grown, context, stream, ends, k)
        learned = [total - grown["learn"][0] for total in grown["learn"]]
        expected = integral(ends, grown["query"])
        lines[str(k)] = {"learned": learned, "integral": expected}
    rows = []
    for name, of in lines.items():
        ratio = of["learned"][-1] / of["integral"][-1]
        what = "no limit" if name == "None" else f"k = {name}"
        rows.append(
            Row(
                f"{what}: comparisons of training / integral of those of queries",
                1.0,
                ratio,
                close(ratio, 1.0, absolute=TOLERANCE),
            )
        )
    return Result(rows, {"N": ends, "lines": lines})


def _grown(context: Context, stream: streams.Stream, ends: list[int], k: int | None) -> Any:
    return line(
        stream,
        ends,
        k=k,
        n_trees=N_TREES,
        seed=context.seed,
        n_jobs=context.n_jobs,
        structure=False,
    )


def draw_integral(figures: dict[str, Any]) -> Any:
    """Draw both totals against N."""
    figure, (ax,) = plots.panels(["Training is the integral of querying"])
    N = figures["N"][1:]
    for color, (k, of) in zip(plots.COLORS, figures["lines"].items(), strict=False):
        name = "no limit" if k == "None" else f"k = {k}"
        ax.plot(N, of["learned"][1:], "o", color=color, markersize=3, label=f"training, {name}")
        plots.fit_line(ax, N, of["integral"][1:], f"integral of queries, {name}", color)
    title = f"comparisons a tree since N = {figures['N'][0]}"
    plots.named_axes(ax, "examples N", title, log_x=True, log_y=True)
    return figure


def cost_of(D: int, N: int, context: Context, n_queries: int) -> dict[str, float]:
    """Return nanoseconds per comparison of training and queries on the plain path, and counts."""
    stream = streams.hypercube(context, D, n_queries)
    X = stream.rows(0, N)
    with plain_path():
        forest = BoundaryForestNeighbors(
            search="paper", n_estimators=N_TREES, max_children=50, random_state=0
        )
        learn_s = min(timed(forest.fit, X)[1] for _ in range(TURNS))
        learned = forest.stats()["comparisons"]["learn"]
        made = query_comparisons(forest, stream.queries)
        query_s = min(timed(forest.kneighbors, stream.queries, 1)[1] for _ in range(TURNS))
    return {
        "learn_ns": 1e9 * learn_s / learned,
        "query_ns": 1e9 * query_s / (made * n_queries * N_TREES),
        "comparisons": made,
    }


def run_dimension(context: Context) -> Result:
    """Measure a comparison's cost, the paper's D in O(D N log N) and O(D log N)."""
    dims = context.pick(
        tiny=[10, 50, 100],
        quick=[10, 50, 100, 200, 400, 800, 1600],
        full=[10, 25, 50, 100, 200, 400, 800, 1200, 1600, 2400, 3200],
    )
    values = context.pick(tiny=50_000, quick=1_000_000, full=1_000_000)
    n_queries = context.pick(tiny=100, quick=1_000, full=2_000)
    context.expect(len(dims))
    # As many values for every D, so that all rows lie in the same of the processor's caches.
    points = [
        context.step(f"D={D}, N={values // D}", cost_of, D, values // D, context, n_queries)
        for D in dims
    ]
    figures = {"D": dims, **{name: [p[name] for p in points] for name in points[0]}}
    rows = []
    for name, what in (("learn_ns", "training"), ("query_ns", "querying")):
        law = linear_part(figures, name)
        rows.append(
            Row(
                f"{what}: time of a comparison is linear in D",
                "O(D)",
                f"{law['a']:.3g} D + {law['b']:.3g} ns, R² {law['r2']:.4f}",
                holds(law["a"] > 0 and law["r2"] >= STRAIGHT),
            )
        )
    table = Table(
        f"Hypercube, N D = {values:,}, n_T = {N_TREES}, k = 50, float32, one thread",
        ("D", "N", "comparisons a query and tree", "ns a comparison, training", "querying"),
        [
            [D, values // D, p["comparisons"], p["learn_ns"], p["query_ns"]]
            for D, p in zip(dims, points, strict=True)
        ],
    )
    return Result(rows, figures, [table])


def linear_part(figures: dict[str, Any], name: str) -> dict[str, float]:
    """Fit a straight line to the points that are judged."""
    pairs = zip(figures["D"], figures[name], strict=True)
    judged = [(D, y) for D, y in pairs if D >= LEAST_JUDGED]
    return linear([D for D, _ in judged], [y for _, y in judged])


def draw_dimension(figures: dict[str, Any]) -> Any:
    """Draw the time of a comparison against D."""
    figure, (ax,) = plots.panels(["Time of a comparison"])
    named = (("learn_ns", "training"), ("query_ns", "querying"))
    for color, (name, what) in zip(plots.COLORS, named, strict=False):
        ax.plot(figures["D"], figures[name], "o", color=color, label=what)
        law, D = linear_part(figures, name), np.array(figures["D"])
        plots.fit_line(ax, D, law["a"] * D + law["b"], f"{law['a']:.2g} D + {law['b']:.2g}", color)
    plots.named_axes(ax, "dimensions D", "ns a comparison")
    return figure


ITEMS = (
    Item(
        name="training-integral",
        title="Training cost is the integral of query cost over N",
        where="Section 4, text",
        chapter="Scaling",
        rule=f"the ratio is 1 within {TOLERANCE:.0%}; hypercube, D = 100, from N = 100 on.",
        run=run_integral,
        plots={"": draw_integral},
    ),
    Item(
        name="cost-in-dimension",
        title="Cost is linear in the number of dimensions D",
        where="Abstract",
        chapter="Scaling",
        rule=(
            "the time of a comparison is a rising straight line in D with R² of at least "
            f"{STRAIGHT:g}, from D = {LEAST_JUDGED} on. It is the plain path's, which compares one "
            "row with one row as the paper does; the usual path takes rows together."
        ),
        run=run_dimension,
        plots={"": draw_dimension},
    ),
)
