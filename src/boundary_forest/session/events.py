"""What comes of rows: an answer, or the reason why there is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Answered:
    """Successive rows that were answered, and learned if their targets are known.

    Parameters
    ----------
    task : str
        "classify" or "regress", as it was understood then.
    numbers : ndarray of int64
        Of the rows in the source, from 1.
    table : pyarrow.Table
        The rows.
    X : ndarray
        Their positions.
    y : ndarray or None
        Their targets; None if they have none, and so were not learned.
    answers : ndarray or None
        None if nothing had been learned before.
    confidence : ndarray or None
        Of each answer, the share of the votes it had; None in regression.
    unseen : int
        How many values were categories that the columns do not know.
    arrival : int or None
        The arrival number of the first of them; None if it is not known, as in the warm-up.
    """

    task: str
    numbers: NDArray[np.int64]
    table: Any
    X: NDArray[Any]
    y: NDArray[Any] | None
    answers: NDArray[Any] | None
    confidence: NDArray[np.float64] | None
    unseen: int = 0
    arrival: int | None = None


@dataclass(frozen=True)
class Refused:
    """A row that cannot be used.

    Parameters
    ----------
    number : int
        Of the row in the source, from 1.
    why : str
        What is wrong with it.
    wanted : bool
        Whether the user has asked for such rows to be left out.
    answered : bool
        Whether it was answered all the same, before that was known.
    """

    number: int
    why: str
    wanted: bool = False
    answered: bool = False


@dataclass(frozen=True)
class Decided:
    """From here on it is fixed what columns mean."""

    choices: tuple[str, ...]
    doubts: tuple[str, ...]


Event = Answered | Refused | Decided
