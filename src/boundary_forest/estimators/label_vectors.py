"""Labels that are numbers: one or many a row, finite, as the engine's label vectors."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array


def as_label_vectors(y: Any) -> NDArray[np.float64]:
    """``y`` as float64, with as many dimensions as it was given (one or two)."""
    plain = type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1
    if plain and len(y) > 0 and np.isfinite(y).all():  # nothing is left to check
        return np.asarray(y)
    if getattr(getattr(y, "dtype", None), "kind", None) in ("m", "M"):
        raise TypeError(f"y must hold numbers, got dtype {y.dtype}")
    labels: NDArray[np.float64] = check_array(
        y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_features=1
    )
    if labels.ndim > 2 or labels.shape[1:] == (0,):
        raise ValueError(f"y must be one number or a vector of numbers a row, got {labels.shape}")
    return labels


def check_length(labels: NDArray[np.float64], expected: int) -> None:
    """Later batches must have label vectors as long as the first."""
    length = 1 if labels.ndim == 1 else labels.shape[1]
    if length != expected:
        raise ValueError(f"y has {length} numbers a row, but the first batch had {expected}")


def loaded_one_output(forest: dict[str, Any], label_length: int) -> bool:
    """Whether a saved forest's labels were single numbers; vectors may have one number too."""
    one_output = forest.get("one_output")
    if not isinstance(one_output, bool) or (one_output and label_length != 1):
        raise ValueError(f"its one_output is {one_output!r}, with labels of {label_length} numbers")
    return one_output
