"""What a forest predicts for rows, with its confidence; and the same just before learning them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators import Ends
from boundary_forest.frames.columns import CLASSIFY


@dataclass(frozen=True)
class Answers:
    """The answers to some rows, as the engine gave them.

    Parameters
    ----------
    values : ndarray of shape (n_rows,) or None
        The answers; None if the forest had learned nothing.
    confidence : ndarray of shape (n_rows,) or None
        Of each answer, its share of the votes; None in regression.
    shares : ndarray of shape (n_rows, n_classes) or None
        Each class's share of the votes; None in regression.
    classes : ndarray of shape (n_classes,) or None
        The classes of these columns.
    ends : Ends or None
        The stored examples that the answers were made of; None unless they were requested.
    """

    values: NDArray[Any] | None = None
    confidence: NDArray[np.float64] | None = None
    shares: NDArray[np.float64] | None = None
    classes: NDArray[Any] | None = None
    ends: Ends | None = None


NO_ANSWERS = Answers()


def predict(task: str, forest: Any, X: NDArray[Any]) -> Answers:
    """Return the forest's answers; none if it has learned nothing."""
    if forest.examples_seen == 0:
        return NO_ANSWERS
    if task != CLASSIFY:
        return Answers(forest.predict(X))
    return _classified(forest, forest.predict_proba(X))


def predict_then_learn(
    task: str, forest: Any, X: NDArray[Any], y: NDArray[Any], *, with_ends: bool = False
) -> Answers:
    """Return the answer to each row from before it was learned, and learn the rows."""
    classifies = task == CLASSIFY
    method = forest.predict_proba_then_learn if classifies else forest.predict_then_learn
    said, ends = method(X, y, return_ends=True) if with_ends else (method(X, y), None)
    return _classified(forest, said, ends) if classifies else Answers(said, ends=ends)


def _classified(forest: Any, shares: NDArray[np.float64], ends: Ends | None = None) -> Answers:
    best = shares.argmax(axis=1)
    classes = forest.classes_
    return Answers(classes[best], shares[np.arange(len(best)), best], shares, classes, ends)
