"""Distances are those of scipy, for every metric and element type, and of a user's own functions.

Asking for as many neighbours as are stored is an exhaustive search, so every distance is seen.
"""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest
from conftest import answers
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, load

pytestmark = pytest.mark.kernels

COMPILED = "float64(CPointer(float64), CPointer(float64), int64)"
# float32 distances carry the rounding of a float32 sum; cosine's 1 - x of numbers close to 1.
TOLERANCE = {
    "uint8": {"rtol": 1e-12, "atol": 1e-12},
    "float32": {"rtol": 2e-5, "atol": 1e-6},
    "float64": {"rtol": 1e-12, "atol": 1e-13},
}
every_element_type = pytest.mark.parametrize("dtype", TOLERANCE)


def positions(dtype, n_features):
    """150 rows to store, with duplicates, and 30 to ask."""
    rng = np.random.default_rng(11)
    if dtype == "uint8":
        X = rng.integers(0, 256, size=(180, n_features)).astype(np.uint8)
        X[:, ::3] %= 3  # values that coincide, and zeros
    else:
        X = rng.normal(size=(180, n_features)).astype(dtype)
        X[:, ::3] = X[:, ::3].round()
    X[10:20] = X[:10]
    return X[:150], X[150:]


def all_distances(X, queries, **params):
    """The distance from every query to every row, as the forest tells it, by arrival number."""
    forest = BoundaryForestNeighbors(n_estimators=7, random_state=0, **params).fit(X)
    distances, arrivals = forest.kneighbors(queries, len(X))
    assert (distances[:, 1:] >= distances[:, :-1]).all()
    assert (np.sort(arrivals, axis=1) == np.arange(len(X))).all()
    by_arrival = np.empty_like(distances)
    np.put_along_axis(by_arrival, arrivals, distances, axis=1)
    return by_arrival


def in_float64(metric, X, queries, **params):
    return cdist(queries.astype(np.float64), X.astype(np.float64), metric, **params)


@every_element_type
@pytest.mark.parametrize("n_features", [1, 7, 16, 53])
@pytest.mark.parametrize(
    ("metric", "metric_params", "name_in_scipy"),
    [
        ("euclidean", None, "euclidean"),
        ("manhattan", None, "cityblock"),
        ("chebyshev", None, "chebyshev"),
        ("minkowski", None, "euclidean"),
        ("minkowski", {"p": 1}, "cityblock"),
        ("minkowski", {"p": 1.5}, "minkowski"),
        ("minkowski", {"p": 2}, "euclidean"),
        ("minkowski", {"p": 3}, "minkowski"),
        ("cosine", None, "cosine"),
        ("hamming", None, "hamming"),
        ("canberra", None, "canberra"),
    ],
)
def test_built_in_distances_are_scipys(dtype, n_features, metric, metric_params, name_in_scipy):
    X, queries = positions(dtype, n_features)
    if metric == "cosine":  # scipy has no cosine for a zero row
        X, queries = X[X.any(axis=1)], queries[queries.any(axis=1)]
    params = metric_params if name_in_scipy == "minkowski" else {}
    expected = in_float64(name_in_scipy, X, queries, **params)
    found = all_distances(X, queries, metric=metric, metric_params=metric_params)
    np.testing.assert_allclose(found, expected, **TOLERANCE[dtype])


@every_element_type
@pytest.mark.parametrize("p", [1, 1.5, 2, 3, 17.5, 64, 2.3, 100])
def test_a_row_is_at_minkowski_distance_zero_from_itself(dtype, p):
    """Although powers of small numbers underflow to 0, and so have many roots."""
    X, _ = positions(dtype, 7)
    found = all_distances(X, X, metric="minkowski", metric_params={"p": p})
    assert (found.diagonal() == 0).all()


@every_element_type
@pytest.mark.parametrize(
    ("metric", "name_in_sklearn"),
    [
        ("euclidean", "euclidean"),
        ("manhattan", "manhattan"),
        ("chebyshev", "chebyshev"),
        ("canberra", "canberra"),
        ("hamming", "hamming"),
    ],
)
def test_built_in_distances_are_scikit_learns(dtype, metric, name_in_sklearn):
    X, queries = positions(dtype, 20)
    expected = pairwise_distances(queries.astype(float), X.astype(float), metric=name_in_sklearn)
    # scikit-learn's Euclidean distance expands the square, and is less exact than ours.
    tolerance = {"rtol": 2e-5, "atol": 1e-5}
    np.testing.assert_allclose(all_distances(X, queries, metric=metric), expected, **tolerance)


@every_element_type
def test_inner_product_is_one_minus_x_dot_y(dtype):
    X, queries = positions(dtype, 20)
    expected = 1 - queries.astype(np.float64) @ X.T.astype(np.float64)
    tolerance = {**TOLERANCE[dtype], "atol": 1e-5 if dtype == "float32" else 1e-12}
    found = all_distances(X, queries, metric="inner_product")
    np.testing.assert_allclose(found, expected, **tolerance)
    assert (found < 0).any()


@every_element_type
def test_cosine_of_a_zero_row_is_0_to_a_zero_row_and_1_to_any_other(dtype):
    X = np.array([[0, 0, 0], [1, 2, 3]], dtype=dtype)
    assert all_distances(X, X, metric="cosine").tolist() == [[0, 1], [1, 0]]


