"""A row's answer depends on its own values, whatever other rows it is asked with."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors

POISON = [-1e60, 1e60, -1e300, 1e300, 2.0**91, -(2.0**91), 3.4e38, -3.4e38, 1e-300]


def batch_and_single(forest, queries):
    alone = np.concatenate([forest.apply(row[None]) for row in queries])
    return forest.apply(queries), alone


@pytest.mark.parametrize("width", [*range(1, 20), 31, 33, 63, 64, 65, 100, 127, 129, 130])
def test_one_extreme_query_changes_no_other_answer(width):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(400, width)).astype(np.float32)
    forest = BoundaryForestNeighbors(n_estimators=2, random_state=0).fit(X)
    queries = rng.normal(size=(24, width))  # float64, which float32 does not hold
    for poison in POISON:
        poisoned = queries.copy()
        poisoned[rng.integers(24), rng.integers(width)] = poison
        together, alone = batch_and_single(forest, poisoned)
        np.testing.assert_array_equal(together, alone)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("width", [1, 3, 17, 40, 129])
def test_extreme_stored_values_change_no_answer(width, dtype):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(400, width)).astype(dtype)
    X[::40] *= dtype(2.0**91)
    X[7::40] *= dtype(2.0**-91)
    forest = BoundaryForestNeighbors(n_estimators=2, random_state=0).fit(X)
    for scale in (1.0, 2.0**91, 1e-30, -1e60):
        queries = rng.normal(size=(24, width))
        queries[3] *= scale
        queries[11] = X[40]
        together, alone = batch_and_single(forest, queries)
        np.testing.assert_array_equal(together, alone)
