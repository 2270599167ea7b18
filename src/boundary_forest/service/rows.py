"""Rows of requests as the forest takes them: the only place that knows what columns mean.

A model takes its columns from the first rows it learns: lists of numbers (``VectorFormat``) or
named values (``ColumnFormat``). Positions are kept as float32.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import as_table
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import CLASSIFY, Columns
from boundary_forest.frames.inference import choose
from boundary_forest.frames.model import FrameModel
from boundary_forest.service.errors import unprocessable

ELEMENT_TYPE = "float32"
_NO_TARGET = "\0"  # targets are not among the columns of a request
_NUMBERS = {int, float, bool}
_VALUES = {int, float, bool, str, type(None)}

# Lists of numbers, dicts, a matrix, or a table.
Rows: TypeAlias = "list[Any] | NDArray[Any] | Any"


class RowFormat(Protocol):
    """What rows of a model look like."""

    def positions(self, rows: Rows) -> NDArray[Any]:
        """Return rows as positions; ServiceError names what does not fit."""

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position as a row of a response."""

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON, which ``format_from_json`` reads."""


@dataclass(frozen=True)
class VectorFormat:
    """Rows are lists of numbers.

    Parameters
    ----------
    width : int
        Their length.
    """

    width: int

    def positions(self, rows: Rows) -> NDArray[Any]:
        """Return rows as positions."""
        matrix = _matrix(rows, self.width)
        finite = np.isfinite(matrix)
        if not finite.all():
            i, j = np.argwhere(~finite)[0].tolist()
            raise unprocessable("the number is not finite as float32", f"rows[{i}][{j}]")
        return matrix

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position as a list."""
        return position.tolist()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"width": self.width}


@dataclass(frozen=True)
class ColumnFormat:
    """Rows are values by the names of their columns.

    Parameters
    ----------
    names : tuple of str
        The columns of the first rows; some may carry no information.
    columns : Columns
        What they mean.
    """

    names: tuple[str, ...]
    columns: Columns

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def positions(self, rows: Rows) -> NDArray[Any]:
        """Return rows as positions; a missing column is a missing value."""
        table = self._table(rows)
        try:
            found = self.columns.positions(table)
        except (ColumnError, pa.ArrowException) as error:
            raise unprocessable(str(error), "rows") from error
        for row, problem in sorted(found.problems.items()):
            raise unprocessable(str(problem), f"rows[{row}].{problem.column}")
        with np.errstate(over="ignore"):
            return found.X.astype(ELEMENT_TYPE)

    def _table(self, rows: Rows) -> pa.Table:
        if isinstance(rows, np.ndarray) or (isinstance(rows, list) and type(rows[0]) is list):
            matrix = _matrix(rows, len(self.names))
            return pa.table(dict(zip(self.names, matrix.T.astype(np.float64), strict=True)))
        if isinstance(rows, pa.Table):
            named = [("rows", name) for name in rows.column_names]
        else:
            named = [(f"rows[{i}]", name) for i, row in enumerate(rows) for name in row]
        for where, name in named:
            if name not in self._known:
                raise unprocessable(f"there is no column {name!r} in this model", where)
        return as_table(rows)

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position as values by name."""
        values = self.columns.decoded(position)
        return dict(zip((f.name for f in self.columns.features), values, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"names": list(self.names), "columns": self.columns.to_json()}


def first_format(rows: Rows, most_columns: int) -> RowFormat:
    """Return what rows look like, decided by the first ones that a model learns."""
    if isinstance(rows, np.ndarray):
        return VectorFormat(rows.shape[1])
    if isinstance(rows, list) and type(rows[0]) is list:
        return VectorFormat(len(rows[0]))
    table = as_table(rows)
    if table.num_columns > most_columns:
        raise unprocessable(f"rows may have at most {most_columns:,} columns", "rows")
    options = ColumnOptions(_NO_TARGET, task=CLASSIFY, scaling="standard", missing="mean")
    try:
        columns = choose(table, options)
    except (ColumnError, pa.ArrowException) as error:
        raise unprocessable("the first rows have no column with values", "rows") from error
    return ColumnFormat(tuple(table.column_names), columns)


def format_from_json(content: dict[str, Any]) -> RowFormat:
    """Return the format that ``to_json`` gave."""
    if "width" in content:
        return VectorFormat(int(content["width"]))
    return ColumnFormat(tuple(content["names"]), Columns.from_json(content["columns"]))


def format_of_model(model: Any) -> RowFormat | None:
    """Return the format of a fitted model that was loaded from a file; None before it learned."""
    if isinstance(model, FrameModel):
        names = tuple(feature.name for feature in model.columns.features)
        return ColumnFormat(names, model.columns)
    return None if model.examples_seen == 0 else VectorFormat(model.n_features_in_)


def check_rows(rows: Rows, most_columns: int) -> None:
    """Refuse rows that are of no kind: neither lists of numbers nor plain values by name."""
    if not isinstance(rows, list):
        width = rows.num_columns if isinstance(rows, pa.Table) else rows.shape[1]
        if not 1 <= width <= most_columns:
            raise unprocessable(f"rows must have 1 to {most_columns:,} columns", "rows")
        return
    kind = type(rows[0])
    if kind not in (list, dict):
        raise unprocessable("a row must be a list of numbers or an object", "rows[0]")
    allowed = _NUMBERS if kind is list else _VALUES
    for i, row in enumerate(rows):
        if type(row) is not kind:
            raise unprocessable("rows must be all lists or all objects", f"rows[{i}]")
        if not 1 <= len(row) <= most_columns:
            raise unprocessable(f"a row must have 1 to {most_columns:,} values", f"rows[{i}]")
        values = row.values() if isinstance(row, dict) else row
        if not allowed.issuperset(map(type, values)):
            _refuse_value(i, row, allowed)


def _refuse_value(i: int, row: Any, allowed: set[Any]) -> None:
    pairs = enumerate(row) if isinstance(row, list) else row.items()
    for name, value in pairs:
        if type(value) in allowed:
            continue
        where = f"rows[{i}][{name}]" if isinstance(row, list) else f"rows[{i}].{name}"
        if isinstance(row, list):
            raise unprocessable("a value of a list must be a number", where)
        # A list of numbers is a column of vectors, such as an embedding.
        if type(value) is not list or not value or not _NUMBERS.issuperset(map(type, value)):
            raise unprocessable(
                "a value must be a number, text, true, false, null or a list of numbers", where
            )


def _matrix(rows: Rows, width: int) -> NDArray[Any]:
    """Return lists of numbers, or a matrix, as float32."""
    expected = f"this model takes rows of {width:,} numbers"
    if isinstance(rows, pa.Table):
        raise unprocessable(f"{expected}: send lists or npy", "rows")
    if isinstance(rows, np.ndarray):
        if rows.shape[1] != width:
            raise unprocessable(f"{expected}, got {rows.shape[1]:,}", "rows")
    else:
        for i, row in enumerate(rows):
            if type(row) is not list or len(row) != width:
                got = f", got {len(row):,}" if type(row) is list else " as lists"
                raise unprocessable(f"{expected}{got}", f"rows[{i}]")
    with np.errstate(over="ignore"):
        try:
            return np.ascontiguousarray(rows, dtype=ELEMENT_TYPE)
        except OverflowError as error:  # an integer that no float holds
            raise unprocessable("a number is too large", "rows") from error