@every_element_type
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "chebyshev", "hamming", "canberra"])
def test_a_row_is_at_distance_zero_from_itself_alone(dtype, metric):
    X, _ = positions(dtype, 20)
    found = all_distances(X, X, metric=metric)
    same = (X[:, None] == X[None]).all(axis=2)
    assert ((found == 0) == same).all()


@every_element_type
@pytest.mark.parametrize("metric", ["euclidean", "cosine", "canberra"])
def test_the_paper_s_one_neighbour_is_told_with_its_distance(dtype, metric):
    X, queries = positions(dtype, 20)
    forest = BoundaryForestNeighbors(n_estimators=7, metric=metric, random_state=0).fit(X)
    distances, arrivals = forest.kneighbors(queries, 1)
    every = all_distances(X, queries, metric=metric)
    assert np.take_along_axis(every, arrivals, axis=1).tolist() == distances.tolist()


# --- A user's own metric --------------------------------------------------------------------------


def gap(x, y):
    return float(np.abs(x - y).sum())


def weighted_gap(x, y, *, weights, scale=1.0):
    return scale * float(weights @ np.abs(x - y))


@every_element_type
def test_a_python_callable_is_the_distance(dtype):
    X, queries = positions(dtype, 7)
    expected = in_float64("cityblock", X, queries)
    np.testing.assert_allclose(all_distances(X, queries, metric=gap), expected, rtol=1e-12)


@every_element_type
def test_metric_params_reach_a_python_callable(dtype):
    X, queries = positions(dtype, 7)
    weights = np.arange(1.0, 8.0)
    expected = 0.5 * in_float64("cityblock", X * weights, queries * weights)
    params = {"weights": weights, "scale": 0.5}
    found = all_distances(X, queries, metric=weighted_gap, metric_params=params)
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_element_type
def test_a_python_callable_sees_float64_vectors_that_it_may_keep(dtype):
    X, _ = positions(dtype, 7)
    kept = []

    def remember(x, y):
        kept.append((x, y))
        return gap(x, y)

    BoundaryForestNeighbors(n_estimators=2, metric=remember, random_state=0).fit(X[:5])
    rows = {tuple(row) for row in X[:5].astype(np.float64).tolist()}
    assert kept
    for pair in kept:
        for row in pair:
            assert row.dtype == np.float64
            assert tuple(row.tolist()) in rows


@pytest.mark.parametrize("value", [3, np.float32(3), np.int64(3), True, np.inf])
def test_a_callable_may_return_any_real_number(value):
    distances = all_distances(np.eye(9), np.eye(9), metric=lambda x, y: value)
    assert (distances == float(value)).all()


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_a_vote_stands_where_all_distances_are_zero_or_infinite(classification, value):
    forest = classification.taught(metric=lambda x, y: value)
    shares = forest.predict_proba(classification.queries)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)


def test_a_callable_builds_the_forest_that_the_built_in_metric_builds(task):
    own, built_in = task.taught(metric=gap), task.taught(metric="manhattan")
    assert answers(own, task.queries) == answers(built_in, task.queries)
    assert own.stats()["nodes_per_tree"] == built_in.stats()["nodes_per_tree"]


@pytest.fixture(scope="module")
def compiled_gap():
    numba = pytest.importorskip("numba")

    @numba.cfunc(COMPILED)
    def compiled(x_pointer, y_pointer, n):
        x, y = numba.carray(x_pointer, n), numba.carray(y_pointer, n)
        total = 0.0
        for i in range(n):
            total += abs(x[i] - y[i])
        return total

    return compiled


@every_element_type
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_compiled_function_is_the_distance(compiled_gap, dtype, n_jobs):
    X, queries = positions(dtype, 20)
    found = all_distances(X, queries, metric=compiled_gap, n_jobs=n_jobs)
    np.testing.assert_allclose(found, in_float64("cityblock", X, queries), rtol=1e-12, atol=1e-12)


def test_a_compiled_function_builds_the_forest_that_the_built_in_metric_builds(task, compiled_gap):
    own, built_in = task.taught(metric=compiled_gap), task.taught(metric="manhattan")
    assert answers(own, task.queries) == answers(built_in, task.queries)


def test_a_metric_that_refers_to_its_forest_does_not_keep_it_alive():
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.metric = lambda x, y, owner=forest: gap(x, y)
    forest.fit(np.eye(5), np.arange(5) % 2)
    gone = weakref.ref(forest)
    del forest
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(("alias", "name"), [("l1", "manhattan"), ("l2", "euclidean")])
def test_scikit_learns_short_names_are_the_same_metrics(alias, name, tmp_path):
    X, _ = positions("float64", 5)
    y = np.arange(len(X)) % 3
    forests = (BoundaryForestClassifier(metric=m, random_state=0) for m in (alias, name))
    short, long = (forest.fit(X, y) for forest in forests)
    assert short.metric == alias
    assert short.fingerprint() == long.fingerprint()
    short.save(tmp_path / "model.bf")
    assert load(tmp_path / "model.bf").partial_fit(X, y).examples_seen == 2 * len(X)


def test_the_short_name_of_the_euclidean_metric_takes_weights():
    X, _ = positions("float64", 3)
    BoundaryForestClassifier(metric="l2", feature_weights=[1, 2, 3]).fit(X, np.arange(len(X)) % 3)
