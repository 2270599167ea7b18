"""The models of a mixture without the columns that River's learners keep in reserve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import N_STREAM_MODELS


def narrow_models(
    state: dict[str, Any], width: int, n: int, *, forgets: bool
) -> dict[str, NDArray[Any]]:
    """Return the models without the columns from n on, which are all zero."""
    if not len(state["linear_sums"]) or n == width:
        return {}
    narrow = _of_streams if forgets else _of_tables
    return narrow(state["linear_sums"], state["linear_model"], width, n)


def _of_tables(
    sums: NDArray[Any], model: NDArray[Any], width: int, n: int
) -> dict[str, NDArray[Any]]:
    products = int(sums[1])
    terms = width + products
    kept_products = min(products, n * (n + 1) // 2)
    kept = n + kept_products  # the first columns' terms are the first ones
    outputs = (len(sums) - 2 - width - terms - terms * (terms + 1) // 2) // (terms + 2)
    lengths = [2, width, outputs, terms, terms * (terms + 1) // 2, outputs, outputs * terms]
    counts, origin, labels, of_terms, below, of_labels, cross = np.split(
        sums, np.cumsum(lengths)[:-1]
    )
    narrow = [
        counts[:1], np.array([float(kept_products)]), origin[:n], labels, of_terms[:kept],
        below[: kept * (kept + 1) // 2], of_labels, cross.reshape(outputs, terms)[:, :kept].ravel(),
    ]  # fmt: skip
    linear, quadratic = np.split(model.reshape(-1, 2 + width + terms), [1 + width], axis=1)
    return {
        "linear_sums": np.concatenate(narrow),
        "linear_model": np.hstack([linear[:, : 1 + n], quadratic[:, : 1 + kept]]).ravel(),
    }


def _of_streams(
    sums: NDArray[Any], model: NDArray[Any], width: int, n: int
) -> dict[str, NDArray[Any]]:
    # There are several models, one behind the other.
    return {
        "linear_sums": np.concatenate(
            [_narrow_sums(part, width, n) for part in np.split(sums, N_STREAM_MODELS)]
        ),
        "linear_model": np.ascontiguousarray(model.reshape(-1, 1 + width)[:, : 1 + n]).ravel(),
    }


def _narrow_sums(sums: NDArray[Any], width: int, n: int) -> NDArray[Any]:
    below = width * (width + 1) // 2
    outputs = (len(sums) - 1 - 2 * width - below) // (width + 2)
    lengths = [1, width, outputs, width, below, outputs, outputs * width]
    rows, origin, labels, of_rows, products, of_labels, cross = np.split(
        sums, np.cumsum(lengths)[:-1]
    )
    kept = [
        rows, origin[:n], labels, of_rows[:n], products[: n * (n + 1) // 2], of_labels,
        cross.reshape(outputs, width)[:, :n].ravel(),
    ]  # fmt: skip
    return np.concatenate(kept)
