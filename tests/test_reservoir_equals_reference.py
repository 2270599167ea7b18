"""What is replayed while rows come sorted by class is what reference/ replays, node for node.

Where the number of stored examples is limited, the reservoir is small, so that members leave it.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_equals_reference import assert_same_answers, assert_same_trees
from test_forget_equals_reference import pair
from test_mixture_equals_reference import assert_same_mixture

pytestmark = pytest.mark.kernels

N = 400
KINDS = {
    "tables": {"max_samples": 0.5},
    "tables with a limit": {"max_samples": 0.7, "max_stored": 140},
    "mixture": {"max_samples": 0.5, "weights": "mixture", "class_weight": "balanced"},
    "mixture with a limit": {"weights": "mixture", "max_stored": 140},
    "streams": {"max_samples": 0.6, "weights": "auto", "lifetimes": [0, 16, 0, 90, 5]},
    "streams with a limit": {"weights": "auto", "lifetimes": [0, 7, 0, 60, 40], "max_stored": 200},
    "streams that mix": {"max_samples": 0.6, "weights": "mixture", "lifetimes": [0, 16, 0, 90, 5]},
}


def sorted_rows(rng, n_classes, *, on_grid):
    """Classes one after the other, some labels wrong, then a few rows in random order."""
    y = np.sort(rng.integers(0, n_classes, N))
    y[-30:] = rng.permutation(y)[:30]
    X = rng.normal(size=(N, 3)) + np.column_stack([y, y % 2, np.zeros(N)])
    y = np.where(rng.random(N) < 0.05, rng.integers(0, n_classes, N), y)
    return X.round() if on_grid else X, y[:, None].astype(np.float64)


def assert_same(forest, oracle):
    assert_same_trees(forest, oracle)
    if oracle.mixture is not None:
        assert_same_mixture(forest, oracle)
    state = forest.snapshot().state()
    assert state["replays"] == oracle.reservoir.replays
    assert state["reservoir_arrivals"].tolist() == sorted(a for _, a in oracle.reservoir.keys)


def compare(kind, n_classes, *, on_grid, cuts, forgets, seed):
    """Return whether members were replayed; one engine is saved and loaded, one is not."""
    rng = np.random.default_rng(seed)
    X, y = sorted_rows(rng, n_classes, on_grid=on_grid)
    beyond = {"feature_weights": "learned", **KINDS[kind]}
    forest, oracle = pair(5, seed, votes=True, **beyond)
    one_by_one, _ = pair(5, seed, votes=True, **beyond)
    replayed = False
    for begin, end in zip([0, *cuts], [*cuts, N], strict=True):
        ids = np.arange(begin, end)
        forest.learn(X[begin:end], y[begin:end], 1 + seed % 2, ids)
        for i in ids:
            oracle.BFTrain(X[i], y[i])
            replayed = replayed or oracle.reservoir.replays
            if i:
                one_by_one.predict_then_learn(X[i : i + 1], y[i : i + 1], 1, ids[:1] + i - begin)
            else:
                one_by_one.learn(X[:1], y[:1], 1, ids[:1])
        if forgets and end < N:
            chosen = rng.permutation(sorted(oracle.stored))[: end // 10].astype(np.int64)
            for engine in (forest, one_by_one):
                assert engine.forget(chosen, 1) == []
            oracle.forget(chosen.tolist())
        assert_same(forest, oracle)
        again, _ = pair(5, seed, votes=True, **beyond)
        again.restore(forest.snapshot().state())
        forest = again
    assert_same(one_by_one, oracle)
    keys = np.arange(8, dtype=np.uint64)
    for own, other in zip(forest.digest(keys), one_by_one.digest(keys), strict=True):
        assert np.array_equal(own, other)
    case = {"task": "classify", "queries": X[-5:], "n_jobs": 1}
    assert_same_answers(forest, oracle, case)
    return replayed


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    n_classes=st.sampled_from([2, 3, 8]),
    on_grid=st.booleans(),
    cuts=st.lists(st.integers(1, N - 1), min_size=1, max_size=4, unique=True).map(sorted),
    forgets=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_replay_equals_reference_node_for_node(kind, n_classes, on_grid, cuts, forgets, seed):
    compare(kind, n_classes, on_grid=on_grid, cuts=cuts, forgets=forgets, seed=seed)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_sorted_rows_are_replayed_and_equal_the_references(kind):
    assert compare(kind, 3, on_grid=False, cuts=[70, 340], forgets=True, seed=5)


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_a_forest_that_is_widened_goes_on_replaying(kind):
    X, y = sorted_rows(np.random.default_rng(0), 3, on_grid=False)
    wide, ids, cut = np.pad(X, ((0, 0), (0, 2))), np.arange(N), 300
    wide[cut:, 3] = X[cut:, 0]
    beyond = {"feature_weights": "learned", **KINDS[kind]}
    forest, _ = pair(5, 3, votes=True, **beyond)
    always_wide = pair(5, 3, votes=True, **beyond)[0].widened(5)
    always_wide.learn(wide, y, 1, ids)
    forest.learn(X[:cut], y[:cut], 1, ids[:cut])
    assert forest.snapshot().state()["replays"]
    forest = forest.widened(5)
    forest.learn(wide[cut:], y[cut:], 1, ids[cut:])
    keys = np.arange(8, dtype=np.uint64)
    for own, other in zip(forest.digest(keys), always_wide.digest(keys), strict=True):
        assert np.array_equal(own, other)
