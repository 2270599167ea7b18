"""Rows as they arrived, before they become features: a number per column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.cells import KINDS, NUMBER, TEXT
from boundary_forest.estimators.element_type import as_rows

FLOAT64 = np.dtype(np.float64)


@dataclass(frozen=True, eq=False)
class RawRows:
    """Rows of columns of any kind, as numbers.

    Parameters
    ----------
    values : ndarray of shape (n_rows, n_columns)
        Numbers; booleans as 0 and 1; dates in seconds since 1970; of text, numbers of ``texts``.
        NaN is a missing value.
    kinds : tuple of str or None
        What each column has: "number", "boolean", "date" or "text"; None if all values are missing.
    typed : ndarray of shape (n_columns,), of bool
        Whether the kind is known before the first value, by the type of the column.
    texts : dict of int to tuple of str
        The texts of each column of text.
    names : tuple or None
        The names of the columns.
    declared : dtype
        The type that the columns have together, which decides what features are kept as.
    """

    values: NDArray[Any]
    kinds: tuple[str | None, ...]
    typed: NDArray[np.bool_]
    texts: dict[int, tuple[str, ...]] = field(default_factory=dict)
    names: tuple[Any, ...] | None = None
    declared: np.dtype[Any] = FLOAT64

    @classmethod
    def of_numbers(cls, values: NDArray[Any], names: tuple[Any, ...] | None = None) -> RawRows:
        """Return rows of a matrix of numbers, of which some may be NaN."""
        n = values.shape[1]
        return cls(values, (NUMBER,) * n, np.ones(n, dtype=bool), {}, names, values.dtype)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        n_rows, n_columns = self.values.shape
        return n_rows, n_columns

    @cached_property
    def is_complete(self) -> bool:
        """Whether all columns have numbers, and none is missing."""
        return not self.texts and bool(np.isfinite(self.values).all())

    @property
    def nbytes(self) -> int:
        """Bytes of the values."""
        return int(self.values.nbytes)

    saved_names: ClassVar = ("kinds", "typed", "declared", "texts", "text_columns")

    def saved(self) -> dict[str, NDArray[Any]]:
        """Return all but values and names as arrays, which ``loaded`` takes."""
        texts = np.array([text for texts in self.texts.values() for text in texts], dtype=object)
        columns = [column for column, texts in self.texts.items() for _ in texts]
        return {
            "kinds": np.array([kind or "" for kind in self.kinds], dtype=object),
            "typed": self.typed,
            "declared": np.array([self.declared.name], dtype=object),
            "texts": texts,
            "text_columns": np.array(columns, dtype=np.uint32),
        }

    @classmethod
    def loaded(cls, values: NDArray[Any], arrays: Mapping[str, NDArray[Any]]) -> RawRows:
        """Return the rows that ``saved`` returned arrays of; ValueError if it cannot have."""
        kinds = tuple(kind or None for kind in arrays["kinds"].tolist())
        if len(kinds) != values.shape[1] or not {*kinds} <= {*KINDS, None}:
            raise ValueError("each column must have a kind")
        found: dict[int, list[str]] = {j: [] for j, kind in enumerate(kinds) if kind == TEXT}
        for column, text in zip(
            arrays["text_columns"].tolist(), arrays["texts"].tolist(), strict=True
        ):
            found[column].append(str(text))
        texts = {column: tuple(known) for column, known in found.items()}
        for column, known in texts.items():
            codes = values[:, column][np.isfinite(values[:, column])]
            if len(codes) and not 0 <= codes.min() <= codes.max() < len(known):
                raise ValueError(f"column {column} has texts that are not there")
        declared = np.dtype(arrays["declared"].tolist()[0])
        return cls(values, kinds, arrays["typed"].astype(bool), texts, None, declared)

    def as_type(self, element_type: str) -> RawRows:
        """Return the rows if features of them fit an element type; TypeError otherwise."""
        if self.is_complete and self.values.dtype == element_type:
            return self
        if self.is_complete:
            return replace(self, values=as_rows(self.values, element_type))
        if self.texts and "int" in element_type:
            raise TypeError(
                f"dtype={element_type!r} cannot represent columns of text, which become means of "
                "labels: use dtype='float32'"
            )
        numbers = [column for column in range(self.shape[1]) if column not in self.texts]
        as_rows(np.nan_to_num(self.values[:, numbers]), element_type)
        return self

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, rows: slice | NDArray[np.int64]) -> RawRows:
        """Return some of the rows."""
        return replace(self, values=self.values[rows])
