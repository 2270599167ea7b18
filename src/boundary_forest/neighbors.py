"""Retrieval: every example is kept, and queries find stored examples close to them."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval

from boundary_forest._base import BaseBoundaryForest


class BoundaryForestNeighbors(BaseBoundaryForest):
    """Online approximate nearest-neighbour search with a Boundary Forest.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours ``kneighbors`` finds when it is not told.
    n_estimators : int, default=50
        Trees (the paper's n_T).
    max_children : int or None, default=50
        Most children a node may have (k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`BoundaryForestClassifier`, and "inner_product", 1 - x.y.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        What positions are kept as; "auto" lets the first batch's dtype decide.
    offline : bool, default=False
        Whether ``fit`` shows each tree its own shuffle of the data.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The answers do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from boundary_forest import BoundaryForestNeighbors
    >>> X = np.random.default_rng(0).normal(size=(1000, 8))
    >>> index = BoundaryForestNeighbors(random_state=0).fit(X)
    >>> distances, arrivals = index.kneighbors(X[:3], 1)
    >>> arrivals.ravel()
    array([0, 1, 2])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoundaryForest._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_children=max_children,
            metric=metric,
            metric_params=metric_params,
            dtype=dtype,
            offline=offline,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_neighbors = n_neighbors

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything and learn from the beginning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : ignored

        Returns
        -------
        self : BoundaryForestNeighbors
        """
        self._learn(X, y, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Go on learning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : ignored

        Returns
        -------
        self : BoundaryForestNeighbors
        """
        self._learn(X, y, reset=False)
        return self

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Stored examples close to each query, nearest first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.
        n_neighbors : int or None, default=None
            How many; None is the estimator's ``n_neighbors``.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        arrivals : ndarray of shape (n_samples, n_neighbors)
            Arrival numbers of the neighbours.
        """
        return super().kneighbors(
            X, self.n_neighbors if n_neighbors is None else n_neighbors, return_distance
        )

    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        return np.zeros((n_rows, 0))

    def _label_rules(self) -> dict[str, Any]:
        return {"label_rule": "always", "estimator": "nearest", "epsilon": 0.0}
