"""What each feature contributes to the distance between a query and stored rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.metrics import canonical


def contributions_of(
    metric: Any,
    metric_params: Mapping[str, Any] | None,
    weights: NDArray[np.float64] | None,
    query: NDArray[Any],
    rows: NDArray[Any],
) -> NDArray[np.float64] | None:
    """Return each feature's share of the distance of each row, of the squared one if Euclidean.

    Shares of a row sum to 1, or are all 0 if it is at distance 0. None if the distance is no sum
    over features: "chebyshev", "inner_product" and functions.

    Parameters
    ----------
    metric, metric_params
        As users gave them.
    weights : ndarray of shape (n_features,) or None
        What squared differences are multiplied by.
    query : ndarray of shape (n_features,)
        The query.
    rows : ndarray of shape (n_rows, n_features)
        The stored rows.
    """
    name = canonical(metric)
    x, y = rows.astype(np.float64), query.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        if name in ("euclidean", "minkowski"):
            p = (metric_params or {}).get("p", 2) if name == "minkowski" else 2
            parts = np.abs(_relative(x - y)) ** p
        elif name == "manhattan":
            parts = np.abs(_relative(x - y))
        elif name == "cosine":  # 2 (1 - cos) is the squared distance of the rows at length 1
            parts = (_unit(x) - _unit(y[None])) ** 2
        elif name == "hamming":
            parts = (x != y).astype(np.float64)
        elif name == "canberra":
            size = np.abs(x) + np.abs(y)
            parts = np.where(size > 0, np.abs(x - y) / size, 0.0)
        else:
            return None
        if weights is not None:
            parts = parts * (weights / weights.max())
        totals = parts.sum(axis=1, keepdims=True)
        return np.where(totals > 0, parts / totals, 0.0)


def _relative(differences: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return them as multiples of each row's largest, whose powers neither overflow nor vanish."""
    largest = np.abs(differences).max(axis=1, keepdims=True)
    return np.where(largest > 0, differences / largest, 0.0)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    rows = _relative(rows)
    lengths = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
    return np.where(lengths > 0, rows / lengths, 0.0)
