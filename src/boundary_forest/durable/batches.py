"""A batch as bytes, and back: what was given to learn, after it was checked.

The bytes are a safetensors container. Positions are in the forest's element type, or sparse as they
came; labels, ids, declared classes and feature names are columns as a model file has them.
"""

from __future__ import annotations

import numpy as np
from safetensors.numpy import save
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from boundary_forest.estimators import Batch
from boundary_forest.estimators.blocks import is_sparse
from boundary_forest.files import PackedArrays
from boundary_forest.files.values import column_arrays, column_length, read_column

_COLUMNS = ("y", "ids", "classes", "feature_names")


def packed(batch: Batch) -> bytes:
    """A batch as bytes; TypeError if they have labels that a file does not take."""
    if is_sparse(batch.X):
        rows = csr_array(batch.X)
        arrays = {
            "X.data": rows.data,
            "X.indices": rows.indices.astype(np.int64),
            "X.indptr": rows.indptr.astype(np.int64),
            "X.width": np.array([rows.shape[1]]),
        }
    else:
        arrays = {"X": batch.X}
    for name in _COLUMNS:
        values = getattr(batch, name)
        if values is None:
            continue
        vectors = name == "y" and values.ndim == 2
        arrays |= {"y.vectors": values} if vectors else column_arrays(name, values)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def unpacked(contents: bytes, where: str, first: int) -> Batch:
    """A batch from bytes, after ``first`` others; ``where`` names them in errors."""
    arrays = PackedArrays(contents, where)
    columns = {
        name: None if column_length(arrays, name) is None else read_column(arrays, name)
        for name in _COLUMNS
    }
    if "y.vectors" in arrays.entries:
        columns["y"] = arrays.array("y.vectors", "float64", 2)
    if "X" in arrays.entries:
        X = arrays.array("X", arrays.entry("X").dtype.name, 2)
        return Batch(X, first=first, **columns)
    indptr = arrays.array("X.indptr", "int64")
    data = arrays.array("X.data", arrays.entry("X.data").dtype.name)
    parts = (data, arrays.array("X.indices", "int64"), indptr)
    shape = (len(indptr) - 1, int(arrays.array("X.width", "int64")[0]))
    with arrays.checking("X.indices"):
        rows = csr_array(parts, shape=shape)
        rows.check_format()
    return Batch(rows, first=first, **columns)
