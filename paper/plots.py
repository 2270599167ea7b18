"""One style for all plots, and functions that write their files.

matplotlib is imported when the first plot is drawn. Figures are made without pyplot, so that no
window system is needed and nothing is global.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Distinguishable with colour blindness, and in grey by their lightness.
COLORS = (
    *("#0b6fa4", "#d1682f", "#2a8f68", "#8a5aa8", "#b8902a", "#5b6770"),
    *("#c44d7b", "#7a5230"),
)
FIT = "#30363d"
STYLE: Any = {
    "axes.axisbelow": True,
    "axes.edgecolor": "#8a929a",
    "axes.grid": True,
    "axes.labelcolor": "#30363d",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 11,
    "figure.dpi": 110,
    "figure.facecolor": "white",
    "font.size": 10,
    "grid.color": "#e3e6e9",
    "grid.linewidth": 0.7,
    "legend.fontsize": 8.5,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#d0d4d8",
    "lines.linewidth": 1.6,
    "lines.markersize": 4,
    "savefig.bbox": "tight",
    "svg.fonttype": "path",  # looks the same where the font is not installed
    "svg.hashsalt": "boundary-forest",  # the same figure gives the same file
    "xtick.color": "#5b6770",
    "ytick.color": "#5b6770",
}


def is_installed() -> bool:
    """Return whether plots can be drawn."""
    from importlib.util import find_spec

    return find_spec("matplotlib") is not None


def panels(titles: Sequence[str], *, width: float = 5.2, height: float = 4.0) -> Any:
    """Return a figure with one panel for each title, side by side, and the list of its axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * len(titles), height), layout="constrained")
    axes = list(figure.subplots(1, len(titles), squeeze=False)[0])
    for ax, title in zip(axes, titles, strict=True):
        ax.set_title(title, loc="left")
    return figure, axes


def grid(rows: int, columns: int, *, width: float = 3.4, height: float = 3.0) -> Any:
    """Return a figure of small panels to compare with each other, and its rows of axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def named_axes(ax: "Axes", x: str, y: str, *, log_x: bool = False, log_y: bool = False) -> None:
    """Set labels and logarithmic scales; write out numbers within two decades."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    ax.set_xlabel(x)
    ax.set_ylabel(y)
    for is_log, name, axis in ((log_x, "x", ax.xaxis), (log_y, "y", ax.yaxis)):
        if not is_log:
            continue
        getattr(ax, f"set_{name}scale")("log")
        low, high = axis.get_view_interval()
        axis.set_minor_formatter(NullFormatter())
        if high / low < 200 and high < 1e5:  # longer numbers would run into each other
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def behind(color: str, **more: Any) -> dict[str, Any]:
    """Return the style of a broad pale line, visible even where others lie on it."""
    return {"color": color, "linewidth": 5, "alpha": 0.45, "zorder": 1.8, **more}


def fit_line(ax: "Axes", x: Any, y: Any, label: str | None, color: str = FIT) -> None:
    """Draw a law as a thin dashed line over the points."""
    ax.plot(x, y, "--", color=color, linewidth=1.1, label=label, zorder=3)


def smooth(x: Sequence[float]) -> Any:
    """Return enough points for a smooth curve on a logarithmic axis."""
    return np.geomspace(min(x), max(x), 100)


def save(draw: Callable[[Any], "Figure"], figures: Any, stem: Path) -> None:
    """Draw in the style, with a legend if lines have labels, to ``stem``.svg."""
    import matplotlib

    stem.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(STYLE):
        figure = draw(figures)
        for ax in figure.axes:
            if ax.get_legend_handles_labels()[1] and ax.get_legend() is None:
                ax.legend()
        # The suffix is appended: a name may have a dot.
        figure.savefig(f"{stem}.svg", metadata={"Date": None})


def side_by_side(figures: dict[str, Any], which: str, title: str, *, log: bool) -> Any:
    """Draw a panel for each data set and a line for each learner; the paper's marks are hollow.

    ``figures`` has ``found``, by data set and learner, and ``paper``, by learner and data set.
    """
    found, paper = figures["found"], figures["paper"]
    names = list(reversed([name for name in paper if any(name in of for of in found.values())]))
    titles = [of["title"] for of in found.values()]
    figure, axes = panels(titles, width=2.5, height=1.2 + 0.34 * len(names))
    hollow = {"markerfacecolor": "none", "markeredgecolor": FIT, "markersize": 6}
    for ax, (data, of) in zip(axes, found.items(), strict=True):
        seen = []
        for y, name in enumerate(names):
            color = COLORS[1] if name.startswith(("BF", "OBF")) else COLORS[0]
            seen += ax.plot([of[name][which]], [y], "o", color=color, markersize=7)
            if of["whole"] and data in paper[name]:
                seen += ax.plot([paper[name][data]], [y], "D", **hollow)
        values = [line.get_xdata()[0] for line in seen]
        ax.set_xlim(*((min(values) / 1.5, max(values) * 1.5) if log else (0, 1.08 * max(values))))
        named_axes(ax, title, "", log_x=log)
        if log:
            _few_ticks(ax, values)
        ax.set_yticks(range(len(names)), names if ax is axes[0] else [""] * len(names))
        ax.set_ylim(-0.6, len(names) - 0.4)
    _legend_below(figure, hollow)
    return figure


def _few_ticks(ax: "Axes", values: list[float]) -> None:
    """Set ticks at powers of ten in a narrow panel, and more if there is hardly one."""
    from matplotlib.ticker import FuncFormatter, LogLocator

    wide = max(values) / min(values) > 8
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 3.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def _legend_below(figure: "Figure", hollow: dict[str, Any]) -> None:
    from matplotlib.lines import Line2D

    marks = {
        "the forest": Line2D([], [], color=COLORS[1], marker="o", linestyle="", markersize=7),
        "others": Line2D([], [], color=COLORS[0], marker="o", linestyle="", markersize=7),
        "the paper's": Line2D([], [], marker="D", linestyle="", **hollow),
    }
    figure.legend(marks.values(), marks.keys(), loc="outside lower center", ncols=3, frameon=False)
