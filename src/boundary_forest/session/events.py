"""What becomes of rows: a prediction, with its confidence, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators import Ends
from boundary_forest.frames.column_errors import Problem
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
    predicted, ends = method(X, y, return_ends=True) if with_ends else (method(X, y), None)
    return _classified(forest, predicted, ends) if classifies else Answers(predicted, ends=ends)


def _classified(forest: Any, shares: NDArray[np.float64], ends: Ends | None = None) -> Answers:
    best = shares.argmax(axis=1)
    classes = forest.classes_
    return Answers(classes[best], shares[np.arange(len(best)), best], shares, classes, ends)


@dataclass(frozen=True)
class Answered:
    """Successive rows that were answered, and learned if their targets are known.

    Parameters
    ----------
    task : str
        "classify" or "regress", as inferred at the time.
    numbers : ndarray of int64
        The rows' numbers in the source, from 1.
    table : pyarrow.Table
        The rows.
    X : ndarray
        Their positions.
    y : ndarray or None
        Their targets; None if they have none, and so were not learned.
    result : Answers
        What the engine returned for each row before it was learned. Whatever is shown of an
        answer later comes from here, so that it is what the forest answered at the time.
    unseen : int
        Number of values that are categories unknown to the columns.
    arrival : int or None
        The arrival number of the first of them; None during the warm-up, when it is not known.
    """

    task: str
    numbers: NDArray[np.int64]
    table: Any
    X: NDArray[Any]
    y: NDArray[Any] | None
    result: Answers = NO_ANSWERS
    unseen: int = 0
    arrival: int | None = None

    @property
    def answers(self) -> NDArray[Any] | None:
        """The answers; None if nothing had been learned before."""
        return self.result.values

    @property
    def confidence(self) -> NDArray[np.float64] | None:
        """The share of the votes that each answer had; None in regression."""
        return self.result.confidence


@dataclass(frozen=True)
class Refused:
    """A row that cannot be used.

    Parameters
    ----------
    number : int
        The row's number in the source, from 1.
    why : str
        What is wrong with it.
    expected : bool
        Whether the user has specified that such rows are dropped.
    answered : bool
        Whether it was answered nevertheless, before the problem was known.
    problem : Problem or None
        The value that is wrong; None if the row could not be read.
    """

    number: int
    why: str
    expected: bool = False
    answered: bool = False
    problem: Problem | None = None

    @property
    def missing(self) -> bool:
        """Whether a missing value is the problem."""
        return self.problem is not None and self.problem.missing


@dataclass(frozen=True)
class Decided:
    """What columns mean is fixed from here on.

    Parameters
    ----------
    choices : tuple of str
        What was decided, one line each.
    warnings : tuple of str
        What looks wrong about it.
    """

    choices: tuple[str, ...]
    warnings: tuple[str, ...]


Event = Answered | Refused | Decided
