"""Which column of X is the reason why it cannot be used, and what to do about it.

scikit-learn's checks tell neither the column nor the value. This looks at X again, once it was
refused.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.lossless import NUMBERS, object_columns, types_of

_DATE = re.compile(r"(\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|\d{4}[/.-]\d{1,2}[/.-]\d{1,2})\b")
_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)

ENCODE = "encode text and categories, for example with scikit-learn's OneHotEncoder"
CONVERT = "convert times to numbers, for example to seconds since some date"
FILL_IN = "fill in missing values, for example with scikit-learn's SimpleImputer"


def check_cell(name: Any, cell: Any, remedy: str = "") -> None:
    """Raise an error that names the column and what to do, if a cell is text or a time.

    Parameters
    ----------
    name : str or int
        The column.
    cell : object
        One of its values.
    remedy : str, default=""
        What else to do, at the end of the sentence.
    """
    cell = plain(cell)
    if isinstance(cell, _TIMES):
        raise TypeError(
            f"X must contain numbers, but column {name!r} contains {cell}: {CONVERT}{remedy}"
        )
    if not isinstance(cell, str | bytes) or _is_number(cell):
        return
    what = f"X must contain numbers, but column {name!r} contains {cell!r}"
    text = str(cell).strip()
    if not text:
        raise ValueError(f"{what}, which is no value: fill it in, or leave the row out")
    if _DATE.match(text):
        parse = "parse it, for example with pandas.to_datetime(..., dayfirst=True)"
        raise ValueError(f"{what}, which looks like a date: {parse}, and {CONVERT}")
    raise ValueError(f"{what}: {ENCODE}{remedy}")


def check_columns(X: Any, remedy: str = "") -> None:
    """Raise such an error for the first column that is the reason why X was refused, if one is.

    Parameters
    ----------
    X : array-like
        A frame, an array or lists, as given.
    remedy : str, default=""
        As for ``check_cell``.
    """
    names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow; pandas and polars
    columns: Sequence[int]
    if names is not None:
        columns = [j for j, kind in enumerate(types_of(X)) if not NUMBERS.match(str(kind))]
    else:
        try:
            array = np.asarray(X)
        except ValueError:  # rows of different lengths
            return
        if array.ndim != 2 or array.dtype.kind in "biuf":
            return
        columns = range(array.shape[1])
    for j, cells in zip(columns, object_columns(X, columns), strict=True):
        name = j if names is None else names[j]
        for cell in cells:
            check_cell(name, cell, remedy)


def check_missing(error: Exception, remedy: str) -> None:
    """Raise an error with the remedy in place of scikit-learn's about a missing value."""
    if remedy and "X contains NaN" in str(error):
        raise ValueError(f"Input X contains NaN: {FILL_IN}{remedy}")


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
