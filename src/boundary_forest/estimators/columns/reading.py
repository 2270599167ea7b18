"""Frames, arrays of objects and lists of dicts as :class:`RawRows`.

pandas, polars and pyarrow are recognised by their methods, so that none of them is needed.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.cells import (
    BOOLEAN,
    DATE,
    NUMBER,
    TEXT,
    converted,
    is_missing,
    kind_of,
    no_kind,
    text_of,
)
from boundary_forest.estimators.columns.raw_rows import RawRows
from boundary_forest.estimators.element_type import LARGEST_INTEGER

_NUMBERS = re.compile(r"(u?int|float)\d+|double|float|halffloat", re.IGNORECASE)
_ARROW = {"double": "float64", "float": "float32", "halffloat": "float16", "boolean": "bool"}
_TEXTS = re.compile(r"(large_)?(utf8|string)|str|categorical|enum|dictionary", re.IGNORECASE)
_DATES = re.compile(r"date|timestamp|duration", re.IGNORECASE)

Column = tuple[str | None, NDArray[np.float64], tuple[str, ...] | None, bool]


def columns_in(X: Any) -> list[Any] | None:
    """Return the columns of a frame as its own library has them; None if X is no frame."""
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return [X.iloc[:, j] for j in range(X.shape[1])]
    if hasattr(X, "get_columns"):  # polars
        return list(X.get_columns())
    if hasattr(X, "schema") and hasattr(X, "column"):  # pyarrow
        return [X.column(j) for j in range(X.num_columns)]
    return None


def is_frame(X: Any) -> bool:
    """Whether X is a frame of pandas, polars or pyarrow."""
    return hasattr(X, "get_columns") or all(
        hasattr(X, name)
        for name in (("iloc", "columns") if hasattr(X, "iloc") else ("schema", "column"))
    )


def names_in(X: Any) -> list[Any]:
    """Return the names of a frame's columns."""
    return list(X.schema.names if hasattr(X, "num_columns") else X.columns)


def is_rows_of_dicts(X: Any) -> bool:
    """Whether X is a list of dicts."""
    return isinstance(X, list | tuple) and len(X) > 0 and isinstance(X[0], Mapping)


def read_frame(
    X: Any,
    kinds: Sequence[str | None] = (),
    names: Sequence[Any] | None = None,
    *,
    numbers: bool = False,
) -> RawRows | None:
    """Return the rows of a frame, or of an array of objects; None if X has numbers alone.

    Parameters
    ----------
    X : object
        As the user passed it.
    kinds : sequence of str or None
        What the columns are known to have.
    names : sequence or None
        The names of the columns.
    numbers : bool
        Whether numbers alone are read as well.
    """
    if not numbers and hasattr(X, "iloc") and _has_plain_types(X):
        return None
    columns = columns_in(X)
    if columns is None:
        array = X if isinstance(X, np.ndarray) else _as_array(X)
        if array is None or array.ndim != 2:
            return None
        if array.dtype.kind not in ("OUTMmbiuf" if numbers else "OUTMm"):
            return None
        columns = [array[:, j] for j in range(array.shape[1])]
    elif not numbers and all(_is_plain(column) for column in columns):
        return None
    if len(kinds) not in (0, len(columns)):
        kinds = ()  # refused later, with the numbers of columns
    shown = range(len(columns)) if names is None or len(names) != len(columns) else names
    found = [
        _read(column, name, kinds[j] if j < len(kinds) else None)
        for j, (column, name) in enumerate(zip(columns, shown, strict=True))
    ]
    rows = _joined(found, None if names is None else tuple(names), len(X))
    return replace(rows, declared=_declared(columns))


def _declared(columns: Sequence[Any]) -> np.dtype[Any]:
    """Return the type that holds all columns by their types; float64 unless all are numbers."""
    types = []
    for column in columns:
        dtype = _type_of(column)
        name = dtype.name if isinstance(dtype, np.dtype) else str(dtype).lower()
        name = _ARROW.get(name, name)
        if name != "bool" and not _NUMBERS.fullmatch(name):
            return np.dtype(np.float64)
        types.append(np.dtype(name))
    return np.result_type(*types) if types else np.dtype(np.float64)


