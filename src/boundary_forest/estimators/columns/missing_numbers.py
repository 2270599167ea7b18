"""How far missing numbers lie from present ones, judged by their labels.

If examples without a value have other labels than those with one, values are not missing at random:
what they count as is moved by the difference that the values of such labels have, as far as it is
certain. The move is computed after 125, 250, 500, ... examples, from the sums since the first
missing value.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_MOVE = 125  # examples; then after twice as many, and so on
FEWEST = 5  # missing values, and other ones
FARTHEST = 2.0  # standard deviations
CERTAINTY = 9.0  # squared standard errors that a move must exceed
N_COUNTS = 4  # of present values: number, sum, sum of squares; number of missing values
N_LABEL_SUMS = 4  # of labels: of present values, times these, of missing values, squared


def next_move(n_rows: int) -> int:
    """Return the number of examples after which moves are computed next."""
    at = FIRST_MOVE
    while at <= n_rows:
        at *= 2
    return at


@dataclass(frozen=True, eq=False)
class MissingNumbers:
    """Sums since the first missing value of each column that has some.

    Parameters
    ----------
    columns : ndarray of shape (n,), of int
        These columns.
    counts : ndarray of shape (n, 4)
        Number, sum and sum of squares of the present values, and number of missing ones.
    sums : ndarray of shape (n, 4, n_slots)
        Sums of labels: of present values; times these; of missing values; squared.
    moves : ndarray of shape (n_columns,)
        What is added to the mean of each column.
    """

    columns: NDArray[np.int64]
    counts: NDArray[np.float64]
    sums: NDArray[np.float64]
    moves: NDArray[np.float64]

    @classmethod
    def empty(cls, n_slots: int = 0) -> MissingNumbers:
        """Return what is known before the first example."""
        return cls(
            np.zeros(0, np.int64),
            np.zeros((0, N_COUNTS)),
            np.zeros((0, N_LABEL_SUMS, n_slots)),
            np.zeros(0),
        )

    def learned(
        self,
        values: NDArray[np.float64],
        missing: NDArray[np.bool_],
        labels: NDArray[np.float64],
    ) -> MissingNumbers:
        """Return what is known after rows.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            As differences from the first value of each column; 0 where there is none.
        missing : ndarray of shape (n_rows, n_columns), of bool
            Where a number is missing.
        labels : ndarray of shape (n_rows, n_slots)
            Their labels.
        """
        n_columns, n_slots = values.shape[1], labels.shape[1]
        moves = np.concatenate([self.moves, np.zeros(n_columns - len(self.moves))])
        new = np.setdiff1d(np.flatnonzero(missing.any(axis=0)), self.columns)
        columns, counts = self.columns, self.counts
        sums = self.sums
        if len(new):
            columns = np.concatenate([columns, new])
            counts = np.concatenate([counts, np.zeros((len(new), N_COUNTS))])
            none = np.zeros((len(new), N_LABEL_SUMS, n_slots))
            sums = np.concatenate([sums, none]) if len(sums) else none
        if not len(columns):
            return replace(self, moves=moves)
        absent = missing[:, columns]
        since = np.ones(absent.shape, dtype=bool)
        since[:, len(self.columns) :] = np.logical_or.accumulate(absent[:, len(self.columns) :])
        x = np.where(since, values[:, columns], 0.0)
        without, there = (absent & since) * 1.0, (~absent & since) * 1.0
        with np.errstate(all="ignore"):  # moves that overflow are 0
            counts = _added(counts, np.stack([there, x, x * x, without], axis=2))
            per_row = np.stack([there, x, without], axis=2)[..., None] * labels[:, None, None, :]
            squares = since[:, :, None] * (labels * labels)[:, None, :]
            sums = _added(sums, np.concatenate([per_row, squares[:, :, None]], axis=2))
        order = np.argsort(columns)
        return MissingNumbers(columns[order], counts[order], sums[order], moves)

    def moved(self) -> MissingNumbers:
        """Return the same with moves computed from the sums."""
        moves = self.moves.copy()
        with np.errstate(all="ignore"):
            moves[self.columns] = _moves(self.counts, self.sums)
        return replace(self, moves=np.where(np.isfinite(moves), moves, 0.0))

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what is known as arrays, which ``loaded`` takes."""
        return {
            "missing_columns": self.columns,
            "missing_counts": self.counts.ravel(),
            "missing_sums": self.sums.ravel(),
            "missing_moves": self.moves,
        }

    @classmethod
    def loaded(
        cls, arrays: Mapping[str, NDArray[Any]], n_columns: int, n_slots: int
    ) -> MissingNumbers:
        """Return what ``saved`` returned arrays of; ValueError if it cannot have."""
        columns, k = arrays["missing_columns"].astype(np.int64), len(arrays["missing_columns"])
        moves = arrays["missing_moves"]
        if len(moves) > n_columns or (k and not 0 <= columns.min() <= columns.max() < len(moves)):
            raise ValueError("it has missing values of no column")
        counts = arrays["missing_counts"].reshape(k, N_COUNTS)
        sums = arrays["missing_sums"].reshape(k, N_LABEL_SUMS, n_slots)
        return cls(columns, counts, sums, moves)


def _moves(counts: NDArray[np.float64], sums: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return how far missing values lie from the mean, judged by their labels."""
    n, total, squares, n_missing = counts.T
    of_present, products, of_missing, label_squares = sums.transpose(1, 0, 2)
    mean = total / n
    deviation = np.sqrt(np.maximum(squares / n - mean * mean, 0.0))
    label_means = of_present / n[:, None]
    slopes = (products / n[:, None] - mean[:, None] * label_means) / deviation[:, None]
    differences = of_missing / n_missing[:, None] - label_means
    size = (slopes * slopes).sum(axis=1)
    distance = (differences * slopes).sum(axis=1) / size
    all_means = (of_present + of_missing) / (n + n_missing)[:, None]
    variances = np.maximum(label_squares / (n + n_missing)[:, None] - all_means**2, 0.0)
    error = (variances * slopes**2).sum(axis=1) / size**2 * (1 / n_missing + 1 / n)
    certain = np.maximum(0.0, 1.0 - CERTAINTY * error / distance**2)
    moves = certain * deviation * np.clip(distance, -FARTHEST, FARTHEST)
    enough = (n >= FEWEST) & (n_missing >= FEWEST)
    return np.where(enough & np.isfinite(moves), moves, 0.0)


def _added(sums: NDArray[np.float64], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return sums with the terms of each row, added in order."""
    total: NDArray[np.float64] = np.add.accumulate(np.concatenate([sums[None], terms]))[-1]
    return total
