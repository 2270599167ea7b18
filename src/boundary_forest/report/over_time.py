"""Sections that follow the rows: how good, how fast, how large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from boundary_forest.report.charts import Chart, Curve, line_chart, settled
from boundary_forest.report.formatting import (
    count,
    counted,
    number,
    percent,
    rate,
    score,
    short,
    size,
)
from boundary_forest.session.history import History, SessionSnapshot
from boundary_forest.session.quality_curve import QualityPoint

WIDE = 8  # the largest error by the smallest, from which on the axis is logarithmic
RECENTLY = "recent: the last 1,000 predictions"
LOGARITHMIC = " The axis is logarithmic."


@dataclass(frozen=True)
class Along:
    """What charts follow: where points lie on the x axis, and how that is written.

    Charts of one ``group`` have the same axis.
    """

    xs: Sequence[float]
    name: str
    tick: Callable[[float], str]
    write: Callable[[float], str]
    group: str


def by_rows(points: Sequence[QualityPoint | SessionSnapshot]) -> Along:
    """Return the axis of the rows after which points were taken."""
    return Along(
        [p.rows for p in points],
        "rows",
        short,
        lambda x: f"after {counted(round(x), 'row')}",
        "rows",
    )


def quality(history: History) -> list[Chart]:
    """Return the charts of the error, or of MAE and R2: overall and recent."""
    last = history.snapshots[-1]
    points: Sequence[QualityPoint | SessionSnapshot] = (
        [*history.curve, last] if history.curve else []
    )
    return quality_of(points or history.snapshots, last.task)


def quality_of(
    points: Sequence[QualityPoint | SessionSnapshot], task: str, along: Along | None = None
) -> list[Chart]:
    """Return the same of some points, by rows unless ``along`` says what they follow."""
    if task == "classify":
        return [_error(points, along)]
    return [_mae(points, along), _r2(points, along)]


def _error(points: Sequence[QualityPoint | SessionSnapshot], along: Along | None) -> Chart:
    curves = [
        Curve("recent", [p.recent_error for p in points], "orange"),
        Curve("overall", [p.error for p in points], "blue"),
        Curve("majority class", _wrong([p.majority_accuracy for p in points]), "grey", dashed=True),
        Curve("no change", _wrong([p.no_change_accuracy for p in points]), "violet", dashed=True),
    ]
    found = [v for v in settled([c.values for c in curves]) if v > 0]
    log = bool(found) and max(found) > WIDE * min(found)
    return curves_chart(
        points,
        along,
        "Error",
        curves,
        write=percent,
        tick=lambda v: f"{100 * v:.4g} %",
        note=f"Share of wrong predictions, each made before the row was learned; {RECENTLY}. "
        "Dashed: the error of always predicting the most frequent class so far, or the "
        "previous label." + (LOGARITHMIC if log else ""),
        class_="wide",
        log=log,
    )


def _mae(points: Sequence[QualityPoint | SessionSnapshot], along: Along | None) -> Chart:
    return curves_chart(
        points,
        along,
        "Mean absolute error",
        [
            Curve("recent", [p.recent_mae for p in points], "orange"),
            Curve("overall", [p.mae for p in points], "blue"),
        ],
        write=number,
        tick=short,
        note="Mean absolute difference between prediction and true value, each row predicted "
        f"before it was learned; {RECENTLY}.",
        class_="half",
    )


def _r2(points: Sequence[QualityPoint | SessionSnapshot], along: Along | None) -> Chart:
    return curves_chart(
        points,
        along,
        "R²",
        [
            Curve("recent", [p.recent_r2 for p in points], "orange"),
            Curve("overall", [p.r2 for p in points], "blue"),
        ],
        write=score,
        tick=lambda v: f"{v:.4g}",
        note="Share of the target's variance that the predictions explain; 1 is perfect.",
        zero=False,
        class_="half",
    )


def _wrong(accuracies: Sequence[float | None]) -> list[float | None]:
    return [None if accuracy is None else 1 - accuracy for accuracy in accuracies]


def speed(snapshots: Sequence[SessionSnapshot], along: Along | None = None) -> Chart:
    """Return the chart of rows per second."""
    return curves_chart(
        snapshots,
        along,
        "Throughput",
        [
            Curve("recent", [s.recent_rows_per_s for s in snapshots], "orange"),
            Curve("overall", [s.rows_per_s for s in snapshots], "blue"),
        ],
        write=lambda v: f"{rate(v)} rows/s",
        tick=short,
        note="Rows predicted and learned per second.",
    )


def storage(snapshots: Sequence[SessionSnapshot], along: Along | None = None) -> list[Chart]:
    """Return the charts of the examples stored and of memory."""
    unit, name = _unit(max(s.forest_bytes for s in snapshots))
    return [
        curves_chart(
            snapshots,
            along,
            "Examples stored",
            [
                Curve("learned", [s.learned for s in snapshots], "grey", dashed=True),
                Curve("stored", [s.stored for s in snapshots], "green", area=True),
            ],
            write=lambda v: count(round(v)),
            tick=short,
            note="A tree stores a row only if it would have predicted it wrongly.",
        ),
        curves_chart(
            snapshots,
            along,
            "Memory",
            [Curve("forest", [s.forest_bytes for s in snapshots], "violet", area=True)],
            write=size,
            tick=lambda v: f"{v / unit:.4g} {name}",
            note="Memory of the trees and the stored examples. The process needed at most "
            f"{size(snapshots[-1].memory_bytes)}, including libraries.",
        ),
    ]


def curves_chart(
    points: Sequence[QualityPoint | SessionSnapshot],
    along: Along | None,
    title: str,
    curves: Sequence[Curve],
    *,
    write: Callable[[float], str],
    tick: Callable[[float], str],
    **options: Any,
) -> Chart:
    """Return a chart of curves along their rows, or along something else."""
    along = by_rows(points) if along is None else along
    return line_chart(
        title,
        along.xs,
        curves,
        write=write,
        tick=tick,
        x_name=along.name,
        x_tick=along.tick,
        x_write=along.write,
        group=along.group,
        **options,
    )


def _unit(n_bytes: int) -> tuple[float, str]:
    """Return the unit in which so many bytes are a small number."""
    return next(
        ((u, n) for u, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if n_bytes >= u), (1, "B")
    )
