"""The regressor on dicts of features."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from river import base

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.regressor import BoundaryForestRegressor as SklearnRegressor
from boundary_forest.river.adaptive_river_forest import AdaptiveRiverForest
from boundary_forest.river.named_forest import number, numbers
from boundary_forest.river.river_forest import check_lengths

if TYPE_CHECKING:
    import pandas as pd


class BoundaryForestRegressor(AdaptiveRiverForest, base.MiniBatchRegressor):
    """Online nearest-neighbour regression with a Boundary Forest.

    The same learner as :class:`boundary_forest.BoundaryForestRegressor`, with one target.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of trees (the paper's n_T). Time and memory grow with it.
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`boundary_forest.BoundaryForestClassifier`.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    n_jobs : int or None, default=None
        Number of threads of the mini-batch methods; None is 1, -1 all cores. Results do not depend
        on it.
    seed : int or None, default=None
        Seed of the forest (scikit-learn's ``random_state``); None draws one at the first example.
    epsilon : float or "auto", default="auto"
        A tree keeps an example if its target is further than this from the target that the tree
        ends at. "auto" is a tenth of the standard deviation of the targets that came before.
    feature_weights : None or "learned", default=None
        "learned" learns weights from the stream that multiply the squared differences of features,
        for features of any scale. Requires ``metric="euclidean"``.
    max_samples : float in (0, 1] or None, default=None
        The fraction of the examples that each tree learns; below 1, trees differ more.
    weights : {"distance", "uniform", "auto", "mixture"}, default="distance"
        How the trees' predictions are weighted, as for
        :class:`boundary_forest.BoundaryForestRegressor`.
    forgetting : None, "auto" or list of int and None, default=None
        Lifetimes of the trees, in examples, as for
        :class:`boundary_forest.BoundaryForestRegressor`; see :meth:`for_streams`.
    max_stored : int or None, default=None
        The maximum number of stored examples; None: no limit.
    columns : None or "auto", default=None
        What values may be. None: numbers. "auto": numbers, text, booleans and dates, and None; a
        key that a dict lacks is then a missing value. ``for_tables`` and ``for_streams`` set it.

    Attributes
    ----------
    feature_weights_, feature_importances_ : dict
        The weights in use, by feature, and each feature's weight times its variance, as shares that
        sum to 1. Both are empty before the first example.

    Notes
    -----
    Features are treated as by :class:`BoundaryForestClassifier`. Before the first example the
    answer is 0.0.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from boundary_forest.river import BoundaryForestRegressor
    >>> model = preprocessing.StandardScaler() | BoundaryForestRegressor(seed=0)
    >>> error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    >>> error.get() < 1.0
    True
    """

    def __init__(
        self,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
        epsilon: float | str = "auto",
        feature_weights: str | None = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: str | list[int | None] | None = None,
        max_stored: int | None = None,
        columns: str | None = None,
    ) -> None:
        self.epsilon = epsilon
        super().__init__(
            n_estimators,
            max_children,
            metric,
            metric_params,
            n_jobs,
            seed,
            feature_weights,
            max_samples,
            weights,
            forgetting,
            max_stored,
            columns,
        )

    def _estimator(self) -> BaseBoundaryForest:
        return SklearnRegressor(epsilon=self.epsilon, **self._shared_parameters())

    def learn_one(self, x: dict[Any, Any], y: float, id: Any = None) -> None:
        """Learn one example.

        Parameters
        ----------
        x : dict
            Its features, by name.
        y : float
            Its target.
        id : int, str or None, default=None
            Its id, by which :meth:`forget` removes it. Either all examples have ids or none.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestRegressor
        >>> model = BoundaryForestRegressor(seed=0)
        >>> model.learn_one({"size": 0}, 1.5)
        >>> model.learn_one({"size": 9}, 4.5)
        >>> model.predict_one({"size": 8})
        4.5
        """
        self._learn_one(x, np.full((1, 1), number("y", y)), id)

    def learn_many(self, X: pd.DataFrame, y: pd.Series, ids: Any = None) -> None:
        """Learn the rows of a frame in their order, as if one by one.

        Parameters
        ----------
        X : DataFrame
            One row per example, one column per feature.
        y : Series
            Their targets, in the same order.
        ids : array-like of int or str, or None, default=None
            Their ids, by which :meth:`forget` removes them. Either all examples have ids or none.

        Examples
        --------
        >>> import pandas as pd
        >>> from boundary_forest.river import BoundaryForestRegressor
        >>> model, X = BoundaryForestRegressor(seed=0), pd.DataFrame({"size": [0, 9]})
        >>> model.learn_many(X, pd.Series([1.5, 4.5]))
        >>> model.predict_one({"size": 8})
        4.5
        """
        check_lengths(X, y)
        if len(y):
            targets = np.asarray(numbers("y", y), dtype=np.float64)
            self._learn_many(X, np.ascontiguousarray(targets[:, None]), ids)

    def predict_one(self, x: dict[Any, Any]) -> float:
        """Predict the mean of the targets at which the trees end, weighted by 1 / distance.

        Parameters
        ----------
        x : dict
            Features, by name.

        Returns
        -------
        y : float
            0.0 before the first example.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestRegressor
        >>> model = BoundaryForestRegressor(seed=0)
        >>> model.learn_one({"size": 0}, 1.5)
        >>> model.learn_one({"size": 9}, 4.5)
        >>> model.predict_one({"size": 8})
        4.5
        """
        if self._forest is None:
            return 0.0
        return self._forest.predict_one(x)

    def predict_many(self, X: pd.DataFrame) -> pd.Series:
        """Predict the mean of the targets at which the trees end for every row.

        Parameters
        ----------
        X : DataFrame
            One row per query, one column per feature.

        Returns
        -------
        y : Series
            With X's index; 0.0 before the first example.

        Examples
        --------
        >>> import pandas as pd
        >>> from boundary_forest.river import BoundaryForestRegressor
        >>> model, X = BoundaryForestRegressor(seed=0), pd.DataFrame({"size": [0, 9]})
        >>> model.learn_many(X, pd.Series([1.5, 4.5]))
        >>> model.predict_many(X).tolist()
        [1.5, 4.5]
        """
        import pandas as pd

        means = np.zeros(len(X))
        if self._forest is not None and len(X):
            means = self._forest.predict(X, self._n_threads())
        return pd.Series(means, index=X.index)
