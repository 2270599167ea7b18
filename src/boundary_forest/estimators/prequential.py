"""Test, then train: what the estimators that predict have beyond those that only retrieve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.explanation import ExplainingForest


class PredictingForest(ExplainingForest):
    """A forest whose labels can be asked for."""

    def predict_then_learn(self, X: Any, y: Any, *, ids: Any = None) -> NDArray[Any]:
        """What it would have said of each example just before learning it; then it is learned.

        The same answers and the same forest as ``predict`` and ``partial_fit`` row by row, with
        one descent per tree instead of two. The mean error of the answers is the prequential
        error, which needs no test set.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Positions, in the order in which they are answered and learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their labels, as for ``partial_fit``.
        ids : array-like of shape (n_samples,) or None, default=None
            Their ids, as for ``partial_fit``.

        Returns
        -------
        answers : ndarray of the shape of y
            Only what had been learned before a row speaks about it: a class is never answered
            before its first example.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from boundary_forest import BoundaryForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = BoundaryForestClassifier(random_state=0).partial_fit(X[:1], y[:1])
        >>> answers = forest.predict_then_learn(X[1:], y[1:])
        >>> bool((answers == y[1:]).mean() > 0.85)
        True
        """
        return self._told_then_learned(X, y, ids, lambda forest, told: forest._answers(told))

    def _told_then_learned(
        self, X: Any, y: Any, ids: Any, telling: Callable[[Self, NDArray[np.float64]], NDArray[Any]]
    ) -> NDArray[Any]:
        check_is_fitted(
            self,
            "_engine",
            msg="This %(name)s instance is not fitted yet, so it has nothing to answer with. Call "
            "partial_fit with at least one example before predict_then_learn.",
        )
        answers = self._learn(X, y, reset=False, ids=ids, telling=telling)
        assert answers is not None
        return answers

    def _estimated(self, X: Any) -> tuple[Self, NDArray[np.float64]]:
        """The engine's estimates, and the estimator that they are of."""
        return self._asked(X, lambda engine, rows, n_threads: engine.estimate(rows, n_threads))


def required(y: Any, estimator: BaseBoundaryForest) -> Any:
    """Labels, if there are any."""
    if y is None:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    return y
