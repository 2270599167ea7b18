"""k-NN and the random forest, which are scikit-learn's and do not learn online.

``fit`` trains them at once. After ``partial_fit`` they are trained again, on everything learned,
when they are next queried.
"""

from __future__ import annotations

from abc import abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils._param_validation import Interval, StrOptions

from paper.baselines.base import Baseline, NeighborsBaseline


class _Offline(Baseline):
    """A baseline that keeps all rows for a scikit-learn classifier."""

    _batches: list[NDArray[Any]]
    _n_kept: int
    _trained: Any  # None after more was learned

    @abstractmethod
    def _untrained(self) -> Any: ...

    def fit(self, X: Any, y: Any = None) -> Self:
        super().fit(X, y)
        self._estimator()
        return self

    def _begin(self, X: NDArray[Any]) -> None:
        self._batches = []
        self._n_kept = 0

    def _add(self, X: NDArray[Any]) -> None:
        self._batches.append(X.copy())
        self._n_kept += len(X)
        self._trained = None

    @property
    def _n_learned(self) -> int:
        return self._n_kept

    def _estimator(self) -> Any:
        if self._trained is None:
            self._batches = [np.concatenate(self._batches)]
            self._trained = self._untrained().fit(self._batches[0], self._ranks())
        return self._trained

    def _ranks_of(self, X: NDArray[Any]) -> NDArray[np.intp]:
        ranks: NDArray[np.intp] = self._estimator().predict(X)
        return ranks


class KNearestNeighbors(_Offline, NeighborsBaseline):
    """scikit-learn's k-NN: by default a query is compared with every example.

    Parameters
    ----------
    n_neighbors : int, default=1
        The number of neighbours that vote, and the default of ``kneighbors``.
    algorithm : {"brute", "kd_tree", "ball_tree", "auto"}, default="brute"
        scikit-learn's search. Comparisons are counted for "brute" alone, which makes all of them.
    metric : str or callable, default="euclidean"
        A metric by scikit-learn's name for it.
    n_jobs : int or None, default=1
        Number of threads that answer a query.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes seen, sorted.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from paper.baselines import KNearestNeighbors
    >>> KNearestNeighbors().fit([[0.0], [5.0]], ["a", "b"]).predict([[1.0]]).tolist()
    ['a']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "algorithm": [StrOptions({"brute", "kd_tree", "ball_tree", "auto"})],
        "metric": [str, callable],
        "n_jobs": [Integral, None],
    }

    _compared: int  # pairs of query and example

    def __init__(
        self,
        n_neighbors: int = 1,
        *,
        algorithm: str = "brute",
        metric: Any = "euclidean",
        n_jobs: int | None = 1,
    ) -> None:
        self.n_neighbors = n_neighbors
        self.algorithm = algorithm
        self.metric = metric
        self.n_jobs = n_jobs

    @property
    def name(self) -> str:
        """The name with the number of neighbours, such as 3-NN."""
        return f"{self.n_neighbors}-NN"

    def _begin(self, X: NDArray[Any]) -> None:
        super()._begin(X)
        self._compared = 0

    def _untrained(self) -> Any:
        return KNeighborsClassifier(
            min(self.n_neighbors, self._n_learned),
            algorithm=self.algorithm,
            metric=self.metric,
            n_jobs=self.n_jobs,
        )

    def _ranks_of(self, X: NDArray[Any]) -> NDArray[np.intp]:
        self._compared += len(X) * self._n_learned
        return super()._ranks_of(X)

    def _nearest(self, X: NDArray[Any], n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        self._compared += len(X) * self._n_learned
        distances, arrivals = self._estimator().kneighbors(X, n)
        return distances, arrivals

    def _comparisons(self) -> dict[str, int] | None:
        return {"learn": 0, "query": self._compared} if self.algorithm == "brute" else None


class RandomForest(_Offline):
    """scikit-learn's random forest.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees.
    max_features : int or "sqrt", default=50
        The number of features a node chooses from; all, if there are fewer. "sqrt" is the square
        root of the number of features.
    n_jobs : int or None, default=1
        Number of threads.
    random_state : int, RandomState instance or None, default=None
        The seed.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes seen, sorted.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from paper.baselines import RandomForest
    >>> forest = RandomForest(random_state=0).fit([[0.0], [5.0]] * 9, ["a", "b"] * 9)
    >>> forest.predict([[1.0]]).tolist()
    ['a']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, None, closed="left")],
        "max_features": [Interval(Integral, 1, None, closed="left"), StrOptions({"sqrt"})],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_features: int | str = 50,
        n_jobs: int | None = 1,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def name(self) -> str:
        """The name with the number of trees, such as RF-50."""
        return f"RF-{self.n_estimators}"

    def _learn(self, X: Any, y: Any, *, reset: bool) -> None:
        if y is None:
            raise ValueError(f"{self.name} needs y, a class for each row of X")
        super()._learn(X, y, reset=reset)

    def _untrained(self) -> Any:
        at_most = self.max_features
        return RandomForestClassifier(
            self.n_estimators,
            max_features=at_most if isinstance(at_most, str) else min(at_most, self.n_features_in_),
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        )
