"""Read numbers, and text that denotes numbers: plain ones, ``$3``, ``5 %``, or in a dialect."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.frames.values import mask_of, without_nothing

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
    kinds = {column.type for column in columns}
    if kinds == {pa.float64()}:  # all at once in the common case
        return _numpy(pa.concat_arrays(columns)).reshape(len(columns), -1), {}
    if kinds == {pa.string()} and dialect.is_plain:
        try:
            together = _numpy(pc.cast(pa.concat_arrays(columns), pa.float64()))
            if not _large(together).any():
                return together.reshape(len(columns), -1), {}
        except pa.ArrowInvalid:
            pass
    read = [as_numbers(column, dialect) for column in columns]
    misfits = {i: misfit for i, (_, misfit) in enumerate(read) if misfit is not None}
    return np.array([numbers for numbers, _ in read]), misfits


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
