"""Vectors in a column of lists, as frames keep embeddings, made a matrix."""

from __future__ import annotations

from typing import Any

import numpy as np


def as_matrix(X: Any) -> Any:
    """Return a column of equally long lists as an array of two dimensions; else X as it is.

    Parameters
    ----------
    X : array-like
        A Series, an array of objects, a polars or pyarrow column, or a frame of one such column.
    """
    column = _only_column(X)
    if column is None:
        return X
    lists = np.asarray(column)
    if lists.ndim == 2:  # of polars' type Array
        return lists
    is_list = [_is_list(one) for one in lists] if lists.dtype == object else []
    if not any(is_list):
        return X
    first = is_list.index(True)
    n = len(lists[first])
    for i, one in enumerate(lists):
        if not is_list[i]:
            raise ValueError(f"X must have a list in each row, but row {i} has {one!r}")
        if len(one) != n:
            raise ValueError(
                f"X must have lists of one length, but row {i} has {len(one)} numbers and row "
                f"{first} has {n}"
            )
    return np.stack([np.asarray(one) for one in lists])


def _only_column(X: Any) -> Any:
    """Return the column that may be one of lists; None if X is something else."""
    if isinstance(X, np.ndarray):
        return X if X.dtype == object and X.ndim == 1 else None
    names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow; pandas and polars
    if names is None:
        is_column = hasattr(X, "to_numpy") and hasattr(X, "__array__")
        return X if is_column and getattr(X, "ndim", 1) == 1 else None
    return X[names[0]] if len(names) == 1 else None


def _is_list(value: Any) -> bool:
    return isinstance(value, list | tuple | np.ndarray) and np.ndim(value) == 1
