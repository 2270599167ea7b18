"""Read columns of lists of numbers, such as embeddings: each position is a feature."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.values import is_list, mask_of


def as_lists(values: Any, width: int) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return one row of numbers per list, NaN where one is missing; a mask of what does not fit."""
    numbers = np.full((len(values), width), np.nan)
    if not is_list(values.type):
        present = mask_of(values.is_valid())
        return numbers, present if present.any() else None
    lengths = pc.fill_null(pc.list_value_length(values), width)
    fits = mask_of(pc.equal(lengths, width)) & mask_of(values.is_valid())
    flat = values.filter(pa.array(fits)).flatten().to_numpy(zero_copy_only=False)
    numbers[fits] = flat.reshape(-1, width)
    misfit = mask_of(pc.not_equal(lengths, width))
    return numbers, misfit if misfit.any() else None


def usual_length(values: Any) -> int:
    """Return the length that most lists have; of several such the least."""
    lengths = pc.list_value_length(values).drop_null().to_numpy()
    return int(np.bincount(lengths).argmax()) if len(lengths) else 0


def no_list(width: int) -> str:
    """Return what is wrong with a value that is not a list of this length."""
    return f"is not a list of {width} numbers, but the earlier values are"
