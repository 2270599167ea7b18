"""Indexes that take a row and answer a query in turn, behind one interface.

Every call has one row, as it has where vectors arrive one by one: what a library's binding costs is
part of the figure.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.data import Array
from benchmarks.harness import installed
from benchmarks.indexes import LINKS
from boundary_forest import BoundaryForestNeighbors

NEIGHBORS = 10
QUERIES_AT_ONCE = 100  # whose distances to all rows are in memory together


class Index(Protocol):
    """Rows are named by their numbers."""

    def insert(self, row: Array, number: int) -> None:
        """Add a row."""

    def search(self, query: Array, width: int) -> Array:
        """Return the numbers of the nearest rows; ``query`` is a table of one row."""


class Forest:
    """The forest, searched as a graph."""

    def __init__(self, n_estimators: int, seed: int) -> None:
        self.index = BoundaryForestNeighbors(
            NEIGHBORS, n_estimators=n_estimators, random_state=seed
        )

    def insert(self, row: Array, number: int) -> None:
        self.index.partial_fit(row)

    def search(self, query: Array, width: int) -> Array:
        found = self.index.kneighbors(query, return_distance=False, beam=width)
        return np.asarray(found[0])


class Hnswlib:
    """hnswlib's graph, whose capacity must be known in advance."""

    def __init__(self, build_beam: int, n_features: int, capacity: int, seed: int) -> None:
        hnswlib: Any = installed("hnswlib")
        self.index = hnswlib.Index(space="l2", dim=n_features)
        self.index.init_index(capacity, ef_construction=build_beam, M=LINKS, random_seed=seed)
        self.index.set_num_threads(1)

    def insert(self, row: Array, number: int) -> None:
        self.index.add_items(row, [number], num_threads=1)

    def search(self, query: Array, width: int) -> Array:
        self.index.set_ef(width)
        return np.asarray(self.index.knn_query(query, k=NEIGHBORS, num_threads=1)[0][0])


class USearch:
    """USearch's graph."""

    def __init__(self, build_beam: int, n_features: int) -> None:
        usearch: Any = installed("usearch.index")
        self.index = usearch.Index(
            ndim=n_features,
            metric="l2sq",
            dtype="f32",
            connectivity=LINKS,
            expansion_add=build_beam,
        )

    def insert(self, row: Array, number: int) -> None:
        self.index.add(number, row[0], threads=1)

    def search(self, query: Array, width: int) -> Array:
        self.index.expansion_search = width
        return np.asarray(self.index.search(query[0], NEIGHBORS, threads=1).keys)


@dataclass(frozen=True)
class Contestant:
    """How to make an index for rows of so many features, as many as there will be, and a seed."""

    title: str
    module: str
    make: Callable[[int, int, int], Index]


CONTESTANTS = {
    "forest": Contestant(
        "boundary forest, 30 trees", "boundary_forest", lambda d, n, seed: Forest(30, seed)
    ),
    "forest_20": Contestant(
        "boundary forest, 20 trees", "boundary_forest", lambda d, n, seed: Forest(20, seed)
    ),
    "hnswlib": Contestant(
        "hnswlib, ef_construction 200", "hnswlib", lambda d, n, seed: Hnswlib(200, d, n, seed)
    ),
    "hnswlib_100": Contestant(
        "hnswlib, ef_construction 100", "hnswlib", lambda d, n, seed: Hnswlib(100, d, n, seed)
    ),
    "hnswlib_40": Contestant(
        "hnswlib, ef_construction 40", "hnswlib", lambda d, n, seed: Hnswlib(40, d, n, seed)
    ),
    "usearch": Contestant(
        "USearch, expansion_add 128", "usearch.index", lambda d, n, seed: USearch(128, d)
    ),
    "usearch_40": Contestant(
        "USearch, expansion_add 40", "usearch.index", lambda d, n, seed: USearch(40, d)
    ),
}


def nearest_so_far(X: Array, queries: Array, numbers: Array) -> Array:
    """Return the true neighbours of query i among the first numbers[i] rows, for each i."""
    lengths = (X.astype(np.float64) ** 2).sum(axis=1)
    found = []
    for begin in range(0, len(queries), QUERIES_AT_ONCE):
        some, before = (part[begin : begin + QUERIES_AT_ONCE] for part in (queries, numbers))
        rows = X[: before.max()]
        squares = lengths[: len(rows)] - 2 * (some @ rows.T).astype(np.float64)
        squares[np.arange(len(rows)) >= before[:, None]] = np.inf
        found.append(np.argpartition(squares, NEIGHBORS - 1, axis=1)[:, :NEIGHBORS])
    return np.concatenate(found)
