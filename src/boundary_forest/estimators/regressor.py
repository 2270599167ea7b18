"""The regressor: an example is kept where a tree's answer is off by more than epsilon."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.adaptive import (
    ADAPTIVE_CONSTRAINTS,
    STREAM_CONSTRAINTS,
    AdaptiveMixin,
    StreamsMixin,
)
from boundary_forest.estimators.base import PARAMETER_CONSTRAINTS, BaseBoundaryForest
from boundary_forest.estimators.labels import Targets
from boundary_forest.estimators.learning_call import LearningCall
from boundary_forest.estimators.prequential import PredictThenLearnMixin
from boundary_forest.estimators.sample_weight import refuses_sample_weight


class BoundaryForestRegressor(
    MultiOutputMixin,
    RegressorMixin,
    PredictThenLearnMixin,
    AdaptiveMixin,
    StreamsMixin,
    BaseBoundaryForest,
):
    """Online nearest-neighbour regression with a Boundary Forest.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees (the paper's n_T).
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`BoundaryForestClassifier`.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "int8", "float16", "float32", "float64"}, default="auto"
        Type in which vectors are stored. "auto" follows the first batch, but never chooses int8 or
        float16, which save memory and give the same results as float32.
    offline : bool, default=False
        Whether ``fit`` lets each tree learn the data in its own random order (the paper's OBF).
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all cores. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.
    epsilon : float or "auto", default="auto"
        A tree stores an example if its prediction for it is off by more than this. "auto" is a
        tenth of the standard deviation of the earlier targets (of the first ``n_estimators``
        targets for these examples; of all targets if offline). Larger values store fewer examples.
    feature_weights : None, "learned" or array-like of shape (n_features,), default=None
        Weights that multiply the squared differences of features, as scipy's ``w`` does. "learned"
        learns the weights from the stream, for features of any scale.
        Requires ``metric="euclidean"``.
    max_samples : float in (0, 1] or None, default=None
        The fraction of the examples that each tree learns, drawn at random. Below 1, trees differ
        more and learning costs less.
    weights : {"distance", "uniform", "auto", "mixture"}, default="distance"
        How the trees' predictions are combined:

        - "distance": weighted by 1 / distance, as in the paper.
        - "uniform": all trees count the same.
        - "auto": weighted by 1 / distance ** p, with the p in {0, 0.5, 1, 2} that made the fewest
          mistakes on recent rows. With ``forgetting``, the recent accuracy of each tree counts too.
        - "mixture": up to four models are combined, such as means and ridge regressions of the
          stored examples found, and linear models of all rows. Their weights are fitted to
          predictions of recent rows, made before these were learned.
          Requires ``metric="euclidean"``. The guides on tables and on streams list the models.

        Except with "mixture", stored examples at distance 0 decide alone.
    forgetting : None, "auto" or list of int and None, default=None
        Lifetimes of the trees, in examples, assigned in turn. At the end of its lifetime, a tree is
        replaced by one that has learned the latest examples; None in the list is an unlimited
        lifetime. None: no tree is replaced, as in the paper. See :meth:`for_streams`.
    max_stored : int or None, default=None
        The maximum number of stored examples, at least 4 per tree. When it is nearly reached, the
        tree with the oldest example is rebuilt from the newer half of its examples. None: no limit.
    shuffle : bool, default=True
        Whether ``fit`` learns its rows in an order drawn from the seed, so that rows sorted by
        class or target do no harm. With False, ``fit`` is ``partial_fit`` from nothing. Rows keep
        their numbers either way. With ``offline=True`` it has no effect.
    columns : None or "auto", default=None
        What X may contain. None: numbers. "auto": columns of numbers, text, categories, booleans
        and dates, in a frame of pandas, polars or pyarrow, an array, or a list of dicts, with
        missing values anywhere. What is known about columns is learned from the stream; new
        categories may appear at any time. See the guide on frames.
    verbose : int or bool, default=0
        Whether ``fit`` and ``partial_fit`` print every few seconds how many rows were learned and
        how long the rest will take. It acts at once, like ``n_jobs``, and changes no forest.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    feature_weights_ : ndarray of shape (n_features_in_,)
        The weights of the features in use; 1 without any.
    mixture_ : dict
        With ``weights="mixture"``, the weight of each expert that has one, by name.
    feature_importances_ : ndarray of shape (n_features_in_,)
        Each feature's weight times its variance, as shares that sum to 1.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the first batch was a data frame.

    Notes
    -----
    Features should have similar scales; standardise them otherwise. Sparse X is accepted, as
    for :class:`BoundaryForestClassifier`.

    Rows in order, such as sorted ones, turn the trees into chains, and learning N of them takes
    time proportional to N^2: shuffle the rows first, or use ``for_tables`` or ``for_streams``,
    which rebuild trees that become too deep.

    On noisy targets its error lies between those of one and several nearest neighbours. Each tree
    predicts the target of one example, and mostly stores examples that contradicted it, including
    outliers. The mean over the trees smooths this only if the trees end at different examples. On
    abalone, R2 is 0.06 for the nearest neighbour, 0.36 for the forest (0.41 offline) and 0.45 for
    five neighbours; on california 0.54, 0.67 (0.69) and 0.69. ``offline=True`` makes the trees
    differ more.

    Examples
    --------
    >>> import numpy as np
    >>> from boundary_forest import BoundaryForestRegressor
    >>> X = np.random.default_rng(0).uniform(size=(2000, 2))
    >>> y = X[:, 0] + X[:, 1] ** 2
    >>> forest = BoundaryForestRegressor(random_state=0).fit(X[:1900], y[:1900])
    >>> forest.score(X[1900:], y[1900:]) > 0.98
    True
    """

    label_policy = Targets

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        **ADAPTIVE_CONSTRAINTS,
        **STREAM_CONSTRAINTS,
        "epsilon": [Interval(Real, 0, None, closed="left"), StrOptions({"auto"})],
    }

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        epsilon: float | str = "auto",
        feature_weights: Any = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: Any = None,
        max_stored: int | None = None,
        shuffle: bool = True,
        columns: str | None = None,
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
        self.epsilon = epsilon
        self.feature_weights = feature_weights
        self.max_samples = max_samples
        self.weights = weights
        self.forgetting = forgetting
        self.max_stored = max_stored
        self.shuffle = shuffle
        self.columns = columns

    @refuses_sample_weight
    def fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Learn from scratch; everything learned before is discarded.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors; ``shuffle`` says in which order they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, int64 or str, unique in the batch and among the stored examples;
            ``kneighbors`` then returns them. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestRegressor

        Examples
        --------
        >>> from boundary_forest import BoundaryForestRegressor
        >>> forest = BoundaryForestRegressor(random_state=0).fit([[0], [9]], [1.5, 3.0])
        >>> forest.score([[1], [8]], [1.5, 3.0])
        1.0
        """
        self._learn(LearningCall(X, y, ids, reset=True, shuffle=self.shuffle))
        return self

    @refuses_sample_weight
    def partial_fit(self, X: Any, y: Any, *, ids: Any = None) -> Self:
        """Continue learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets, with as many outputs as before.
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, int64 or str, unique in the batch and among the stored examples;
            ``kneighbors`` then returns them. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestRegressor

        Examples
        --------
        >>> from boundary_forest import BoundaryForestRegressor
        >>> forest = BoundaryForestRegressor(random_state=0).partial_fit([[0]], [1.5])
        >>> forest.partial_fit([[9]], [3.0]).score([[1], [8]], [1.5, 3.0])
        1.0
        """
        self._learn(LearningCall(X, y, ids))
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """Predict the mean of the targets at which the trees end, weighted by 1 / distance.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)

        Examples
        --------
        >>> from boundary_forest import BoundaryForestRegressor
        >>> forest = BoundaryForestRegressor(random_state=0).fit([[0], [9]], [1.5, 3.0])
        >>> forest.predict([[1], [8]])
        array([1.5, 3. ])
        """
        return self._predicted(X)
