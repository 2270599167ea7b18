"""The paper's general form: any label vectors, any metric d_c on them, any estimator E."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.adaptive import ADAPTIVE_CONSTRAINTS, AdaptiveMixin
from boundary_forest.estimators.base import PARAMETER_CONSTRAINTS, BaseBoundaryForest
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.engine_constants import LABEL_METRICS
from boundary_forest.estimators.labels import LabelVectors, Node
from boundary_forest.estimators.learning_call import LearningCall
from boundary_forest.estimators.sample_weight import refuses_sample_weight

__all__ = ["BoundaryForest", "Node"]


class BoundaryForest(AdaptiveMixin, BaseBoundaryForest):
    """A Boundary Forest over label vectors, with the paper's d, d_c, epsilon and E as parameters.

    Classification, regression and retrieval are special cases; the other estimators are more
    convenient for them. Use this one for everything else.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees (n_T).
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        d, as for :class:`BoundaryForestClassifier`. "inner_product" needs ``estimator="nearest"``
        or a callable.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    label_metric : str or callable, default="euclidean"
        d_c: "euclidean", "manhattan", "chebyshev", "discrete" (1 unless the vectors are the same),
        "always" (every example is stored), or a function of two label vectors.
    epsilon : float or "auto", default=0.0
        A tree stores an example if d_c between its label and the label predicted by the tree is
        larger than this. "auto" is a tenth of the standard deviation of the earlier labels.
    estimator : {"shepard_mean", "nearest"} or callable, default="shepard_mean"
        E: the mean of the labels found, weighted by 1 / distance; the label of the closest of them;
        or ``E(y, nodes)``, called with a query and a list of one :class:`Node` per tree.
    dtype : {"auto", "uint8", "int8", "float16", "float32", "float64"}, default="auto"
        Type in which vectors are stored. "auto" follows the first batch, but never chooses int8 or
        float16, which save memory and give the same results as float32.
    offline : bool, default=False
        Whether ``fit`` lets each tree learn the data in its own random order.
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all cores. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.
    feature_weights : None, "learned" or array-like of shape (n_features,), default=None
        Weights that multiply the squared differences of features, as scipy's ``w`` does. "learned"
        learns the weights from the stream, for features of any scale.
        Requires ``metric="euclidean"``.
    max_samples : float in (0, 1] or None, default=None
        The fraction of the examples that each tree learns, drawn at random. Below 1, trees differ
        more and learning costs less.
    weights : {"distance", "uniform", "auto", "mixture"}, default="distance"
        How the trees' predictions are combined, as for :class:`BoundaryForestRegressor`.
    shuffle : bool, default=True
        Whether ``fit`` learns its rows in an order drawn from the seed, so that rows sorted by
        class or target do no harm. With False, ``fit`` is ``partial_fit`` from nothing. Rows keep
        their numbers either way. With ``offline=True`` it has no effect.
    verbose : int or bool, default=0
        Whether ``fit`` and ``partial_fit`` print every few seconds how many rows were learned and
        how long the rest will take. It acts at once, like ``n_jobs``, and changes no forest.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The weights of the features in use; 1 without any.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's weight times its variance, as shares that sum to 1.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    Predict angles. They are compared along the shorter arc, and averaged as directions:

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

    label_policy = LabelVectors

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        **ADAPTIVE_CONSTRAINTS,
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
        feature_weights: Any = None,
        max_samples: float | None = None,
        weights: str = "distance",
        shuffle: bool = True,
        verbose: int = 0,
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
            verbose=verbose,
        )
        self.label_metric = label_metric
        self.epsilon = epsilon
        self.estimator = estimator
        self.feature_weights = feature_weights
        self.max_samples = max_samples
        self.weights = weights
        self.shuffle = shuffle

    @refuses_sample_weight
    def fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Learn from scratch; everything learned before is discarded.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training vectors; ``shuffle`` says in which order they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their label vectors.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, as for :class:`BoundaryForestClassifier`.

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
        self._learn(LearningCall(X, y, ids, reset=True, shuffle=self.shuffle))
        return self

    @refuses_sample_weight
    def partial_fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Continue learning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Their label vectors, as long as before.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, as for :class:`BoundaryForestClassifier`.

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
        self._learn(LearningCall(X, y, ids))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict with the estimator E from the examples at which the trees end.

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
        fitted = self._require_fitted()
        rows = self._query_rows(fitted, X)
        engine, threads = fitted.engine, n_threads(self.n_jobs)
        E = fitted.parameters["estimator"]
        if not callable(E):
            return fitted.labels.answers(fitted.predicted(rows, threads))
        places, distances, (positions, labels, arrivals, _) = engine.found(rows, threads)
        arrivals = fitted.rows(arrivals)
        answers = []
        for y, found, d in zip(rows, places, distances, strict=True):
            nodes = [
                Node(positions[i], labels[i], float(d_i), int(arrivals[i]))
                for i, d_i in zip(found, d, strict=True)
            ]
            answers.append(E(y, nodes))
        return np.asarray(answers)
