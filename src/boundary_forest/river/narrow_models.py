"""The models of a mixture without the columns that River's learners keep in reserve."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import N_STREAM_MODELS

_N_COUNTS = 3  # before the origin, and before the map's numbers: see the engine's MixtureArrays


def narrow_models(
    state: dict[str, Any], width: int, n: int, *, forgets: bool
) -> dict[str, NDArray[Any]]:
    """Return the models without the columns from n on, which are all zero."""
    if not len(state["linear_sums"]) or n == width:
        return {}
    # A stream has several models, one behind the other, and these have no products.
    models = np.split(state["linear_sums"], N_STREAM_MODELS if forgets else 1)
    narrow_map, step = state["linear_map"], 1
    if not forgets:  # a column is several features
        knots, step = (int(count) for count in state["linear_map"][1:_N_COUNTS])
        width = (len(narrow_map) - _N_COUNTS) // (2 + knots)  # which may have no room for all
        n = min(n, width)
        narrow_map = narrow_map[: _N_COUNTS + n * (2 + knots)]
        width, n = width * (1 + knots), n * (1 + knots)
    most = int(models[0][_N_COUNTS - 1])
    products, kept_products = (min(most, k * (k + 1) // 2) for k in (width // step, n // step))
    narrow = [_narrow_sums(sums, width, n, products, kept_products) for sums in models]
    fits = state["linear_model"].reshape(-1, 1 + width if forgets else 2 + 2 * width + products)
    linear, quadratic = np.split(fits, [1 + width], axis=1)
    kept = [linear[:, : 1 + n], quadratic[:, : 0 if forgets else 1 + n + kept_products]]
    return {
        "linear_map": narrow_map,
        "linear_sums": np.concatenate(narrow),
        "linear_model": np.hstack(kept).ravel(),
    }


def _narrow_sums(
    sums: NDArray[Any], width: int, n: int, products: int, kept_products: int
) -> NDArray[Any]:
    terms = width + products
    kept = n + kept_products  # the first columns' terms are the first ones
    below = terms * (terms + 1) // 2
    outputs = (len(sums) - _N_COUNTS - width - terms - below) // (terms + 2)
    lengths = [_N_COUNTS, width, outputs, terms, below, outputs, outputs * terms]
    counts, origin, labels, of_terms, of_products, of_labels, cross = np.split(
        sums, np.cumsum(lengths)[:-1]
    )
    narrow = [
        counts, origin[:n], labels, of_terms[:kept],
        of_products[: kept * (kept + 1) // 2], of_labels,
        cross.reshape(outputs, terms)[:, :kept].ravel(),
    ]  # fmt: skip
    return np.concatenate(narrow)
