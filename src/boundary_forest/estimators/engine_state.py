"""The engine's whole state, as its arrays: what copies, files and hashes are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

NUMBERS = ("seen", "n_classes", "counts", "vote_power")
# The engine's arrays, each with its type and dimensions; positions have the forest's element type.
ELEMENT_TYPE = "element type"
STATE_ARRAYS = {
    "labels": ("float64", 2),
    "arrivals": ("uint64", 1),
    "spread": ("float64", 1),
    "tree_sizes": ("uint32", 1),
    "node_examples": ("uint32", 1),
    "node_parents": ("uint32", 1),
    "tree_places": ("uint32", 1),
    "tree_generations": ("uint32", 1),
    "log_weights": ("int32", 2),
    "tree_weights": ("uint32", 1),
    "window_positions": (ELEMENT_TYPE, 2),
    "window_labels": ("float64", 2),
    "window_arrivals": ("uint64", 1),
    "vote_errors": ("float64", 1),
    "tree_losses": ("float64", 1),
}
VOTE_ARRAYS = ("vote_errors", "tree_losses")
ID_COLUMNS = ("ids", "window_ids")  # each None, an array of int64 or a list of str

Tree = tuple[NDArray[np.uint32], NDArray[np.uint32]]


def trees_in(state: dict[str, Any]) -> Iterator[Tree]:
    """For each tree, its nodes' examples and parents (the root's is no node), as created."""
    begin = 0
    for size in state["tree_sizes"].tolist():
        nodes = slice(begin, begin + size)
        yield state["node_examples"][nodes], state["node_parents"][nodes]
        begin += size
