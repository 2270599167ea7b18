"""Randomized kd trees, R-kd in the paper: FLANN's, with the points added one by one."""

from __future__ import annotations

import ctypes
import importlib
import threading
from numbers import Integral, Real
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval

from paper.baselines.base import NeighborsBaseline, as_rows, element_type_of

REBUILD_AT = 2.0  # FLANN's default: the trees are rebuilt when the points have doubled
CHUNK_ROWS = 1024


def load_flann() -> Any:
    """Return FLANN's C functions, or raise an error that says how to install it."""
    try:
        return importlib.import_module("pyflann_ibeis.flann_ctypes")
    except ImportError as error:
        raise ImportError(
            f"RandomizedKDTrees needs FLANN: pip install pyflann-ibeis ({error})",
            name="pyflann_ibeis",
        ) from error


class RandomizedKDTrees(NeighborsBaseline):
    """Approximate nearest neighbours by FLANN's randomized kd trees, Euclidean.

    Parameters
    ----------
    n_trees : int, default=4
        The number of trees, which are searched together.
    checks : float, default=0.1
        The share of the points seen that a query may visit; at least one point.
    n_neighbors : int, default=1
        The number of neighbours that vote, and the default of ``kneighbors``.
    random_state : int, RandomState instance or None, default=None
        The seed. FLANN has one generator for all its trees, so only a whole run can be repeated.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes seen, sorted.
    n_features_in_ : int
        Number of features.

    Notes
    -----
    FLANN does not count the distances that it computes, so ``stats`` has no comparisons. It is an
    optional dependency; without it ``fit`` raises an ImportError. A fitted estimator cannot be
    copied.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_trees": [Interval(Integral, 1, 2**31 - 1, closed="both")],
        "checks": [Interval(Real, 0, 1, closed="right")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
    }

    _index: _FlannIndex

    def __init__(
        self,
        *,
        n_trees: int = 4,
        checks: float = 0.1,
        n_neighbors: int = 1,
        random_state: Any = None,
    ) -> None:
        self.n_trees = n_trees
        self.checks = checks
        self.n_neighbors = n_neighbors
        self.random_state = random_state

    @property
    def name(self) -> str:
        """The paper's name, R-kd."""
        return "R-kd"

    def _begin(self, X: NDArray[Any]) -> None:
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._index = _FlannIndex(
            element_type_of(X.dtype), X.shape[1], n_trees=int(self.n_trees), seed=seed
        )

    def _add(self, X: NDArray[Any]) -> None:
        self._index.add(X)

    @property
    def _n_learned(self) -> int:
        return self._index.size

    def _nearest(self, X: NDArray[Any], n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        checks = max(1, int(self.checks * self._n_learned))
        return self._index.nearest(X, n, checks)


class _FlannIndex:
    """A FLANN index, and the rows it points to.

    FLANN's own Python class copies all its points whenever some are added; here its C function is
    given one row at a time, from arrays that are allocated in advance and never moved. A lock
    serialises the calls, because ctypes releases the GIL.
    """

    def __init__(self, element_type: str, n_features: int, *, n_trees: int, seed: int) -> None:
        flann = load_flann()
        self._functions = flann.flann
        self._element_type = element_type
        self._n_features = n_features
        self._parameters = flann.FLANNParameters()
        self._parameters.update(
            {"algorithm": "kdtree", "trees": n_trees, "random_seed": seed, "cores": 1}
        )
        self._lock = threading.Lock()
        self._chunks: list[NDArray[Any]] = []
        self._index: int | None = None
        self.size = 0

    def add(self, X: NDArray[Any]) -> None:
        rows = as_rows(X, self._element_type)
        with self._lock:
            for row in rows:
                self._add_one(row)

    def _add_one(self, row: NDArray[Any]) -> None:
        within = self.size % CHUNK_ROWS
        if within == 0:
            self._chunks.append(np.empty((CHUNK_ROWS, self._n_features), self._element_type))
        at = self._chunks[-1][within : within + 1]
        at[0] = row
        if self._index is None:
            build = self._of_type(self._functions.build_index)
            speedup = ctypes.c_float()
            self._index = build(
                at, 1, self._n_features, ctypes.byref(speedup), ctypes.pointer(self._parameters)
            )
            if not self._index:
                raise MemoryError("FLANN could not build an index")
        else:
            add_points = self._of_type(self._functions.add_points)
            add_points(self._index, at, 1, self._n_features, REBUILD_AT)
        self.size += 1

    def nearest(
        self, X: NDArray[Any], n: int, checks: int
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        queries = as_rows(X, self._element_type)
        wide = self._element_type == "float64"
        squares = np.empty((len(queries), n), dtype=np.float64 if wide else np.float32)
        found = np.empty((len(queries), n), dtype=np.int32)
        search = self._of_type(self._functions.find_nearest_neighbors_index)
        with self._lock:
            self._parameters["checks"] = checks
            failed = search(
                self._index,
                queries,
                len(queries),
                found,
                squares,
                n,
                ctypes.pointer(self._parameters),
            )
        if failed:
            raise RuntimeError("FLANN could not search its index")
        return np.sqrt(squares, dtype=np.float64), found.astype(np.int64)

    def _of_type(self, functions: dict[Any, Any]) -> Any:
        return functions[np.dtype(self._element_type).type]

    def __reduce__(self) -> NoReturn:
        raise TypeError("FLANN's trees cannot be copied: clone the estimator and fit it again")

    def __del__(self) -> None:
        if getattr(self, "_index", None):
            free = self._of_type(self._functions.free_index)
            free(self._index, ctypes.pointer(self._parameters))
