"""The engine's checksum is zlib's."""

from __future__ import annotations

import zlib

import numpy as np

from boundary_forest import _core


def test_the_checksum_is_that_of_zlib():
    for n in (*range(140), 1000, 4096, 65_537, 1 << 20):
        rng = np.random.default_rng(n)
        data, before = rng.integers(0, 256, n, dtype=np.uint8), int(rng.integers(2**32))
        assert _core.crc32(data, before) == zlib.crc32(data, before)
        assert _core.crc32(data[1:], 0) == zlib.crc32(data[1:])  # not aligned
