"""The power of the query cost without a limit, against the number of dimensions."""

from typing import Any

import numpy as np

from boundary_forest.paper import plots, streams
from boundary_forest.paper.artificial import mean_line
from boundary_forest.paper.context import Context
from boundary_forest.paper.growth import line, sizes
from boundary_forest.paper.item import Item, Result, Row, Table, holds
from boundary_forest.paper.laws import straight_in_logs

N_TREES = 10
LIMIT = 0.5
NEAR = 0.05
DECADES = 10**1.5  # the range of N that the power is taken over

RULE = (
    "the power is the slope of log comparisons against log N over the last one and a half decades "
    f"of N. It must be below {LIMIT:g} for every D, never fall by more than 0.01 from one D to the "
    f"next, and be within {NEAR:g} of {LIMIT:g} for the largest D."
)


def run(context: Context) -> Result:
    """Unlimited trees on hypercubes of many dimensions, and the artificial tree as their limit."""
    dims = context.pick(
        tiny=[1, 10, 100],
        quick=[1, 2, 5, 10, 20, 50, 100, 200, 500],
        full=[1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000, 2000],
    )
    most = context.pick(tiny=600, quick=10_000, full=50_000)
    ends = sizes(round(most / DECADES), most, 10)
    context.expect(len(dims) + 1)
    found = {
        str(D): context.step(f"D={D} to N={most}", _comparisons, context, D, ends) for D in dims
    }
    n_trees = context.pick(tiny=2, quick=10, full=40)
    artificial = context.step(
        f"{n_trees} artificial trees to N={most}", mean_line, None, ends, n_trees, context.seed
    )
    alpha = [straight_in_logs(ends, found[str(D)])["p"] for D in dims]
    limit = straight_in_logs(ends, artificial["query"])["p"]
    figures = {"N": ends, "D": dims, "alpha": alpha, "query": found, "artificial": limit}
    falls = max(0.0, -float(np.diff(alpha).min()))
    rows = [
        Row("largest power of all D", "< 0.5", max(alpha), holds(max(alpha) < LIMIT)),
        Row(
            "the power grows with D",
            "from below",
            f"from {alpha[0]:.3f} to {alpha[-1]:.3f}; largest fall {falls:.3f}",
            holds(falls <= 0.01 and alpha[-1] > alpha[0]),
        ),
        Row(
            f"power at D = {dims[-1]}",
            "→ 0.5",
            alpha[-1],
            holds(LIMIT - NEAR <= alpha[-1] < LIMIT),
        ),
        Row("power of the artificial tree over the same N", 0.5, limit),
    ]
    table = Table(
        f"N from {ends[0]:,} to {ends[-1]:,}, mean of {N_TREES} trees",
        ("D", "power", f"comparisons at N = {most:,}"),
        [[D, a, found[str(D)][-1]] for D, a in zip(dims, alpha, strict=True)],
    )
    return Result(rows, figures, [table], remark(alpha[-1], dims[-1], limit, most))


def remark(alpha: float, D: int, limit: float, most: int) -> str:
    """How far the limit is."""
    if alpha >= LIMIT - NEAR:
        return ""
    return (
        f"At D = {D} the power is {alpha:.3f}, still below its limit. Over the same range of N, up "
        f"to {most:,}, the artificial tree, which is that limit, has {limit:.3f} rather than 0.5: "
        "its lower nodes' children still count."
    )


def _comparisons(context: Context, D: int, ends: list[int]) -> list[float]:
    stream = streams.hypercube(context, D, context.pick(tiny=100, quick=500, full=1_000))
    found: list[float] = line(
        stream,
        ends,
        k=None,
        n_trees=N_TREES,
        seed=context.seed,
        n_jobs=context.n_jobs,
        structure=False,
    )["query"]
    return found


def draw(figures: dict[str, Any]) -> Any:
    """The power against D."""
    figure, (ax,) = plots.panels(["Power of the query cost without a limit"])
    ax.plot(figures["D"], figures["alpha"], "o-", color=plots.COLORS[0], label="hypercube")
    ax.axhline(LIMIT, color=plots.FIT, linestyle="--", linewidth=1.1, label="0.5")
    name, color = f"artificial tree, same N: {figures['artificial']:.3f}", plots.COLORS[1]
    ax.axhline(figures["artificial"], color=color, linestyle=":", label=name)
    plots.named_axes(ax, "dimensions D", "power α", log_x=True)
    ax.set_ylim(0, 0.6)
    ax.legend(loc="lower right")
    return figure


ITEMS = (
    Item(
        name="exponent-in-dimension",
        title="The power α of the query cost without a limit, against D",
        where="Section 4, Figure 3 (b)",
        chapter="Scaling",
        rule=RULE,
        run=run,
        plots={"": draw},
    ),
)
