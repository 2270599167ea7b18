"""What a shard sends of its trees' ends, so that those of all shards add up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

LARGEST = 1e250  # a weight; their sums are finite


def weighed(
    labels: NDArray[np.float64], distances: NDArray[np.float64], n_classes: int, *, uniform: bool
) -> tuple[NDArray[np.float64], ...]:
    """Return sums over the trees' ends: of those at a distance, of those at distance 0, and of all.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_trees, label_length)
        Of the ends.
    distances : ndarray of shape (n_rows, n_trees)
        Of the ends.
    n_classes : int
        How many codes there are; 0 if labels are targets.
    uniform : bool
        Whether all ends have the same weight.

    Returns
    -------
    sums, at_zero, equally : ndarray of shape (n_rows, n_classes + 1) or (n_rows, label_length + 1)
        Weights by class, or weights times targets; and the weights' sum. The last have the same
        weight for all, for ends that are infinitely far.
    """
    n_rows = len(distances)
    is_zero = distances == 0
    with np.errstate(divide="ignore"):
        weights = np.minimum(1 / distances, LARGEST)
    weights = np.where(is_zero, 0.0, 1.0 if uniform else weights)
    found = []
    for one in (weights, is_zero.astype(np.float64), np.ones_like(weights)):
        if n_classes:
            cells = np.arange(n_rows)[:, None] * n_classes + labels[:, :, 0].astype(np.intp)
            flat = np.bincount(cells.ravel(), one.ravel(), n_rows * n_classes)
            sums = flat.reshape(n_rows, n_classes)
        else:
            sums = np.einsum("rt,rtl->rl", one, labels)
        found.append(np.concatenate([sums, one.sum(axis=1)[:, None]], axis=1))
    return tuple(found)
