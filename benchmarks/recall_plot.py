"""The picture and the tables of the section ``retrieval``: recall against time, build and memory.

matplotlib comes with the ``plot`` extra; without it there are only tables.
"""

from pathlib import Path
from typing import Any

import numpy as np

from paper.plots import COLORS, FIT, is_installed, named_axes, panels, save

RECALLS = (0.9, 0.95, 0.99)
SHOWN = (0.8, 0.9995)  # recalls at the ends of the axis
TICKS = (0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999)
TITLES = {"mnist": "MNIST, bytes", "glove100": "GloVe-100, normalised"}
# The forest stands out; the further settings of hnswlib are the same colour, and paler.
LINES: dict[str, dict[str, Any]] = {
    "forest": {"color": COLORS[1], "marker": "o", "linewidth": 2.4, "zorder": 5},
    "forest_20": {"color": COLORS[1], "marker": "o", "alpha": 0.45, "linestyle": "--"},
    "hnswlib": {"color": COLORS[0], "marker": "s"},
    "hnswlib_120": {"color": COLORS[0], "marker": "s", "alpha": 0.6, "linestyle": "--"},
    "hnswlib_80": {"color": COLORS[0], "marker": "s", "alpha": 0.45, "linestyle": "-."},
    "hnswlib_40": {"color": COLORS[0], "marker": "s", "alpha": 0.35, "linestyle": ":"},
    "usearch": {"color": COLORS[2], "marker": "^"},
    "faiss_hnsw": {"color": COLORS[3], "marker": "D"},
    "faiss_ivf": {"color": COLORS[4], "marker": "v"},
    "faiss_flat": {"color": FIT, "marker": "*", "markersize": 11, "linestyle": ""},
}


def time_at(curve: list[dict[str, float]], wanted: float) -> float | None:
    """Return the microseconds at a recall, between the widths that were tried; None beyond them."""
    points = sorted((point["recall"], point["us"]) for point in curve)
    recalls, times = zip(*points, strict=True)
    if not recalls[0] <= wanted <= recalls[-1]:
        return float(times[0]) if recalls[0] > wanted else None
    return float(np.interp(wanted, recalls, times))


def write(section: dict[str, Any], stem: Path) -> list[Path]:
    """Write ``stem``.md, and ``stem``.svg if matplotlib is there; return them."""
    stem.parent.mkdir(parents=True, exist_ok=True)
    tables = stem.with_suffix(".md")
    tables.write_text("\n".join(_table(part) for part in section["parts"]), encoding="utf-8")
    if not is_installed():
        return [tables]
    save(drawn, section["parts"], stem)
    return [tables, stem.with_suffix(".svg")]


def drawn(parts: list[dict[str, Any]]) -> Any:
    """Return the figure: a panel for each data set, a line for each index."""
    figure, axes = panels([_title(part) for part in parts], width=5.4, height=4.6)
    for ax, part in zip(axes, parts, strict=True):
        # As many hundredths are missing at 0.9 as tenths of that at 0.99: the axis shows both.
        ax.set_xscale("function", functions=(_spread, _gathered))
        for row in part["indexes"]:
            if row["installed"]:
                _draw(ax, row, label=row["title"] if ax is axes[0] else None)
        named_axes(ax, "recall@10", "microseconds a query, one thread", log_y=True)
        ax.set_xlim(*SHOWN)
        ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
        ax.minorticks_off()
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    axes[0].legend([], [], frameon=False)  # one below both panels is enough
    return figure


def _draw(ax: Any, row: dict[str, Any], label: str | None) -> None:
    curve = sorted(row["curve"], key=lambda point: point["width"])
    least, most = SHOWN
    recalls = np.clip([point["recall"] for point in curve], 0.0, most)
    times = np.array([point["us"] for point in curve])
    # Up to the first point that finds all: further ones would stand above each other.
    n = int(np.searchsorted(np.maximum.accumulate(recalls), most - 1e-6)) + 1
    kept = recalls[:n] >= least
    ax.plot(recalls[:n][kept], times[:n][kept], label=label, clip_on=False, **LINES[row["index"]])


def _spread(recall: Any) -> Any:
    return -np.log10(np.maximum(1.0 - np.asarray(recall), 1e-6))


def _gathered(place: Any) -> Any:
    return 1.0 - 10.0 ** -np.asarray(place)


def _title(part: dict[str, Any]) -> str:
    n, n_features = part["shape"]
    return f"{TITLES.get(part['data'], part['data'])}: {n:,} rows of {n_features}"


def _table(part: dict[str, Any]) -> str:
    """Return the figures of a data set in Markdown."""
    headings = ["build s", "bytes per example", *(f"us at {wanted:.2f}" for wanted in RECALLS)]
    lines = [
        f"| {_title(part)} | {' | '.join(headings)} |",
        f"|---|{'---|' * len(headings)}",
    ]
    for row in part["indexes"]:
        if not row["installed"]:
            continue
        times = (time_at(row["curve"], wanted) for wanted in RECALLS)
        cells = [f"{row['build_s']:.1f}", f"{row['bytes']:.0f}"]
        cells += ["-" if us is None else f"{us:.0f}" for us in times]
        lines.append(f"| {row['title']} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"
