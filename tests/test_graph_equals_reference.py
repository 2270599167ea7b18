"""The engine's search over the graph and reference/graph.py find the same, tie for tie."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import BoundaryForestNeighbors, reference
from boundary_forest.reference.graph import Graph

pytestmark = pytest.mark.kernels

METRICS = [
    ("euclidean", 2.0),
    ("manhattan", 2.0),
    ("chebyshev", 2.0),
    ("minkowski", 3.0),
    ("cosine", 2.0),
    ("canberra", 2.0),
    ("inner_product", 2.0),
]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(
    metric=st.sampled_from(METRICS),
    element_type=st.sampled_from(["uint8", "int8", "float16", "float32", "float64"]),
    n=st.integers(14, 150),
    features=st.sampled_from([1, 2, 5, 19, 70]),
    n_T=st.sampled_from([1, 2, 5, 13]),
    k=st.sampled_from([2, 4, 50]),
    where=st.sampled_from(["anywhere", "on a grid", "in tight clusters"]),
    beam=st.integers(1, 30),
    n_neighbors=st.integers(1, 6),
    share=st.sampled_from([0.0, 0.3]),
    offline=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_the_engine_finds_what_the_reference_finds(
    metric, element_type, n, features, n_T, k, where, beam, n_neighbors, share, offline, seed
):
    rng = np.random.default_rng(seed)
    if where == "on a grid" or element_type in ("uint8", "int8"):
        X = rng.integers(0, 4, size=(n + 5, features)).astype(element_type)
    else:
        X = rng.normal(size=(n + 5, features)).astype(element_type)
        if where == "in tight clusters":  # which bytes can hardly tell apart
            X = (X * 0.02 + rng.normal(size=(3, features))[np.arange(n + 5) % 3]).astype(X.dtype)
    queries, X = X[n:], X[:n]
    name, p = metric
    params = {"metric_params": {"p": p}} if name == "minkowski" else {}
    params |= {"dtype": element_type, "offline": offline}
    index = BoundaryForestNeighbors(
        n_estimators=n_T, max_children=k, metric=name, random_state=seed, beam=beam, **params
    )
    shown = n if offline else n // 2
    index.fit(X[:shown], ids=np.arange(shown))
    if shown < n:
        index.partial_fit(X[shown:], ids=np.arange(shown, n))
    forest = reference.ExtendedForest(
        n_T=n_T,
        k=k,
        d=name,
        d_c=reference.always,
        E="nearest",
        p=p,
        seed=seed,
        has_graph=True,
    )
    if offline:
        forest.train_offline(X, np.zeros((n, 0)))
    for x in X[n if offline else 0 :]:
        forest.BFTrain(x, np.zeros(0))
    forgotten = set(np.flatnonzero(rng.random(n) < share)[: (n - 1) // 3].tolist())
    index.forget(sorted(forgotten))  # fewer than a third: the trees stay
    graph = Graph(forest, name, p)
    for exact, search in ((False, graph.search), (None, graph.cheapest)):
        before, graph.evaluations = index.stats()["evaluations"]["query"], 0
        found = index.kneighbors(queries, n_neighbors, return_distance=False, exact=exact)
        expected = [search(y, n_neighbors, beam, lambda a: a not in forgotten) for y in queries]
        assert found.tolist() == expected
        assert index.stats()["evaluations"]["query"] - before == graph.evaluations
    assert index.apply(queries).tolist() == [
        graph.apply(y, lambda a: a not in forgotten) for y in queries
    ]


ORDERS = {
    "sorted": lambda n: np.arange(n, dtype=float)[:, None],
    "to a point": lambda n: np.cumprod(np.full(n, 0.99))[:, None],
    "sorted, with duplicates": lambda n: np.arange(n, dtype=float)[:, None] // 2,
}


@pytest.mark.parametrize(
    ("order", "n"), [("sorted", 520), ("to a point", 520), ("sorted, with duplicates", 1040)]
)
def test_trees_that_become_chains_are_rebuilt_as_the_references_and_links_follow(order, n):
    X = ORDERS[order](n)
    index = BoundaryForestNeighbors(n_estimators=2, random_state=5, beam=8)
    for begin in range(0, n, 130):
        index.partial_fit(X[begin : begin + 130], ids=np.arange(n)[begin : begin + 130])
    forest = reference.ExtendedForest(
        n_T=2, d_c=reference.always, E="nearest", seed=5, has_graph=True
    )
    for x in X:
        forest.BFTrain(x, np.zeros(0))
    assert forest.n_regrown > 0
    for (nodes, parents), tree in zip(index.trees(), forest.trees, strict=True):
        assert nodes.tolist() == [v.arrival for v in tree.nodes]
        assert parents[1:].tolist() == [v.parent.arrival for v in tree.nodes[1:]]
    index.forget(range(0, n, 7))
    graph = Graph(forest, "euclidean")
    queries = X[:: n // 7] + 0.3
    found = index.kneighbors(queries, 3, return_distance=False, exact=False)
    assert found.tolist() == [graph.search(y, 3, 8, lambda a: a % 7 != 0) for y in queries]
    assert index.apply(queries).tolist() == [graph.apply(y, lambda a: a % 7 != 0) for y in queries]
