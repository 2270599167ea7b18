"""Rows of requests as the forest takes them: the only place that knows what columns mean.

A model takes its columns from the first rows it learns: lists of numbers (``VectorFormat``), which
are kept as float32, or named values, which a forest with ``columns="auto"`` takes as they are
(``NamedFormat``). Indexes, and models that were saved with columns of their own, have named values
as numbers (``FrameFormat``).
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
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

ELEMENT_TYPE = "float32"  # of lists of numbers
_NO_TARGET = "\0"  # targets are not among the columns of a request
_PACKED = b"\0"  # begins a kept row of numbers; one that is JSON begins with [ or {

# A matrix, dicts, or a table. Lists of numbers become a matrix when a request is read.
Rows: TypeAlias = "list[Any] | NDArray[Any] | Any"
# What the forest learns and predicts: a matrix, or dicts.
Checked: TypeAlias = "NDArray[Any] | list[dict[str, Any]]"


class RowFormat(Protocol):
    """What rows of a model look like."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns, if they have names."""

    def checked(self, rows: Rows) -> Checked:
        """Return rows as the forest takes them; ServiceError names what does not fit."""

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
    names = ()

    def checked(self, rows: Rows) -> NDArray[Any]:
        """Return rows as a matrix; integers are converted when rows are joined, all at once."""
        if isinstance(rows, np.ndarray) and rows.dtype.kind in "biu":
            _check_width(rows, self.width)
            return rows
        return _matrix(rows, self.width)

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position as a list."""
        return position.tolist()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"width": self.width}


@dataclass(frozen=True)
class NamedFormat:
    """Rows are values by the names of their columns, whose kinds the forest knows.

    Parameters
    ----------
    names : tuple of str
        The columns of the first rows.
    dates : frozenset of str
        Those whose values are text in JSON, and dates to the forest.
    """

    names: tuple[str, ...]
    dates: frozenset[str] = frozenset()

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(self.names)

    def checked(self, rows: Rows) -> list[dict[str, Any]]:
        """Return rows as dicts; a column that is missing is a missing value."""
        found = self._dicts(rows)
        for i, row in enumerate(found):
            if not self._known.issuperset(row):
                name = next(name for name in row if name not in self._known)
                raise unknown_column(name, self.names, f"rows[{i}]")
        if not self.dates.isdisjoint(self.names):
            return [self._dated(row, i) for i, row in enumerate(found)]
        return found

    def _dicts(self, rows: Rows) -> list[dict[str, Any]]:
        if isinstance(rows, np.ndarray):
            matrix = _matrix(rows, len(self.names), np.float64)
            return [dict(zip(self.names, row, strict=True)) for row in matrix.tolist()]
        return _listed(rows)

    def _dated(self, row: dict[str, Any], i: int) -> dict[str, Any]:
        dated = dict(row)
        for name in self.dates & row.keys():
            value = row[name]
            if value is None or isinstance(value, datetime.date):
                continue
            date = date_of(value)
            if date is None:
                what = f"column {name!r} has dates (2026-01-31T12:00:00Z), got {value!r:.50}"
                raise unprocessable(what, f"rows[{i}].{name}")
            dated[name] = date
        return dated

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position: its features, which are not the row's values."""
        return position.tolist()

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"names": list(self.names), "dates": sorted(self.dates)}


@dataclass(frozen=True)
class FrameFormat:
    """Rows are values by the names of their columns, which become numbers outside the forest.

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

    def checked(self, rows: Rows) -> NDArray[Any]:
        """Return rows as a matrix; a column that is missing is a missing value."""
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
        if isinstance(rows, np.ndarray):
            matrix = _matrix(rows, len(self.names))
            return pa.table(dict(zip(self.names, matrix.T.astype(np.float64), strict=True)))
        if isinstance(rows, pa.Table):
            named = [("rows", name) for name in rows.column_names]
        else:
            named = [(f"rows[{i}]", name) for i, row in enumerate(rows) for name in row]
        for where, name in named:
            if name not in self._known:
                raise unknown_column(name, self.names, where)
        return as_table(rows)

    def row(self, position: NDArray[Any]) -> Any:
        """Return a stored position as values by name."""
        values = self.columns.decoded(position)
        return dict(zip((f.name for f in self.columns.features), values, strict=True))

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON."""
        return {"names": list(self.names), "columns": self.columns.to_json()}


def unknown_column(name: str, names: Sequence[str], where: str) -> Exception:
    """Return the error for a column that the model does not have."""
    shown = ", ".join(map(repr, names[:10])) + (", ..." if len(names) > 10 else "")
    return unprocessable(
        f"there is no column {name!r:.100} in this model, which has {shown}", where
    )


def date_of(text: Any) -> datetime.datetime | None:
    """Return the date that a text says in the format of ISO 8601; None if it says none."""
    if type(text) is not str or not (10 <= len(text) <= 40 and text[4] == text[7] == "-"):
        return None
    try:
        return datetime.datetime.fromisoformat(text)
    except ValueError:
        return None


