"""Read a column as numbers, as text or as booleans, whatever kind of source it came from.

The same values must mean the same whether they were text in a CSV file or numbers in a Parquet
file, so nothing here depends on a column's type alone: text that reads as numbers is numbers.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

NUMBER, TEXT, BOOLEAN = "number", "text", "boolean"
# These denote a missing value where numbers or booleans are expected. In text only "" does.
NOTHING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "NONE", "?")
_NOTHING = pa.array(NOTHING)
_TRUTHS = pa.array(["false", "true"])


class ColumnError(ValueError):
    """A column does not exist or cannot be used: which, and why."""


class NothingYetError(ColumnError):
    """The columns lack the values that a decision needs; more rows may bring them."""


def as_plain(column: Any, name: str) -> Any:
    """Return the column as one array of float64, text or booleans, or of nulls alone."""
    if pa.types.is_dictionary(column.type):
        kind, parts = column.type.value_type, getattr(column, "chunks", [column])
        column = pa.chunked_array([part.dictionary_decode() for part in parts], kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return column if pa.types.is_float64(kind) else pc.cast(column, pa.float64(), safe=False)
    if pa.types.is_large_string(kind) or kind == pa.string_view() or pa.types.is_temporal(kind):
        return pc.cast(column, pa.string())
    raise ColumnError(
        f"column {name!r} holds {kind}; only numbers, text and booleans can be used: drop {name!r}"
    )


def as_numbers(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return numbers, NaN where a value is missing; and a mask of what is no number, if any."""
    if pa.types.is_float64(values.type):
        return _numpy(values), None
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan), None
    if pa.types.is_boolean(values.type):
        return np.full(len(values), np.nan), ~_is_null(values)
    try:
        return _numpy(pc.cast(values, pa.float64())), None
    except pa.ArrowInvalid:
        pass
    trimmed = _without_nothing(values)
    try:
        return _numpy(pc.cast(trimmed, pa.float64())), None
    except pa.ArrowInvalid:
        return _numbers_one_by_one(trimmed)


