"""The regressor: an example is kept where a tree's answer is off by more than epsilon."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import check_array
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest._base import BaseBoundaryForest


class BoundaryForestRegressor(RegressorMixin, BaseBoundaryForest):
    """Online nearest-neighbour regression with a Boundary Forest.

    Parameters
    ----------
    n_estimators : int, default=50
        Trees (the paper's n_T).
    max_children : int or None, default=50
        Most children a node may have (k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`BoundaryForestClassifier`.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        What positions are kept as; "auto" lets the first batch's dtype decide.
    offline : bool, default=False
        Whether ``fit`` shows each tree its own shuffle of the data (the paper's OBF).
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The answers do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.
    epsilon : float or "auto", default="auto"
        A tree keeps an example if its target is further than this from the target that the tree
        ends at. "auto" is a tenth of the standard deviation of the targets that came before (for
        the first ``n_estimators``, of those; offline, of all). Larger values keep fewer examples.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    n_features_in_ : int
        Number of features.

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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **BaseBoundaryForest._parameter_constraints,
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
        self.epsilon = epsilon

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and learn from the beginning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets.

        Returns
        -------
        self : BoundaryForestRegressor
        """
        self._learn(X, y, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Go on learning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their targets, with as many outputs as before.

        Returns
        -------
        self : BoundaryForestRegressor
        """
        self._learn(X, y, reset=False)
        return self

    def predict(self, X: Any) -> NDArray[np.float64]:
        """The Shepard-weighted mean of the targets that the trees end at.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        engine, rows = self._ask(X)
        means = engine.estimate(rows, self._n_threads())
        return means[:, 0] if self._one_output else means

    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        if getattr(getattr(y, "dtype", None), "kind", None) in ("m", "M"):
            raise TypeError(f"y must hold numbers, got dtype {y.dtype}")
        targets: NDArray[np.float64] = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y"
        )
        one_output = targets.ndim == 1
        targets = targets.reshape(len(targets), -1)
        if reset:
            self._one_output = one_output
        elif targets.shape[1] != self._settings["label_length"]:
            raise ValueError(
                f"y has {targets.shape[1]} outputs, but the first batch had "
                f"{self._settings['label_length']}"
            )
        return targets

    def _label_rules(self) -> dict[str, Any]:
        epsilon = None if self.epsilon == "auto" else float(self.epsilon)
        return {"label_rule": "difference", "estimator": "shepard_mean", "epsilon": epsilon}
