"""Line charts: curves that share their x, with the values under the pointer in the legend.

An axis is a range, with round numbers along it; it says where a value lies on it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from boundary_forest.report.formatting import ABSENT

SIDE = 1000  # of the square that a plot is drawn in, before it is stretched
START = 0.05  # the share of a run in which a figure may be wild: it does not set the scale


@dataclass(frozen=True)
class Mark:
    """A number along an axis, and the style that puts it there."""

    text: str
    style: str


@dataclass(frozen=True)
class Axis:
    """The range from ``low`` to ``high``, never empty."""

    low: float
    high: float

    def at(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        return (value - self.low) / (self.high - self.low)

    def ticks(self, about: int = 5) -> list[float]:
        """Return about ``about`` round numbers within the range."""
        step = _step(self.high - self.low, about)
        first, last = math.ceil(self.low / step - 1e-9), math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


@dataclass(frozen=True)
class LogAxis(Axis):
    """The same by the logarithm; both ends are above 0, and what is not lies below the low end."""

    def at(self, value: float) -> float:
        """Return where a value lies: 0 at the low end, 1 at the high end."""
        if value <= 0:
            return -1.0
        return math.log(value / self.low) / math.log(self.high / self.low)

    def ticks(self, about: int = 5) -> list[float]:
        """Return 1, 2 and 5 times powers of ten; of a long range powers alone."""
        within = (self.low * (1 - 1e-9), self.high * (1 + 1e-9))
        exponents = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        factors = (1, 2, 5) if math.log10(self.high / self.low) < about / 2 else (1,)
        every = [factor * 10.0**exponent for exponent in exponents for factor in factors]
        return [tick for tick in every if within[0] <= tick <= within[1]]


def log_axis(values: Iterable[float]) -> LogAxis:
    """Return a logarithmic axis for the values above 0, to round numbers."""
    positive = [v for v in values if math.isfinite(v) and v > 0] or [1.0]
    low, high = _rounded(min(positive), -1), _rounded(max(positive), 1)
    return LogAxis(low, high if high > low else 10 * low)


def _rounded(value: float, direction: int) -> float:
    """Return the next of 1, 2 and 5 times a power of ten, downwards or upwards."""
    power = 10.0 ** math.floor(math.log10(value))
    steps = [m * power for m in (1, 2, 5, 10)]
    if direction < 0:
        return max(step for step in steps if step <= value * (1 + 1e-9))
    return min(step for step in steps if step >= value * (1 - 1e-9))


def marks(scale: Axis, write: Callable[[float], str], side: str, about: int = 5) -> list[Mark]:
    """Return the round numbers of an axis, placed from ``side``: "left" or "bottom"."""
    return [Mark(write(tick), f"{side}:{100 * scale.at(tick):.2f}%") for tick in scale.ticks(about)]


def axis(values: Iterable[float], *, zero: bool = False, tight: bool = False) -> Axis:
    """Return an axis for the values: from 0 if ``zero``, to round numbers unless ``tight``."""
    finite = [v for v in values if math.isfinite(v)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
    if zero:
        low = min(0.0, low)
    if not high > low:
        low, high = (low, low + 1) if low == 0 else sorted((low, low + abs(low) / 10))
    if not math.isfinite(high - low):
        low, high = low / 4, high / 4
    if tight:
        return Axis(low, high)
    step = _step(high - low, 5)
    return Axis(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step)


def _step(span: float, about: int) -> float:
    """Return 1, 2 or 5 times a power of ten, about ``about`` of which make the span."""
    rough = span / about
    power = 10.0 ** math.floor(math.log10(rough))
    return next((m * power for m in (1, 2, 5) if rough <= m * power * 1.001), 10 * power)


@dataclass(frozen=True)
class Curve:
    """A curve: ``color`` is a class of page.css; ``area`` fills what is below it."""

    name: str
    values: Sequence[float | None]
    color: str
    area: bool = False
    dashed: bool = False


@dataclass(frozen=True)
class Path:
    """A path of the plot: ``d`` is SVG's, ``kind`` the classes of page.css."""

    d: str
    kind: str


@dataclass(frozen=True)
class Key:
    """A curve in the legend, and the value that is shown there."""

    color: str
    name: str
    text: str


@dataclass(frozen=True)
class Chart:
    """A line chart, as the macro ``line_chart`` writes it."""

    title: str
    note: str | None
    at: str  # where the values in the legend are from
    class_: str
    group: str
    label: str  # for those who cannot see it
    hover: str  # JSON, for page.js
    x_name: str
    legend: list[Key]
    paths: list[Path]
    xs: list[Mark]
    ys: list[Mark]
    side: int = SIDE


