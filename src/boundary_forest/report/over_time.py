"""Sections that follow the rows: how good, how fast, how large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
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


def quality(history: History) -> list[Chart]:
    """Return the charts of the error, or of MAE and R2: overall and recent."""
    last = history.snapshots[-1]
    points: Sequence[QualityPoint | SessionSnapshot] = (
        [*history.curve, last] if history.curve else []
    )
    points = points or history.snapshots
    return [_error(points)] if last.task == "classify" else [_mae(points), _r2(points)]


def _error(points: Sequence[QualityPoint | SessionSnapshot]) -> Chart:
    curves = [
        Curve("recent", [p.recent_error for p in points], "orange"),
        Curve("overall", [p.error for p in points], "blue"),
        Curve("majority class", _wrong([p.majority_accuracy for p in points]), "grey", dashed=True),
        Curve("no change", _wrong([p.no_change_accuracy for p in points]), "violet", dashed=True),
    ]
    found = [v for v in settled([c.values for c in curves]) if v > 0]
    log = bool(found) and max(found) > WIDE * min(found)
    return _chart(
        points,
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


def _mae(points: Sequence[QualityPoint | SessionSnapshot]) -> Chart:
    return _chart(
        points,
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


def _r2(points: Sequence[QualityPoint | SessionSnapshot]) -> Chart:
    return _chart(
        points,
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


def speed(snapshots: Sequence[SessionSnapshot]) -> Chart:
    """Return the chart of rows per second."""
    return _chart(
        snapshots,
        "Throughput",
        [
            Curve("recent", [s.recent_rows_per_s for s in snapshots], "orange"),
            Curve("overall", [s.rows_per_s for s in snapshots], "blue"),
        ],
        write=lambda v: f"{rate(v)} rows/s",
        tick=short,
        note="Rows predicted and learned per second.",
    )


def storage(snapshots: Sequence[SessionSnapshot]) -> list[Chart]:
    """Return the charts of the examples stored and of memory."""
    unit, name = _unit(max(s.forest_bytes for s in snapshots))
    return [
        _chart(
            snapshots,
            "Examples stored",
            [
                Curve("learned", [s.learned for s in snapshots], "grey", dashed=True),
                Curve("stored", [s.stored for s in snapshots], "green", area=True),
            ],
            write=lambda v: count(round(v)),
            tick=short,
            note="A tree stores a row only if it would have predicted it wrongly.",
        ),
        _chart(
            snapshots,
            "Memory",
            [Curve("forest", [s.forest_bytes for s in snapshots], "violet", area=True)],
            write=size,
            tick=lambda v: f"{v / unit:.4g} {name}",
            note="Memory of the trees and the stored examples. The process needed at most "
            f"{size(snapshots[-1].memory_bytes)}, including libraries.",
        ),
    ]


def _chart(
    points: Sequence[QualityPoint | SessionSnapshot],
    title: str,
    curves: Sequence[Curve],
    *,
    write: Callable[[float], str],
    tick: Callable[[float], str],
    **options: Any,
) -> Chart:
    return line_chart(
        title,
        [p.rows for p in points],
        curves,
        write=write,
        tick=tick,
        x_name="rows",
        x_tick=short,
        x_write=lambda x: f"after {counted(round(x), 'row')}",
        group="rows",
        **options,
    )


def _unit(n_bytes: int) -> tuple[float, str]:
    """Return the unit in which so many bytes are a small number."""
    return next(
        ((u, n) for u, n in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")) if n_bytes >= u), (1, "B")
    )
