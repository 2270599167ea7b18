"""The kinds of columns, and how the kind of one is inferred from its values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.frames.numbers import are_integers, as_numbers
from boundary_forest.frames.times import as_times
from boundary_forest.frames.values import as_booleans, is_list

NUMBER, TEXT, BOOLEAN, TIME, LIST = "number", "text", "boolean", "time", "list"
FEW = 20  # one in so many values may be of another kind than its column's: it is a slip


def kind_of(values: Any, dialect: Dialect = PLAIN) -> tuple[str | None, NDArray[np.float64]]:
    """Return the kind of plain values, None if there are none; and the numbers that they are.

    There are numbers if the kind is a number or a time, NaN where a value is missing or unfit.
    """
    none = np.zeros(0)
    if values.null_count == len(values):
        return None, none
    if pa.types.is_boolean(values.type):
        return BOOLEAN, none
    if is_list(values.type):
        return LIST, none
    numbers, misfit = as_numbers(values, dialect)
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
