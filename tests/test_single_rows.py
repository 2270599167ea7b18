"""A row that is asked alone is told what a batch is told, and what the plain algorithm tells.

Alone, it remembers from tree to tree how far it is from examples: other trees compare many of them
too. BOUNDARY_FOREST_PATH=plain forgets everything.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import answers

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
)

pytestmark = pytest.mark.kernels

FEATURES = 260  # more than 512 bytes, also as float16


def rows(n, dtype, seed=0):
    """Rows about a few centres, on a grid where ties abound."""
    rng = np.random.default_rng(seed)
    centres = rng.integers(20, 80, size=(6, FEATURES))
    kinds = rng.integers(6, size=n)
    return (centres[kinds] + rng.integers(0, 4, size=(n, FEATURES))).astype(dtype), kinds


def plain(forest, path, monkeypatch):
    """The same forest, without any acceleration."""
    forest.save(path)
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    other = load(path)
    monkeypatch.delenv("BOUNDARY_FOREST_PATH")
    return other


def spent(forest, queries):
    """The comparisons and the evaluations that rows cost if they are asked one by one."""
    before = forest.stats()
    for i in range(len(queries)):
        forest.apply(queries[i : i + 1])
    after = forest.stats()
    return [after[unit]["query"] - before[unit]["query"] for unit in ("comparisons", "evaluations")]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize(
    "forest",
    [
        BoundaryForestClassifier(n_estimators=20, max_children=8, random_state=0),
        BoundaryForestClassifier(n_estimators=9, metric="manhattan", random_state=1),
        BoundaryForestRegressor(n_estimators=12, epsilon=0.5, metric="cosine", random_state=2),
        BoundaryForestNeighbors(n_estimators=8, search="paper", random_state=3),
    ],
    ids=["classifier", "manhattan", "regressor", "neighbors"],
)
def test_a_row_alone_is_told_the_same(tmp_path, monkeypatch, forest, dtype):
    X, y = rows(700, dtype)
    queries = np.vstack([rows(20, np.float64, seed=1)[0] + 0.1, X[:5]])
    forest.set_params(dtype=dtype).fit(X, y)
    oracle = plain(forest, tmp_path / "forest.bf", monkeypatch)
    for asked in (queries.astype(dtype), queries):
        for i in range(len(asked)):
            one = asked[i : i + 1]
            assert answers(forest, one) == answers(oracle, one)
        alone = np.vstack([forest.apply(asked[i : i + 1]) for i in range(len(asked))])
        assert alone.tolist() == forest.apply(asked).tolist()
    comparisons, evaluations = spent(forest, queries)
    assert [comparisons, comparisons] == spent(oracle, queries)
    assert evaluations < comparisons


def test_trees_with_weights_of_their_own_do_not_share_distances(tmp_path, monkeypatch):
    """Trees that are grown anew measure by other weights than those that still answer."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(900, FEATURES)).astype(np.float32)
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 0)
    forest = BoundaryForestClassifier.for_streams(n_estimators=12, random_state=0)
    for begin in range(0, 900, 90):
        forest.partial_fit(X[begin : begin + 90], y[begin : begin + 90])
        oracle = plain(forest, tmp_path / "forest.bf", monkeypatch)
        for i in range(0, 900, 97):
            assert answers(forest, X[i : i + 1]) == answers(oracle, X[i : i + 1])


def test_examples_that_share_a_place_in_the_table_are_told_apart(tmp_path, monkeypatch):
    """There are 8,192 places, and as many examples twice over."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, size=(17_000, FEATURES)).astype(np.float32)
    index = BoundaryForestNeighbors(n_estimators=6, search="paper", random_state=0).fit(X)
    oracle = plain(index, tmp_path / "index.bf", monkeypatch)
    for i in range(60):
        assert answers(index, X[i : i + 1]) == answers(oracle, X[i : i + 1])
