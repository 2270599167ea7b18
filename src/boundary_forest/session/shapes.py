"""The shape of trees: the number of nodes at each depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

NO_PARENT = -1


def tree_depths(forest: Any) -> list[list[int]]:
    """Return, for each tree of a forest, the number of nodes at depth 0, 1, 2, ..."""
    if forest.examples_seen == 0:
        return []
    return [_depths(arrivals, parents) for arrivals, parents in forest.trees()]


def _depths(arrivals: NDArray[np.int64], parents: NDArray[np.int64]) -> list[int]:
    """Count level by level: the children of a level's nodes are the next level."""
    at = arrivals[parents == NO_PARENT]
    counts: list[int] = []
    order = np.argsort(parents, kind="stable")
    by_parent = parents[order]
    while len(at):
        counts.append(len(at))
        begin, end = np.searchsorted(by_parent, at), np.searchsorted(by_parent, at, side="right")
        at = arrivals[order[_ranges(begin, end)]]
    return counts


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return all numbers from each begin to its end."""
    lengths = end - begin
    starts = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return starts + np.arange(lengths.sum())
