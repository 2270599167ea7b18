"""How columns of numbers vary together, and what a missing number is expected to be in its row.

A missing number counts as what a linear regression with a ridge expects, given the other numbers
of its row. Regressions are computed after 125, 250, 500, ... examples, from the products of
deviations since the first missing value; each deviation is from the mean before its row. If labels
say that missing numbers lie elsewhere (:mod:`missing_numbers`), the expectation is moved by the
share of this that the other numbers do not explain.

Sums are added row by row in order of arrival, and by + - x / and sqrt alone, so that they do not
depend on batches or processors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_COLUMNS = 64  # that are related; further ones count as their means
RIDGE = 0.05  # of correlations
FEWEST_ROWS = 20  # with both numbers, at which a correlation counts half
N_SWEEPS = 2  # over the missing numbers of a row
AT_ONCE = 2**17  # products, so that they stay in the cache


@dataclass(frozen=True, eq=False)
class NumberRelations:
    """Sums of products of deviations, and regressions that follow from them.

    Parameters
    ----------
    counts, products : ndarray of shape (n, n)
        Of rows that have the numbers of two columns, and of the products of their deviations.
    slopes : ndarray of shape (n, n)
        Of each column (row of the matrix) on the others; 0 on the diagonal.
    unexplained : ndarray of shape (n,)
        The share of each column's variance that the others do not explain.
    """

    counts: NDArray[np.float64]
    products: NDArray[np.float64]
    slopes: NDArray[np.float64]
    unexplained: NDArray[np.float64]

    @classmethod
    def empty(cls) -> NumberRelations:
        """Return what is known before the first missing number."""
        return cls(np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 0)), np.zeros(0))

    def learned(
        self, deviations: NDArray[np.float64], present: NDArray[np.bool_]
    ) -> NumberRelations:
        """Return what is known after rows.

        Parameters
        ----------
        deviations : ndarray of shape (n_rows, n)
            From the means before each row; 0 where a number is missing.
        present : ndarray of shape (n_rows, n), of bool
            Where it is not.
        """
        n = deviations.shape[1]
        known = self._widened(n)
        there = present.astype(np.float64)
        products, step = known.products, max(1, AT_ONCE // max(1, n * n))
        for start in range(0, len(deviations), step):
            part = deviations[start : start + step]
            with np.errstate(all="ignore"):  # what overflows relates to nothing
                terms = part[:, :, None] * part[:, None, :]
                products = np.add.accumulate(np.concatenate([products[None], terms]))[-1]
        return replace(known, counts=known.counts + there.T @ there, products=products)

    def _widened(self, n: int) -> NumberRelations:
        more = n - len(self.unexplained)
        if more <= 0:
            return self
        square = ((0, more), (0, more))
        return NumberRelations(
            np.pad(self.counts, square),
            np.pad(self.products, square),
            np.pad(self.slopes, square),
            np.pad(self.unexplained, (0, more), constant_values=1.0),
        )

    def refreshed(self) -> NumberRelations:
        """Return the same with regressions that follow from the sums."""
        n = len(self.unexplained)
        with np.errstate(all="ignore"):
            covariances = self.products / self.counts
            deviations = np.sqrt(np.diagonal(covariances))
            scales = deviations[:, None] * deviations
            correlations = covariances / scales * (self.counts / (self.counts + FEWEST_ROWS))
        usable = np.isfinite(correlations)
        matrix = np.where(usable, np.clip(correlations, -1.0, 1.0), 0.0)
        matrix[np.arange(n), np.arange(n)] = 1.0 + RIDGE
        precision = _inverse(matrix)
        diagonal = np.diagonal(precision)
        with np.errstate(all="ignore"):
            slopes = -precision / diagonal[:, None] * (deviations[:, None] / deviations)
        slopes[np.arange(n), np.arange(n)] = 0.0
        if not (diagonal > 0).all():  # pairs of different rows need not fit together
            return replace(self, slopes=np.zeros((n, n)), unexplained=np.ones(n))
        slopes = np.where(np.isfinite(slopes), slopes, 0.0)
        return replace(self, slopes=slopes, unexplained=np.minimum(1.0, 1.0 / diagonal))

    def expected(
        self,
        deviations: NDArray[np.float64],
        missing: NDArray[np.bool_],
        moves: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Return deviations in which missing ones are what their rows let expect.

        Parameters
        ----------
        deviations : ndarray of shape (n_rows, n)
            Anything where a number is missing.
        missing : ndarray of shape (n_rows, n), of bool
            Where it is.
        moves : ndarray of shape (n,)
            What is added to expectations, since missing numbers are other than present ones.
        """
        n = min(len(self.unexplained), deviations.shape[1])
        known: NDArray[np.float64] = np.where(missing, moves, deviations)
        moves = moves[:n] * self.unexplained[:n]  # what the other numbers say is known already
        gaps = [(j, np.flatnonzero(missing[:, j])) for j in range(n) if missing[:, j].any()]
        for _ in range(min(N_SWEEPS, len(gaps))):  # a lone gap does not depend on itself
            for j, rows in gaps:
                terms = known[rows, :n].T * self.slopes[j, :n, None]
                known[rows, j] = np.add.accumulate(terms)[-1] + moves[j]
        return known

    def expected_row(
        self, row: Sequence[float], gaps: Sequence[int], moves: Sequence[float]
    ) -> list[float]:
        """Return the same of one row, in the same order: numpy takes several times as long.

        Parameters
        ----------
        row : sequence of float
            Deviations; anything where a number is missing.
        gaps : sequence of int
            Where it is.
        moves : sequence of float
            As for ``expected``.
        """
        known = list(row)
        for j in gaps:
            known[j] = moves[j]
        related = [j for j in gaps if j < len(self.unexplained)]
        for _ in range(min(N_SWEEPS, len(related))):
            for j in related:
                total = -0.0  # which leaves the first term as it is
                for deviation, slope in zip(known, self._slope_rows[j], strict=False):
                    total += deviation * slope
                known[j] = total + moves[j] * self._shares[j]
        return known

    @cached_property
    def _slope_rows(self) -> list[list[float]]:
        rows: list[list[float]] = self.slopes.tolist()
        return rows

    @cached_property
    def _shares(self) -> list[float]:
        shares: list[float] = self.unexplained.tolist()
        return shares

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what is known as arrays, which ``loaded`` takes."""
        return {
            "relation_counts": self.counts.ravel(),
            "relation_products": self.products.ravel(),
            "relation_slopes": self.slopes.ravel(),
            "relation_unexplained": self.unexplained,
        }

    @classmethod
    def loaded(cls, arrays: Mapping[str, NDArray[Any]], most: int) -> NumberRelations:
        """Return what ``saved`` returned arrays of; ValueError if it cannot have.

        Parameters
        ----------
        arrays : dict of ndarray
            Columns of a file.
        most : int
            How many columns of numbers there are.
        """
        n = len(arrays["relation_unexplained"])
        squares = [arrays[f"relation_{name}"] for name in ("counts", "products", "slopes")]
        if n > min(most, MOST_COLUMNS) or any(len(square) != n * n for square in squares):
            raise ValueError("its relations do not belong to its columns")
        counts, products, slopes = (square.reshape(n, n) for square in squares)
        return cls(counts, products, slopes, arrays["relation_unexplained"])


def _inverse(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the inverse by Gauss-Jordan elimination, for which no pivoting is needed."""
    n = len(matrix)
    work = np.concatenate([matrix, np.eye(n)], axis=1)
    with np.errstate(all="ignore"):
        for j in range(n):
            row = work[j] / work[j, j]
            work = work - work[:, j, None] * row
            work[j] = row
    return work[:, n:]
