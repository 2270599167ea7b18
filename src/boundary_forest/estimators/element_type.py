"""Which type positions are kept in, and how arrays become rows of it without loss.

The first batch's dtype decides, never its values: bool and uint8 stay uint8; float16, float32 and
8- and 16-bit integers become float32; the rest float64. int8 and float16 are kept as such only if
``dtype`` says so: then later batches must fit them. Nothing is ever rounded.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import ELEMENT_TYPES

LARGEST_INTEGER = 2**53  # beyond it float64 does not hold every integer
_ROWS_AS_THEY_ARE = tuple(np.dtype(name) for name in ELEMENT_TYPES)


def element_type_of(dtype: np.dtype[Any]) -> str:
    """Return the element type for rows that arrive as ``dtype``."""
    if dtype.kind not in "biuf":
        raise TypeError(f"X must be numeric, got dtype {dtype}")
    dtype = dtype.newbyteorder("=")
    if dtype in (np.bool_, np.uint8):
        return "uint8"
    if dtype in (np.float16, np.float32) or (dtype.kind in "iu" and dtype.itemsize <= 2):
        return "float32"
    return "float64"


def is_checked(X: Any) -> bool:
    """Return whether X is just what scikit-learn's checks would return, without calling them.

    They take ten times as long as the forest takes for one row, so arrays that leave nothing to
    check are told apart here: those that must be converted or refused go the long way.
    """
    return (
        type(X) is np.ndarray
        and X.dtype in _ROWS_AS_THEY_ARE
        and X.ndim == 2
        and len(X) > 0
        and X.flags.c_contiguous
        and (X.dtype.kind != "f" or bool(np.isfinite(X).all()))
    )


def as_queries(X: NDArray[Any]) -> NDArray[Any]:
    """Return X in a type that the engine knows, which compares queries without rounding them."""
    known = X.dtype in _ROWS_AS_THEY_ARE
    return as_rows(X, X.dtype.name if known else element_type_of(X.dtype))


def as_rows(X: NDArray[Any], element_type: str) -> NDArray[Any]:
    """Return X in the forest's element type; raise TypeError if that would lose something."""
    if X.dtype == element_type and X.flags.c_contiguous:
        return X
    element_type_of(X.dtype)
    if X.dtype.kind in "iu" and X.dtype.itemsize == 8 and "int" not in element_type and X.size:
        largest = max(int(X.max()), -int(X.min()))
        if largest > LARGEST_INTEGER:
            raise ValueError(
                f"X contains an integer of magnitude {largest}, but float64 is exact only up to "
                "2**53: scale or encode it first"
            )
    with np.errstate(invalid="ignore", over="ignore"):
        rows: NDArray[Any] = np.ascontiguousarray(X, dtype=element_type)
    if not np.can_cast(X.dtype, rows.dtype) and not np.array_equal(rows, X):
        raise TypeError(
            f"X of dtype {X.dtype} contains values that {element_type} cannot represent, and this "
            f"forest stores {element_type} (see dtype=): pass X.astype('{element_type}') to round "
            "them, or start a new forest with dtype='float64'"
        )
    return rows
