"""What is forgotten on request leaves the forest that reference/ leaves, node for node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_equals_reference import assert_same_answers, assert_same_trees

from boundary_forest import _core, reference

pytestmark = pytest.mark.kernels

N = 260  # decisions come at 125 and 250
BEYOND = {
    "the paper's forest": {},
    "sampling, chosen votes": {"max_samples": 0.5, "weights": "auto"},
    "learned weights": {"feature_weights": "learned", "max_samples": 0.6},
    "lifetimes": {"feature_weights": "learned", "weights": "auto", "lifetimes": [0, 16, 0, 60, 5]},
    "a bound": {"max_stored": 60, "max_samples": 0.7},
}


def rows(rng, n, *, on_grid):
    X = rng.integers(0, 5, size=(n, 3)).astype(float) if on_grid else rng.normal(size=(n, 3))
    return X, np.where(rng.random(n) < 0.1, rng.integers(0, 3, n), X[:, 0] > X[:, 1])


def pair(n_T, seed, *, votes, weights="distance", class_weight=None, **beyond):
    oracle = reference.ExtendedForest(
        n_T=n_T,
        k=4,
        d_c=None if votes else reference.euclidean_label_distance,
        E="shepard_vote" if votes else "shepard_mean",
        epsilon=0.0 if votes else None,
        seed=seed,
        weights=weights,
        class_weight=class_weight,
        **beyond,
    )
    forest = _core.Forest(
        n_estimators=n_T,
        max_children=4,
        n_features=3,
        label_length=1,
        epsilon=0.0 if votes else None,
        element_type="float64",
        seed=seed,
        metric="euclidean",
        p=2.0,
        estimator=oracle.E,
        label_metric="discrete" if votes else "euclidean",
        ids="int64",
        vote_weights=weights,
        balanced=class_weight == "balanced",
        **beyond,
    )
    if isinstance(class_weight, dict):
        forest.weigh_classes(np.array([class_weight[code] for code in sorted(class_weight)]))
    return forest, oracle


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(BEYOND)),
    votes=st.booleans(),
    on_grid=st.booleans(),
    stops=st.lists(st.integers(1, N), min_size=1, max_size=3, unique=True).map(sorted),
    share=st.sampled_from([0.02, 0.2, 0.7, 0.95]),
    seed=st.integers(0, 2**32 - 1),
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_forgetting_equals_reference_node_for_node(kind, votes, on_grid, stops, share, seed):
    rng = np.random.default_rng(seed)
    X, y = rows(rng, N + 5, on_grid=on_grid)
    y = y[:, None].astype(np.float64)
    forest, oracle = pair(5, seed, votes=votes, **BEYOND[kind])
    for begin, end in zip([0, *stops], [*stops, N], strict=True):
        ids = np.arange(begin, end)
        forest.learn(X[begin:end], y[begin:end], 1 + seed % 2, ids)
        for i in ids:
            oracle.BFTrain(X[i], y[i])
        if end == N:
            break
        stored = sorted(oracle.stored) or [w.arrival for w in oracle.buffer]
        chosen = rng.permutation(stored)[: min(int(share * len(stored)) + 1, len(stored) - 1)]
        assert forest.forget(chosen.astype(np.int64), 1) == []
        oracle.forget(chosen.tolist())
        assert_same_trees(forest, oracle)
    assert_same_trees(forest, oracle)
    if oracle.learns_weights:
        arrivals = forest.snapshot().state()["window_arrivals"]
        assert arrivals.tolist() == [a for a, _, _ in oracle.window]
    assert forest.stats()["comparisons"]["learn"] == oracle.comparisons
    case = {"task": "classify" if votes else "regress", "queries": X[N - 5 :], "n_jobs": 1}
    assert_same_answers(forest, oracle, case)
