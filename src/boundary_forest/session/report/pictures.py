"""Rows that are pictures: their columns are named as those of well-known sets of images are.

``pixel_2_7`` is row 2, column 7 (scikit-learn's digits); ``pixel37`` counts from the upper left,
from 1 as OpenML's MNIST does, or from 0, and the picture is a square.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

LARGEST = 64  # pixels along a side
SMALLEST = 4


@dataclass(frozen=True)
class Shade:
    """The pixels of one shade, as one path."""

    d: str
    opacity: str


@dataclass(frozen=True)
class Picture:
    """A grey picture."""

    width: int
    height: int
    shades: list[Shade]

    @property
    def label(self) -> str:
        """The text for those who cannot see it."""
        return f"The row as a picture of {self.width} by {self.height} pixels"


def picture(features: Mapping[str, str]) -> Picture | None:
    """Return the row as a grey picture, or None if it is not one."""
    cells = _cells(list(features))
    if cells is None:
        return None
    try:
        values = [float(value) for value in features.values()]
    except ValueError:
        return None
    low, high = min(values), max(values)
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return None
    height, width = (max(c[i] for c in cells) + 1 for i in (0, 1))
    shades: dict[int, list[str]] = {}
    for (y, x), value in zip(cells, values, strict=True):
        shade = round(15 * (value - low) / (high - low))
        if shade:
            shades.setdefault(shade, []).append(f"M{x} {y}h1v1h-1z")
    paths = [Shade("".join(squares), f"{n / 15:.2f}") for n, squares in sorted(shades.items())]
    return Picture(width, height, paths)


def _cells(names: list[str]) -> list[tuple[int, int]] | None:
    """Return line and column of each pixel."""
    found = [re.fullmatch(r"pixel_?(\d{1,5})(?:_(\d{1,5}))?", name) for name in names]
    matches = [m for m in found if m is not None]
    if len(matches) != len(names) or len(names) < SMALLEST**2:
        return None
    if all(m[2] is not None for m in matches):
        cells = [(int(m[1]), int(m[2])) for m in matches]
    elif all(m[2] is None for m in matches):
        side = math.isqrt(len(names))
        first = min(int(m[1]) for m in matches)
        cells = [divmod(int(m[1]) - first, max(1, side)) for m in matches]
        if side * side != len(names) or max(c[0] for c in cells) >= side:
            return None
    else:
        return None
    return cells if max(max(c) for c in cells) < LARGEST else None
