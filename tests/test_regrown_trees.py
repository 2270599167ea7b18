"""Trees that are grown anew: the engine and reference/ agree on them, node for node.

No method of an estimator replaces trees yet. What estimators, files and folders do with a forest of
replaced trees, some of whose examples are gone, is tested through the engine.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import answers
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import BoundaryForestNeighbors, _core, load, open_durable, reference
from boundary_forest.estimators.engine_constants import trees_in

pytestmark = pytest.mark.kernels

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
    plain = reference.ExtendedForest(n_T=n_T, k=k, epsilon=epsilon, seed=seed)
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


def replaced(forest, first):
    """The same without the examples before the first, and with a tree that only grows."""
    for place, answering in [(place, True) for place in range(5)] + [(2, False), (1, False)]:
        (arrivals, _), engine = forest.trees()[place], forest.fitted.engine
        engine.regrow(place, arrivals[arrivals >= first].astype(np.uint64), answering)
    return forest


def by_paper(task):
    """Taught in the order given; the trees of a graph are not replaced one by one."""
    params = {"search": "paper"} if task.estimator is BoundaryForestNeighbors else {}
    return task.forest(**params).partial_fit(task.X, task.y)


@pytest.fixture
def forest(task):
    return replaced(by_paper(task), 10)


def check_same(other, forest, task):
    assert other.fingerprint() == forest.fingerprint()
    assert answers(other, task.queries) == answers(forest, task.queries)
    assert str(other.explain(task.queries[0])) == str(forest.explain(task.queries[0]))


def test_answers_are_made_of_the_examples_that_are_left(task, forest):
    assert forest.examples_seen == len(task.X)
    assert forest.stats()["examples_stored"] < len(task.X)
    assert forest.apply(task.X).min() >= 10
    assert len(forest.trees()) == 5
    n_stored = forest.stats()["examples_stored"]
    assert forest.kneighbors(task.X, n_stored)[1].min() >= 10
    with pytest.raises(ValueError, match="n_neighbors"):
        forest.kneighbors(task.X, n_stored + 1)


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
def test_files_and_copies_have_the_replaced_trees_and_learn_alike(task, forest, tmp_path, mmap):
    forest.save(tmp_path / "model.bf")
    others = [load(tmp_path / "model.bf", mmap=mmap), pickle.loads(pickle.dumps(forest))]
    others.append(copy.deepcopy(forest))
    for other in others:
        check_same(other, forest, task)
    forest.partial_fit(task.X_more, task.y_more)
    for other in others:
        other.partial_fit(task.X_more, task.y_more)
        check_same(other, forest, task)
        other.fitted.engine.succeed(1)
    forest.fitted.engine.succeed(1)
    for other in others:
        check_same(other, forest, task)


def test_a_durable_folder_begins_with_replaced_trees(task, forest, tmp_path):
    with open_durable(tmp_path, forest) as durable:
        durable.partial_fit(task.X_more, task.y_more)
        fingerprint = durable.fingerprint()
    with open_durable(tmp_path) as again:
        assert again.fingerprint() == fingerprint


def test_a_replaced_tree_is_another_forest_by_its_fingerprint(task):
    one, other = by_paper(task), by_paper(task)
    (arrivals, _), engine = one.trees()[0], one.fitted.engine
    engine.regrow(0, arrivals.astype(np.uint64))
    assert one.fingerprint() != other.fingerprint()


def test_stored_examples_are_left_out_of_their_own_neighbours(retrieval):
    X = np.unique(retrieval.X, axis=0)
    forest = replaced(
        BoundaryForestNeighbors(2, search="paper", n_estimators=5, random_state=0).fit(X), 10
    )
    distances, neighbors = forest.kneighbors()
    assert neighbors.shape == (len(X) - 10, 2)
    own = np.arange(10, len(X))
    assert (neighbors != own[:, None]).all()
    apart = np.linalg.norm(X[own][:, None] - X[neighbors], axis=2)
    np.testing.assert_allclose(distances, apart)
    assert forest.kneighbors_graph().shape == (len(X) - 10, len(X))
    with pytest.raises(ValueError, match="30 stored"):
        replaced(
            BoundaryForestNeighbors(search="paper", n_estimators=5).fit(X[:40]), 10
        ).kneighbors(None, 30)
