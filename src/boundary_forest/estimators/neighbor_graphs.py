"""Neighbours of a forest's own examples, and neighbours as sparse graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

from boundary_forest.estimators.blocks import joined, slices
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.queries import Neighbors, named_neighbors

MODES = ("connectivity", "distance")


def neighbors_of_stored(fitted: Fitted, n: int, threads: int, options: dict[str, Any]) -> Neighbors:
    """Return the neighbours of every stored example, in order of arrival, without itself."""
    snapshot, found = fitted.engine.snapshot(searched=True), []
    if n >= snapshot.size:
        raise ValueError(
            "n_neighbors must be smaller than the number of stored examples if X is None, got "
            f"{n} with {snapshot.size} stored: use a smaller n_neighbors, or learn more examples "
            "first"
        )
    if options.keys() & {"mask", "ids"}:
        raise ValueError("allowed requires queries: pass X")
    for block in slices(snapshot.size, fitted.settings.n_features):
        rows = snapshot.positions(block.start, block.stop)
        neighbors = named_neighbors(snapshot.neighbors(rows, n + 1, threads, **options))
        others = neighbors[1] != snapshot.arrivals(block.start, block.stop)[:, None]
        others[others.all(axis=1), -1] = False  # it is hidden behind its own duplicates
        found.append(tuple(part[others].reshape(-1, n) for part in neighbors))
    distances, arrivals, names = joined(found)
    return distances, arrivals, names


def graph_of(fitted: Fitted, neighbors: Neighbors, mode: str) -> csr_matrix:
    """Return neighbours as a sparse matrix whose columns are arrival numbers."""
    distances, arrivals, _ = neighbors
    n_rows, n_edges = distances.shape
    weights = distances.ravel() if mode == "distance" else np.ones(distances.size)
    starts = np.arange(0, n_rows * n_edges + 1, n_edges)
    shape = (n_rows, fitted.engine.seen)
    return csr_matrix((weights, arrivals.ravel(), starts), shape=shape)
