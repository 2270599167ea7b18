"""Queries change neither a forest nor its folder, and wait for nobody."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import BoundaryForestNeighbors, open_durable

X = np.random.default_rng(0).normal(size=(400, 4)).astype(np.float32)
READS = {
    "apply": lambda index: index.apply(X[:3]),
    "explain": lambda index: str(index.explain(X[0])),
    "trees": lambda index: index.trees(),
    "stats": lambda index: index.stats(),
    "fingerprint": lambda index: index.fingerprint(),
    "kneighbors": lambda index: index.kneighbors(X[:3], 2),
    "exact": lambda index: index.kneighbors(X[:3], 2, exact=True),
    "allowed": lambda index: index.kneighbors(X[:3], 1, allowed=np.arange(100, 200)),
    "of all": lambda index: index.kneighbors(n_neighbors=2),
    "radius": lambda index: index.radius_neighbors(X[:3], 0.5),
    "graph": lambda index: index.kneighbors_graph(X[:3], 2),
}


def marked(n: int = 200, n_forgotten: int = 20) -> BoundaryForestNeighbors:
    index = BoundaryForestNeighbors(n_estimators=4, random_state=0).fit(X[:n], ids=np.arange(n))
    return index.forget(np.arange(n_forgotten))


@settings(max_examples=30, deadline=None, derandomize=True)
@given(
    steps=st.lists(st.sampled_from(["learn", "forget", "replace", *READS]), min_size=3, max_size=12)
)
def test_an_index_is_the_same_with_and_without_queries(steps):
    with_queries, without = marked(), marked()
    n = 200
    for i, step in enumerate(steps):
        if step in READS:
            before = with_queries.fingerprint()
            READS[step](with_queries)
            assert with_queries.fingerprint() == before
            continue
        for index in (with_queries, without):
            if step == "learn":
                index.partial_fit(X[n : n + 10], ids=np.arange(n, n + 10))
            elif step == "replace":
                index.upsert(X[n : n + 5], np.arange(150, 155))
            else:
                index.forget(np.arange(20 + 7 * i, 27 + 7 * i))
        n += 10 if step == "learn" else 0
    assert with_queries.fingerprint() == without.fingerprint()
    for index in (with_queries, without):
        index.partial_fit(X[300:], ids=np.arange(1000, 1100))
    np.testing.assert_array_equal(
        with_queries.kneighbors(X, 5, beam=10, exact=False),
        without.kneighbors(X, 5, beam=10, exact=False),
    )


def test_queries_of_an_index_in_a_folder_write_nothing(tmp_path):
    with open_durable(tmp_path, BoundaryForestNeighbors(n_estimators=4, random_state=0)) as index:
        index.partial_fit(X, ids=np.arange(400)).upsert(X[:20] + 1, np.arange(20))
        before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
        for read in READS.values():
            read(index)
        assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_no_query_waits_for_a_call_that_learns(read):
    inside, go_on = threading.Event(), threading.Event()

    def metric(x, y):
        if threading.current_thread() is learner:
            inside.set()
            go_on.wait(10)
        return float(abs(x - y).sum())

    index = BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)
    learner = threading.Thread(
        target=lambda: index.partial_fit(X[200:210], ids=np.arange(200, 210)), daemon=True
    )
    index.fit(X[:200], ids=np.arange(200)).forget(np.arange(20))
    learner.start()
    try:
        assert inside.wait(10)
        read(index)
        assert learner.is_alive()
    finally:
        go_on.set()
        learner.join()
    assert index.examples_seen == 210


def test_a_forgotten_example_is_passed_through_and_never_returned():
    index = marked(200, 60)
    forgotten = set(range(60))
    assert index.fitted.engine.n_forgotten == 60
    assert not forgotten & set(index.apply(X[:60]).ravel().tolist())
    for nodes, parents in index.trees():
        assert len(nodes) == 140
        assert not forgotten & set(nodes.tolist())
        before = {-1}
        for node, parent in zip(nodes.tolist(), parents.tolist(), strict=True):
            assert parent in before
            before.add(node)
    for x in X[:20]:
        explanation = index.explain(x).to_dict()
        assert not forgotten & set(np.ravel([e["arrival"] for e in explanation["examples"]]))


def test_a_query_that_compares_forgotten_examples_alone_finds_the_closest_of_all():
    index = BoundaryForestNeighbors(n_estimators=1, random_state=0)
    rows = np.array([0.0, 100.0, 1.0, 2.0, 101.0, 102.0, 103.0, 104.0, 105.0, 106.0])[:, None]
    index.fit(rows, ids=np.arange(10)).forget([0, 1, 2])  # the root, and two of its children
    assert index.apply([[0.9]]).ravel().tolist() == [3]


def test_before_there_are_trees_the_forgotten_are_not_found():
    index = BoundaryForestNeighbors(n_estimators=10, random_state=0)
    index.fit([[0.0], [1.0], [5.0]], ids=[0, 1, 2]).forget([0])
    assert set(index.apply([[0.1]]).ravel().tolist()) == {1}
