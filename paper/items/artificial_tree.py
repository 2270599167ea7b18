"""The artificial tree against N: (2N)^0.5 without a limit, a logarithm with one."""

from typing import Any

import numpy as np

from paper import plots
from paper.artificial import mean_line
from paper.context import Context
from paper.growth import sizes
from paper.item import Item, Result, Row, Table, close, holds
from paper.laws import judged, straight_in_logs

LIMITS = (10, 20, 50, 100, None)
RULED_OUT = 5.0
FEWEST = 6
FACTOR, NEAR_FACTOR = 1.02, 0.03
QUARTER, NEAR_QUARTER = 0.25, 0.05
NEAR_ROOT = 0.05

RULE = (
    f"the factor at the largest N within {NEAR_FACTOR:g} of {FACTOR:g}; the root's children within "
    f"{NEAR_ROOT:.0%} of (2N)^0.5 there; the power of its children's children, over the upper half "
    f"of log N, within {NEAR_QUARTER:g} of {QUARTER:g}. With k, once the root is full, the power "
    f"law must have at least {RULED_OUT:g} times the error of the logarithm, both fitted to the "
    "first half of the points; and the root must be full at an N within 20 % of k²/2, the paper's "
    "argument."
)


def run(context: Context) -> Result:
    """Grow trees with every k through all N."""
    most = context.pick(tiny=1_000, quick=100_000, full=1_000_000)
    n_trees = context.pick(tiny=2, quick=5, full=10)
    ends = sizes(30, most, context.pick(tiny=9, quick=25, full=33))
    context.expect(len(LIMITS))
    lines = {
        str(k): context.step(
            f"k={k}, {n_trees} trees to N={most}", mean_line, k, ends, n_trees, context.seed
        )
        for k in LIMITS
    }
    figures = {"N": ends, "lines": lines, "trees": n_trees}
    rows = unlimited_rows(figures)
    for k in (k for k in LIMITS if k is not None):
        rows += limited_rows(figures, k)
    half, none = len(ends) // 2, lines["None"]
    table = Table(
        f"Without a limit, mean of {n_trees} trees",
        ("N", "comparisons / (2N)^0.5", "standard error", "root's children / (2N)^0.5"),
        [
            [N, q / np.sqrt(2 * N), e / np.sqrt(2 * N), r / np.sqrt(2 * N)]
            for N, q, e, r in list(
                zip(ends, none["query"], none["error"], none["root"], strict=True)
            )[half::3]
        ],
    )
    return Result(rows, figures, [table], remark(figures))


def remark(figures: dict[str, Any]) -> str:
    """Explain why a logarithm takes long to show."""
    laws = {k: law_of(figures, k) for k in LIMITS if k is not None}
    waves = [k for k, law in laws.items() if law and law["factor"] < RULED_OUT]
    if not waves:
        return ""
    k, N = waves[0], figures["N"]
    at = min(range(len(N)), key=lambda i: abs(np.log(N[i] / (k**2.5 / 2))))  # amid the first wave
    return (
        f"For k = {' and '.join(map(str, waves))} the line is not straight in log N but rises in "
        "waves, each a factor of k long: once the root is full, each of its k children has a tree "
        "below it that grows as if it had no limit, so that a query should cost about "
        f"k + (2N/k)^0.5 until these are full too, at N = k³/2 ({k**3 // 2:,} for k = {k}). At "
        f"N = {N[at]:,} and k = {k} that is {k + np.sqrt(2 * N[at] / k):.0f}; the trees have "
        f"{figures['lines'][str(k)]['query'][at]:.0f}. The logarithm is what the waves climb, and "
        "takes several of them to show."
    )


