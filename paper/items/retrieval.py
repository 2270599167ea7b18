"""How good the neighbour is that a forest finds, as N grows.

x* is in the f best fraction if it is among the f N examples closest to the query. Ranks are exact:
all examples are compared with each query, in double precision.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import BoundaryForestNeighbors
from paper import plots, streams
from paper.context import Context
from paper.growth import LEARNED_AT_ONCE, sizes
from paper.item import Item, Result, Row, Table, holds
from paper.laws import straight_in_logs
from paper.streams import Rows, Stream

N_TREES = (10, 50)
K = 50
CHANCE = 0.99
LEAST = 1_000
STRAIGHT = 0.98
ROOM = 3
FEWEST = 4  # points that a power law can be seen in

RULE = (
    "a power law is a straight line of log f against log N, with a negative power and R² of at "
    f"least {STRAIGHT:g}, over the N at which f N is at least {ROOM} (below, f is hardly more than "
    "1 / N, the nearest example itself); more trees must be better at every N. The paper plots the "
    "powers and does not state them."
)


def ranks(stream: Stream, N: int, found: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the ranks, from 1, of the examples found, among the first N by distance."""
    queries = stream.queries.astype(np.float64)
    own = np.stack([_scores(queries, stream, column) for column in found.T], axis=1)
    closer = np.zeros(found.shape, dtype=np.int64)
    for start in range(0, N, streams.BLOCK):
        rows = stream.rows(start, min(start + streams.BLOCK, N)).astype(np.float64)
        scores = np.einsum("ij,ij->i", rows, rows) - 2 * queries @ rows.T
        for i in range(found.shape[1]):
            closer[:, i] += np.sum(scores < own[:, i : i + 1], axis=1)
    return closer + 1


