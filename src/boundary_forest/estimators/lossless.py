"""What users give, compared with the float64 that was made of it.

Beside a float, numpy, pandas and polars turn an integer into a float64, as they do with uint64
beside int64; beyond 2**53 that rounds it. What was given is therefore looked at again, but only
where it may have been rounded: at large numbers, and at objects.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.estimators.errors import plain

# How numpy, pandas, polars and pyarrow call types whose values float64 has, unless they are large.
NUMBERS = re.compile(r"(sparse\[)?(bool|u?int|float|half|double)", re.IGNORECASE)


def check_exact(given: Any, kept: NDArray[Any], name: str = "X") -> None:
    """Raise ValueError if ``kept`` has other numbers than were given, or integers beyond 2**53.

    Parameters
    ----------
    given : array-like
        As it came: an array, a frame, lists.
    kept : ndarray of shape (n_rows, n_columns) or (n_rows,)
        What scikit-learn's checks made of it.
    name : str, default="X"
        What it is called in errors.
    """
    if kept.dtype != np.float64 or getattr(getattr(given, "dtype", None), "kind", "O") == "f":
        return
    large = np.abs(kept) >= LARGEST_INTEGER
    every = not all(NUMBERS.match(str(kind)) for kind in types_of(given))
    if every or large.any():
        for cells, column, among in _columns(given, kept, large):
            chosen = slice(None) if every else among
            for cell, number in zip(cells[chosen], column[chosen].tolist(), strict=True):
                _check_cell(plain(cell), number, name)


def check_integers(given: Any, kept: NDArray[Any], name: str) -> None:
    """Raise ValueError if an integer beyond 2**53 was given, which float64 may have rounded.

    Parameters
    ----------
    given, kept, name
        As for :func:`check_exact`.
    """
    large = np.abs(kept) >= LARGEST_INTEGER
    if large.any():
        for cells, _, among in _columns(given, kept, large):
            for cell in cells[among]:
                _check_integer(plain(cell), name)


def _check_cell(cell: Any, number: float, name: str) -> None:
    _check_integer(cell, name)
    if cell != number:
        raise ValueError(
            f"{name} contains {cell!r}, which float64 cannot represent exactly: convert it first, "
            "for example with astype('float64')"
        )


def _check_integer(cell: Any, name: str) -> None:
    if isinstance(cell, Integral) and abs(int(cell)) > LARGEST_INTEGER:
        raise ValueError(
            f"{name} contains the integer {cell}, but float64 is exact only up to 2**53: scale or "
            "encode it first"
        )


def types_of(given: Any) -> list[Any]:
    """Return the types of a frame's columns, or the one of an array; none of lists.

    numpy makes no float64 of a list that has other objects than numbers.
    """
    for types in (getattr(given, "dtypes", None), getattr(given, "dtype", None)):
        if types is not None:
            return list(types) if np.ndim(types) == 1 else [types]
    return list(given.schema.types) if hasattr(given, "schema") else []


def _columns(
    given: Any, kept: NDArray[Any], large: NDArray[np.bool_]
) -> Iterator[tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]]:
    """Each column as objects, as float64, and where it is large."""
    if kept.ndim == 1:
        yield np.asarray(given, dtype=object).reshape(len(kept)), kept, large
        return
    cells = object_columns(given, range(kept.shape[1]))
    for j, column in enumerate(cells):
        yield column, kept[:, j], large[:, j]


def object_columns(given: Any, columns: Iterable[int]) -> Iterator[NDArray[Any]]:
    """Return columns of a frame, an array or lists as objects, one after the other."""
    whole = None
    for j in columns:
        if hasattr(given, "iloc"):  # pandas
            column = given.iloc[:, j]
        elif hasattr(given, "to_series"):  # polars
            column = given.to_series(j).to_list()  # it makes no array of 128-bit integers
        elif hasattr(given, "schema"):  # pyarrow
            column = given.column(j)
        else:
            whole = np.asarray(given, dtype=object) if whole is None else whole
            column = whole[:, j]
        yield np.asarray(column, dtype=object)
