"""The forest behind the interface of ann-benchmarks, https://github.com/erikbern/ann-benchmarks.

This folder is to be copied there as ``ann_benchmarks/algorithms/boundary_forest``. In an
environment that has boundary-forest and what ann-benchmarks requires:

    python run.py --local --algorithm boundary-forest --dataset glove-100-angular

and the same with ``--batch``, in which all queries come at once and all cores answer them.
``config.yml`` says which forests are built, and which beams they are searched with.
"""

from typing import Any

import numpy as np
from ann_benchmarks.algorithms.base.module import BaseANN  # type: ignore[import-not-found]
from numpy.typing import NDArray

from boundary_forest import BoundaryForestNeighbors

Array = NDArray[Any]
METRICS = ("euclidean", "angular")
BUILT_ON = 1  # thread, as ann-benchmarks counts the time to build for one


class BoundaryForest(BaseANN):
    """An index whose trees are one graph.

    Parameters
    ----------
    metric : {"euclidean", "angular"}
        The data set's distance. Neighbours by angle are those by the Euclidean distance of rows
        that have length 1.
    parameters : dict
        Parameters of :class:`~boundary_forest.BoundaryForestNeighbors`.
    """

    def __init__(self, metric: str, parameters: dict[str, Any]) -> None:
        if metric not in METRICS:
            raise NotImplementedError(f"metric must be one of {', '.join(METRICS)}, got {metric}")
        self._is_angular = metric == "angular"
        self._parameters = dict(parameters)
        self._beam: int | None = None
        self._found: Array | None = None
        self._asked = 0  # distances that were computed before the current arguments
        self._index = BoundaryForestNeighbors(random_state=0, n_jobs=BUILT_ON, **parameters)

    def fit(self, X: Array) -> None:
        """Learn all rows."""
        self._index.fit(self._rows(X))

    def set_query_arguments(self, beam: int) -> None:
        """Search with this beam from now on."""
        self._beam = int(beam)
        self._asked = self._evaluations()

    def query(self, q: Array, n: int) -> Array:
        """Return the n nearest rows to one query, by their numbers."""
        found: Array = self._neighbors(q[None], n)[0]
        return found

    def batch_query(self, X: Array, n: int) -> None:
        """Find the n nearest rows to each query, on all cores."""
        self._index.set_params(n_jobs=-1)
        try:
            self._found = self._neighbors(X, n)
        finally:
            self._index.set_params(n_jobs=BUILT_ON)

    def get_batch_results(self) -> Array | None:
        """Return what the last batch of queries found."""
        return self._found

    def get_additional(self) -> dict[str, Any]:
        """Return how many distances were computed for the current arguments."""
        return {"dist_comps": self._evaluations() - self._asked}

    def done(self) -> None:
        """Free the index."""
        self._index = BoundaryForestNeighbors()
        self._found = None

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value}" for name, value in sorted(self._parameters.items()))
        return f"BoundaryForest({given}{', ' if given else ''}beam={self._beam})"

    def _neighbors(self, X: Array, n: int) -> Array:
        beam = None if self._beam is None else max(self._beam, n)
        found: Array = self._index.kneighbors(self._rows(X), n, return_distance=False, beam=beam)
        return found

    def _rows(self, X: Array) -> Array:
        """Return rows as they are kept: float32, of length 1 if their angles are compared."""
        rows = np.ascontiguousarray(X, dtype=np.float32)
        if not self._is_angular:
            return rows
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        return rows / np.where(lengths == 0, np.float32(1), lengths)

    def _evaluations(self) -> int:
        if self._index.fitted is None:
            return 0
        return int(self._index.stats()["evaluations"]["query"])
