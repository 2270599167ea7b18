"""The artificial tree: all points equidistant, so that chance alone leads down the tree."""

import random
from typing import Any

import numpy as np

from boundary_forest.paper import plots
from boundary_forest.paper.context import Context
from boundary_forest.paper.item import Item, Result, Row, close


def grown(k: float, ends: list[int], seed: int) -> list[float]:
    """Expected comparisons of a query at each N, of one tree.

    A node of q children is stopped at with probability 1 / (q + 1), and each child is gone to with
    as much; one of k children cannot be stopped at. The expectation over queries is exact.
    """
    draw = random.Random(seed).random
    children: list[list[int]] = [[]]
    parents = [0]
    found = []
    for end in ends:
        for new in range(len(parents), end):
            v = 0
            while True:
                below = children[v]
                q = len(below)
                pick = int(draw() * (q + 1 if q < k else q))
                if pick == q:
                    break
                v = below[pick]
            below.append(new)
            children.append([])
            parents.append(v)
        found.append(1 + expected(children, parents, k))
    return found


def expected(children: list[list[int]], parents: list[int], k: float) -> float:
    """Comparisons below the root: children come after parents, so one pass from the end will do."""
    below = [0.0] * len(parents)
    for v in range(len(parents) - 1, 0, -1):
        q = len(children[v])
        below[parents[v]] += q + below[v] / (q + 1 if q < k else q) if q else 0.0
    q = len(children[0])
    return q + below[0] / (q + 1 if q < k else q)


def run(context: Context) -> Result:
    """All k, through all N."""
    most = context.pick(tiny=1_000, quick=100_000, full=1_000_000)
    ends = [round(n) for n in np.geomspace(100, most, 17)]
    limits = [10, 50, 200, None]
    context.expect(len(limits))
    lines = {}
    for k in limits:
        limit = float("inf") if k is None else k
        lines[str(k)] = context.step(f"k={k} N={most}", grown, limit, ends, context.seed)
    factor = lines["None"][-1] / np.sqrt(2 * most)
    return Result(
        rows=[Row("comparisons / (2N)^0.5", 1.02, factor, close(factor, 1.02, absolute=0.03))],
        figures={"N": ends, "lines": lines},
    )


def draw(figures: dict[str, Any]) -> Any:
    """Comparisons against N, a line for each k."""
    figure, (ax,) = plots.panels(["The artificial tree"])
    for color, (k, line) in zip(plots.COLORS, figures["lines"].items(), strict=False):
        ax.plot(figures["N"], line, "o-", color=color, label=f"k = {k}")
    N = plots.smooth(figures["N"])
    plots.fit_line(ax, N, np.sqrt(2 * N), "(2N)^0.5")
    plots.named_axes(ax, "N", "comparisons a query", log_x=True, log_y=True)
    return figure


ITEMS = (
    Item(
        name="artificial-tree",
        title="The artificial tree: all points equidistant",
        where="Section 4, Figure 3 (a)",
        chapter="Scaling",
        rule="the factor within 0.03 of the paper's",
        run=run,
        plots={"": draw},
    ),
)