def _scores(queries: Rows, stream: Stream, numbers: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return |x|² - 2 q x, which orders examples x as their distance from q does.

    The sum is taken in another order than in the matrix product. A margin, far below the difference
    of two neighbours, keeps x* from being closer than itself.
    """
    order = np.argsort(numbers)
    rows = np.empty(queries.shape)
    for i in order:
        rows[i] = stream.rows(int(numbers[i]), int(numbers[i]) + 1)[0]
    norms = np.einsum("ij,ij->i", rows, rows)
    products = np.einsum("ij,ij->i", queries, rows)
    margin = 1e-12 * (norms + 2 * np.abs(products))
    scores: NDArray[np.float64] = norms - 2 * products - margin
    return scores


def measured(context: Context, stream: Stream, most: int) -> dict[str, Any]:
    """Return the fraction f at each N for each number of trees; one step for each N."""
    ends = sizes(min(LEAST, most // 10), most, context.pick(tiny=6, quick=10, full=17))
    context.expect(len(ends))
    forests = {
        n_T: BoundaryForestNeighbors(
            search="paper",
            n_estimators=n_T,
            max_children=K,
            n_jobs=context.n_jobs,
            random_state=context.seed,
        )
        for n_T in N_TREES
    }
    learned = 0

    def point(N: int) -> dict[str, Any]:
        nonlocal learned  # steps that are done already are not learned before one needs them
        for start in range(learned, N, LEARNED_AT_ONCE):
            rows = stream.rows(start, min(start + LEARNED_AT_ONCE, N))
            for forest in forests.values():
                forest.partial_fit(rows)
        learned = N
        answers = [f.kneighbors(stream.queries, 1, return_distance=False) for f in forests.values()]
        rank = ranks(stream, N, np.hstack(answers))
        f = np.quantile(rank, CHANCE, axis=0, method="higher") / N
        return {"f": f.tolist(), "nearest": (rank == 1).mean(axis=0).tolist()}

    n_queries = len(stream.queries)
    points = [context.step(f"N={N}, {n_queries} queries", point, N) for N in ends]
    lines = {
        str(n_T): {name: [p[name][i] for p in points] for name in ("f", "nearest")}
        for i, n_T in enumerate(N_TREES)
    }
    return {"N": ends, "lines": lines, "queries": n_queries}


def law_of(figures: dict[str, Any], n_T: int) -> dict[str, float] | None:
    """Fit the power law where there are enough points."""
    pairs = zip(figures["N"], figures["lines"][str(n_T)]["f"], strict=True)
    room = [(N, f) for N, f in pairs if f * N > ROOM - 0.5]
    if len(room) < FEWEST:
        return None
    return straight_in_logs([N for N, _ in room], [f for _, f in room])


def power_row(figures: dict[str, Any], n_T: int) -> Row:
    """Return the row on one line's power."""
    what, paper = f"n_T = {n_T}: f falls as a power law", "power not stated"
    law = law_of(figures, n_T)
    if law is None:
        return Row(what, paper, f"f N < {ROOM} at almost every N")
    return Row(
        what,
        paper,
        f"N^{law['p']:.2f}, R² {law['r2']:.3f}",
        holds(law["p"] < 0 and law["r2"] >= STRAIGHT),
    )


def result(figures: dict[str, Any]) -> Result:
    """Return the powers and their verdicts."""
    rows = [power_row(figures, n_T) for n_T in N_TREES]
    few, many = (figures["lines"][str(n_T)]["f"] for n_T in N_TREES)
    worse = sum(m > f for f, m in zip(few, many, strict=True))
    rows.append(
        Row(
            f"n_T = {N_TREES[1]} is better than {N_TREES[0]}",
            "at every N",
            "at every N" if not worse else f"not at {worse} of {len(few)} N",
            holds(not worse),
        )
    )
    table = Table(
        f"f at {CHANCE:.0%}, and the share of {figures['queries']:,} queries that get the nearest",
        ("N", *(f"f, n_T = {n}" for n in N_TREES), *(f"nearest, n_T = {n}" for n in N_TREES)),
        [
            [N, *(figures["lines"][str(n)][name][i] for name in ("f", "nearest") for n in N_TREES)]
            for i, N in enumerate(figures["N"])
        ],
    )
    return Result(rows, figures, [table])


def run_hypercube(context: Context) -> Result:
    """Run Figure 1 (a)."""
    stream = streams.hypercube(context, 100, context.pick(tiny=100, quick=4_000, full=5_000))
    most = context.pick(tiny=1_000, quick=30_000, full=1_000_000)
    return result(measured(context, stream, most))


def run_mnist(context: Context) -> Result:
    """Run Figure 1 (b)."""
    stream = streams.mnist(context, context.pick(tiny=100, quick=1_000, full=10_000))
    most = context.pick(tiny=1_000, quick=15_000, full=60_000)
    return result(measured(context, stream, most))


def draw(figures: dict[str, Any]) -> Any:
    """Draw fractions against N, straight where they follow a power law."""
    figure, (ax,) = plots.panels([f"Best fraction f that holds x* with {CHANCE:.0%} chance"])
    for color, (n_T, line) in zip(plots.COLORS, figures["lines"].items(), strict=False):
        ax.plot(figures["N"], line["f"], "o", color=color, label=f"n_T = {n_T}, k = {K}")
        law, x = law_of(figures, int(n_T)), plots.smooth(figures["N"])
        if law is not None:
            name = f"{law['c']:.2g} N^{law['p']:.2f}"
            plots.fit_line(ax, x, law["c"] * x ** law["p"], name, color)
    x = plots.smooth(figures["N"])
    ax.plot(x, 1 / x, ":", color=plots.FIT, linewidth=1, label="1 / N: the nearest itself")
    plots.named_axes(ax, "examples N", "fraction f", log_x=True, log_y=True)
    return figure


def _item(name: str, what: str, where: str, run: Callable[[Context], Result], **more: Any) -> Item:
    return Item(
        name=f"retrieval-{name}",
        title=f"Retrieval accuracy against N: {what}",
        where=where,
        chapter="Scaling",
        rule=RULE,
        run=run,
        plots={"": draw},
        **more,
    )


ITEMS = (
    _item("hypercube", "100-dimensional hypercube", "Section 4, Figure 1 (a)", run_hypercube),
    _item("mnist", "unlabelled MNIST", "Section 4, Figure 1 (b)", run_mnist, data=("mnist",)),
)
