"""Read a column as plain values, text or booleans, whatever kind of source it came from.

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

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.frames.column_errors import ColumnError

# These denote a missing value where numbers or booleans are expected. In text only "" does.
NOTHING = ("", "NA", "N/A", "#N/A", "NaN", "nan", "null", "NULL", "None", "NONE", "?")
_NOTHING = pa.array(NOTHING)
_TRUTHS = pa.array(["false", "true"])
INSTANT = pa.timestamp("us")  # in UTC
LIST = pa.list_(pa.float64())
_PLAIN_ARRAYS = (pa.StringArray, pa.DoubleArray, pa.BooleanArray, pa.NullArray)


def as_plain(column: Any, name: str) -> Any:
    """Return the column as one array of float64, text, booleans, instants, lists or nulls."""
    if pa.types.is_dictionary(column.type):
        kind, parts = column.type.value_type, getattr(column, "chunks", [column])
        column = pa.chunked_array([part.dictionary_decode() for part in parts], kind)
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    kind = column.type
    if pa.types.is_null(kind) or pa.types.is_boolean(kind) or pa.types.is_string(kind):
        return column
    if _is_number(kind):
        return _float64_or_text(column)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        return pc.cast(column, INSTANT, safe=False)
    if pa.types.is_duration(kind):
        whole = pc.cast(pc.cast(column, pa.duration("us"), safe=False), pa.int64())
        return pc.divide(pc.cast(whole, pa.float64(), safe=False), 1e6)
    if pa.types.is_large_string(kind) or kind == pa.string_view() or pa.types.is_time(kind):
        return pc.cast(column, pa.string())
    if is_list(kind) and _is_number(kind.value_type):
        return _lists(column, name)
    raise ColumnError(
        f"column {name!r} contains {kind}, but only numbers, text, booleans, times and lists of "
        f"numbers are supported: drop {name!r}"
    )


def plain_columns(columns: dict[str, Any]) -> dict[str, Any]:
    """Return columns as :func:`as_plain` does, those of a type at once: there may be 100,000."""
    plain, numbers = dict(columns), dict[Any, list[str]]()
    for name, column in columns.items():
        if isinstance(column, _PLAIN_ARRAYS):
            continue
        if isinstance(column, pa.Array) and _is_number(column.type):
            numbers.setdefault(column.type, []).append(name)
        else:
            plain[name] = as_plain(column, name)
    for names in numbers.values():
        n = len(columns[names[0]])
        whole = _float64_or_text(pa.concat_arrays([columns[name] for name in names]))
        if pa.types.is_float64(whole.type):
            plain |= {name: whole.slice(i * n, n) for i, name in enumerate(names)}
        else:  # because of some of them
            plain |= {name: as_plain(columns[name], name) for name in names}
    return plain


def is_list(kind: Any) -> bool:
    """Return whether values of a type are lists."""
    is_large, is_fixed = pa.types.is_large_list(kind), pa.types.is_fixed_size_list(kind)
    return bool(pa.types.is_list(kind) or is_large or is_fixed)


def _is_number(kind: Any) -> bool:
    is_integer, is_decimal = pa.types.is_integer(kind), pa.types.is_decimal(kind)
    return bool(is_integer or pa.types.is_floating(kind) or is_decimal)


def _lists(column: Any, name: str) -> Any:
    safe = pa.types.is_integer(column.type.value_type)
    try:
        return pc.cast(column, LIST, safe=safe)
    except pa.ArrowInvalid as error:
        raise ColumnError(
            f"column {name!r} contains integers beyond 2**53, which float64 cannot represent "
            "exactly: scale or encode them first"
        ) from error


def _float64_or_text(column: Any) -> Any:
    """Return numbers as float64; as text if float64 would round an integer among them."""
    kind = column.type
    if pa.types.is_integer(kind) and kind.bit_width == 64 and len(column) > column.null_count:
        ends = pc.min_max(column)
        if max(-ends["min"].as_py(), ends["max"].as_py()) > LARGEST_INTEGER:
            return pc.cast(column, pa.string())
    return column if pa.types.is_float64(kind) else pc.cast(column, pa.float64(), safe=False)


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
        return pa.nulls(len(values), pa.string()), mask_of(values.is_valid())
    lower = pc.utf8_lower(without_nothing(values))
    misfit = ~mask_of(pc.or_(pc.is_in(lower, _TRUTHS), pc.is_null(lower)))
    if not misfit.any():
        return lower, None
    return pc.if_else(pa.array(misfit), pa.scalar(None, pa.string()), lower), misfit


def columns_of(table: Any, names: list[str]) -> dict[str, Any]:
    """Return those of the named columns that a table has, each as one array where possible."""
    schema = table.schema
    places = {name: schema.get_field_index(name) for name in names}
    for name in [name for name, place in places.items() if place < 0]:
        several = schema.get_all_field_indices(name)
        if several:  # the last one counts
            places[name] = several[-1]
        else:
            del places[name]
    chosen = table.select([*places.values()])
    batches = chosen.to_batches()
    if len(batches) != 1:
        try:
            batches = chosen.combine_chunks().to_batches()
        except pa.ArrowInvalid:  # dictionaries that cannot be unified; their decoded columns can
            batches = []
    columns = batches[0].columns if len(batches) == 1 else chosen.columns
    return dict(zip(places, columns, strict=True))


def joined(tables: list[Any]) -> Any:
    """Concatenate plain tables: absent columns are null, columns of mixed kinds become text."""
    # Tables of the same columns and types are concatenated as a whole, which is far quicker.
    alike = [list(group) for _, group in groupby(tables, key=lambda table: table.schema)]
    tables = [pa.concat_tables(group).combine_chunks() for group in alike]
    if len(tables) == 1:
        return tables[0]
    places = [columns_of(table, table.column_names) for table in tables]
    names = dict.fromkeys(name for place in places for name in place)
    columns = {}
    for name in names:
        parts = [
            place[name] if name in place else pa.nulls(len(table))
            for table, place in zip(tables, places, strict=True)
        ]
        kinds = {part.type for part in parts} - {pa.null()}
        if len(kinds) > 1 and LIST in kinds:
            raise ColumnError(
                f"column {name!r} contains lists in some rows and other values in others: drop it"
            )
        kind = pa.string() if len(kinds) > 1 else next(iter(kinds), pa.null())
        same = [part if part.type == kind else pc.cast(part, kind) for part in parts]
        columns[name] = same[0] if len(same) == 1 else pa.concat_arrays(same)
    return pa.table(columns)


def as_table(frame: Any) -> Any:
    """Return a frame of pyarrow, pandas or polars, or lists and dicts, as a pyarrow table.

    A dict of single values, or a Series with names, is one row.
    """
    if isinstance(frame, pa.Table):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "index") and hasattr(frame, "to_dict") and not hasattr(frame, "columns"):
        frame = _row_of(frame)
    if isinstance(frame, dict) and not any(_is_column(value) for value in frame.values()):
        frame = [frame]
    if isinstance(frame, dict):
        return pa.table({str(name): column_of(list(values)) for name, values in frame.items()})
    if isinstance(frame, list | tuple) and all(isinstance(row, dict) for row in frame):
        names = dict.fromkeys(name for row in frame for name in row)
        return pa.table({str(n): column_of([row.get(n) for row in frame]) for n in names})
    if hasattr(frame, "columns") and hasattr(frame, "items"):
        return pa.table({str(name): _of_series(series) for name, series in frame.items()})
    raise TypeError(
        "rows must be a pandas, polars or pyarrow table or a list of dicts, got "
        f"{type(frame).__name__}"
    )


def _is_column(values: Any) -> bool:
    return hasattr(values, "__len__") and not isinstance(values, str | bytes)


def _row_of(series: Any) -> dict[str, Any]:
    """Return a row of a frame as a dict."""
    row = series.to_dict()
    if not all(isinstance(name, str) for name in row):
        raise TypeError(
            "rows must have the names of their columns, but this Series has none: pass a dict, or "
            "a row of a frame, such as frame.iloc[0]"
        )
    return dict(row)


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


def without_nothing(texts: Any) -> Any:
    """Return text without outer spaces, null where it denotes a missing value."""
    trimmed = pc.utf8_trim_whitespace(texts)
    return pc.if_else(pc.is_in(trimmed, _NOTHING), pa.scalar(None, pa.string()), trimmed)


def mask_of(truths: Any) -> NDArray[np.bool_]:
    """Return booleans without nulls as an array of numpy."""
    mask: NDArray[np.bool_] = truths.to_numpy(zero_copy_only=False).astype(bool)
    return mask