def first_format(rows: Rows, most_columns: int, *, as_frame: bool) -> RowFormat:
    """Return what rows look like, decided by the first ones that a model learns.

    Parameters
    ----------
    rows : Rows
        The rows.
    most_columns : int
        How many columns they may have together.
    as_frame : bool
        Whether named values must become numbers outside the forest.
    """
    if isinstance(rows, np.ndarray):
        return VectorFormat(rows.shape[1])
    if isinstance(rows, pa.Table):
        names = tuple(rows.column_names)
    else:
        names = tuple(dict.fromkeys(name for row in rows for name in row))
    if len(names) > most_columns:
        raise unprocessable(f"rows may have at most {most_columns:,} columns", "rows")
    if not as_frame:
        return NamedFormat(names, frozenset(_dates_among(rows)))
    table = as_table(rows)
    options = ColumnOptions(_NO_TARGET, task=CLASSIFY, scaling="standard", missing="mean")
    try:
        columns = choose(table, options)
    except (ColumnError, pa.ArrowException) as error:
        raise unprocessable("the first rows have no column with values", "rows") from error
    return FrameFormat(names, columns)


def _dates_among(rows: Rows) -> set[str]:
    """Return the columns whose values are all dates, as text or, in a table, as dates."""
    found: dict[str, bool] = {}
    for row in rows.to_pylist() if isinstance(rows, pa.Table) else rows:
        for name, value in row.items():
            if value is not None and found.get(name, True):
                found[name] = isinstance(value, datetime.date) or date_of(value) is not None
    return {name for name, are_dates in found.items() if are_dates}


def joined(parts: Sequence[Checked]) -> Checked:
    """Return rows of several requests as those of one."""
    if isinstance(parts[0], np.ndarray):
        if len(parts) == 1:
            return np.ascontiguousarray(parts[0], dtype=ELEMENT_TYPE)
        matrices = [part for part in parts if isinstance(part, np.ndarray)]
        return np.concatenate(matrices, dtype=ELEMENT_TYPE, casting="unsafe")
    return [row for part in parts if isinstance(part, list) for row in part]


def format_from_json(content: dict[str, Any]) -> RowFormat:
    """Return the format that ``to_json`` gave."""
    if "width" in content:
        return VectorFormat(int(content["width"]))
    if "columns" in content:
        return FrameFormat(tuple(content["names"]), Columns.from_json(content["columns"]))
    return NamedFormat(tuple(content["names"]), frozenset(content["dates"]))


def format_of_model(model: Any) -> RowFormat | None:
    """Return the format of a fitted model that was loaded from a file; None before it learned."""
    if isinstance(model, FrameModel):
        names = tuple(feature.name for feature in model.columns.features)
        return FrameFormat(names, model.columns)
    fitted = model.fitted
    if fitted is None:
        return None
    if fitted.encoder is not None and fitted.feature_names is not None:
        kinds = zip(fitted.feature_names.tolist(), fitted.encoder.layout.kinds, strict=True)
        dates = frozenset(name for name, kind in kinds if kind == "date")
        return NamedFormat(tuple(fitted.feature_names.tolist()), dates)
    if fitted.encoder is not None and not fitted.encoder.layout.is_numeric:
        raise ValueError(
            "this model has columns of text or dates without names, which requests cannot have: "
            "learn it again from a frame whose columns have names"
        )
    return VectorFormat(model.n_features_in_)


# Rows that wait for their labels


def packed_rows(rows: Rows, format: RowFormat | None) -> list[bytes]:
    """Return rows as they are kept until their labels come."""
    if isinstance(rows, np.ndarray) and (format is None or isinstance(format, VectorFormat)):
        return [_PACKED + row.tobytes() for row in _matrix(rows, rows.shape[1])]
    plain = _listed(rows)
    return [json.dumps(row, default=str).encode() for row in plain]


def unpacked_rows(kept: Sequence[bytes]) -> list[Rows]:
    """Return rows that were kept, those of one kind and length together if all are."""
    if all(row[:1] == _PACKED for row in kept) and len({*map(len, kept)}) == 1:
        numbers = np.frombuffer(b"".join(row[1:] for row in kept), ELEMENT_TYPE)
        return [numbers.reshape(len(kept), -1)]
    if len(kept) > 1 and not all(row[:1] == b"{" for row in kept):
        return [rows for row in kept for rows in unpacked_rows([row])]
    rows = [json.loads(row) for row in kept]
    return [rows if type(rows[0]) is dict else np.array(rows, dtype=np.float64)]


def _listed(rows: Rows) -> list[Any]:
    if isinstance(rows, list):
        return rows
    found: list[Any] = rows.to_pylist() if isinstance(rows, pa.Table) else rows.tolist()
    return found


def _matrix(rows: Rows, width: int, element_type: Any = ELEMENT_TYPE) -> NDArray[Any]:
    """Return a matrix of this width, of finite numbers."""
    _check_width(rows, width)
    rows = np.asarray(rows)
    if rows.dtype.kind != "f":
        return np.ascontiguousarray(rows, dtype=element_type)
    with np.errstate(over="ignore"):
        matrix = np.ascontiguousarray(rows, dtype=element_type)
    finite = np.isfinite(matrix)
    if not finite.all():
        i, j = np.argwhere(~finite)[0].tolist()
        raise unprocessable("the number is not finite as float32", f"rows[{i}][{j}]")
    return matrix


def _check_width(rows: Rows, width: int) -> None:
    """Refuse rows that are no matrix of this width."""
    expected = f"this model takes rows of {width:,} numbers"
    if isinstance(rows, pa.Table):
        raise unprocessable(f"{expected}: send lists or npy", "rows")
    if not isinstance(rows, np.ndarray):
        raise unprocessable(f"{expected} as lists", "rows[0]")
    if rows.shape[1] != width:
        raise unprocessable(f"{expected}, got {rows.shape[1]:,}", "rows[0]")
