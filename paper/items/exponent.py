"""The power of the query cost without a limit, against the number of dimensions."""

from typing import Any

import numpy as np

from paper import plots, streams
from paper.artificial import mean_line
from paper.context import Context
from paper.growth import line, sizes
from paper.item import Item, Result, Row, Table, holds
from paper.laws import straight_in_logs

N_TREES = 10
LIMIT = 0.5
NEAR = 0.05
ERRORS = 2.0  # standard errors within which a power is where it should be
DECADES = 10**1.5  # the range of N that the power is taken over

RULE = (
    "the power is the slope of log comparisons against log N over the last one and a half decades "
    "of N, the mean of several forests of ten trees, each with examples of its own. Within "
    f"{ERRORS:g} standard errors of that mean, it must be below {LIMIT:g} for every D and never "
    f"fall from one D to the next; for the largest D it must be within {NEAR:g} of {LIMIT:g}."
)


def run(context: Context) -> Result:
    """Measure unlimited trees on hypercubes of many D; the artificial tree is their limit."""
    dims = context.pick(
        tiny=[1, 10, 100],
        quick=[1, 2, 5, 10, 20, 50, 100, 200, 500],
        full=[1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 1000, 2000],
    )
    most = context.pick(tiny=600, quick=10_000, full=50_000)
    n_forests = context.pick(tiny=2, quick=3, full=8)
    ends = sizes(round(most / DECADES), most, 10)
    context.expect(len(dims) * n_forests + 1)
    powers, last = [], []
    for D in dims:
        lines = [
            context.step(f"D={D} to N={most}, forest {i}", _comparisons, context, D, ends, i)
            for i in range(n_forests)
        ]
        powers.append([straight_in_logs(ends, query)["p"] for query in lines])
        last.append(float(np.mean([query[-1] for query in lines])))
    n_trees = context.pick(tiny=2, quick=10, full=40)
    artificial = context.step(
        f"{n_trees} artificial trees to N={most}", mean_line, None, ends, n_trees, context.seed
    )
    limit = straight_in_logs(ends, artificial["query"])["p"]
    alpha, error = means(powers)
    figures = {
        "N": ends,
        "D": dims,
        "alpha": alpha,
        "error": error,
        "last": last,
        "artificial": limit,
        "artificial_last": artificial["query"][-1],
    }
    table = Table(
        f"N from {ends[0]:,} to {ends[-1]:,}, {n_forests} forests of {N_TREES} trees",
        ("D", "power", "standard error", f"comparisons at N = {most:,}"),
        [list(row) for row in zip(dims, alpha, error, last, strict=True)],
    )
    return Result(judged(dims, alpha, error, limit), figures, [table], remark(figures))


def means(powers: list[list[float]]) -> tuple[list[float], list[float]]:
    """Return the mean of the forests' powers for each D, and its standard error."""
    p = np.array(powers)
    errors = p.std(axis=1, ddof=1) / np.sqrt(p.shape[1])
    return p.mean(axis=1).tolist(), errors.tolist()


def judged(dims: list[int], alpha: list[float], error: list[float], limit: float) -> list[Row]:
    """Return rows on the paper's claims about the power."""
    a, e = np.array(alpha), np.array(error)
    top = int(np.argmax(a))
    fall = np.diff(a) + ERRORS * np.hypot(e[1:], e[:-1])  # negative: more than chance explains
    return [
        Row(
            f"largest power, at D = {dims[top]:,}",
            "< 0.5",
            f"{a[top]:.3f} ± {e[top]:.3f}",
            holds(bool((a - ERRORS * e < LIMIT).all())),
        ),
        Row(
            "the power grows with D",
            "from below",
            f"from {a[0]:.3f} to {a[-1]:.3f}",
            holds(bool((fall >= 0).all() and a[-1] > a[0])),
        ),
        Row(
            f"power at D = {dims[-1]:,}",
            "→ 0.5",
            f"{a[-1]:.3f} ± {e[-1]:.3f}",
            holds(bool(abs(a[-1] - LIMIT) <= NEAR)),
        ),
        Row("power of the artificial tree over the same N", 0.5, limit),
    ]


def remark(figures: dict[str, Any]) -> str:
    """Describe how far the limit is, and what goes beyond it."""
    alpha, limit, most = figures["alpha"][-1], figures["artificial"], figures["N"][-1]
    text = (
        f"Over the same range of N, up to {most:,}, the artificial tree, which is the limit of "
        f"many dimensions, has a power of {limit:.3f} rather than 0.5: its lower nodes' children "
        f"still count. The hypercube of most dimensions has {alpha:.3f}."
    )
    if alpha - ERRORS * figures["error"][-1] >= LIMIT:
        text += (
            " That is a little more than 0.5, and more than chance. A query there costs "
            f"{figures['last'][-1]:.0f} comparisons at N = {most:,}, and in the artificial tree "
            f"{figures['artificial_last']:.0f}: the tree is not yet the artificial one, and its "
            "power comes down to 0.5 from above, if at all. The figures do not show why; that "
            "examples near the middle of a cube are close to all others, which makes them better "
            "parents, may have to do with it."
        )
    return text


def _comparisons(context: Context, D: int, ends: list[int], forest: int) -> list[float]:
    base = streams.hypercube(context, D, context.pick(tiny=100, quick=500, full=1_000))
    first = forest * (1 + ends[-1] // streams.BLOCK)
    stream = streams.Stream(lambda i: base.block(first + i), base.queries)
    found: list[float] = line(
        stream,
        ends,
        k=None,
        n_trees=N_TREES,
        seed=context.seed + forest,
        n_jobs=context.n_jobs,
        structure=False,
    )["query"]
    return found


def draw(figures: dict[str, Any]) -> Any:
    """Draw the power against D."""
    figure, (ax,) = plots.panels(["Power of the query cost without a limit"])
    name = "hypercube, ± standard error"
    D, alpha, error = (figures[which] for which in ("D", "alpha", "error"))
    ax.errorbar(D, alpha, error, fmt="o-", color=plots.COLORS[0], capsize=2, label=name)
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
