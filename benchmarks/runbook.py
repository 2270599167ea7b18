"""Runbooks in the manner of NeurIPS'23's streaming track: inserts, deletes and searches mixed.

A runbook is a list of steps that do not depend on who carries them out. Rows are named by their
numbers; who carries out a step sees the rows that it inserts, and never the truth.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.data import Array
from benchmarks.harness import installed
from benchmarks.peers import BUILD_BEAM, LINKS
from boundary_forest import BoundaryForestNeighbors

NEIGHBORS = 10
QUERIES_AT_ONCE = 50  # whose distances to all rows are in memory together
LIFETIMES = (None, 0.5, 0.1)  # of a third of the rows each: for good, or shares of the steps


@dataclass(frozen=True)
class Step:
    """Rows that come, then rows that go; then there is a search."""

    number: int
    insert: Array
    delete: Array


def expiring(n: int, n_steps: int, seed: int) -> Iterator[Step]:
    """Yield steps in which all of n rows arrive, and two thirds of them expire again.

    A third stays, a third is deleted after half of the steps, a third after a tenth: the track's
    rows expire so, too. Who expires when is random, so that deletions are everywhere.
    """
    rng = np.random.default_rng(seed)
    arrives = np.arange(n) * n_steps // n
    lifetimes = [
        n_steps if share is None else max(1, round(share * n_steps)) for share in LIFETIMES
    ]
    expires = arrives + np.array(lifetimes)[rng.integers(len(lifetimes), size=n)]
    for number in range(n_steps):
        yield Step(number, np.flatnonzero(arrives == number), np.flatnonzero(expires == number))


def nearest(X: Array, live: Array, queries: Array, k: int = NEIGHBORS) -> Array:
    """Return the distance of each query's k-th nearest among the live rows, by numpy alone."""
    rows = X[live].astype(np.float64)
    lengths = (rows**2).sum(axis=1)
    found = []
    for begin in range(0, len(queries), QUERIES_AT_ONCE):
        some = queries[begin : begin + QUERIES_AT_ONCE].astype(np.float64)
        squares = lengths - 2 * some @ rows.T + (some**2).sum(axis=1, keepdims=True)
        found.append(np.partition(squares, k - 1, axis=1)[:, k - 1])
    return np.asarray(np.sqrt(np.maximum(0, np.concatenate(found))))


def recall(X: Array, queries: Array, names: Array, kth: Array) -> float:
    """Return the share of the named rows that are no farther than the k-th nearest.

    By distances, not by names: of rows that are equally far, any will do.
    """
    far = np.linalg.norm(X[names].astype(np.float64) - queries[:, None].astype(np.float64), axis=2)
    return float(np.mean(far <= kth[:, None] * (1 + 1e-5) + 1e-9))


class Index(Protocol):
    """Who carries out a runbook."""

    def insert(self, X: Array, names: Array) -> None:
        """Take rows in."""

    def delete(self, names: Array) -> None:
        """Let rows go: no search returns them from now on."""

    def search(self, queries: Array, k: int) -> Array:
        """Return the names of k rows near each query."""

    def bytes(self) -> int | None:
        """Return the memory in use, if that is known."""


class Forest:
    """The forest, by ids."""

    def __init__(self, seed: int, beam: int, **parameters: Any) -> None:
        self.index = BoundaryForestNeighbors(random_state=seed, beam=beam, **parameters)

    def insert(self, X: Array, names: Array) -> None:
        self.index.partial_fit(X, ids=names)

    def delete(self, names: Array) -> None:
        self.index.forget(names)

    def search(self, queries: Array, k: int) -> Array:
        return np.asarray(self.index.kneighbors(queries, k, return_distance=False))

    def bytes(self) -> int:
        return int(self.index.stats()["bytes"]["total"])


class Hnswlib:
    """hnswlib, which marks rows as deleted; it may give their places to new ones.

    Reusing places bounds its memory, and makes inserts about three times as slow (15,000 rows of
    GloVe in 50 steps), so that neither way alone would be a fair picture of it.
    """

    def __init__(
        self, seed: int, beam: int, n_features: int, capacity: int, *, reuse: bool = False
    ) -> None:
        hnswlib: Any = installed("hnswlib")
        self.index = hnswlib.Index("l2", n_features)
        self.index.init_index(
            capacity,
            M=LINKS,
            ef_construction=BUILD_BEAM,
            random_seed=seed,
            allow_replace_deleted=reuse,
        )
        self.reuse = reuse
        self.index.set_num_threads(1)
        self.index.set_ef(beam)

    def insert(self, X: Array, names: Array) -> None:
        self.index.add_items(X, names, replace_deleted=self.reuse)

    def delete(self, names: Array) -> None:
        for name in names.tolist():
            self.index.mark_deleted(name)

    def search(self, queries: Array, k: int) -> Array:
        return np.asarray(self.index.knn_query(queries, k)[0]).astype(np.int64)

    def bytes(self) -> int:
        return int(self.index.index_file_size())
