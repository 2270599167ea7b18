"""Single values: what kind they are of, and as numbers or text."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from numbers import Integral, Real
from typing import Any

import numpy as np

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.estimators.errors import plain

NUMBER, BOOLEAN, DATE, TEXT = "number", "boolean", "date", "text"
KINDS = (NUMBER, BOOLEAN, DATE, TEXT)
_EPOCH = datetime.datetime(1970, 1, 1)
_MICROSECOND = datetime.timedelta(microseconds=1)
_REMEDIES = {
    NUMBER: "convert the column to numbers first, for example with pandas.to_numeric(column, "
    "errors='coerce')",
    DATE: "convert the column to dates first, for example with pandas.to_datetime(column)",
}


def kind_of(cell: Any) -> str | None:
    """Return the kind of a value that is not missing; None if a column cannot hold it."""
    found = _KIND_OF_TYPE.get(type(cell))
    if found is not None:
        return found
    if isinstance(cell, str):
        return TEXT
    if isinstance(cell, bool | np.bool_):
        return BOOLEAN
    if isinstance(cell, datetime.date | np.datetime64):
        return DATE
    if isinstance(cell, Real | Decimal | datetime.timedelta | np.timedelta64 | datetime.time):
        return NUMBER
    return None


_KIND_OF_TYPE = {str: TEXT, int: NUMBER, float: NUMBER, bool: BOOLEAN, np.float64: NUMBER}


def is_missing(cell: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, or pandas' NA."""
    if cell is None:
        return True
    kind = type(cell)
    if kind is str or kind is int or kind is bool:
        return False
    try:
        return bool(cell != cell)
    except (TypeError, ValueError):  # pandas.NA is neither true nor false
        return kind.__name__ == "NAType"


def text_of(cell: Any) -> str:
    """Return a value as the name of a category: whole numbers are written as integers."""
    if isinstance(cell, str):
        return str(cell)
    cell = plain(cell)
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)


def number_of(cell: Any) -> float:
    """Return a number, a boolean, or the seconds of a duration or time of day."""
    if isinstance(cell, np.timedelta64):
        return float(cell.astype("timedelta64[us]").astype(np.int64)) / 1e6
    if isinstance(cell, datetime.timedelta):
        return (cell // _MICROSECOND) / 1e6
    if isinstance(cell, datetime.time):
        whole = datetime.timedelta(hours=cell.hour, minutes=cell.minute, seconds=cell.second)
        return whole.total_seconds() + cell.microsecond / 1e6
    if isinstance(cell, str):
        raise TypeError
    if isinstance(cell, Integral) and abs(int(cell)) > LARGEST_INTEGER:
        raise ValueError("float64 is exact only up to 2**53: scale or encode it first")
    return float(cell)


def seconds_of(cell: Any) -> float:
    """Return a date as seconds since 1970 in UTC, to the microsecond."""
    if isinstance(cell, np.datetime64):
        return float(cell.astype("datetime64[us]").astype(np.int64)) / 1e6
    if not isinstance(cell, datetime.date):
        raise TypeError
    if not isinstance(cell, datetime.datetime):
        cell = datetime.datetime(cell.year, cell.month, cell.day)
    if cell.tzinfo is not None:
        cell = cell.astimezone(datetime.UTC).replace(tzinfo=None)
    return float((cell - _EPOCH) // _MICROSECOND) / 1e6


def as_date(seconds: float) -> datetime.datetime:
    """Return the date that so many seconds since 1970 are, in UTC."""
    return _EPOCH + datetime.timedelta(seconds=seconds)


CONVERTERS: dict[str, Callable[[Any], float]] = {
    NUMBER: number_of,
    BOOLEAN: number_of,
    DATE: seconds_of,
}


def converted(cell: Any, kind: str, column: Any) -> float:
    """Return a value of a column of numbers or dates; an error names column, value and remedy."""
    try:
        number = CONVERTERS[kind](cell)
    except (TypeError, OverflowError):
        remedy = _REMEDIES[DATE if kind == DATE else NUMBER]
        raise TypeError(
            f"column {column!r} of X has {kind}s, but one of its values is {plain(cell)!r}: "
            f"{remedy}, or to text with astype(str) before the first call"
        ) from None
    except ValueError as error:
        raise ValueError(f"column {column!r} of X contains {cell!r}, but {error}") from None
    if not math.isfinite(number):
        raise ValueError(
            f"column {column!r} of X contains {plain(cell)!r}: replace infinity by None or NaN, "
            "which are missing values"
        )
    return number


def no_kind(cell: Any, column: Any) -> TypeError:
    """Return the error for a value that no column can hold."""
    return TypeError(
        f"column {column!r} of X contains {cell!r:.80} of type {type(cell).__name__}, but a value "
        "must be a number, string, boolean or date: drop or encode the column"
    )
