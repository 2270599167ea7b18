"""The order in which ``fit`` learns its rows: drawn from the seed, computed and never stored.

Arrival numbers are the order of learning. What users see are the numbers of their rows, so that
every arrival number that leaves an estimator goes through ``RowOrder.rows``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

ROUNDS = 6
_ALL = 2**64 - 1


@dataclass(frozen=True)
class RowOrder:
    """A keyed permutation of the rows of ``fit``; what arrives later is numbered on.

    Parameters
    ----------
    seed : int
        The forest's.
    n_rows : int, default=0
        How many rows ``fit`` was given and has shuffled; 0 if they kept their order.
    n_learned : int, default=0
        How many of them were learned: all, unless ``fit`` was interrupted.
    """

    seed: int
    n_rows: int = 0
    n_learned: int = 0

    def rows(self, arrivals: Any) -> NDArray[np.int64]:
        """Return the number of the row that came as each of these arrivals.

        Parameters
        ----------
        arrivals : array-like of int
            Negative ones stand for nothing, and stay.
        """
        arrivals = np.asarray(arrivals).astype(np.int64, copy=False)
        rows: NDArray[np.int64] = arrivals
        if self.n_rows == 0:
            return rows
        rows = arrivals + (arrivals >= 0) * (self.n_rows - self.n_learned)
        shuffled = (arrivals >= 0) & (arrivals < self.n_learned)
        rows[shuffled] = permuted(self.seed, self.n_rows, arrivals[shuffled])
        return rows


def permuted(seed: int, n: int, places: NDArray[Any]) -> NDArray[np.int64]:
    """Return what a permutation of 0 to n - 1 that belongs to (seed, n) has at these places.

    A Feistel network on the next power of four; what leaves the range is mapped again.
    """
    bits = max(1, ((n - 1).bit_length() + 1) // 2)
    half, mask = np.uint64(bits), np.uint64(2**bits - 1)
    keys = [np.uint64(hash64(seed, n, turn)) for turn in range(ROUNDS)]
    values = np.array(places, dtype=np.uint64)
    outside = np.ones(values.shape, dtype=bool)
    while outside.any():
        left, right = values[outside] >> half, values[outside] & mask
        for key in keys:
            left, right = right, left ^ (_mixed(key ^ right) & mask)
        values[outside] = (left << half) | right
        outside = values >= n
    return values.astype(np.int64)


def _mixed(z: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """As hash64 mixes a word, modulo 2**64."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def hash64(*words: int) -> int:
    """The engine's keyed hash."""
    h = 0
    for word in words:
        z = np.array([((h + 0x9E3779B97F4A7C15) & _ALL) ^ (word & _ALL)], dtype=np.uint64)
        h = int(_mixed(z)[0])
    return h
