"""All columns of text: what is known of their categories, and features made with it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.category_means import (
    CategoryMeans,
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
            means, places, categories[column] = categories.get(column, empty).learned(
                rows.values[begin:, column],
                rows.texts.get(column, ()),
                vectors[begin:],
                priors[begin:],
            )
            if X is not None:
                _put(layout, column, means, places, X[begin:])
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
                found, places = means.encoded(rows.values[:, column], texts, priors)
                _put(layout, column, found, places, X)

    def _put_row(
        self, rows: RawRows, priors: NDArray[np.float64], layout: Layout, x: NDArray[np.float64]
    ) -> None:
        """Put those of one row, by plain numbers: array by array takes five times as long."""
        codes, of_all = rows.values[0].tolist(), priors.tolist()
        for column, pairs in layout.mean_pairs.items():
            known = self.categories.get(column)
            if known is None:
                continue
            place = known.place_of(codes[column], rows.texts.get(column, ()))
            n, *sums = known.sums_at(place).tolist()
            for feature, slot in pairs:
                mean = (sums[slot] + of_all[slot]) / (n + 1.0)
                x[feature] = mean if math.isfinite(mean) else 0.0
            shown = layout.categories.get(column, {}).get(place)
            if shown is not None:
                x[shown] = 1.0

    def shown(self, rows: RawRows, column: int, begin: int) -> list[tuple[int, int]]:
        """Return the categories of a column that become features with rows: row and place.

        The kind of the column is known from the row ``begin`` on.
        """
        known = self.categories.get(column) or CategoryMeans.empty(0)
        begin = max(0, begin)
        found = known.shown(rows.values[begin:, column], rows.texts.get(column, ()))
        return [(begin + row, place) for row, place in found]

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
        for column, places in layout.categories.items():
            known = found.categories.get(column)
            if known is None or max(places) >= len(known.sums):
                raise ValueError("it has features of categories that it does not know")
        return found


def _put(
    layout: Layout,
    column: int,
    means: NDArray[np.float64],
    places: NDArray[np.int64],
    X: NDArray[np.float64],
) -> None:
    if column in layout.means:
        features, slots = layout.means[column]
        X[:, features] = means[:, slots]
    if column in layout.features_at:
        at = layout.features_at[column]
        features = at[np.minimum(places, len(at) - 1)]  # of unknown places the last one, too
        there = np.flatnonzero(features >= 0)
        X[there, features[there]] = 1.0