def read_single(X: Any, names: Sequence[Any], kinds: Sequence[str | None]) -> RawRows | None:
    """Return the row of a frame or list that has one, by its values: a fast path for queries.

    None if there are more rows, or other columns than these in this order.
    """
    cells: Sequence[Any]
    if hasattr(X, "iloc"):  # pandas
        if len(X) != 1 or X.columns.tolist() != names:
            return None
        cell = X.iat  # to_numpy takes three times as long where types differ, iloc a third more
        cells = [cell[0, j] for j in range(len(names))]
    elif hasattr(X, "get_columns"):  # polars
        if len(X) != 1 or X.columns != names:
            return None
        cells = X.row(0)
    elif hasattr(X, "num_columns"):  # pyarrow
        if len(X) != 1 or X.schema.names != names:
            return None
        cells = [column[0].as_py() for column in X.columns]
    elif is_rows_of_dicts(X) and len(X) == 1:
        cells = [X[0].get(name) for name in names]
    else:
        return None
    values, found = [], list(kinds)
    texts: dict[int, tuple[str, ...]] = {}
    for column, (cell, kind) in enumerate(zip(cells, kinds, strict=True)):
        value = np.nan
        if kind == NUMBER and isinstance(cell, float) and math.isfinite(cell):
            value = cell
        elif not is_missing(cell):
            if kind is None or kind == TEXT:
                found[column] = kind = kind_of(cell) if kind is None else kind
                if kind is None or kind_of(cell) is None:
                    raise no_kind(cell, names[column])
            if kind == TEXT:
                value, texts[column] = 0.0, (text_of(cell),)
            else:
                value = converted(cell, kind, names[column])
        values.append(value)
    row = np.array([values], dtype=np.float64)
    return RawRows(row, tuple(found), np.zeros(len(values), dtype=bool), texts)


def read_dicts(
    rows: Sequence[Mapping[Hashable, Any]],
    known: Sequence[Any],
    kinds: Sequence[str | None],
    *,
    grows: bool,
) -> RawRows:
    """Return rows that are dicts; new columns follow in order of appearance if it ``grows``."""
    names = list(known)
    if grows:
        there = set(names)
        for row in rows:
            new = sorted((name for name in row if name not in there), key=natural_order)
            names += new
            there.update(new)
    found = []
    for j, name in enumerate(names):
        cells = [row.get(name) for row in rows]
        kind, values, texts = column_of(cells, name, kinds[j] if j < len(kinds) else None)
        found.append((kind, values, texts, False))
    return _joined(found, tuple(names), len(rows))


def natural_order(name: Hashable) -> tuple[int, Any, str]:
    """Sort names of any type: numbers by value, text as people do, x2 before x10."""
    if isinstance(name, str):
        parts = re.split(r"(\d+)", name)
        return 1, [int(part) if i % 2 else part for i, part in enumerate(parts)], name
    if isinstance(name, Integral):
        return 0, int(name), ""
    return 2, repr(name), ""


def column_of(
    cells: Iterable[Any], name: Any, kind: str | None
) -> tuple[str | None, NDArray[np.float64], tuple[str, ...] | None]:
    """Return kind, values and texts of a column of objects; its first value decides the kind.

    Parameters
    ----------
    cells : iterable
        Its values.
    name : object
        What errors call it.
    kind : str or None
        The kind, if it is known.
    """
    values: list[float] = []
    index: dict[str, float] = {}
    for cell in cells:
        if is_missing(cell):
            values.append(np.nan)
        else:
            if kind is None or type(cell) is not str:
                found = kind_of(cell)
                if found is None:
                    raise no_kind(cell, name)
                kind = found if kind is None else kind
            if kind == TEXT:
                values.append(index.setdefault(text_of(cell), float(len(index))))
            else:
                values.append(converted(cell, kind, name))
    return kind, np.array(values, dtype=np.float64), tuple(index) if kind == TEXT else None


def _as_array(X: Any) -> NDArray[Any] | None:
    if hasattr(X, "tocsr"):
        return None
    try:
        array = np.asarray(X)
        return np.asarray(X, dtype=object) if array.dtype.kind in "OU" else array
    except (TypeError, ValueError):  # rows of different lengths, or objects of no length
        return None


def _is_plain(column: Any) -> bool:
    """Whether a column has numbers of numpy's types, and as many as rows."""
    dtype = _type_of(column)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iufc"
    if not _NUMBERS.fullmatch(str(dtype)) or hasattr(column, "iloc"):
        return False
    return not column.null_count if isinstance(column.null_count, int) else not column.null_count()


def _has_plain_types(X: Any) -> bool:
    """Whether all columns of a pandas frame have numbers of numpy's types."""
    types = X.dtypes
    return np.ndim(types) == 1 and all(
        isinstance(dtype, np.dtype) and dtype.kind in "iufc" for dtype in types
    )


