"""What answers were made of, as the engine gave it with them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.fitted import Fitted


@dataclass(frozen=True)
class Ends:
    """The stored examples that the trees ended at, just before each row was learned.

    Until ``n_estimators`` examples have arrived there are no trees, and every column has the
    nearest example, as in ``apply``. All of it takes 32 bytes for each row and tree.

    Parameters
    ----------
    arrivals : ndarray of shape (n_samples, n_estimators)
        The examples' arrival numbers.
    distances : ndarray of shape (n_samples, n_estimators)
        Their distances from the row.
    weights : ndarray of shape (n_samples, n_estimators)
        Their shares of the answer; those of a row sum to 1. In a mixture they are what the
        examples' labels are multiplied by; the models over all rows have the rest.
    vectors : ndarray of shape (n_samples, n_estimators, label_length)
        Their label vectors, as the engine keeps them.
    decode : callable
        Returns what label vectors mean, one a row.
    """

    arrivals: NDArray[np.int64]
    distances: NDArray[np.float64]
    weights: NDArray[np.float64]
    vectors: NDArray[np.float64]
    decode: Callable[[NDArray[np.float64]], NDArray[Any]]

    @classmethod
    def of_engine(cls, found: tuple[Any, ...], fitted: Fitted) -> Ends:
        """Return the arrays that the engine of a fitted forest gave."""
        arrivals, vectors, distances, weights = found
        return cls(fitted.rows(arrivals), distances, weights, vectors, fitted.labels.answers)

    @property
    def labels(self) -> NDArray[Any]:
        """The examples' classes or targets, of shape (n_samples, n_estimators[, n_outputs]).

        They are looked up here, because classes that are text may need much more memory than all
        the rest: of a few rows, take ``ends[rows].labels``.
        """
        *shape, length = self.vectors.shape
        labels = self.decode(self.vectors.reshape(-1, length))
        return labels.reshape(*shape, *labels.shape[1:])

    def __len__(self) -> int:
        return len(self.arrivals)

    def __getitem__(self, rows: slice | NDArray[Any]) -> Ends:
        """Return the ends of some of the rows."""
        return Ends(
            self.arrivals[rows],
            self.distances[rows],
            self.weights[rows],
            self.vectors[rows],
            self.decode,
        )
