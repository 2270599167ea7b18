"""A row's answer depends on its own values, whatever other rows it is asked with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors

# Registers of every instruction set, whole and in part.
WIDTHS = (*range(1, 35), *range(63, 67), *range(127, 131))
POISON = [-1e60, 1e60, -1e300, 1e300, 2.0**91, -(2.0**91), 3.4e38, -3.4e38, 1e-300]

EVERY_WIDTH = """
import sys; sys.path.insert(0, sys.argv[1])
from test_poisoned_batches import WIDTHS, check_poisoned
for width in WIDTHS:
    check_poisoned(width)
print(len(WIDTHS))
"""


def one_by_one(forest, queries):
    return np.concatenate([forest.apply(row[None]) for row in queries])


def check_poisoned(width):
    rng = np.random.default_rng(width)
    X = rng.normal(size=(400, width)).astype(np.float32)
    forest = BoundaryForestNeighbors(n_estimators=2, random_state=0).fit(X)
    queries = rng.normal(size=(24, width))  # float64, which float32 does not hold
    alone = one_by_one(forest, queries)
    for poison in POISON:
        poisoned, expected, at = queries.copy(), alone.copy(), rng.integers(24)
        poisoned[at, rng.integers(width)] = poison
        expected[at] = forest.apply(poisoned[at : at + 1])
        np.testing.assert_array_equal(forest.apply(poisoned), expected)


@pytest.mark.parametrize("isa", ["scalar", "avx2", "avx512"])
def test_one_extreme_query_changes_no_other_answer(isa):
    done = subprocess.run(
        [sys.executable, "-c", EVERY_WIDTH, str(Path(__file__).parent)],
        env={**os.environ, "BOUNDARY_FOREST_ISA": isa},
        capture_output=True,
        text=True,
    )
    if "on this processor" in done.stderr:
        pytest.skip(f"this processor has no {isa}")
    assert (done.returncode, done.stdout) == (0, f"{len(WIDTHS)}\n"), done.stderr


@pytest.mark.kernels
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
        np.testing.assert_array_equal(forest.apply(queries), one_by_one(forest, queries))