def _type_of(column: Any) -> Any:
    return column.type if hasattr(column, "to_pylist") else column.dtype


def _read(column: Any, name: Any, known: str | None) -> Column:
    """Return kind, values, texts, and whether the type of the column tells its kind."""
    dtype = _type_of(column)
    if isinstance(dtype, np.dtype):
        return _read_array(np.asarray(column), name, known)
    if hasattr(column, "iloc"):
        return _read_extension(column, dtype, name, known)
    written = str(dtype)
    if written.lower() in ("bool", "boolean"):
        return known or BOOLEAN, *_read_array(_bits(column), name, known)[1:]
    if _NUMBERS.fullmatch(written) or _DATES.match(written):
        array = column.to_numpy() if hasattr(column, "get_chunks") else _arrow_array(column)
        return _read_array(array, name, known)
    cells = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    typed = bool(_TEXTS.match(written))
    return _read_cells(cells, name, known, typed=typed)


def _bits(column: Any) -> NDArray[Any]:
    """The booleans of polars or pyarrow, as 0, 1 and NaN."""
    if hasattr(column, "to_pylist"):
        return _arrow_array(column.cast("int8"))
    return np.asarray(column.cast(float).to_numpy())


def _arrow_array(column: Any) -> NDArray[Any]:
    return np.asarray(column.to_numpy(zero_copy_only=False))


def _read_extension(column: Any, dtype: Any, name: Any, known: str | None) -> Column:
    """Read a column of one of pandas' own types."""
    if hasattr(column, "cat"):
        codes = column.cat.codes.to_numpy().astype(np.float64)
        if known is None or known == TEXT:
            texts = tuple(map(text_of, column.cat.categories))
            return TEXT, np.where(codes < 0, np.nan, codes), texts, True
        return _read_cells(column.to_numpy(dtype=object), name, known, typed=True)
    kind = getattr(dtype, "kind", "O")
    if kind in "iufb":
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
        read = _read_array(values, name, known, integers=kind in "iu")
        return (known or BOOLEAN, *read[1:]) if kind == "b" else read
    if kind == "M":
        if column.dt.tz is not None:
            column = column.dt.tz_convert("UTC").dt.tz_localize(None)
        return _read_array(column.to_numpy(dtype="datetime64[us]"), name, known)
    if kind == "m":
        return _read_array(column.to_numpy(dtype="timedelta64[us]"), name, known)
    text = getattr(dtype, "type", None) is str
    return _read_cells(column.to_numpy(dtype=object), name, known, typed=text)


def _read_array(
    array: NDArray[Any], name: Any, known: str | None, *, integers: bool = False
) -> Column:
    """Read a column by numpy's type of it."""
    letter = array.dtype.kind
    own = {"b": BOOLEAN, "M": DATE, "U": TEXT, "T": TEXT}.get(letter, NUMBER)
    kind = own if known is None else known
    if letter in "OSVUTc" or (kind == DATE) != (own == DATE) or kind == TEXT:
        typed = letter != "O"
        cells = array.tolist() if letter in "biuf" else list(array)
        return _read_cells(cells, name, kind if typed else known, typed=typed)
    if letter in "Mm":
        unit = f"{'datetime' if letter == 'M' else 'timedelta'}64[us]"
        missing = np.isnat(array)
        values = array.astype(unit).astype(np.int64).astype(np.float64) / 1e6
        values[missing] = np.nan
        return kind, values, None, True
    values = np.asarray(array, dtype=np.float64)
    if letter in "iu" or integers:
        large = np.flatnonzero(np.abs(values) > LARGEST_INTEGER)
        if len(large):
            converted(int(array[large[0]]), NUMBER, name)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        converted(float(values[infinite[0]]), NUMBER, name)
    return kind, values, None, True


def _read_cells(cells: Iterable[Any], name: Any, known: str | None, *, typed: bool) -> Column:
    """Read a column of objects; ``typed``: it has texts even if all of them are missing."""
    kind, values, texts = column_of(cells, name, TEXT if typed and known is None else known)
    return kind, values, texts, typed and kind == TEXT


def _joined(columns: Sequence[Column], names: tuple[Any, ...] | None, n_rows: int) -> RawRows:
    values = np.empty((n_rows, len(columns)))
    for j, column in enumerate(columns):
        values[:, j] = column[1]
    return RawRows(
        values,
        tuple(kind for kind, *_ in columns),
        np.array([typed for *_, typed in columns], dtype=bool),
        {j: texts for j, (_, _, texts, _) in enumerate(columns) if texts is not None},
        names,
    )
