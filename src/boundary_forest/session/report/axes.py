"""Axes: a range, round numbers along it, and where a value lies on it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass


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
