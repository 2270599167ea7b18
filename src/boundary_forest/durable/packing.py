"""A batch as bytes, and back: what a learning call was given, after it was checked.

The bytes are a safetensors container. Positions are in the forest's element type, or sparse as they
came; columns of any kind are as they came. Labels, ids, declared classes and feature names are
columns as a model file has them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from safetensors.numpy import save
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.blocks import is_sparse
from boundary_forest.estimators.columns import RawRows
from boundary_forest.estimators.errors import JournalError
from boundary_forest.files import ModelFileError, PackedArrays
from boundary_forest.files.serialization import column_arrays, column_length, read_column

OPERATION_BYTES = 1 << 26  # of positions; a longer call is written as several operations
_COLUMNS = ("y", "ids", "classes", "feature_names")


def packed(batch: LearningBatch) -> bytes:
    """Return a batch as bytes; TypeError if it has labels that a file does not take."""
    if is_sparse(batch.X):
        rows = csr_array(batch.X)
        arrays = {
            "X.data": rows.data,
            "X.indices": rows.indices.astype(np.int64),
            "X.indptr": rows.indptr.astype(np.int64),
            "X.width": np.array([rows.shape[1]]),
        }
    elif isinstance(batch.X, RawRows):
        arrays = {"X": batch.X.values}
        for name, values in batch.X.saved().items():
            arrays |= column_arrays(f"X.{name}", values)
    else:
        arrays = {"X": batch.X}
    for name in _COLUMNS:
        values = getattr(batch, name)
        if values is None:
            continue
        vectors = name == "y" and values.ndim == 2
        arrays |= {"y.vectors": values} if vectors else column_arrays(name, values)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def packed_parts(batch: LearningBatch) -> Iterator[tuple[int, bytes]]:
    """Return a batch as the contents of as many operations as it takes: examples, and bytes."""
    rows = rows_of(batch, OPERATION_BYTES)
    for begin in range(0, len(batch), rows):
        part = batch.part(begin, min(begin + rows, len(batch)))
        yield len(part), packed(part)


def rows_of(batch: LearningBatch, n_bytes: int) -> int:
    """Return how many rows of a batch take so many bytes, about; one at least."""
    stored = batch.X.data if is_sparse(batch.X) else batch.X
    return max(1, n_bytes * len(batch) // max(1, int(stored.nbytes)))


def unpacked(contents: bytes, first: int, where: str, *, replaces: bool = False) -> LearningBatch:
    """Return the batch that ``packed`` was given; JournalError if it cannot have been.

    Parameters
    ----------
    contents : bytes
        Their checksum was found right, which finds accidents, and nothing else.
    first : int
        How many examples come before it.
    where : str
        Names it in errors.
    replaces : bool, default=False
        Whether examples that have their ids are replaced, which the operation says.
    """
    try:
        return replace(_unpacked(PackedArrays(contents, where), first), replaces=replaces)
    except ModelFileError as error:
        raise JournalError(str(error)) from error
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise JournalError(f"{where}: {error}") from error


def _unpacked(arrays: PackedArrays, first: int) -> LearningBatch:
    columns: dict[str, Any] = {
        name: None if column_length(arrays, name) is None else read_column(arrays, name)
        for name in _COLUMNS
    }
    if "y.vectors" in arrays.entries:
        columns["y"] = arrays.array("y.vectors", "float64", 2)
    if "X" in arrays.entries:
        X = arrays.array("X", arrays.entry("X").dtype.name, 2)
        if column_length(arrays, "X.kinds") is not None:
            saved = {name: read_column(arrays, f"X.{name}") for name in RawRows.saved_names}
            return LearningBatch(RawRows.loaded(X, saved), **columns, first=first)
        return LearningBatch(X, **columns, first=first)
    indptr = arrays.array("X.indptr", "int64")
    data = arrays.array("X.data", arrays.entry("X.data").dtype.name)
    parts = (data, arrays.array("X.indices", "int64"), indptr)
    shape = (len(indptr) - 1, int(arrays.array("X.width", "int64")[0]))
    rows = csr_array(parts, shape=shape)
    rows.check_format()
    return LearningBatch(rows, **columns, first=first)
