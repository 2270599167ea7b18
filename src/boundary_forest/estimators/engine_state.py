"""The engine's whole state, as its arrays: what copies, files and hashes are made of."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Tree = tuple[NDArray[np.uint32], NDArray[np.uint32]]


def trees_in(state: dict[str, Any]) -> Iterator[Tree]:
    """For each tree, its nodes' examples and parents (the root's is no node), as created."""
    begin = 0
    for size in state["tree_sizes"].tolist():
        nodes = slice(begin, begin + size)
        yield state["node_examples"][nodes], state["node_parents"][nodes]
        begin += size
