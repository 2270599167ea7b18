"""Columns as features: what was learned about them, and rows of numbers made with it.

A number, boolean or date is one feature (:mod:`number_columns` says what a missing one counts as).
Text is as many as labels have slots: the mean labels of its category; and one for each of few
categories (:mod:`category_means`).

Features are numbered in order of appearance, and an example's features follow from its values and
from the examples before it, so that it does not matter how a stream was split into batches. A query
has the features that it would have if it were learned now, without those that would be new.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.cells import BOOLEAN, DATE, KINDS, TEXT, as_date
from boundary_forest.estimators.columns.label_slots import LabelSlots
from boundary_forest.estimators.columns.layout import VALUE, Feature, Layout, place_of_slot
from boundary_forest.estimators.columns.missing_numbers import next_move
from boundary_forest.estimators.columns.new_features import begins_of, kinds_after, new_features
from boundary_forest.estimators.columns.number_columns import NumberColumns, running
from boundary_forest.estimators.columns.raw_rows import RawRows
from boundary_forest.estimators.columns.text_columns import TextColumns

ROWS_AT_ONCE = 1024  # whose sums are added up together


@dataclass(frozen=True, eq=False)
class ColumnEncoder:
    """What a forest has learned about its columns; replaced, never edited.

    Parameters
    ----------
    slots : LabelSlots
        Which slots labels count in.
    element_type : str
        What features are kept as; means are rounded to it.
    layout : Layout
        What features are.
    n_rows : int
        How many examples were learned.
    label_sums : ndarray of shape (n_slots,)
        Sums of their labels.
    numbers : NumberColumns
        Of the columns that are not text.
    texts : TextColumns
        Of the columns of text.
    """

    slots: LabelSlots
    element_type: str = "float64"
    layout: Layout = field(default_factory=Layout)
    n_rows: int = 0
    label_sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(0))
    numbers: NumberColumns = field(default_factory=NumberColumns)
    texts: TextColumns = field(default_factory=TextColumns)

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.numbers.first)

    @property
    def n_features(self) -> int:
        """Number of features, without columns to spare."""
        return len(self.layout.features)

    @property
    def width(self) -> int:
        """Number of features, with columns to spare."""
        return self.layout.width

    # Learning

    def learned(
        self, rows: RawRows, labels: NDArray[np.float64], order: NDArray[np.int64] | None = None
    ) -> ColumnEncoder:
        """Return what is known after these rows.

        Parameters
        ----------
        rows : RawRows
            At least the columns that are known, in their order, and perhaps more.
        labels : ndarray of shape (n_rows, label_length)
            Their labels, as the engine takes them.
        order : ndarray of int or None, default=None
            The rows in the order in which they are learned.
        """
        if order is None and len(rows) <= ROWS_AT_ONCE:
            return self.advanced(rows, labels)
        known = self
        for at in _blocks(len(rows), order):
            known = known.advanced(rows[at], labels[at])
        return known

    def novel(self, rows: RawRows, labels: NDArray[np.float64]) -> list[int]:
        """Return the rows that add a feature, in order."""
        begins = begins_of(self.layout, rows)
        found = new_features(self.layout, self.slots, self.texts, rows, labels, begins)
        return sorted({max(row, 0) for row, _ in found})

    def learned_rows(
        self, rows: RawRows, labels: NDArray[np.float64], layout: Layout, width: int
    ) -> tuple[NDArray[Any], ColumnEncoder]:
        """Return the features of rows that are learned now, and what is known after them.

        Parameters
        ----------
        rows, labels
            As for ``learned``, in the order in which they are learned.
        layout : Layout
            The features, with all that these rows add, and perhaps later ones.
        width : int
            Number of features, with columns to spare.
        """
        plain = layout.is_plain and width == rows.shape[1] and rows.is_complete
        X = None if plain else np.zeros((len(rows), width))
        known = self
        for at in _blocks(len(rows), None):
            known = known.advanced(rows[at], labels[at], layout, None if X is None else X[at])
        return rows.values if X is None else self._rounded(X, rows), known

    def advanced(
        self,
        rows: RawRows,
        labels: NDArray[np.float64],
        layout: Layout | None = None,
        X: NDArray[np.float64] | None = None,
    ) -> ColumnEncoder:
        """Return what is known after few rows, and put their features into X if it is given.

        Parameters
        ----------
        rows, labels, layout
            As for ``learned_rows``.
        X : ndarray of shape (n_rows, width) or None, default=None
            Zeros.
        """
        if X is None and self._takes_as_they_are(rows):
            return self._summed(rows, labels)
        begins = begins_of(self.layout, rows)
        known = self._joined_by(rows, labels, begins)
        layout, start = layout or known.layout, 0
        vectors = known.slots.vectors(labels)
        while start < len(rows):
            move = next_move(known.n_rows)
            at = slice(start, min(len(rows), start + move - known.n_rows))
            part = None if X is None else X[at]
            known = known.added(rows[at], vectors[at], begins - start, layout, part)
            if known.n_rows == move:
                known = replace(known, numbers=known.numbers.refreshed())
            start = at.stop
        return known

    def _takes_as_they_are(self, rows: RawRows) -> bool:
        """Whether rows are complete, and so were all before: then only sums change."""
        return (
            self.n_rows > 0
            and self.layout.is_plain
            and rows.shape[1] == self.n_columns
            and self.numbers.are_complete
            and rows.is_complete
        )

    def _summed(self, rows: RawRows, labels: NDArray[np.float64]) -> ColumnEncoder:
        """Return what is known after such rows."""
        slots = self.slots.joined_by(labels)
        return replace(
            self,
            slots=slots,
            n_rows=self.n_rows + len(rows),
            label_sums=running(self.label_sums, slots.vectors(labels))[-1],
            numbers=self.numbers.summed(rows.values),
        )

    def added(
        self,
        rows: RawRows,
        vectors: NDArray[np.float64],
        begins: NDArray[np.int64],
        layout: Layout,
        X: NDArray[np.float64] | None,
    ) -> ColumnEncoder:
        """Return what is known after rows between two moves.

        Parameters
        ----------
        rows, layout, X
            As for ``advanced``.
        vectors : ndarray of shape (n_rows, n_slots)
            Their labels.
        begins : ndarray of shape (n_columns,), of int
            The rows from which on the kinds of columns are known.
        """
        values, n = rows.values, len(rows)
        label_sums = running(self.label_sums, vectors)
        columns, n_known = layout.values[1], self.layout.values.shape[1]
        filled, numbers = self.numbers.learned(values, columns, n_known, begins, vectors)
        if X is not None:
            _put_numbers(layout, filled, X)
        known = replace(self, n_rows=self.n_rows + n, label_sums=label_sums[-1], numbers=numbers)
        if not layout.texts:
            return known
        seen = np.maximum(1, self.n_rows + np.arange(n))[:, None]
        texts = self.texts.learned(rows, vectors, label_sums[:-1] / seen, begins, layout, X)
        return replace(known, texts=texts)

    def _joined_by(
        self, rows: RawRows, labels: NDArray[np.float64], begins: NDArray[np.int64]
    ) -> ColumnEncoder:
        """Return the same with the columns, kinds, slots and features that rows add."""
        slots, layout = self.slots.joined_by(labels), self.layout
        kinds = kinds_after(layout, rows, begins)
        found = new_features(layout, self.slots, self.texts, rows, labels, begins)
        if found or kinds != layout.kinds:
            layout = Layout(kinds, layout.features + tuple(feature for _, feature in found))
        return replace(
            self,
            slots=slots,
            layout=layout,
            label_sums=self.label_sums if self.n_rows else np.zeros(slots.n_slots),
            numbers=self.numbers.joined_by(rows.values, layout.texts),
        )

    # Queries

    def plain_rows(self, rows: RawRows, width: int) -> NDArray[Any] | None:
        """Return the features of rows whose numbers are features as they are; None for others."""
        if not (self.layout.is_plain and rows.shape[1] == self.n_columns and rows.is_complete):
            return None
        if width == rows.shape[1]:
            return rows.values
        X = np.zeros((len(rows), width))
        X[:, : rows.shape[1]] = rows.values
        return self._rounded(X, rows)

    def query_rows(self, rows: RawRows, width: int) -> NDArray[Any]:
        """Return the features of rows that are not learned.

        Parameters
        ----------
        rows : RawRows
            With the columns that are known.
        width : int
            Number of features, with columns to spare.
        """
        if (plain := self.plain_rows(rows, width)) is not None:
            return plain
        layout, values = self.layout, rows.values
        X = np.zeros((len(rows), width))
        _put_numbers(layout, self.numbers.filled(values, layout.values[1]), X)
        priors = self.label_sums / max(1, self.n_rows)
        self.texts.put(rows, priors, layout, X)
        return self._rounded(X, rows)

    def _rounded(self, X: NDArray[np.float64], rows: RawRows) -> NDArray[Any]:
        """Return features, of which those that are not given are rounded to the element type."""
        if self.element_type == "float64":
            return X
        kept = X.copy()
        features, columns = self.layout.values
        with np.errstate(over="ignore"):
            X = np.rint(X) if "int" in self.element_type else X.astype(self.element_type)
            X = X.astype(np.float64)
        there = np.isfinite(rows.values[:, columns])
        X[:, features] = np.where(there, kept[:, features], X[:, features])
        return X

    # What features mean

    @property
    def column_of(self) -> NDArray[np.int64]:
        """The column of each feature."""
        return np.array([feature.column for feature in self.layout.features], dtype=np.int64)

    def feature_names(self, names: Sequence[Any]) -> list[str]:
        """Return a name for each feature, made of those of the columns."""
        return [
            str(names[column]) + self._meaning(column, slot)
            for column, slot in self.layout.features
        ]

    def _meaning(self, column: int, slot: int) -> str:
        """Return what the name of a feature has after that of its column."""
        if slot == VALUE:
            return ""
        if slot > VALUE:
            return f": mean label {slot}"
        category = self.texts.categories[column].category_at(place_of_slot(slot))
        return ": missing" if category is None else f": {category!r}"

    def decoded(self, row: NDArray[Any]) -> list[Any]:
        """Return the values of the columns of which a row was made; of text whose category is no
        feature, the mean labels.
        """
        cells: list[Any] = [None] * self.n_columns
        features, columns = self.layout.values
        for feature, column in zip(features.tolist(), columns.tolist(), strict=True):
            value = cells[column] = float(row[feature])
            if self.layout.kinds[column] == DATE:
                cells[column] = as_date(value)
            elif self.layout.kinds[column] == BOOLEAN and value in (0, 1):
                cells[column] = bool(value)
        for column, (places, _) in self.layout.means.items():
            means = [round(float(row[place]), 4) for place in places]
            cells[column] = means[0] if len(means) == 1 else tuple(means)
        for column, of_places in self.layout.categories.items():
            for place, feature in of_places.items():
                if row[feature] == 1.0:
                    cells[column] = self.texts.categories[column].category_at(place)
        return cells

    # As plain values

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return what is known as arrays, which ``loaded`` takes."""
        kinds = [0 if kind is None else 1 + KINDS.index(kind) for kind in self.layout.kinds]
        classes = self.slots.classes
        features = np.array(self.layout.features, dtype=np.int64).reshape(-1, 2)
        return {
            "column_kinds": np.array(kinds, dtype=np.uint8),
            "column_rows": np.array([self.n_rows], dtype=np.uint64),
            "column_labels": self.label_sums,
            "column_classes": np.array(classes if classes is not None else [-1], dtype=np.int64),
            "feature_columns": features[:, 0].astype(np.uint32),
            "feature_slots": features[:, 1].astype(np.int32),
            **self.numbers.saved(),
            **self.texts.saved(self.slots.n_slots),
        }

    @classmethod
    def loaded(
        cls, arrays: Mapping[str, NDArray[Any]], element_type: str, label_length: int
    ) -> ColumnEncoder:
        """Return what ``saved`` returned arrays of; ValueError if it cannot have.

        Parameters
        ----------
        arrays : dict of ndarray
            Columns of a file.
        element_type : str
            What features are kept as.
        label_length : int
            Numbers of a target.
        """
        kinds = tuple((None, *KINDS)[kind] for kind in arrays["column_kinds"].tolist())
        n, codes = len(kinds), tuple(arrays["column_classes"].tolist())
        slots = LabelSlots(None, label_length) if codes == (-1,) else LabelSlots(codes)
        pairs = zip(
            arrays["feature_columns"].tolist(), arrays["feature_slots"].tolist(), strict=True
        )
        features = tuple(Feature(*pair) for pair in pairs)
        if len(set(features)) != len(features) or not all(
            column < n and (slot == VALUE) != (kinds[column] == TEXT) and slot < slots.n_slots
            for column, slot in features
        ):
            raise ValueError("its features do not belong to its columns")
        labels = arrays["column_labels"]
        if len(labels) != slots.n_slots:
            raise ValueError("each number of a label must have a sum")
        n_numbers = sum(slot == VALUE for _, slot in features)
        numbers = NumberColumns.loaded(arrays, n, n_numbers, slots.n_slots)
        n_rows, layout = int(arrays["column_rows"][0]), Layout(kinds, features)
        texts = TextColumns.loaded(arrays, slots.n_slots, layout)
        return cls(slots, element_type, layout, n_rows, labels, numbers, texts)

    def described(self) -> Any:
        """Return what a fingerprint is made of; None if columns are features as they are."""
        if self.layout.is_plain and self.numbers.are_complete:
            return None
        described = {name: values.tolist() for name, values in self.saved().items()}
        if self.slots.classes is not None:  # whose codes depend on the order in batches
            described["column_classes"] = len(self.slots.classes)
        return sorted(described.items())


@dataclass(frozen=True, eq=False)
class LearnedPart:
    """What is known after a part of some rows, computed when it is first used.

    Parameters
    ----------
    before : ColumnEncoder
        What was known before.
    rows, labels
        All rows, as for ``learned``.
    at : slice or ndarray of int
        Those that were learned, in order.
    """

    before: ColumnEncoder
    rows: RawRows
    labels: NDArray[np.float64]
    at: slice | NDArray[np.int64]

    @cached_property
    def encoder(self) -> ColumnEncoder:
        """What is known after these rows."""
        return self.before.learned(self.rows[self.at], self.labels[self.at])


def _blocks(n_rows: int, order: NDArray[np.int64] | None) -> Iterator[slice | NDArray[np.int64]]:
    """Return places of rows in an order, a block at a time."""
    for start in range(0, n_rows, ROWS_AT_ONCE):
        at = slice(start, start + ROWS_AT_ONCE)
        yield at if order is None else order[at]


def _put_numbers(layout: Layout, values: NDArray[Any], X: NDArray[np.float64]) -> None:
    features, columns = layout.values
    X[:, features] = values[:, columns]