def unlimited_rows(figures: dict[str, Any]) -> list[Row]:
    """Return rows on the factor, the root's children and their children."""
    N, of = figures["N"], figures["lines"]["None"]
    scale, half = float(np.sqrt(2 * N[-1])), len(N) // 2
    factor, root = of["query"][-1] / scale, of["root"][-1] / scale
    second = straight_in_logs(N[half:], of["second"][half:])["p"]
    return [
        Row(
            f"no limit: comparisons / (2N)^0.5 at N = {N[-1]:,}",
            FACTOR,
            factor,
            close(factor, FACTOR, absolute=NEAR_FACTOR),
        ),
        Row(
            "no limit: root's children / (2N)^0.5",
            1.0,
            root,
            close(root, 1.0, absolute=NEAR_ROOT),
        ),
        Row(
            "no limit: power of the children of the root's children",
            QUARTER,
            second,
            close(second, QUARTER, absolute=NEAR_QUARTER),
        ),
    ]


def full_from(figures: dict[str, Any], k: int) -> int | None:
    """Return the index of the first N at which the roots of all trees are full."""
    roots = figures["lines"][str(k)]["root"]
    return next((i for i, root in enumerate(roots) if root >= k), None)


def filled_at(figures: dict[str, Any], k: int) -> float | None:
    """Return the N at which the mean unlimited root has k children, interpolated in logarithms."""
    root = figures["lines"]["None"]["root"]
    if root[-1] < k:
        return None
    return float(np.exp(np.interp(np.log(k), np.log(root), np.log(figures["N"]))))


def law_of(figures: dict[str, Any], k: int) -> dict[str, Any] | None:
    """Fit both laws from where the root is full on."""
    start = full_from(figures, k)
    if start is None or len(figures["N"]) - start < FEWEST:
        return None
    return judged(figures["N"][start:], figures["lines"][str(k)]["query"][start:])


def limited_rows(figures: dict[str, Any], k: int) -> list[Row]:
    """Return rows on the law of one k, and on the N at which the root is full."""
    law, filled = law_of(figures, k), filled_at(figures, k)
    what, paper = f"k = {k}: logarithm once the root is full", "power law ruled out"
    if law is None:
        rows = [Row(what, paper, "the root gets full too late to tell")]
    else:
        ours = f"power law's error is {law['factor']:.1f} times as large"
        rows = [Row(what, paper, ours, holds(law["factor"] >= RULED_OUT))]
    if filled is not None:
        near = close(filled, k * k / 2, relative=0.2)
        rows.append(Row(f"k = {k}: N at which the root is full", round(k * k / 2), filled, near))
    return rows


def draw(figures: dict[str, Any]) -> Any:
    """Draw comparisons against N on two scales, a line for each k."""
    figure, axes = plots.panels(["Power laws are straight", "Logarithms are straight"])
    N, x = figures["N"], plots.smooth(figures["N"])
    for color, k in zip(plots.COLORS, LIMITS, strict=False):
        name, y = "none" if k is None else k, figures["lines"][str(k)]["query"]
        for ax in axes:
            if k is None:
                ax.plot(N, y, **plots.behind(color, label=f"k = {name}"))
            else:
                ax.plot(N, y, "o-", color=color, markersize=3, label=f"k = {name}")
    plots.fit_line(axes[0], x, FACTOR * np.sqrt(2 * x), "1.02 (2N)^0.5")
    fits, marks = "a log N + b, fitted to first half", "root is full"
    for k in (k for k in LIMITS if k is not None):
        law, start = law_of(figures, k), full_from(figures, k)
        if law is not None:
            at = plots.smooth([law["from"], N[-1]])
            plots.fit_line(axes[1], at, law["log"]["a"] * np.log(at) + law["log"]["b"], fits)
            fits = "_"  # one entry in the legend
        if start is not None:
            y = figures["lines"][str(k)]["query"][start]
            axes[1].plot(N[start], y, "D", color=plots.FIT, markersize=5, label=marks, zorder=4)
            marks = "_"
    plots.named_axes(axes[0], "examples N", "comparisons a query", log_x=True, log_y=True)
    plots.named_axes(axes[1], "examples N", "comparisons a query", log_x=True)
    axes[1].set_ylim(0, 1.3 * max(figures["lines"]["100"]["query"]))
    return figure


ITEMS = (
    Item(
        name="artificial-tree",
        title="The artificial tree: all points equidistant",
        where="Section 4, Figure 3 (a) and text",
        chapter="Scaling",
        rule=RULE,
        run=run,
        plots={"": draw},
    ),
)
