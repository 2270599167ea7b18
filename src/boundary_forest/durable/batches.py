"""A batch as bytes, and back: what was given to learn, after it was checked.

The bytes are a safetensors container. Positions are in the forest's element type, or sparse as they
came; labels, ids, declared classes and feature names are columns as a model file has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save
from scipy.sparse import csr_array  # type: ignore[import-untyped]

from boundary_forest.estimators.blocks import is_sparse
from boundary_forest.files import PackedArrays
from boundary_forest.files.values import column_arrays, column_length, read_column

_COLUMNS = ("y", "ids", "classes", "feature_names")


@dataclass(frozen=True)
class Examples:
    """What ``partial_fit`` is given."""

    X: Any
    y: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    classes: NDArray[Any] | None = None
    feature_names: NDArray[Any] | None = None

    def first(self, n: int) -> Examples:
        """The first n of them."""
        return Examples(
            self.X[:n],
            None if self.y is None else self.y[:n],
            None if self.ids is None else self.ids[:n],
            self.classes,
            self.feature_names,
        )


def packed(examples: Examples) -> bytes:
    """Examples as bytes; TypeError if they have labels that a file does not take."""
    if is_sparse(examples.X):
        rows = csr_array(examples.X)
        arrays = {
            "X.data": rows.data,
            "X.indices": rows.indices.astype(np.int64),
            "X.indptr": rows.indptr.astype(np.int64),
            "X.width": np.array([rows.shape[1]]),
        }
    else:
        arrays = {"X": examples.X}
    for name in _COLUMNS:
        values = getattr(examples, name)
        if values is None:
            continue
        vectors = name == "y" and values.ndim == 2
        arrays |= {"y.vectors": values} if vectors else column_arrays(name, values)
    return save({name: np.ascontiguousarray(array) for name, array in arrays.items()})


def unpacked(contents: bytes, where: str) -> Examples:
    """Examples from bytes; ``where`` names them in errors."""
    arrays = PackedArrays(contents, where)
    columns = {
        name: None if column_length(arrays, name) is None else read_column(arrays, name)
        for name in _COLUMNS
    }
    if "y.vectors" in arrays.entries:
        columns["y"] = arrays.array("y.vectors", "float64", 2)
    if "X" in arrays.entries:
        return Examples(arrays.array("X", arrays.entry("X").dtype.name, 2), **columns)
    indptr = arrays.array("X.indptr", "int64")
    data = arrays.array("X.data", arrays.entry("X.data").dtype.name)
    parts = (data, arrays.array("X.indices", "int64"), indptr)
    shape = (len(indptr) - 1, int(arrays.array("X.width", "int64")[0]))
    with arrays.checking("X.indices"):
        rows = csr_array(parts, shape=shape)
        rows.check_format()
    return Examples(rows, **columns)
