"""A row of figures as columns of block characters, one line high or more."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"
MOST = 512  # figures that are remembered


class Track:
    """Figures of a whole run, evenly thinned so that there are never more than ``MOST``."""

    def __init__(self) -> None:
        self.values: list[float] = []
        self._every = 1
        self._skipped = 0

    def add(self, value: float) -> None:
        """Remember it, or pass over it if the run has become long."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self.values.append(value)
        if len(self.values) >= MOST:
            self.values = self.values[1::2]
            self._every *= 2


def columns(values: Sequence[float], width: int) -> list[float]:
    """The values in at most ``width`` columns, each the mean of its share of them."""
    n = len(values)
    if n <= width:
        return list(values)
    edges = [i * n // width for i in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def lines(values: Sequence[float], top: float, height: int, glyphs: str = BLOCKS) -> list[str]:
    """One column a value, from 0 to ``top``; the highest line first."""
    steps = len(glyphs) - 1
    filled = [
        min(height * steps, max(1, round(value / top * height * steps)) if top > 0 else 1)
        for value in values
    ]
    return [
        "".join(glyphs[min(steps, max(0, f - level * steps))] for f in filled)
        for level in reversed(range(height))
    ]
