"""Columns of numbers, booleans and dates: their means, and what a missing value counts as.

A missing value counts as what is expected of it given the other numbers of its row
(:mod:`number_relations`), moved to where its label fits (:mod:`missing_numbers`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.missing_numbers import MissingNumbers
from boundary_forest.estimators.columns.number_relations import MOST_COLUMNS, NumberRelations


@dataclass(frozen=True, eq=False)
class NumberColumns:
    """What a forest has learned about its columns of numbers; replaced, never edited.

    Parameters
    ----------
    first, sums, counts : ndarray of shape (n_columns,)
        Of the values of each column that is not text: the first, the sum of differences from it,
        and their number.
    missing : MissingNumbers
        How far missing numbers lie from present ones.
    relations : NumberRelations
        How numbers vary together.
    """

    first: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    counts: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    missing: MissingNumbers = field(default_factory=MissingNumbers.empty)
    relations: NumberRelations = field(default_factory=NumberRelations.empty)

    @property
    def are_complete(self) -> bool:
        """Whether no value was missing so far."""
        return not len(self.missing.columns)

    @cached_property
    def means(self) -> NDArray[np.float64]:
        """The mean of each column."""
        return self._means(self.sums, self.counts)

    @cached_property
    def moves(self) -> NDArray[np.float64]:
        """How far missing values lie from the mean of each column."""
        return np.pad(self.missing.moves, (0, len(self.first) - len(self.missing.moves)))

    def _means(self, sums: NDArray[np.float64], counts: NDArray[np.float64]) -> NDArray[np.float64]:
        with np.errstate(all="ignore"):
            means = np.where(counts > 0, self.first + sums / counts, 0.0)
        return np.where(np.isfinite(means), means, 0.0)  # of sums beyond float64

    def joined_by(self, values: NDArray[Any], texts: Sequence[int]) -> NumberColumns:
        """Return the same with first values of columns that had none, and with new columns."""
        new = np.zeros(values.shape[1] - len(self.first))
        first, counts = np.concatenate([self.first, new]), np.concatenate([self.counts, new])
        for column in np.flatnonzero(counts == 0).tolist():
            there = np.flatnonzero(np.isfinite(values[:, column]))
            if len(there) and column not in texts:
                first[column] = values[there[0], column]
        return replace(self, first=first, sums=np.concatenate([self.sums, new]), counts=counts)

    def summed(self, values: NDArray[Any]) -> NumberColumns:
        """Return what is known after rows without missing values, as long as all were complete."""
        n = len(values)
        if values.dtype.kind in "biu" and values.dtype.itemsize <= 4:  # exact in any order
            sums = self.sums + (values.sum(axis=0, dtype=np.int64) - n * self.first)
        else:
            sums = running(self.sums, values - self.first)[-1]
        return replace(self, sums=sums, counts=self.counts + n)

    def learned(
        self,
        values: NDArray[Any],
        columns: NDArray[np.int64],
        n_known: int,
        begins: NDArray[np.int64],
        labels: NDArray[np.float64],
    ) -> tuple[NDArray[Any], NumberColumns]:
        """Return values in which none is missing, and what is known after the rows.

        Parameters
        ----------
        values : ndarray of shape (n_rows, n_columns)
            NaN where a value is missing.
        columns : ndarray of int
            Those of numbers, in order of appearance, and perhaps later ones.
        n_known : int
            How many of them have appeared with these rows.
        begins : ndarray of shape (n_columns,), of int
            The rows from which on the kinds of columns are known.
        labels : ndarray of shape (n_rows, n_slots)
            Their labels.
        """
        is_number = np.zeros(values.shape[1], dtype=bool)
        is_number[columns] = True
        active = (np.arange(len(values))[:, None] >= begins) & is_number
        present = np.isfinite(values) & active
        missing = ~present & active
        offsets = np.where(present, values - self.first, 0.0)
        sums, counts = running(self.sums, offsets), self.counts + np.cumsum(present, axis=0)
        means = self._means(sums[:-1], counts - present)
        known = replace(
            self,
            sums=sums[-1],
            counts=counts[-1],
            missing=self.missing.learned(offsets, missing, labels),
            relations=self._related(
                values, means, present, missing, columns[: min(n_known, MOST_COLUMNS)]
            ),
        )
        return self._filled(values, columns, means), known

    def _related(
        self,
        values: NDArray[Any],
        means: NDArray[np.float64],
        present: NDArray[np.bool_],
        missing: NDArray[np.bool_],
        columns: NDArray[np.int64],
    ) -> NumberRelations:
        """Return how numbers vary together, since the first example with a missing one."""
        if self.are_complete:
            gaps = np.flatnonzero(missing.any(axis=1))
            start = int(gaps[0]) if len(gaps) else len(values)
        else:
            start = 0
        if start == len(values):
            return self.relations
        there = present[start:, columns]
        deviations = np.where(there, values[start:, columns] - means[start:, columns], 0.0)
        return self.relations.learned(deviations, there)

    def refreshed(self) -> NumberColumns:
        """Return the same with moves and regressions computed from the sums."""
        if self.are_complete:
            return self
        return replace(self, missing=self.missing.moved(), relations=self.relations.refreshed())

    def filled(self, values: NDArray[Any], columns: NDArray[np.int64]) -> NDArray[Any]:
        """Return values of rows that are not learned, in which none is missing."""
        if len(values) == 1:
            return self._filled_row(values, columns.tolist())
        return self._filled(values, columns, self.means)

    def _filled_row(self, values: NDArray[Any], columns: list[int]) -> NDArray[Any]:
        """Return the same of one row, by plain numbers: numpy takes several times as long."""
        row = values[0].tolist()
        gaps = [i for i, column in enumerate(columns) if not math.isfinite(row[column])]
        if not gaps:
            return values
        means, moves = self._centres
        deviations = [row[column] - means[column] for column in columns]
        expected = self.relations.expected_row(
            deviations, gaps, [moves[column] for column in columns]
        )
        filled = values.copy()
        for i in gaps:
            fill = means[columns[i]] + expected[i]
            filled[0, columns[i]] = fill if math.isfinite(fill) else 0.0
        return filled

    @cached_property
    def _centres(self) -> tuple[list[float], list[float]]:
        return self.means.tolist(), self.moves.tolist()

    def _filled(
        self, values: NDArray[Any], columns: NDArray[np.int64], means: NDArray[np.float64]
    ) -> NDArray[Any]:
        numbers = values[:, columns]
        missing = ~np.isfinite(numbers)
        if not missing.any():
            return values
        centre = means[..., columns]
        with np.errstate(all="ignore"):
            fills = centre + self.relations.expected(numbers - centre, missing, self.moves[columns])
        filled = values.copy()
        filled[:, columns] = np.where(missing, np.where(np.isfinite(fills), fills, 0.0), numbers)
        return filled

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what is known as arrays, which ``loaded`` takes."""
        return {
            "column_first": self.first,
            "column_sums": self.sums,
            "column_counts": self.counts,
            **self.missing.saved(),
            **self.relations.saved(),
        }

    @classmethod
    def loaded(
        cls, arrays: Mapping[str, NDArray[Any]], n_columns: int, n_numbers: int, n_slots: int
    ) -> NumberColumns:
        """Return what ``saved`` returned arrays of; ValueError if it cannot have.

        Parameters
        ----------
        arrays : dict of ndarray
            Columns of a file.
        n_columns, n_numbers, n_slots : int
            How many columns there are, how many of them are features as they are, and how many
            numbers labels have.
        """
        first, sums, counts = (arrays[f"column_{name}"] for name in ("first", "sums", "counts"))
        if not len(first) == len(sums) == len(counts) == n_columns:
            raise ValueError("each column must have a first value, a sum and a count")
        missing = MissingNumbers.loaded(arrays, n_columns, n_slots)
        return cls(first, sums, counts, missing, NumberRelations.loaded(arrays, n_numbers))


def running(sums: NDArray[np.float64], terms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the sums before each row and after the last, added in order."""
    with np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(np.add.accumulate(np.concatenate([sums[None], terms])))
