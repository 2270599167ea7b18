"""The kinds of columns: how numbers, times and lists are read, and how a kind is inferred."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.frames.arrow_columns import (
    INSTANT,
    as_booleans,
    is_list,
    mask_of,
    without_nothing,
)
from boundary_forest.frames.dialect import PLAIN, Dialect

NO_NUMBER = "is not a number, but the earlier values are"
_CURRENCY = "[$€£¥]"
_INTEGER = re.compile(r"[+-]?\d+$")
# How numbers may be written other than plainly, the stricter one first: 1,234 is taken for
# thousands, and 0,123 cannot be.
_OTHERS = (
    Dialect(thousands=","),
    Dialect(decimal=","),
    Dialect(decimal=",", thousands="."),
    Dialect(thousands="'"),
    Dialect(thousands=" "),
)
NO_TIME = "is not a time, but the earlier values are: write it as 2024-06-29 or 2024-06-29T12:30"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
_ZONE = r"(?:Z|[+-]\d{2}(?::?\d{2})?)"
_DATE = r"^(?:\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}[/.]\d{1,2}[/.]\d{1,2})(?:[T ].*)?$"
_TIME = rf"^(?:\d{{4}}-\d{{2}}-\d{{2}}(?:[T ](?:\d{{2}}|{_CLOCK}){_ZONE}?)?|{_CLOCK})$"
NUMBER, TEXT, BOOLEAN, TIME, LIST = "number", "text", "boolean", "time", "list"
FEW = 20  # one in so many values may be of another kind than its column's: it is a slip


def as_numbers(
    values: Any, dialect: Dialect = PLAIN
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return numbers, NaN where a value is missing; and a mask of what is no number, if any.

    An integer that float64 would round counts as none.
    """
    if pa.types.is_float64(values.type):
        return _numpy(values), None
    if pa.types.is_null(values.type):
        return np.full(len(values), np.nan), None
    if not pa.types.is_string(values.type):
        return np.full(len(values), np.nan), mask_of(values.is_valid())
    if dialect.is_plain:
        try:
            return _unless_rounded(values, _numpy(pc.cast(values, pa.float64())))
        except pa.ArrowInvalid:
            pass
    return _from_text(without_nothing(values), dialect)


def numbers_in(
    columns: list[Any], dialect: Dialect = PLAIN
) -> tuple[NDArray[np.float64], dict[int, NDArray[np.bool_]]]:
    """Return the numbers of plain columns, one row each, and masks of what is no number."""
    m, n = len(columns), len(columns[0])
    # Many at once wherever possible: a table may have 100,000 columns.
    floats = [i for i, column in enumerate(columns) if isinstance(column, pa.DoubleArray)]
    if len(floats) == m:
        return _numpy(pa.concat_arrays(columns)).reshape(m, n), {}
    numbers, misfits = np.empty((m, n)), dict[int, NDArray[np.bool_]]()
    if floats:
        together = pa.concat_arrays([columns[i] for i in floats])
        numbers[floats] = _numpy(together).reshape(len(floats), n)
    done = np.zeros(m, dtype=bool)
    done[floats] = True
    texts = [i for i, column in enumerate(columns) if isinstance(column, pa.StringArray)]
    if texts and dialect.is_plain:
        read, fits = _plainly_written([columns[i] for i in texts])
        plain = np.array(texts)[fits]
        numbers[plain], done[plain] = read, True
    for i in np.flatnonzero(~done).tolist():
        numbers[i], misfit = as_numbers(columns[i], dialect)
        if misfit is not None:
            misfits[i] = misfit
    return numbers, misfits


