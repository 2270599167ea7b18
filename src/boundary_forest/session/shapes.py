"""The shape of trees: how many nodes there are at each depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray


def tree_depths(forest: Any) -> list[list[int]]:
    """For each tree of a forest, durable or not, the number of nodes at depth 0, 1, 2, ..."""
    if forest.examples_seen == 0:
        return []
    return [_depths(arrivals, parents) for arrivals, parents in forest.trees()]


def _depths(arrivals: NDArray[np.int64], by_arrival: NDArray[np.int64]) -> list[int]:
    if len(by_arrival) == 0:
        return []
    order = np.argsort(arrivals)
    parents = np.full(len(arrivals), -1)
    parents[1:] = order[np.searchsorted(arrivals, by_arrival[1:], sorter=order)]
    at = np.flatnonzero(parents == -1)
    counts: list[int] = []
    order = np.argsort(parents, kind="stable")
    by_parent = parents[order]
    while len(at):
        counts.append(len(at))
        begin, end = np.searchsorted(by_parent, at), np.searchsorted(by_parent, at, side="right")
        at = order[_ranges(begin, end)]
    return counts


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers from each begin to its end."""
    lengths = end - begin
    starts = np.repeat(begin - np.concatenate([[0], np.cumsum(lengths)[:-1]]), lengths)
    return starts + np.arange(lengths.sum())
