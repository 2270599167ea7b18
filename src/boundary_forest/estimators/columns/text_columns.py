"""All columns of text: what is known of their categories, and features made with it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.category_means import (
    CategoryMeans,
    label_means,
    loaded_means,
    saved_means,
)
from boundary_forest.estimators.columns.layout import Layout
from boundary_forest.estimators.columns.raw_rows import RawRows


@dataclass(frozen=True, eq=False)
class TextColumns:
    """What a forest has learned about its columns of text; replaced, never edited.

    Parameters
    ----------
    categories : dict of int to CategoryMeans
        Of each column.
    """

    categories: Mapping[int, CategoryMeans] = field(default_factory=dict)

    def learned(
        self,
        rows: RawRows,
        vectors: NDArray[np.float64],
        priors: NDArray[np.float64],
        begins: NDArray[np.int64],
        layout: Layout,
        X: NDArray[np.float64] | None,
    ) -> TextColumns:
        """Return what is known after rows, and put their features into X if it is given.

        Parameters
        ----------
        rows : RawRows
            What is learned.
        vectors, priors : ndarray of shape (n_rows, n_slots)
            The labels, and the means of all labels before each.
        begins : ndarray of shape (n_columns,), of int
            The rows from which on the kinds of columns are known.
        layout : Layout
            The features.
        X : ndarray of shape (n_rows, width) or None
            Zeros where features of text belong.
        """
        categories, n = dict(self.categories), len(rows)
        empty = CategoryMeans.empty(vectors.shape[1])
        for column in layout.texts:
            begin = min(max(0, int(begins[column])), n)
            if begin == n:
                continue
            means, categories[column] = categories.get(column, empty).learned(
                rows.values[begin:, column],
                rows.texts.get(column, ()),
                vectors[begin:],
                priors[begin:],
            )
            if X is not None:
                _put_means(layout, column, means, X[begin:])
        return TextColumns(categories)

    def put(
        self, rows: RawRows, priors: NDArray[np.float64], layout: Layout, X: NDArray[np.float64]
    ) -> None:
        """Put the features of rows that are not learned into X, which has zeros.

        Parameters
        ----------
        rows, layout, X
            As for ``learned``.
        priors : ndarray of shape (n_slots,)
            The means of all labels.
        """
        if len(rows) == 1:
            self._put_row(rows, priors, layout, X[0])
            return
        for column in layout.texts:
            means = self.categories.get(column)
            if means is not None:
                texts = rows.texts.get(column, ())
                found = means.encoded(rows.values[:, column], texts, priors)
                _put_means(layout, column, found, X)

    def _put_row(
        self, rows: RawRows, priors: NDArray[np.float64], layout: Layout, x: NDArray[np.float64]
    ) -> None:
        """Put those of one row: array by array takes five times as long."""
        columns = [column for column in layout.means if column in self.categories]
        if not columns:
            return
        codes = rows.values[0].tolist()
        sums = np.array(
            [
                self.categories[column].sums_of(codes[column], rows.texts.get(column, ()))
                for column in columns
            ]
        )
        means = label_means(sums, priors)
        for found, column in zip(means, columns, strict=True):
            features, slots = layout.means[column]
            x[features] = found[slots]

    def saved(self, n_slots: int) -> dict[str, NDArray[Any]]:
        """Return what is known as arrays, which ``loaded`` takes."""
        return saved_means(self.categories, n_slots)

    @classmethod
    def loaded(
        cls, arrays: Mapping[str, NDArray[Any]], n_slots: int, layout: Layout
    ) -> TextColumns:
        """Return what ``saved`` returned arrays of; ValueError if it cannot have."""
        found = cls(loaded_means(arrays, n_slots))
        if any(column not in layout.texts for column in found.categories):
            raise ValueError("it has categories of a column that has no text")
        return found


def _put_means(
    layout: Layout, column: int, means: NDArray[np.float64], X: NDArray[np.float64]
) -> None:
    if column in layout.means:
        features, slots = layout.means[column]
        X[:, features] = means[:, slots]