def _plainly_written(columns: list[Any]) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the numbers in columns of text that need no closer look, and which columns these are.

    There is one row of numbers for each of them.
    """
    n, whole = len(columns[0]), pa.concat_arrays(columns)
    fits: NDArray[np.bool_] = np.ones(len(columns), dtype=bool)
    try:
        together = pc.cast(whole, pa.float64())
    except pa.ArrowInvalid:
        number = pc.fill_null(pc.match_substring_regex(whole, _pattern(PLAIN)), True)
        fits &= mask_of(number).reshape(len(columns), n).all(axis=1)
        together = pc.cast(whole.filter(pa.array(np.repeat(fits, n))), pa.float64())
    numbers = _numpy(together).reshape(int(fits.sum()), n)
    small = ~_large(numbers).any(axis=1)
    fits[fits] = small
    return numbers[small], fits


def are_integers(values: Any) -> bool:
    """Return whether text is integers throughout, however large."""
    if not pa.types.is_string(values.type):
        return False
    texts = without_nothing(values).drop_null()
    return len(texts) > 0 and bool(pc.all(pc.match_substring_regex(texts, r"^[+-]?\d+$")).as_py())


def why_no_number(value: Any, dialect: Dialect = PLAIN) -> str:
    """Return what is wrong with a value that is no number, and what to do about it."""
    if isinstance(value, str):
        text = value.strip()
        if _INTEGER.match(text):
            return (
                "is beyond 2**53, so that float64 cannot represent it exactly: scale or encode it "
                "first"
            )
        hint = dialect_hint(pa.array([text])) if dialect.is_plain else None
        if hint is not None:
            return f"is not a number; {hint} to read it as one"
    return NO_NUMBER


def looks_like_dates(texts: Any) -> bool:
    """Return whether nearly all of some text is dates in another form than ISO 8601."""
    dates = pc.sum(pc.match_substring_regex(texts, _DATE)).as_py() or 0
    return bool(len(texts) - dates <= len(texts) / FEW and dates)


def dialect_hint(texts: Any) -> str | None:
    """Return what to set so that text that denotes no numbers plainly does; None if nothing."""
    for dialect in _OTHERS:
        misfit = as_numbers(texts, dialect)[1]
        if misfit is None or misfit.sum() <= len(misfit) / 20:
            given = dialect.to_json().items()
            named = " and ".join(f"{name} to {value!r}" for name, value in given)
            return f"set {named}"
    return None


def _from_text(
    texts: Any, dialect: Dialect
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Read trimmed text, null where a value is missing."""
    percent = pc.fill_null(pc.ends_with(texts, "%"), False)
    bare = pc.replace_substring_regex(texts, rf"^([+-]?)\s*{_CURRENCY}\s*", r"\1")
    bare = pc.replace_substring_regex(bare, rf"\s*(%|{_CURRENCY})$", "")
    number = pc.fill_null(pc.match_substring_regex(bare, _pattern(dialect)), False)
    plain = pc.if_else(number, bare, pa.scalar(None, pa.string()))
    if dialect.thousands is not None:
        plain = pc.replace_substring(plain, dialect.thousands, "")
    if dialect.point != ".":
        plain = pc.replace_substring(plain, dialect.point, ".")
    numbers = _numpy(pc.cast(plain, pa.float64()))
    misfit = ~mask_of(number) & mask_of(texts.is_valid())
    numbers, rounded = _unless_rounded(plain, numbers)
    hundredths = mask_of(percent)
    if hundredths.any():
        numbers = np.where(hundredths, numbers / 100, numbers)
    if rounded is not None:
        misfit |= rounded
    return numbers, misfit if misfit.any() else None


@cache
def _pattern(dialect: Dialect) -> str:
    """Return the regular expression of a number: whatever it matches can be cast."""
    point, whole = re.escape(dialect.point), r"\d+"
    if dialect.thousands is not None:
        whole = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(dialect.thousands)}\d{{3}})+|\d+)"
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return rf"^[+-]?(?:{number}|(?i:inf|infinity|nan))$"


