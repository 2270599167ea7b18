"""The shape of trees: how many nodes there are at each depth."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_state import NO_PARENT, trees_in


def tree_depths(forest: Any) -> list[list[int]]:
    """For each tree of a forest, durable or not, the number of nodes at depth 0, 1, 2, ..."""
    engine = getattr(getattr(forest, "model", forest), "_engine", None)
    if engine is None:
        return []
    state = engine.state(with_positions=False)
    return [_depths(parents) for _, parents in trees_in(state)]


def _depths(parents: NDArray[np.uint32]) -> list[int]:
    if len(parents) == 0:
        return []
    at = np.flatnonzero(parents == NO_PARENT)
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
