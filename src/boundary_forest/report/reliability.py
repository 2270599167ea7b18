"""Reliability: how often answers of each confidence were right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from boundary_forest.report.charts import Axis, Mark, marks
from boundary_forest.report.formatting import count, percent
from boundary_forest.session.class_measures import Bin

WIDE, HIGH = 1000, 640  # the box that the plot is drawn in
LEAST, MOST = 8, 30  # radius of a point, by the root of its number of rows


@dataclass(frozen=True)
class Dot:
    """Answers of similar confidence; the area is their number."""

    x: str
    y: str
    radius: str
    title: str


@dataclass(frozen=True)
class Reliability:
    """The plot, as reliability.html writes it."""

    note: str
    label: str
    grid: str
    path: str
    dots: list[Dot]
    marks_across: list[Mark]
    marks_up: list[Mark]
    width: int = WIDE
    height: int = HIGH


def reliability(bins: Sequence[Bin]) -> Reliability | None:
    """Return accuracy against confidence; None if nothing was answered."""
    if not bins:
        return None
    rows = sum(found.rows for found in bins)
    apart = sum(found.rows * abs(found.confidence - found.accuracy) for found in bins) / rows
    most = max(found.rows for found in bins)
    scale = Axis(0.0, 1.0)
    points = [(WIDE * found.confidence, HIGH * (1 - found.accuracy)) for found in bins]
    return Reliability(
        note="On the dashed line, predictions are right as often as their confidence says; above "
        f"it, more often. Mean gap: {percent(apart)}. Larger dots: more rows. The warm-up is left "
        "out, because no forest predicts there.",
        label="Accuracy against confidence: "
        + "; ".join(f"{percent(b.confidence)} {percent(b.accuracy)}" for b in bins),
        grid="".join(f"M0 {HIGH * t:.5g}H{WIDE}M{WIDE * t:.5g} 0V{HIGH}" for t in scale.ticks()),
        path="M" + " ".join(f"{x:.5g},{y:.5g}" for x, y in points),
        dots=[
            Dot(f"{x:.5g}", f"{y:.5g}", f"{_radius(b.rows / most):.3g}", _title(b))
            for (x, y), b in zip(points, bins, strict=True)
        ],
        marks_across=marks(scale, _percent, "left"),
        marks_up=marks(scale, _percent, "bottom"),
    )


def _radius(share: float) -> float:
    return LEAST + (MOST - LEAST) * math.sqrt(share)


def _title(found: Bin) -> str:
    sure, right = percent(found.confidence), percent(found.accuracy)
    return f"confidence {sure}, right {right}: {count(found.rows)} rows"


def _percent(value: float) -> str:
    return f"{100 * value:.4g} %"
