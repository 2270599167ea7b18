"""The paper's general form: any label vectors, any metric d_c on them, any estimator E."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.explanation import ExplainingForest, TreePath
from boundary_forest.estimators.label_vectors import (
    as_label_vectors,
    check_length,
    loaded_one_output,
)
from boundary_forest.files import ModelFile

LABEL_METRICS = ("euclidean", "manhattan", "chebyshev", "discrete", "always")


@dataclass(frozen=True)
class Node:
    """A locally closest example, as an estimator E is given it.

    Parameters
    ----------
    position : ndarray of shape (n_features,)
        The example's position x_i.
    label : ndarray of shape (n_labels,)
        Its label vector c(x_i).
    distance : float
        d(x_i, y).
    arrival : int
        Its arrival number.
    """

    position: NDArray[Any]
    label: NDArray[np.float64]
    distance: float
    arrival: int


class BoundaryForest(ExplainingForest):
    """A Boundary Forest over label vectors, with the paper's d, d_c, epsilon and E as parameters.

    Classification, regression and retrieval are special cases, which the other estimators serve
    with more comfort; this one is for everything else.

    Parameters
    ----------
    n_estimators : int, default=50
        Trees (n_T).
    max_children : int or None, default=50
        Most children a node may have (k); None is unlimited.
    metric : str or callable, default="euclidean"
        d, as for :class:`BoundaryForestClassifier`. "inner_product" needs ``estimator="nearest"``
        or a callable.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    label_metric : str or callable, default="euclidean"
        d_c: "euclidean", "manhattan", "chebyshev", "discrete" (1 unless the vectors are the same),
        "always" (every example is kept), or a function of two label vectors.
    epsilon : float or "auto", default=0.0
        A tree keeps an example if d_c between its label and the one the tree ends at is larger.
        "auto" is a tenth of the standard deviation of the labels that came before.
    estimator : {"shepard_mean", "nearest"} or callable, default="shepard_mean"
        E: the mean of the labels found, weighted by 1 / distance; the label of the closest of them;
        or ``E(y, nodes)``, called with a query and a list of one :class:`Node` a tree.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        What positions are kept as; "auto" lets the first batch's dtype decide.
    offline : bool, default=False
        Whether ``fit`` shows each tree its own shuffle of the data.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores.
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
    Angles on a circle, compared the short way round, and averaged as directions:

    >>> import numpy as np
    >>> from boundary_forest import BoundaryForest
    >>> def around(a, b):
    ...     gap = abs(a[0] - b[0]) % 360
    ...     return min(gap, 360 - gap)
    >>> def mean_direction(y, nodes):
    ...     z = sum(np.exp(1j * np.radians(node.label[0])) for node in nodes)
    ...     return [np.degrees(np.angle(z)) % 360]
    >>> angles = np.random.default_rng(0).uniform(0, 360, size=2000)
    >>> X = np.column_stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))])
    >>> forest = BoundaryForest(
    ...     label_metric=around, epsilon=2.0, estimator=mean_direction, random_state=0
    ... ).fit(X[:1900], angles[:1900])
    >>> answers = forest.predict(X[1900:])
    >>> bool(max(around([a], b) for a, b in zip(angles[1900:], answers)) < 4)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ExplainingForest._parameter_constraints,
        "label_metric": [StrOptions(set(LABEL_METRICS)), callable],
        "epsilon": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
        "estimator": [StrOptions({"shepard_mean", "nearest"}), callable],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        label_metric: Any = "euclidean",
        epsilon: float | str = 0.0,
        estimator: Any = "shepard_mean",
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
        self.label_metric = label_metric
        self.epsilon = epsilon
        self.estimator = estimator

    def fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Forget everything and learn from the beginning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their label vectors.
        ids : array-like of shape (n_samples,) or None, default=None
            Names of your own for the examples, as for :class:`BoundaryForestClassifier`.

        Returns
        -------
        self : BoundaryForest

        Examples
        --------
        >>> from boundary_forest import BoundaryForest
        >>> forest = BoundaryForest(random_state=0).fit([[0], [9]], [[1, 0], [0, 1]])
        >>> forest.predict([[1], [8]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
        """
        self._learn(X, y, reset=True, ids=ids)
        return self

    def partial_fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Go on learning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their label vectors, as long as before.
        ids : array-like of shape (n_samples,) or None, default=None
            Names of your own for the examples, as for :class:`BoundaryForestClassifier`.

        Returns
        -------
        self : BoundaryForest

        Examples
        --------
        >>> from boundary_forest import BoundaryForest
        >>> forest = BoundaryForest(random_state=0).partial_fit([[0]], [1.5])
        >>> forest.partial_fit([[9]], [4.5]).predict([[1], [8]]).tolist()
        [1.5, 4.5]
        """
        self._learn(X, y, reset=False, ids=ids)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """What E makes of the examples that the trees end at.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        labels : ndarray of shape (n_samples, n_labels)
            Of shape (n_samples,) if the labels learned were single numbers. For a callable E, an
            array of whatever it returned.

        Examples
        --------
        >>> from boundary_forest import BoundaryForest
        >>> forest = BoundaryForest(estimator=lambda y, nodes: nodes[0].arrival, random_state=0)
        >>> forest.fit([[0], [9]], [1.5, 4.5]).predict([[1], [8]]).tolist()
        [0, 1]
        """
        view = self._view()
        engine, rows = view._ask(X)
        E = view._estimate_with
        if not callable(E):
            return view._answers(engine.estimate(rows, view._n_threads()))
        slots, distances = engine.found(rows, view._n_threads())
        met, places = np.unique(slots, return_inverse=True)
        positions, labels, arrivals = engine.examples(met)
        answers = []
        for y, found, d in zip(rows, places.reshape(slots.shape), distances, strict=True):
            nodes = [
                Node(positions[i], labels[i], float(d_i), int(arrivals[i]))
                for i, d_i in zip(found, d, strict=True)
            ]
            answers.append(E(y, nodes))
        return np.asarray(answers)

    def _answers(self, estimates: NDArray[np.float64]) -> NDArray[Any]:
        return estimates[:, 0] if self._one_number else estimates

    def _concluded(
        self,
        rows: NDArray[Any],
        estimate: NDArray[np.float64],
        trees: tuple[TreePath, ...],
        labels: NDArray[np.float64],
    ) -> tuple[Any, float]:
        answer, confidence = super()._concluded(rows, estimate, trees, labels)
        if callable(self._estimate_with):
            answer = self.predict(rows)[0].tolist()
        return answer, confidence

    def _weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What a callable E makes of its nodes is not known, so they count alike."""
        if callable(self._estimate_with):
            return np.full(len(weights), 1 / len(weights))
        return weights

    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        labels = as_label_vectors(y)
        if reset:
            self._one_number = labels.ndim == 1
            self._estimate_with = self.estimator
        else:
            check_length(labels, self._settings["label_length"])
        return labels.reshape(len(labels), -1)

    _PARAMETERS_IN_USE = (
        *ExplainingForest._PARAMETERS_IN_USE,
        "epsilon",
        "estimator",
        "label_metric",
    )

    def _in_use(self) -> dict[str, Any]:
        return {
            **super()._in_use(),
            "epsilon": self._epsilon_in_use(),
            "estimator": self._estimate_with,
            "label_metric": self._settings["label_metric"],
        }

    def _saved_labels(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        return {"one_output": self._one_number}, {}

    def _load_labels(self, file: ModelFile, forest: dict[str, Any], label_length: int) -> None:
        self._one_number = loaded_one_output(forest, label_length)
        self._estimate_with = self.estimator

    def _label_rules(self) -> dict[str, Any]:
        return {
            "label_metric": self.label_metric,
            "estimator": "nearest" if callable(self.estimator) else self.estimator,
            "epsilon": None if self.epsilon == "auto" else float(self.epsilon),
        }
