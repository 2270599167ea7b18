"""Indexes for nearest neighbours behind one interface: build, and search with a width.

A width is what an index trades time for recall by: a beam, or the number of cells probed. Bytes are
beside the row itself, as each library keeps them or says that it does.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.data import Array
from benchmarks.harness import installed
from boundary_forest import BoundaryForestNeighbors

LINKS = 16  # M of the HNSW graphs
CELLS = 1024  # of the inverted file


class Index(Protocol):
    """What is timed."""

    def build(self, X: Array) -> None:
        """Add all rows."""

    def search(self, queries: Array, n: int, width: int) -> Array:
        """Return the numbers of the nearest rows."""

    def bytes_each(self) -> float:
        """Return the bytes per example, without its row."""


class Forest:
    """The forest, searched as a graph."""

    def __init__(self, n_estimators: int, threads: int, seed: int) -> None:
        self.forest = BoundaryForestNeighbors(
            n_estimators=n_estimators, n_jobs=threads, random_state=seed
        )

    def build(self, X: Array) -> None:
        self.forest.fit(X)

    def search(self, queries: Array, n: int, width: int) -> Array:
        return np.asarray(self.forest.kneighbors(queries, n, return_distance=False, beam=width))

    def bytes_each(self) -> float:
        stats = self.forest.stats()
        parts = stats["bytes"]
        return float((parts["total"] - parts["positions"]) / stats["examples_stored"])


class Hnswlib:
    """hnswlib's graph."""

    def __init__(self, build_beam: int, threads: int, seed: int) -> None:
        self.hnswlib: Any = installed("hnswlib")
        self.build_beam, self.threads, self.seed = build_beam, threads, seed

    def build(self, X: Array) -> None:
        self.index = self.hnswlib.Index(space="l2", dim=X.shape[1])
        self.index.init_index(
            len(X), ef_construction=self.build_beam, M=LINKS, random_seed=self.seed
        )
        self.index.add_items(X, num_threads=self.threads)

    def search(self, queries: Array, n: int, width: int) -> Array:
        self.index.set_ef(max(width, n))
        return np.asarray(self.index.knn_query(queries, k=n, num_threads=self.threads)[0])

    def bytes_each(self) -> float:
        # 2 M links at the lowest level, their count and a label; M links and a count at each of
        # the upper levels, which one in M of the rows below is in.
        return 4.0 * (2 * LINKS + 1) + 8.0 + 4.0 * (LINKS + 1) / (LINKS - 1)


class USearch:
    """USearch's graph."""

    def __init__(self, threads: int) -> None:
        self.usearch: Any = installed("usearch.index")
        self.threads = threads

    def build(self, X: Array) -> None:
        self.n, self.row_bytes = len(X), X[0].nbytes
        self.index = self.usearch.Index(
            ndim=X.shape[1],
            metric="l2sq",
            dtype="f32",
            connectivity=LINKS,
            expansion_add=200,
        )
        self.index.add(np.arange(len(X), dtype=np.uint64), X, threads=self.threads)

    def search(self, queries: Array, n: int, width: int) -> Array:
        self.index.expansion_search = max(width, n)
        return np.asarray(self.index.search(queries, n, threads=self.threads).keys).astype(np.int64)

    def bytes_each(self) -> float:
        return float(self.index.memory_usage / self.n - self.row_bytes)


class Faiss:
    """FAISS's HNSW graph, inverted file or exhaustive search."""

    def __init__(self, kind: str) -> None:
        self.faiss: Any = installed("faiss")
        self.kind = kind

    def build(self, X: Array) -> None:
        d = X.shape[1]
        if self.kind == "hnsw":
            self.index = self.faiss.IndexHNSWFlat(d, LINKS)
            self.index.hnsw.efConstruction = 200
        elif self.kind == "ivf":
            cells = min(CELLS, len(X) // 40)
            self.index = self.faiss.IndexIVFFlat(self.faiss.IndexFlatL2(d), d, cells)
            self.index.train(X)
        else:
            self.index = self.faiss.IndexFlatL2(d)
        self.index.add(X)

    def search(self, queries: Array, n: int, width: int) -> Array:
        if self.kind == "hnsw":
            self.index.hnsw.efSearch = max(width, n)
        if self.kind == "ivf":
            self.index.nprobe = max(1, width // 10)
        return np.asarray(self.index.search(queries, n)[1])

    def bytes_each(self) -> float:
        return {"hnsw": 4.0 * 2 * LINKS + 8.0 + 4.0, "ivf": 8.0, "flat": 0.0}[self.kind]


@dataclass(frozen=True)
class Contestant:
    """How to make an index, for a number of threads and a seed."""

    title: str
    module: str
    make: Callable[[int, int], Index]
    as_bytes: bool = False  # takes uint8 rows as they are
    has_widths: bool = True


CONTESTANTS = {
    "forest": Contestant(
        "boundary forest, 30 trees",
        "boundary_forest",
        lambda threads, seed: Forest(30, threads, seed),
        as_bytes=True,
    ),
    "forest_20": Contestant(
        "boundary forest, 20 trees",
        "boundary_forest",
        lambda threads, seed: Forest(20, threads, seed),
        as_bytes=True,
    ),
    "hnswlib": Contestant(
        "hnswlib, ef_construction 200",
        "hnswlib",
        lambda threads, seed: Hnswlib(200, threads, seed),
    ),
    "hnswlib_120": Contestant(
        "hnswlib, ef_construction 120",
        "hnswlib",
        lambda threads, seed: Hnswlib(120, threads, seed),
    ),
    "hnswlib_80": Contestant(
        "hnswlib, ef_construction 80", "hnswlib", lambda threads, seed: Hnswlib(80, threads, seed)
    ),
    "hnswlib_40": Contestant(
        "hnswlib, ef_construction 40", "hnswlib", lambda threads, seed: Hnswlib(40, threads, seed)
    ),
    "usearch": Contestant(
        "USearch, expansion_add 200", "usearch.index", lambda threads, seed: USearch(threads)
    ),
    "faiss_hnsw": Contestant("FAISS-HNSW", "faiss", lambda threads, seed: Faiss("hnsw")),
    "faiss_ivf": Contestant("FAISS-IVF", "faiss", lambda threads, seed: Faiss("ivf")),
    "faiss_flat": Contestant(
        "FAISS flat", "faiss", lambda threads, seed: Faiss("flat"), has_widths=False
    ),
}
