"""Trees that are grown anew: the engine and reference.py agree on them, node for node."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import _core, reference
from boundary_forest.estimators.engine_state import trees_in

FEATURES = 3


def engine_trees(forest):
    state = forest.snapshot().state()
    arrivals = state["arrivals"]
    return [
        [
            (int(arrivals[example]), None if v == 0 else int(arrivals[examples[parents[v]]]))
            for v, example in enumerate(examples)
        ]
        for examples, parents in trees_in(state)
    ]


def reference_trees(forest):
    return [
        [(v.arrival, None if v.parent is None else v.parent.arrival) for v in tree.nodes]
        for tree in forest.trees
    ]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    n_T=st.sampled_from([1, 3, 5]),
    k=st.sampled_from([2, 3, 50]),
    epsilon=st.sampled_from([0.0, 0.5, None]),
    n=st.integers(6, 60),
    regrown=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 2**32 - 1)), max_size=4),
    n_more=st.integers(0, 40),
)
def test_a_tree_grown_anew_is_the_references(seed, n_T, k, epsilon, n, regrown, n_more):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 3, size=(n + n_more, FEATURES)).astype(np.float32)
    y = rng.normal(size=(n + n_more, 1)).round(1)
    engine = _core.Forest(
        n_estimators=n_T,
        max_children=k,
        n_features=FEATURES,
        label_length=1,
        label_metric="euclidean",
        estimator="shepard_mean",
        epsilon=epsilon,
        element_type="float32",
        seed=seed,
        metric="euclidean",
        p=2.0,
    )
    plain = reference.BoundaryForest(n_T=n_T, k=k, epsilon=epsilon, seed=seed)
    engine.learn(X[:n], y[:n], 1)
    for x, c in zip(X[:n], y[:n], strict=True):
        plain.BFTrain(x, c)
    generations = dict.fromkeys(range(n_T), 0)
    for place, order_seed in regrown:
        place %= n_T
        # From anything that is stored, whichever trees hold it; some of it is left out.
        stored = sorted({v.arrival for tree in plain.trees for v in tree.nodes})
        order = np.random.default_rng(order_seed).permutation(stored)[: 1 + len(stored) * 3 // 4]
        generations[place] += 1
        engine.regrow(place, order.astype(np.uint64))
        plain.regrow(place, order.tolist(), generations[place])
    assert engine_trees(engine) == reference_trees(plain)
    engine.learn(X[n:], y[n:], 1)
    for x, c in zip(X[n:], y[n:], strict=True):
        plain.BFTrain(x, c)
    assert engine_trees(engine) == reference_trees(plain)
    kept = {v.arrival for tree in plain.trees for v in tree.nodes}
    assert set(engine.snapshot().state()["arrivals"].tolist()) == kept
