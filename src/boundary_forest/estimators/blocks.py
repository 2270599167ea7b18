"""Rows a block at a time, so that sparse and encoded rows are never in memory all at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse  # type: ignore[import-untyped]

BLOCK_VALUES = 2**22  # of a dense block; two at most are alive, 64 MB as float64


def is_sparse(X: Any) -> bool:
    """Whether X is one of scipy's matrices or sparse arrays."""
    return type(X) is not np.ndarray and bool(issparse(X))


def sound_sparse(X: Any) -> Any:
    """Return X as CSR without duplicates; ValueError if its indices do not fit its shape.

    scipy converts and slices a matrix as its arrays say, also where they point outside of it: that
    ends the process, or is read as other numbers. A row that has a value twice has their sum, which
    may be infinite, so duplicates go before values are checked.
    """
    if X.ndim != 2:
        return X
    try:
        # Checked as another object over the same arrays, because scipy mends what it checks.
        if X.format in ("csr", "csc", "bsr"):
            X = type(X)((X.data, X.indices, X.indptr), shape=X.shape)
            X.check_format(full_check=True)
        else:  # as (row, column, value), of which the constructor checks every one
            if X.format == "lil" and any(map(_differ, X.rows, X.data)):
                raise ValueError("the number of indices and the number of values differ")
            X = X.tocoo()
            X = type(X)((X.data, (X.row, X.col)), X.shape)
    except (IndexError, TypeError, ValueError) as error:
        raise ValueError(f"X is not a valid sparse matrix: {error}") from error
    rows = X.tocsr()
    if not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def _differ(indices: list[int], values: list[Any]) -> bool:
    return len(indices) != len(values)


def row_blocks(
    X: Any, convert: Callable[[NDArray[Any]], NDArray[Any]], *, whole: bool = False
) -> Iterator[NDArray[Any]]:
    """The rows of ``X``, converted: a dense array as it is, others made dense by blocks."""
    if isinstance(X, np.ndarray):
        yield convert(X)
        return
    n_rows, n_features = X.shape
    for block in [slice(0, n_rows)] if whole else slices(n_rows, n_features):
        yield convert(X[block].toarray())


def slices(n_rows: int, n_features: int) -> Iterator[slice]:
    """Consecutive blocks of rows, each of at most BLOCK_VALUES values if that is a row at all."""
    step = max(1, BLOCK_VALUES // n_features)
    return (slice(start, min(start + step, n_rows)) for start in range(0, n_rows, step))


def joined(parts: Sequence[Any]) -> Any:
    """The answers about successive blocks as one; each an array, or a tuple of arrays."""
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], tuple):
        return tuple(joined(same) for same in zip(*parts, strict=True))
    return np.concatenate(parts)
