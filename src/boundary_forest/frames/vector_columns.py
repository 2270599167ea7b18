"""Read positions from a table: a column of lists of numbers, or columns of a number each; and ids.

Nothing is scaled, encoded or guessed here, unlike in the tables that a forest predicts from: what
is in the file is the position, in the element type that the file has it in. A row that has none is
named with the reason, and whoever reads decides whether to go on without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import columns_of, is_list, mask_of
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.column_kinds import numbers_in, usual_length
from boundary_forest.frames.dialect import PLAIN, Dialect

Mask = NDArray[np.bool_]
MOST_NAMED = 12  # columns that a message lists


@dataclass(frozen=True)
class VectorRows:
    """The rows of a table that have a position, and an id if there is a column of them.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        Their positions.
    ids : list or None
        Their ids; None without such a column.
    places : ndarray of int64
        Their places in the table, from 0.
    bad : dict
        The places of the other rows, and what is wrong with them.
    """

    X: NDArray[Any]
    ids: list[Any] | None
    places: NDArray[np.int64]
    bad: dict[int, str]


class VectorColumns:
    """Which columns of a table are positions, and which one has the ids.

    Parameters
    ----------
    schema : pyarrow.Schema
        The columns that there are.
    vector : sequence of str
        The column of lists, or the columns of numbers; if there is none, the only column of lists,
        or if there is no such column, all columns except the ids'.
    id : str or None
        The column of ids.
    width : int or None
        The number of features, if that is known.
    dialect : Dialect
        How numbers are written in text.
    """

    def __init__(
        self,
        schema: Any,
        vector: Iterable[str] = (),
        *,
        id: str | None = None,
        width: int | None = None,
        dialect: Dialect = PLAIN,
    ) -> None:
        self._known = dict.fromkeys(schema.names)
        self._dialect = dialect
        self.id = None if id is None else self._there(id, "the ids")
        self.names = [self._there(name, "the vectors") for name in vector]
        kinds = {field.name: _value_type(field.type) for field in schema}
        lists = [name for name, kind in kinds.items() if is_list(kind) and name != id]
        if not self.names:
            self.names = self._found(lists)
        self.is_list = self.names[0] in lists
        if self.is_list and len(self.names) > 1:
            raise ColumnError(
                f"column {self.names[0]!r} contains lists, so no other column can be part of the "
                "vectors"
            )
        _check_all({name: kinds[name] for name in self.names}, is_list_column=self.is_list)
        self.width = width
        if not self.is_list and width not in (None, len(self.names)):
            raise ColumnError(
                f"vectors have {width} numbers, but {len(self.names)} columns are given: "
                f"{_listed(self.names)}"
            )

    def _there(self, name: str, what: str) -> str:
        if name not in self._known:
            raise ColumnError(
                f"there is no column {name!r} for {what}; the columns are {_listed([*self._known])}"
            )
        return name

    def _found(self, lists: list[str]) -> list[str]:
        """Return the columns of positions if nobody has named them."""
        if len(lists) > 1:
            raise ColumnError(
                f"columns {_listed(lists)} contain lists: choose the one with the vectors"
            )
        names = lists or [name for name in self._known if name != self.id]
        if not names:
            raise ColumnError("there is no column with vectors")
        return names

    def read(self, table: Any) -> VectorRows:
        """Return the positions, and the ids, of a table's rows."""
        bad: dict[int, str] = {}
        n = len(table)
        columns = columns_of(table, [*self.names, *([] if self.id is None else [self.id])])
        X, good = self._lists(columns, n, bad) if self.is_list else self._numbers(columns, n, bad)
        ids = None
        if self.id is not None:
            column = _column(columns, self.id, n)
            _check_ids(self.id, column.type)
            for place in np.flatnonzero(mask_of(column.is_null())).tolist():
                bad.setdefault(place, f"it has no id: column {self.id!r} has no value")
                good[place] = False
            ids = column.filter(pa.array(good)).to_pylist()
        return VectorRows(X[good], ids, np.flatnonzero(good), bad)

    def _lists(
        self, columns: dict[str, Any], n: int, bad: dict[int, str]
    ) -> tuple[NDArray[Any], Mask]:
        name = self.names[0]
        column = _column(columns, name, n)
        if pa.types.is_null(column.type):
            column = column.cast(pa.list_(pa.float64()))
        _check_numbers(name, column.type, is_list_column=True)
        self.width = self._width_of(name, column)
        lengths = pc.list_value_length(column)
        fits = mask_of(pc.fill_null(pc.equal(lengths, self.width), False))
        for place in np.flatnonzero(~fits).tolist():
            length = lengths[place].as_py()
            bad[place] = f"column {name!r} " + (
                "has no value"
                if length is None
                else f"has {length} numbers instead of {self.width}"
            )
        flat = column.filter(pa.array(fits)).flatten()
        values = _plain_numbers(flat).reshape(-1, self.width)
        X = np.zeros((len(column), self.width), dtype=values.dtype)
        X[fits] = values
        if flat.null_count:
            missing = np.zeros(X.shape, dtype=bool)
            missing[fits] = mask_of(flat.is_null()).reshape(-1, self.width)
            _note(np.any(missing, axis=1), f"column {name!r} has a missing number", fits, bad)
        finite = np.all(np.isfinite(X), axis=1)
        _note(~finite, f"column {name!r} contains NaN or infinity", fits, bad)
        return X, fits

    def _width_of(self, name: str, column: Any) -> int:
        """Return how long lists must be; refuse a column that cannot be meant."""
        usual = usual_length(column)
        if pa.types.is_fixed_size_list(column.type):
            usual = column.type.list_size
        if self.width is None and usual == 0 and len(column):
            raise ColumnError(f"column {name!r} contains only empty lists")
        if self.width is not None and usual not in (0, self.width):
            raise ColumnError(
                f"column {name!r} contains lists of {usual} numbers, but vectors have {self.width}"
            )
        return usual if self.width is None else self.width

    def _numbers(
        self, columns: dict[str, Any], n: int, bad: dict[int, str]
    ) -> tuple[NDArray[Any], Mask]:
        values = [_column(columns, name, n) for name in self.names]
        kinds = [column.type for column in values]
        _check_all(dict(zip(self.names, kinds, strict=True)), is_list_column=False)
        self.width = m = len(values)
        alike: dict[Any, list[int]] = {}  # those of a type are read at once: there may be 100,000
        for i, kind in enumerate(kinds):
            alike.setdefault(kind, []).append(i)
        read = {kind: self._alike([values[i] for i in which]) for kind, which in alike.items()}
        X = np.empty((m, n), np.result_type(*(part.numbers for part in read.values())))
        missing = np.zeros((m, n), dtype=bool)
        misfits: dict[int, Mask] = {}
        for kind, which in alike.items():
            X[which], missing[which] = read[kind].numbers, read[kind].missing
            misfits |= {which[j]: misfit for j, misfit in read[kind].misfits.items()}
        good, finite = np.ones(n, dtype=bool), np.isfinite(X)
        for i in np.flatnonzero((missing | ~finite).any(axis=1)).tolist():
            name = self.names[i]
            if i in misfits:
                _note(misfits[i], f"column {name!r} is not a number", good, bad)
            _note(missing[i], f"column {name!r} has no value", good, bad)
            _note(~finite[i], f"column {name!r} is NaN or infinite", good, bad)
        return np.ascontiguousarray(X.T), good

    def _alike(self, columns: list[Any]) -> _Numbers:
        """Read columns of one type."""
        kind, shape = columns[0].type, (len(columns), len(columns[0]))
        if pa.types.is_string(kind) or pa.types.is_null(kind):
            numbers, misfits = numbers_in(columns, self._dialect)
            return _Numbers(numbers, np.isnan(numbers), misfits)  # text says so in several ways
        whole = pa.concat_arrays(columns)
        missing = mask_of(whole.is_null()).reshape(shape)
        return _Numbers(_plain_numbers(whole).reshape(shape), missing, {})


