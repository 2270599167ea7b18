"""Sections that follow the rows: how good, how fast, how large."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from boundary_forest.session.progress import Snapshot
from boundary_forest.session.report.lines import Chart, Curve, line_chart
from boundary_forest.session.wording import (
    count,
    counted,
    number,
    percent,
    rate,
    score,
    short,
    size,
)


def quality(snapshots: Sequence[Snapshot]) -> list[Chart]:
    """Return the charts of the error, or of MAE and R2: overall and recent."""
    if snapshots[-1].task == "classify":
        error = _chart(
            snapshots,
            "Error",
            [
                Curve("recent", [s.recent_error for s in snapshots], "orange"),
                Curve("overall", [s.error for s in snapshots], "blue"),
            ],
            write=percent,
            tick=lambda v: f"{100 * v:.4g} %",
            note="The share of rows that were answered wrongly, each before it was learned.",
            class_="wide",
        )
        return [error]
    return [
        _chart(
            snapshots,
            "Mean absolute error",
            [
                Curve("recent", [s.recent_mae for s in snapshots], "orange"),
                Curve("overall", [s.mae for s in snapshots], "blue"),
            ],
            write=number,
            tick=short,
            note="The mean distance between answer and truth, each row before it was learned.",
            class_="half",
        ),
        _chart(
            snapshots,
            "R²",
            [
                Curve("recent", [s.recent_r2 for s in snapshots], "orange"),
                Curve("overall", [s.r2 for s in snapshots], "blue"),
            ],
            write=score,
            tick=lambda v: f"{v:.4g}",
            note="The share of the target's variance that the answers explain; 1 is perfect.",
            zero=False,
            class_="half",
        ),
    ]


def speed(snapshots: Sequence[Snapshot]) -> Chart:
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
        note="Rows answered and learned per second.",
    )


def storage(snapshots: Sequence[Snapshot]) -> list[Chart]:
    """Return the charts of the examples stored and of memory."""
    unit, name = _unit(max(s.memory_bytes for s in snapshots))
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
            note="A row is stored only where a tree would have answered it wrongly.",
        ),
        _chart(
            snapshots,
            "Memory",
            [Curve("process", [s.memory_bytes for s in snapshots], "violet", area=True)],
            write=size,
            tick=lambda v: f"{v / unit:.4g} {name}",
            note="The peak of the whole process so far, libraries included.",
        ),
    ]


def _chart(
    snapshots: Sequence[Snapshot],
    title: str,
    curves: Sequence[Curve],
    *,
    write: Callable[[float], str],
    tick: Callable[[float], str],
    **options: Any,
) -> Chart:
    return line_chart(
        title,
        [s.rows for s in snapshots],
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
