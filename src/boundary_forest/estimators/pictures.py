"""Rows that are images, as PNG files for pages."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

SMALLEST = 64  # pixels of a row that is taken for an image unasked


def image_shape_of(
    names: Sequence[str], rows: Sequence[Any], *, named: bool
) -> tuple[int, int] | None:
    """Return height and width of rows that look like square images, or None.

    They do if they have a square number of features, at least 64, none of them negative, and these
    have no names or are called pixels. Embeddings have negative features.

    Parameters
    ----------
    names : sequence of str
        The features.
    rows : sequence of array-like
        The rows.
    named : bool
        Whether these names are the user's.
    """
    side = math.isqrt(len(names))
    if side * side != len(names) or len(names) < SMALLEST:
        return None
    if named and not all(name.lower().startswith("pixel") for name in names):
        return None
    numeric = all(isinstance(row, np.ndarray) and row.dtype.kind in "iuf" for row in rows)
    return (side, side) if numeric and all(np.min(row) >= 0 for row in rows) else None


def checked_shape(image_shape: Any, n_features: int) -> tuple[int, ...]:
    """Return the shape of an image that has as many values as rows have features, or raise."""
    shape = tuple(int(n) for n in image_shape)
    grey_or_colour = len(shape) == 2 or (len(shape) == 3 and shape[2] in (1, 3))
    if not grey_or_colour or min(shape) < 1 or math.prod(shape) != n_features:
        raise ValueError(
            f"image_shape must be (height, width) or (height, width, 3) with {n_features} values, "
            f"as many as there are features, got {image_shape!r}"
        )
    return shape


def png_uri(row: NDArray[Any], shape: tuple[int, ...], low: float, high: float) -> str:
    """Return a row as a data URI of a PNG image.

    Parameters
    ----------
    row : ndarray of shape (n_features,)
        The row.
    shape : tuple of int
        (height, width) or (height, width, channels).
    low, high : float
        What is black, and what is white.
    """
    span = high - low if high > low else 1.0
    levels = np.clip((np.asarray(row, dtype=np.float64) - low) / span, 0, 1) * 255
    pixels = levels.round().astype(np.uint8).reshape(shape[0], -1)
    colour = len(shape) == 3 and shape[2] == 3
    lines = np.concatenate([np.zeros((shape[0], 1), np.uint8), pixels], axis=1)  # each unfiltered
    header = struct.pack(">IIBBBBB", shape[1], shape[0], 8, 2 if colour else 0, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 6)), (b"IEND", b""))
    file = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in parts)
    return "data:image/png;base64," + base64.b64encode(file).decode()


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
