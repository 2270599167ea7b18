"""Randomness that is a function of what it is for: nothing is drawn by chance, or in some order."""

from __future__ import annotations

from typing import Any

import numpy as np

Row = Any  # a 1-D numpy array

MASK = 2**64 - 1


def hash64(*words: int) -> int:
    h = 0
    for word in words:
        z = ((h + 0x9E3779B97F4A7C15) & MASK) ^ word
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        h = z ^ (z >> 31)
    return h


def fingerprint(y: Row) -> int:
    """Of where the row is not zero, and its values there as doubles."""
    places = np.flatnonzero(y)
    words = y[places].astype(np.float64).view(np.uint64)
    return hash64(*(int(word) for pair in zip(places, words, strict=True) for word in pair))


def shuffled(n: int, seed: int, tree: int) -> list[int]:
    order = list(range(n))
    for j in range(n, 1, -1):
        pick = hash64(seed, tree, j) % j
        order[j - 1], order[pick] = order[pick], order[j - 1]
    return order


def is_learned(seed: int, tree: int, arrival: int, max_samples: float) -> bool:
    """Whether the tree learns this arrival, which has the probability max_samples."""
    return (hash64(seed, tree, arrival) >> 11) * 2.0**-53 < max_samples


def learned_row(seed: int, n: int, arrival: int) -> int:
    """The row of n that ``fit`` learns as this arrival; a permutation is computed, not stored."""
    bits = max(1, ((n - 1).bit_length() + 1) // 2)
    value: int = arrival
    while True:
        left, right = value >> bits, value & (2**bits - 1)
        for turn in range(6):
            z = hash64(seed, n, turn) ^ right
            z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
            z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
            left, right = right, left ^ ((z ^ (z >> 31)) & (2**bits - 1))
        value = (left << bits) | right
        if value < n:
            return value
