"""What a user has specified about columns."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import columns_of, plain_columns
from boundary_forest.frames.column_errors import ColumnError, no_column
from boundary_forest.frames.column_kinds import NUMBER, TEXT, kinds_of, numbers_in
from boundary_forest.frames.dialect import PLAIN, Dialect

_PANDAS_INDEX = re.compile(r"__index_level_\d+__$")  # what pandas calls the index of a frame


@dataclass(frozen=True)
class ColumnOptions:
    """What the user has specified about columns.

    Parameters
    ----------
    target : str
        The column to predict.
    features : tuple of str or None
        The columns to predict from; None: all others.
    drop : tuple of str
        Columns to ignore.
    id : str or None
        The column that identifies rows.
    task : str or None
        "classify" or "regress"; None: inferred from the target's values.
    scaling, missing : str
        See :class:`Columns`.
    numbers, categories : tuple of str
        Columns that hold numbers, and columns of categories, whatever their values look like.
    dialect : Dialect
        How text is written.
    """

    target: str
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None
    task: str | None = None
    scaling: str = "standard"
    missing: str = "error"
    numbers: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    dialect: Dialect = PLAIN

    def named(self) -> tuple[str, ...]:
        """Return all columns that the options name."""
        names = (self.target, *(self.features or ()), *self.drop, *self.numbers, *self.categories)
        return names if self.id is None else (*names, self.id)

    def check(self, names: list[str]) -> None:
        """Raise ColumnError if the options name a column that is not among ``names``."""
        known = {*names}
        for name in self.named():
            if name not in known:
                raise no_column(name, names)
        categories = {*self.categories}
        for name in self.numbers:
            if name in categories:
                raise ColumnError(
                    f"column {name!r} is given both as numbers and as categories: choose one"
                )

    def kinds_of(
        self, columns: dict[str, Any]
    ) -> dict[str, tuple[str | None, NDArray[np.float64]]]:
        """Return the kinds of columns, as specified or inferred, and the numbers that they hold."""
        categories, specified = {*self.categories}, {*self.numbers}
        kinds: dict[str, tuple[str | None, NDArray[np.float64]]]
        kinds = {name: (TEXT, np.zeros(0)) for name in columns if name in categories}
        names = [name for name in columns if name in specified and name not in categories]
        if names:
            numbers = numbers_in([columns[name] for name in names], self.dialect)[0]
            kinds |= {name: (NUMBER, row) for name, row in zip(names, numbers, strict=True)}
        names = [name for name in columns if name not in kinds]
        inferred = kinds_of([columns[name] for name in names], self.dialect)
        return kinds | dict(zip(names, inferred, strict=True))

    def feature_names(self, names: list[str]) -> list[str]:
        """Return those of the columns ``names`` that the target is predicted from."""
        apart = {self.target, self.id, *self.drop}
        if self.features is not None:
            return [name for name in self.features if name not in apart]
        return [name for name in names if name not in apart and not _PANDAS_INDEX.match(name)]

    def select(self, table: Any) -> Any:
        """Return the table's features and its target as plain columns; null where it has none."""
        columns = columns_of(table, [*self.feature_names(table.column_names), self.target])
        return pa.table({self.target: pa.nulls(len(table)), **plain_columns(columns)})
