"""Which columns count: their importances as bars, and how those of the largest have changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.report.charts import Chart, Curve, line_chart
from boundary_forest.report.formatting import counted, percent, short

MOST_BARS = 15
COLORS = ("blue", "orange", "green", "violet", "grey")  # of the columns that are followed


@dataclass(frozen=True)
class ImportanceBar:
    """A column."""

    name: str
    share: str
    style: str


@dataclass(frozen=True)
class Importances:
    """Bars and curves, as importances.html writes them."""

    note: str
    bars: list[ImportanceBar]
    others: str
    over_time: Chart


def column_importances(recorded: Sequence[tuple[int, dict[str, float]]]) -> Importances | None:
    """Return the importances that were recorded, the present ones last; None if none were."""
    if not recorded:
        return None
    now = recorded[-1][1]
    ranked = sorted(now, key=lambda name: -now[name])
    bars = [(name, now[name]) for name in ranked[:MOST_BARS]]
    largest = max(share for _, share in bars) or 1.0
    return Importances(
        note="A column's weight in the distance times its variance, as a share of the total.",
        bars=[
            ImportanceBar(name, percent(share), f"width:{100 * share / largest:.4g}%")
            for name, share in bars
        ],
        others=_others([now[name] for name in ranked[MOST_BARS:]]),
        over_time=_over_time(recorded),
    )


def _others(shares: Sequence[float]) -> str:
    if not shares:
        return ""
    return f"and {counted(len(shares), 'other')}, {percent(sum(shares))} together"


def _over_time(recorded: Sequence[tuple[int, dict[str, float]]]) -> Chart:
    """Return the curves of those that were largest at some time, by steps where weights changed."""
    peaks = {name: max(shares.get(name, 0.0) for _, shares in recorded) for name in recorded[-1][1]}
    names = sorted(peaks, key=lambda name: -peaks[name])[: len(COLORS)]
    steps = [recorded[0]]
    for rows, importances in recorded[1:]:
        if steps[-1][0] < rows - 1 and rows == last_decision(rows):
            steps.append((rows - 1, steps[-1][1]))
        steps.append((rows, importances))
    curves = [
        Curve(name, [importances.get(name, 0.0) for _, importances in steps], color)
        for name, color in zip(names, COLORS, strict=False)
    ]
    return line_chart(
        "Importance over time",
        [rows for rows, _ in steps],
        curves,
        write=percent,
        tick=lambda v: f"{100 * v:.4g} %",
        x_name="rows learned",
        x_tick=short,
        x_write=lambda x: f"{counted(round(x), 'row')} learned",
        group="importances",
        note=f"The columns that were most important at some time, recorded {_when(recorded)}.",
    )


def _when(recorded: Sequence[tuple[int, dict[str, float]]]) -> str:
    """Return when they were; a forest that forgets learns weights at regular intervals, too."""
    if all(rows == last_decision(rows) for rows, _ in recorded[:-1]):
        return "whenever the number of rows had doubled"
    return "when the weights were learned"
