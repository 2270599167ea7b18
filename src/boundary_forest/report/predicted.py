"""Predicted against true: points where they are few, their density where they are many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from boundary_forest.report.charts import Axis, Mark, axis, marks
from boundary_forest.report.formatting import count, number, percent, short

SIDE = 1000  # of the square that the plot is drawn in
FEW = 400  # pairs that are drawn as points
HEXAGONS = 32  # across the plot
LEVELS = 6  # of density; classes q1 to q6 of page.css
FAR = 0.005  # of the pairs at either end may be left out, if that makes the range much smaller
BARS = 41  # of the histogram; odd, so that one is around zero

Pair = tuple[float, float]


@dataclass(frozen=True)
class ScatterPoint:
    """A pair, where there are few."""

    x: str
    y: str
    title: str


@dataclass(frozen=True)
class Hexagon:
    """A cell of the density, where there are many; ``level`` is its colour."""

    outline: str
    level: int
    title: str


@dataclass(frozen=True)
class Scatter:
    """The plot of both, as predicted.html writes it."""

    note: str
    label: str
    grid: str
    points: list[ScatterPoint]
    cells: list[Hexagon]
    marks_across: list[Mark]
    marks_up: list[Mark]
    side: int = SIDE


@dataclass(frozen=True)
class HistogramBar:
    """A bar of the histogram."""

    x: str
    y: str
    width: str
    height: str
    title: str


@dataclass(frozen=True)
class Histogram:
    """The histogram of predicted minus true, as predicted.html writes it."""

    note: str
    bars: list[HistogramBar]
    marks: list[Mark]
    side: int = SIDE
    middle: float = SIDE / 2


def predicted_versus_true(pairs: Sequence[Pair]) -> tuple[Scatter, Histogram] | None:
    """Return the plot of both and the histogram of their differences; None if there are none."""
    finite = [p for p in pairs if math.isfinite(p[0]) and math.isfinite(p[1])]
    return (_scatter(finite), _differences(finite)) if finite else None


def _scatter(pairs: list[Pair]) -> Scatter:
    scale = _range([v for pair in pairs for v in pair])
    inside = [(t, p) for t, p in pairs if 0 <= scale.at(t) <= 1 and 0 <= scale.at(p) <= 1]
    grid = "".join(
        f"M0 {SIDE * (1 - scale.at(t)):.5g}H{SIDE}M{SIDE * scale.at(t):.5g} 0V{SIDE}"
        for t in scale.ticks()
    )
    left_out = len(pairs) - len(inside)
    few = len(inside) <= FEW
    return Scatter(
        note="On the dashed line, a prediction is right; above it, too large. A sample of "
        f"{count(len(pairs))} rows"
        + (f", {count(left_out)} of them outside the plot." if left_out else "."),
        label=f"Predicted against true values of {count(len(inside))} rows",
        grid=grid,
        points=_points(inside, scale) if few else [],
        cells=[] if few else _hexagons(inside, scale),
        marks_across=marks(scale, short, "left"),
        marks_up=marks(scale, short, "bottom"),
    )


def _points(pairs: list[Pair], scale: Axis) -> list[ScatterPoint]:
    return [
        ScatterPoint(
            x=f"{SIDE * scale.at(t):.5g}",
            y=f"{SIDE * (1 - scale.at(p)):.5g}",
            title=f"true {number(t)}, predicted {number(p)}",
        )
        for t, p in pairs
    ]


def _hexagons(pairs: list[Pair], scale: Axis) -> list[Hexagon]:
    """Return cells of equal area, coloured by the logarithm of the number of pairs in them."""
    radius = SIDE / HEXAGONS / math.sqrt(3)
    cells = Counter(_cell(SIDE * scale.at(t), SIDE * (1 - scale.at(p)), radius) for t, p in pairs)
    most = math.log1p(max(cells.values()))
    shapes = []
    for (x, y), n in sorted(cells.items()):
        level = min(LEVELS, 1 + int(LEVELS * math.log1p(n) / most * 0.999))
        true = scale.low + x / SIDE * (scale.high - scale.low)
        answer = scale.low + (1 - y / SIDE) * (scale.high - scale.low)
        title = f"true {number(true, 3)}, predicted {number(answer, 3)}: {count(n)}"
        shapes.append(Hexagon(_outline(x, y, radius), level, title))
    return shapes


def _cell(x: float, y: float, radius: float) -> tuple[float, float]:
    """Return the centre of the hexagon around a point: the nearer one of two staggered grids."""
    wide, high = radius * math.sqrt(3), radius * 3
    first = (round(x / wide) * wide, round(y / high) * high)
    second = ((math.floor(x / wide) + 0.5) * wide, (math.floor(y / high) + 0.5) * high)
    nearest = min(first, second, key=lambda c: (c[0] - x) ** 2 + (c[1] - y) ** 2)
    return round(nearest[0], 1), round(nearest[1], 1)


def _outline(x: float, y: float, radius: float) -> str:
    half = radius * math.sqrt(3) / 2
    return (
        f"M{x:.4g} {y - radius:.4g}l{half:.1f} {radius / 2:.1f}v{radius:.1f}"
        f"l{-half:.1f} {radius / 2:.1f}l{-half:.1f} {-radius / 2:.1f}v{-radius:.1f}z"
    )


def _differences(pairs: list[Pair]) -> Histogram:
    """Return the histogram of predicted minus true."""
    errors = sorted(p - t for t, p in pairs)
    reach = max(abs(_quantile(errors, 0.01)), abs(_quantile(errors, 0.99))) or 1.0
    step = 2 * reach / BARS
    counts = Counter(min(BARS - 1, max(0, math.floor((error + reach) / step))) for error in errors)
    most = max(counts.values())
    width = SIDE / BARS
    bars = []
    for i, n in sorted(counts.items()):
        low, high = -reach + i * step, -reach + (i + 1) * step
        span = f"{number(low, 3)} to {number(high, 3)}"
        if i == 0:
            span = f"below {number(high, 3)}"
        elif i == BARS - 1:
            span = f"above {number(low, 3)}"
        height = SIDE * 0.96 * n / most
        bars.append(
            HistogramBar(
                x=f"{i * width + width * 0.06:.5g}",
                y=f"{SIDE - height:.5g}",
                width=f"{width * 0.88:.4g}",
                height=f"{height:.5g}",
                title=f"{span}: {count(n)} rows, {percent(n / len(errors))}",
            )
        )
    middle = number(_quantile(errors, 0.5), 3)
    tenth, ninetieth = number(_quantile(errors, 0.1), 3), number(_quantile(errors, 0.9), 3)
    return Histogram(
        note=f"80 % of the differences lie between {tenth} and {ninetieth}; median {middle}.",
        bars=bars,
        marks=marks(Axis(-reach, reach), short, "left", 4),
    )


def _range(values: list[float]) -> Axis:
    """Return the range of all values, without the outermost few if those squash the others."""
    values = sorted(values)
    low, high = _quantile(values, FAR), _quantile(values, 1 - FAR)
    whole = axis(values, tight=True)
    if not (high > low and whole.high - whole.low > 3 * (high - low)):
        low, high = whole.low, whole.high
    margin = 0.03 * (high - low)
    return Axis(low - margin, high + margin)


def _quantile(ordered: Sequence[float], q: float) -> float:
    return ordered[round(q * (len(ordered) - 1))]