def _unless_rounded(
    texts: Any, numbers: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Take integers that float64 would round for no numbers; 1e300 is one."""
    large = _large(numbers)
    if not large.any():
        return numbers, None
    rounded = large & mask_of(pc.fill_null(pc.match_substring_regex(texts, r"^[+-]?\d+$"), False))
    for i in np.flatnonzero(rounded).tolist():
        rounded[i] = abs(int(texts[i].as_py())) > LARGEST_INTEGER
    return np.where(rounded, np.nan, numbers), rounded if rounded.any() else None


def _large(numbers: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(numbers) >= LARGEST_INTEGER)


def _numpy(values: Any) -> NDArray[np.float64]:
    array: NDArray[np.float64] = values.to_numpy(zero_copy_only=False)
    return array


def as_times(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return seconds since 1970 in UTC, NaN where a value is missing; and a mask of what is none.

    What names no zone is taken to be in UTC, and a time of day to be on the first day.
    """
    if pa.types.is_timestamp(values.type):
        return _seconds(values), None
    if pa.types.is_null(values.type) or not pa.types.is_string(values.type):
        return np.full(len(values), np.nan), mask_of(values.is_valid())
    texts = without_nothing(values)
    looks = pc.fill_null(pc.match_substring_regex(texts, _TIME), False)
    if not pc.any(looks).as_py():
        return np.full(len(values), np.nan), mask_of(texts.is_valid())
    # Microseconds are kept, and what has no date gets one.
    exact = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    exact = pc.replace_substring_regex(exact, r"^(\d{2}:)", r"1970-01-01T\1")
    zoned = pc.match_substring_regex(exact, rf"[T ].*{_ZONE}$")
    nothing = pa.scalar(None, pa.string())
    here = pc.if_else(pc.and_(looks, pc.invert(zoned)), exact, nothing)
    there = pc.if_else(pc.and_(looks, zoned), exact, nothing)
    instants = _seconds(_cast(here, INSTANT)), _seconds(_cast(there, pa.timestamp("us", "UTC")))
    seconds = np.where(np.isnan(instants[0]), instants[1], instants[0])
    misfit = mask_of(texts.is_valid()) & np.isnan(seconds)
    return seconds, misfit if misfit.any() else None


def _cast(texts: Any, kind: Any) -> Any:
    """Cast text; what is no time after all, as the 31st of February, becomes null."""
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind)
        half = len(texts) // 2
        return pa.concat_arrays([_cast(texts[:half], kind), _cast(texts[half:], kind)])


def _seconds(instants: Any) -> NDArray[np.float64]:
    whole = pc.cast(instants, pa.int64())
    numbers: NDArray[np.float64] = pc.cast(whole, pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers / 1e6


def as_lists(values: Any, width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return one row of numbers per list, NaN where one is missing; a mask of what does not fit."""
    numbers = np.full((len(values), width), np.nan)
    if not is_list(values.type):
        present = mask_of(values.is_valid())
        return numbers, present if present.any() else None
    lengths = pc.fill_null(pc.list_value_length(values), width)
    fits = mask_of(pc.equal(lengths, width)) & mask_of(values.is_valid())
    flat = values.filter(pa.array(fits)).flatten().to_numpy(zero_copy_only=False)
    numbers[fits] = flat.reshape(-1, width)
    misfit = mask_of(pc.not_equal(lengths, width))
    return numbers, misfit if misfit.any() else None


def usual_length(values: Any) -> int:
    """Return the length that most lists have; of several such the least."""
    lengths = pc.list_value_length(values).drop_null().to_numpy()
    return int(np.bincount(lengths).argmax()) if len(lengths) else 0


def no_list(width: int) -> str:
    """Return what is wrong with a value that is not a list of this length."""
    return f"is not a list of {width} numbers, but the earlier values are"


def kinds_of(
    columns: list[Any], dialect: Dialect = PLAIN
) -> list[tuple[str | None, NDArray[np.float64]]]:
    """Return the kind of each column, None if it has no values; and the numbers that they are.

    There are numbers if the kind is a number or a time, NaN where a value is missing or unfit.
    """
    if not columns:
        return []
    numbers, misfits = numbers_in(columns, dialect)
    certain: NDArray[np.bool_] = np.any(np.isfinite(numbers), axis=1)
    return [
        (NUMBER, numbers[i])
        if certain[i] and i not in misfits
        else _kind_of(values, numbers[i], misfits.get(i))
        for i, values in enumerate(columns)
    ]


def _kind_of(
    values: Any, numbers: NDArray[np.float64], misfit: NDArray[np.bool_] | None
) -> tuple[str | None, NDArray[np.float64]]:
    none = np.zeros(0)
    if values.null_count == len(values):
        return None, none
    if pa.types.is_boolean(values.type):
        return BOOLEAN, none
    if is_list(values.type):
        return LIST, none
    if _are_few(misfit, numbers):
        return (None, none) if np.isnan(numbers).all() else (NUMBER, numbers)
    if are_integers(values):  # that float64 would round, which is a problem of the rows
        return NUMBER, numbers
    if pa.types.is_string(values.type) and as_booleans(values)[1] is None:
        return BOOLEAN, none
    times, misfit = as_times(values)
    return (TIME, times) if _are_few(misfit, times) else (TEXT, none)


def _are_few(misfit: NDArray[np.bool_] | None, numbers: NDArray[np.float64]) -> bool:
    """Return whether so few values are unfit that the others determine the kind."""
    if misfit is None:
        return True
    unfit, fit = int(misfit.sum()), int((~np.isnan(numbers)).sum())
    return unfit * FEW <= unfit + fit