def line_chart(
    title: str,
    xs: Sequence[float],
    curves: Sequence[Curve],
    *,
    write: Callable[[float], str],
    tick: Callable[[float], str],
    x_name: str,
    x_tick: Callable[[float], str],
    x_write: Callable[[float], str],
    group: str,
    note: str | None = None,
    zero: bool = True,
    log: bool = False,
    rest: int = -1,
    class_: str = "",
) -> Chart:
    """Return a chart; those of one ``group`` have the same axis, and are pointed at together.

    ``rest`` is the place whose values are shown while none is pointed at; ``log`` makes the axis
    upwards logarithmic.
    """
    across = axis(xs, zero=True, tight=True)
    calm = settled([c.values for c in curves])
    up = log_axis(calm) if log else axis(calm, zero=zero)
    positions = [round(across.at(x), 4) for x in xs]
    heights = [[_height(up, v) for v in c.values] for c in curves]
    texts = [
        [ABSENT if h is None else write(v or 0.0) for h, v in zip(hs, c.values, strict=True)]
        for hs, c in zip(heights, curves, strict=True)
    ]
    rest %= len(xs)
    at = [x_write(x) for x in xs]
    hover = {"x": positions, "at": at, "y": heights, "text": texts, "rest": rest}
    values = "; ".join(f"{c.name} {t[rest]}" for c, t in zip(curves, texts, strict=True))
    return Chart(
        title=title,
        note=note,
        at=at[rest],
        class_=class_,
        group=group,
        label=f"{title}, by {x_name}; {at[rest]}: {values}.",
        hover=json.dumps(hover, separators=(",", ":")),
        x_name=x_name,
        legend=[
            Key(c.color + _dashes(c), c.name, t[rest]) for c, t in zip(curves, texts, strict=True)
        ],
        paths=_paths(up, positions, curves, heights),
        xs=marks(across, x_tick, "left", 6),
        ys=marks(up, tick, "bottom"),
    )


def _paths(
    up: Axis,
    positions: Sequence[float],
    curves: Sequence[Curve],
    heights: Sequence[Sequence[float | None]],
) -> list[Path]:
    """Return the grid, the areas and the lines, in the order in which they are drawn."""
    grid = "".join(f"M0 {_y(up.at(t))}H{SIDE}" for t in up.ticks())
    areas = [
        Path(_area(positions, hs), f"area {curve.color}")
        for curve, hs in zip(curves, heights, strict=True)
        if curve.area
    ]
    lines = [
        Path(_path(positions, hs), f"line {curve.color}" + _dashes(curve))
        for curve, hs in zip(curves, heights, strict=True)
    ]
    return [Path(grid, "grid"), *areas, *lines]


def _dashes(curve: Curve) -> str:
    return " dashed" if curve.dashed else ""


def settled(rows: Sequence[Sequence[float | None]]) -> list[float]:
    """Return the values that set the scale: the first answers of a stream are often all wrong."""
    found = []
    for row in rows:
        some = row[int(START * len(row)) :] if len(row) >= 10 else row
        found += [v for v in some if v is not None and math.isfinite(v)]
    return found or [0.0]


def _height(up: Axis, value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(min(3.0, max(-2.0, up.at(value))), 4)  # far outside is as good as anywhere there


def _y(height: float) -> str:
    return f"{SIDE * (1 - height):.5g}"


def _runs(xs: Sequence[float], hs: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """Return the points, in runs without a gap."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, h in zip(xs, hs, strict=True):
        if h is None:
            runs.append([])
        else:
            runs[-1].append((x, h))
    return [run for run in runs if run]


def _path(xs: Sequence[float], hs: Sequence[float | None]) -> str:
    parts = []
    for run in _runs(xs, hs):
        points = " ".join(f"{SIDE * x:.5g},{_y(h)}" for x, h in run)
        # A point alone is drawn by the line's round ends.
        parts.append(f"M{points}" + ("h0" if len(run) == 1 else ""))
    return "".join(parts)


def _area(xs: Sequence[float], hs: Sequence[float | None]) -> str:
    parts = []
    for run in _runs(xs, hs):
        points = " ".join(f"{SIDE * x:.5g},{_y(h)}" for x, h in run)
        parts.append(f"M{SIDE * run[0][0]:.5g},{SIDE} {points} {SIDE * run[-1][0]:.5g},{SIDE}Z")
    return "".join(parts)
