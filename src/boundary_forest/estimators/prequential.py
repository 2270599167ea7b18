"""Test, then train: what the estimators that predict have beyond those that only retrieve."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boundary_forest.estimators.ends import Ends
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.learning_call import LearningCall, LearningMode


class PredictThenLearnMixin:
    """Adds ``predict_then_learn`` to an estimator that has ``_learn``."""

    _learn: Callable[[LearningCall], tuple[Fitted, Any]]

    def predict_then_learn(
        self, X: Any, y: Any, *, ids: Any = None, return_ends: bool = False
    ) -> Any:
        """Predict each row just before it is learned.

        The predictions and the forest are those of ``predict`` and ``partial_fit`` row by row, with
        one descent per tree instead of two. The mean error of the predictions is the prequential
        error, which needs no test set.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are predicted and learned.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Their labels, as for ``partial_fit``.
        ids : array-like of shape (n_samples,) or None, default=None
            Their ids, as for ``partial_fit``.
        return_ends : bool, default=False
            Whether to return the stored examples behind each prediction as well.

        Returns
        -------
        answers : ndarray of the shape of y
            The predictions. A class is never predicted before its first example. The very first row
            of a forest has no prediction: it is NaN in regression, and None in classification, in
            an array of objects.
        ends : Ends
            If ``return_ends``: for each row and tree, ``arrivals``, ``labels``, ``distances`` and
            ``weights`` of the example that the tree ended at.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from boundary_forest import BoundaryForestClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> forest = BoundaryForestClassifier(random_state=0)
        >>> answers = forest.predict_then_learn(X, y)
        >>> bool((answers == y).mean() > 0.85)
        True
        >>> answers, ends = forest.predict_then_learn(X[:1], y[:1], return_ends=True)
        >>> ends.labels.shape, bool((ends.labels[0] == answers[0]).all())
        ((1, 50), True)
        """
        fitted, labels, ends = self._answered_then_learned(
            X, y, ids, LearningMode.PREDICT_THEN_LEARN, return_ends
        )
        answers = _as_long_as(y, fitted.labels.answers(labels))
        return answers if ends is None else (answers, ends)

    def _answered_then_learned(
        self, X: Any, y: Any, ids: Any, mode: LearningMode, return_ends: bool
    ) -> tuple[Fitted, Any, Ends | None]:
        """The engine's answers; those of an empty forest begin with its second row."""
        if return_ends:
            check_is_fitted(
                self,
                msg="This %(name)s instance is not fitted yet, and return_ends=True requires a "
                "fitted forest. Call partial_fit with at least one example first.",
            )
        fitted, answers = self._learn(LearningCall(X, y, ids, mode=mode, with_leaves=return_ends))
        if not return_ends:
            return fitted, answers, None
        answers, leaves = answers
        return fitted, answers, Ends.of_engine(leaves, fitted)


def _as_long_as(y: Any, answers: NDArray[Any]) -> NDArray[Any]:
    """Put what stands for no answer before the answers if they lack that to the first row."""
    if len(answers) == len(y):
        return answers
    if answers.dtype.kind == "f":
        none = np.full((1, *answers.shape[1:]), np.nan)
        return np.concatenate([none, answers])
    return np.array([None, *answers.tolist()], dtype=object)