def _numbers_one_by_one(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    numbers, misfit = np.full(len(values), np.nan), np.zeros(len(values), dtype=bool)
    for i, value in enumerate(values):
        try:
            numbers[i] = pc.cast(value, pa.float64()).as_py() if value.is_valid else np.nan
        except pa.ArrowInvalid:
            misfit[i] = True
    return numbers, misfit


def numbers_in(columns: list[Any]) -> tuple[NDArray[np.float64], dict[int, NDArray[np.bool_]]]:
    """Return the numbers of plain columns, one row each, and masks of what is no number."""
    kinds = {column.type for column in columns}
    if len(kinds) == 1 and kinds <= {pa.float64(), pa.string()}:  # all at once in the common case
        try:
            together = pa.concat_arrays(columns)
            if kinds == {pa.string()}:
                together = pc.cast(together, pa.float64())
            return _numpy(together).reshape(len(columns), -1), {}
        except pa.ArrowInvalid:
            pass
    read = [as_numbers(column) for column in columns]
    misfits = {i: misfit for i, (_, misfit) in enumerate(read) if misfit is not None}
    return np.array([numbers for numbers, _ in read]), misfits


def as_texts(values: Any) -> Any:
    """Return text, null where a value is missing."""
    if not pa.types.is_string(values.type):
        return pc.cast(values, pa.string())
    return pc.if_else(pc.equal(values, ""), pa.scalar(None, pa.string()), values)


def as_booleans(values: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return "true" and "false", null where a value is missing; and a mask of what is neither."""
    if pa.types.is_boolean(values.type) or pa.types.is_null(values.type):
        return pc.cast(values, pa.string()), None
    if not pa.types.is_string(values.type):
        return pa.nulls(len(values), pa.string()), ~_is_null(values)
    lower = pc.utf8_lower(_without_nothing(values))
    misfit = ~_mask(pc.or_(pc.is_in(lower, _TRUTHS), pc.is_null(lower)))
    if not misfit.any():
        return lower, None
    return pc.if_else(pa.array(misfit), pa.scalar(None, pa.string()), lower), misfit


def kind_of(values: Any) -> tuple[str | None, NDArray[np.float64]]:
    """Return the kind of the values, None if there are none; and the numbers, if it is that."""
    none = np.zeros(0)
    if values.null_count == len(values):
        return None, none
    if pa.types.is_boolean(values.type):
        return BOOLEAN, none
    numbers, misfit = as_numbers(values)
    if misfit is None or not misfit.any():
        return (None, none) if np.isnan(numbers).all() else (NUMBER, numbers)
    if as_booleans(values)[1] is None:
        return BOOLEAN, none
    return TEXT, none


def columns_of(table: Any, names: list[str]) -> dict[str, Any]:
    """Return those of the named columns that a table has, each as one array where possible."""
    places = {name: i for i, name in enumerate(table.column_names)}
    chosen = table.select([places[name] for name in names if name in places])
    try:
        batches = chosen.combine_chunks().to_batches()
    except pa.ArrowInvalid:  # dictionaries that cannot be unified; their decoded columns can
        batches = []
    columns = batches[0].columns if len(batches) == 1 else chosen.columns
    return dict(zip(chosen.column_names, columns, strict=True))


def joined(tables: list[Any]) -> Any:
    """Concatenate plain tables: absent columns are null, columns of mixed kinds become text."""
    # Tables of the same columns and types are concatenated as a whole, which is far quicker.
    alike = [list(group) for _, group in groupby(tables, key=lambda table: table.schema)]
    tables = [pa.concat_tables(group) if len(group) > 1 else group[0] for group in alike]
    places = [columns_of(table, table.column_names) for table in tables]
    names = dict.fromkeys(name for place in places for name in place)
    columns = {}
    for name in names:
        parts = [
            as_plain(place[name], name) if name in place else pa.nulls(len(table))
            for table, place in zip(tables, places, strict=True)
        ]
        kinds = {part.type for part in parts} - {pa.null()}
        kind = pa.string() if len(kinds) > 1 else next(iter(kinds), pa.null())
        same = [part if part.type == kind else pc.cast(part, kind) for part in parts]
        columns[name] = same[0] if len(same) == 1 else pa.concat_arrays(same)
    return pa.table(columns)


def as_table(frame: Any) -> Any:
    """Return a frame of pyarrow, pandas or polars, or lists and dicts, as a pyarrow table."""
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if isinstance(frame, dict):
        return pa.table({str(name): column_of(list(values)) for name, values in frame.items()})
    if isinstance(frame, list | tuple) and all(isinstance(row, dict) for row in frame):
        names = dict.fromkeys(name for row in frame for name in row)
        return pa.table({str(n): column_of([row.get(n) for row in frame]) for n in names})
    if hasattr(frame, "columns") and hasattr(frame, "items"):
        return pa.table({str(name): _of_series(series) for name, series in frame.items()})
    raise TypeError(
        "rows must be a frame of pandas, polars or pyarrow, or a list of dicts, got "
        f"{type(frame).__name__}"
    )


def column_of(values: list[Any]) -> Any:
    """Return an array of these values, as text if they are of several kinds."""
    try:
        return pa.array(values)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([_text_of(value) for value in values], pa.string())


def _text_of(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return str(value).lower() if isinstance(value, bool) else str(value)


def _of_series(series: Any) -> Any:
    try:
        return pa.array(series, from_pandas=True)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return column_of([None if v != v else v for v in series.tolist()])


def _without_nothing(values: Any) -> Any:
    trimmed = pc.utf8_trim_whitespace(values)
    return pc.if_else(pc.is_in(trimmed, _NOTHING), pa.scalar(None, pa.string()), trimmed)


def _numpy(values: Any) -> NDArray[np.float64]:
    array: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
    return array


def _is_null(values: Any) -> NDArray[np.bool_]:
    return _mask(pc.is_null(values))


def _mask(values: Any) -> NDArray[np.bool_]:
    mask: NDArray[np.bool_] = values.to_numpy(zero_copy_only=False).astype(bool)
    return mask