@dataclass(frozen=True)
class _Numbers:
    """Columns of numbers, one row each; where they are missing, and where they are something else.

    What is something else counts as missing, too.
    """

    numbers: NDArray[Any]
    missing: Mask
    misfits: dict[int, Mask]


def _note(which: Mask, what: str, good: Mask, bad: dict[int, str]) -> None:
    """Write down what is wrong with rows, and count them as good no more."""
    for place in np.flatnonzero(which & good).tolist():
        bad.setdefault(place, what)
    good &= ~which


def _column(columns: dict[str, Any], name: str, n: int) -> Any:
    """Return a column as one array, without dictionaries; nulls if these rows have none of it."""
    if name not in columns:
        return pa.nulls(n)
    column = columns[name]
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if isinstance(column, pa.ChunkedArray):  # pyarrow makes one of what has no rows
        column = column.chunk(0) if column.num_chunks else pa.array([], column.type)
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if pa.types.is_large_string(column.type) or column.type == pa.string_view():
        column = column.cast(pa.string())
    return column


def _plain_numbers(values: Any) -> NDArray[Any]:
    """Return numbers in their own type; 0 where one is missing, so that integers remain such."""
    if pa.types.is_null(values.type) or pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    if values.null_count:
        # fill_null does not know every type, halves among them
        values = pc.if_else(values.is_valid(), values, pa.scalar(0).cast(values.type))
    numbers: NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _check_numbers(name: str, kind: Any, *, is_list_column: bool) -> None:
    """Refuse a column of another type; text may hold numbers, and null is decided later."""
    inner = _value_type(kind)
    if is_list_column and is_list(inner):
        inner, what = inner.value_type, "lists of "
    else:
        what = ""
        if is_list_column and not pa.types.is_null(inner):
            raise ColumnError(f"column {name!r} contains {kind} in some rows and lists in others")
    numbers = pa.types.is_integer(inner) or pa.types.is_floating(inner)
    numbers = numbers or pa.types.is_decimal(inner) or pa.types.is_null(inner)
    text = pa.types.is_string(inner) or pa.types.is_large_string(inner)
    if numbers or (not what and (text or pa.types.is_boolean(inner))):
        return
    raise ColumnError(
        f"column {name!r} contains {what}{inner}, but vectors must be lists of numbers or columns "
        "of numbers: choose other columns"
    )


def _check_all(kinds: dict[str, Any], *, is_list_column: bool) -> None:
    """Check the first column of each type."""
    first: dict[Any, str] = {}
    for name, kind in kinds.items():
        first.setdefault(kind, name)
    for kind, name in first.items():
        _check_numbers(name, kind, is_list_column=is_list_column)


def _check_ids(name: str, kind: Any) -> None:
    if not (pa.types.is_integer(kind) or pa.types.is_string(kind) or pa.types.is_null(kind)):
        raise ColumnError(f"column {name!r} contains {kind}, but ids must be integers or text")


def _listed(names: list[str]) -> str:
    more = len(names) - MOST_NAMED
    shown = ", ".join(map(repr, names[:MOST_NAMED]))
    return shown if more <= 0 else f"{shown} and {more} more"
