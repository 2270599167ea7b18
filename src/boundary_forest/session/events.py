"""What becomes of rows: an answer, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.problems import Problem
from boundary_forest.session.predicting import NO_ANSWERS, Answers


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
