"""Test, then train: what the estimators that predict have beyond those that only retrieve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boundary_forest.estimators.fitted import Fitted


class PredictThenLearnMixin:
    """Adds ``predict_then_learn`` to an estimator that has ``_learn``."""

    _learn: Callable[..., tuple[Fitted, NDArray[np.float64] | None]]

    def predict_then_learn(self, X: Any, y: Any, *, ids: Any = None) -> NDArray[Any]:
        """Return the answer to each example from just before it is learned, and learn it.

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
            Each is made of what had been learned before its row: a class is never answered before
            its first example.

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
        fitted, labels = self._answered_then_learned(X, y, ids, "predict_then_learn")
        return fitted.labels.answers(labels)

    def _answered_then_learned(
        self, X: Any, y: Any, ids: Any, how: str
    ) -> tuple[Fitted, NDArray[np.float64]]:
        check_is_fitted(
            self,
            msg="This %(name)s instance is not fitted yet, so it has nothing to answer with. Call "
            "partial_fit with at least one example before predict_then_learn.",
        )
        fitted, answers = self._learn(X, y, ids=ids, how=how)
        assert answers is not None
        return fitted, answers
