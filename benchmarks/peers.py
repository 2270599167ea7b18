"""The forest and its peers behind one interface: fit and predict.

All nearest-neighbour peers search for one neighbour, which is the cheapest for them. An approximate
index has M = 16 links per node, and beams of 200 to build and 50 to search. Rows are converted to
the form that a peer needs before the clock starts.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier

from benchmarks.data import Array
from benchmarks.harness import installed
from boundary_forest import BoundaryForestClassifier

N_ESTIMATORS = 50  # n_T and k of the paper's experiments
MAX_CHILDREN = 50
LINKS, BUILD_BEAM, SEARCH_BEAM = 16, 200, 50


class Learner(Protocol):
    """What is timed."""

    def fit(self, X: Array, y: Array) -> None:
        """Learn all rows."""

    def predict(self, X: Array) -> Array:
        """Return the predicted labels of the rows."""


class Estimator:
    """A scikit-learn classifier, ours among them."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: Array, y: Array) -> None:
        self.estimator.fit(X, y)

    def predict(self, X: Array) -> Array:
        return np.asarray(self.estimator.predict(X))


class FaissFlat:
    """FAISS's exhaustive search."""

    def __init__(self) -> None:
        self.faiss: Any = installed("faiss")

    def fit(self, X: Array, y: Array) -> None:
        self.y = y
        self.index = self.faiss.IndexFlatL2(X.shape[1])
        self.index.add(X)

    def predict(self, X: Array) -> Array:
        _, nearest = self.index.search(X, 1)
        return np.asarray(self.y[nearest[:, 0]])


class Hnswlib:
    """hnswlib's graph."""

    def __init__(self, threads: int, seed: int) -> None:
        self.hnswlib: Any = installed("hnswlib")
        self.threads, self.seed = threads, seed

    def fit(self, X: Array, y: Array) -> None:
        self.y = y
        self.index = self.hnswlib.Index(space="l2", dim=X.shape[1])
        self.index.init_index(len(X), ef_construction=BUILD_BEAM, M=LINKS, random_seed=self.seed)
        self.index.add_items(X, num_threads=self.threads)
        self.index.set_ef(SEARCH_BEAM)

    def predict(self, X: Array) -> Array:
        nearest, _ = self.index.knn_query(X, k=1, num_threads=self.threads)
        return np.asarray(self.y[nearest[:, 0]])


class USearch:
    """USearch's graph, on rows of int8 or float32."""

    def __init__(self, threads: int, element: str) -> None:
        self.usearch: Any = installed("usearch.index")
        self.threads, self.element = threads, element

    def fit(self, X: Array, y: Array) -> None:
        self.y = y
        self.index = self.usearch.Index(
            ndim=X.shape[1],
            metric="l2sq",
            dtype=self.element,
            connectivity=LINKS,
            expansion_add=BUILD_BEAM,
            expansion_search=SEARCH_BEAM,
        )
        self.index.add(np.arange(len(X), dtype=np.uint64), X, threads=self.threads)

    def predict(self, X: Array) -> Array:
        nearest = self.index.search(X, 1, threads=self.threads).keys
        return np.asarray(self.y[nearest.reshape(-1).astype(np.int64)])


def as_float32(X: Array) -> Array:
    return np.ascontiguousarray(X, dtype=np.float32)


def as_int8(X: Array) -> Array:
    """Shift uint8 rows by 128, which changes no distance."""
    return (X.astype(np.int16) - 128).astype(np.int8)


def as_they_are(X: Array) -> Array:
    return X


def forest(threads: int, seed: int) -> BoundaryForestClassifier:
    return BoundaryForestClassifier(
        shuffle=False,
        n_estimators=N_ESTIMATORS,
        max_children=MAX_CHILDREN,
        n_jobs=threads,
        random_state=seed,
    )


def _nearest(algorithm: str, threads: int) -> Estimator:
    return Estimator(KNeighborsClassifier(1, algorithm=algorithm, n_jobs=threads))


@dataclass(frozen=True)
class Peer:
    """How to make a learner, for a number of threads and a seed, and which rows it needs."""

    title: str
    module: str
    make: Callable[[int, int], Learner]
    form: Callable[[Array], Array] = as_float32


PEERS = {
    "forest": Peer(
        "boundary forest",
        "boundary_forest",
        lambda threads, seed: Estimator(forest(threads, seed)),
        as_they_are,
    ),
    "forest_f32": Peer(
        "boundary forest, float32",
        "boundary_forest",
        lambda threads, seed: Estimator(forest(threads, seed)),
    ),
    "faiss": Peer("FAISS IndexFlatL2", "faiss", lambda threads, seed: FaissFlat()),
    "hnswlib": Peer("hnswlib", "hnswlib", Hnswlib),
    "usearch_i8": Peer(
        "USearch, int8", "usearch.index", lambda threads, seed: USearch(threads, "i8"), as_int8
    ),
    "usearch_f32": Peer(
        "USearch, float32", "usearch.index", lambda threads, seed: USearch(threads, "f32")
    ),
    "random_forest": Peer(
        "random forest, 50 trees",
        "sklearn",
        lambda threads, seed: Estimator(
            RandomForestClassifier(50, n_jobs=threads, random_state=seed)
        ),
    ),
    "knn_brute": Peer("k-NN, brute", "sklearn", lambda threads, seed: _nearest("brute", threads)),
    "knn_kd_tree": Peer(
        "k-NN, kd_tree", "sklearn", lambda threads, seed: _nearest("kd_tree", threads)
    ),
}
