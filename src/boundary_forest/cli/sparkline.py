"""Draw a row of figures in characters: columns of blocks, or a curve of braille dots."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

BLOCKS = " ▁▂▃▄▅▆▇█"
ASCII = " .:-=+*#@"
DOTS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))  # of a braille character, by column
MOST = 512  # figures that are remembered


class Track:
    """Figures of a whole run by row, evenly thinned so that there are never more than ``MOST``."""

    def __init__(self) -> None:
        self.points: list[tuple[int, float]] = []
        self._every = 1
        self._skipped = 0

    def add(self, row: int, value: float) -> None:
        """Add the figure after a row, or skip it if the run has become long."""
        self._skipped += 1
        if self._skipped < self._every:
            return
        self._skipped = 0
        self.points.append((row, value))
        if len(self.points) >= MOST:
            self.points = self.points[1::2]
            self._every *= 2


def stretched(points: Sequence[tuple[int, float]], n: int) -> list[float]:
    """Return ``n`` values along the points, evenly spaced from the first row to the last."""
    first, last = points[0][0], points[-1][0]
    values, i = [], 0
    for k in range(n):
        row = first + (last - first) * k / max(1, n - 1)
        while i + 1 < len(points) and points[i + 1][0] <= row:
            i += 1
        here, after = points[i], points[min(i + 1, len(points) - 1)]
        share = (row - here[0]) / (after[0] - here[0]) if after[0] > here[0] else 0.0
        values.append(here[1] + share * (after[1] - here[1]))
    return values


def columns(values: Sequence[float], width: int) -> list[float]:
    """Return the values in at most ``width`` columns, each the mean of its share of them."""
    n = len(values)
    if n <= width:
        return list(values)
    edges = [i * n // width for i in range(width + 1)]
    return [sum(values[a:b]) / (b - a) for a, b in pairwise(edges)]


def bars(
    values: Sequence[float], low: float, high: float, width: int, height: int, ascii_only: bool
) -> list[str]:
    """Return columns from ``low`` to ``high`` as lines, the highest first."""
    glyphs = ASCII if ascii_only else BLOCKS
    steps = len(glyphs) - 1
    filled = [1 + _level(v, low, high, height * steps) for v in columns(values, width)]
    return [
        "".join(glyphs[min(steps, max(0, f - line * steps))] for f in filled)
        for line in reversed(range(height))
    ]


def curve(values: Sequence[float], low: float, high: float, width: int, height: int) -> list[str]:
    """Return a curve of dots from ``low`` to ``high``, two per column and four per line."""
    top = 4 * height
    levels = [_level(v, low, high, top) for v in columns(values, 2 * width)]
    cells = [[0] * ((len(levels) + 1) // 2) for _ in range(height)]
    for x, level in enumerate(levels):
        before = levels[x - 1] if x else level
        # As far as the one before, so that a steep curve is not torn.
        span = (
            range(before + 1, level + 1) if before < level else range(level, max(before, level + 1))
        )
        for y in span:
            line, dot = divmod(top - 1 - y, 4)
            cells[line][x // 2] |= DOTS[x % 2][dot]
    return ["".join(chr(0x2800 + cell) if cell else " " for cell in line) for line in cells]


def _level(value: float, low: float, high: float, levels: int) -> int:
    """Return which of so many levels a value is at; those outside are at the nearest."""
    share = (value - low) / (high - low) if high > low else 0.0
    return min(levels - 1, max(0, round(share * (levels - 1))))
