"""BoundaryForestNeighbors in KNeighborsTransformer's form, and under estimators on its graphs."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import DBSCAN
from sklearn.datasets import load_digits, make_blobs, make_swiss_roll
from sklearn.manifold import Isomap, trustworthiness
from sklearn.metrics import adjusted_rand_score
from sklearn.neighbors import (
    KNeighborsClassifier,
    KNeighborsTransformer,
    NearestNeighbors,
    sort_graph_by_row_values,
)
from sklearn.pipeline import make_pipeline

from boundary_forest import BoundaryForestNeighbors


@pytest.fixture(scope="module")
def points():
    rng = np.random.default_rng(0)
    return rng.normal(size=(300, 3)), rng.normal(size=(40, 3))


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_the_graph_has_the_form_of_kneighborstransformers(points, mode):
    X, queries = points
    # Fewer examples than trees, so that the search is exact.
    ours = BoundaryForestNeighbors(n_neighbors=4, mode=mode, n_estimators=500, random_state=0)
    theirs = KNeighborsTransformer(n_neighbors=4, mode=mode)
    for ask in (lambda t: t.fit_transform(X), lambda t: t.fit(X).transform(queries)):
        mine, exact = ask(ours), ask(theirs)
        assert mine.format == exact.format == "csr"
        assert mine.shape == exact.shape
        assert mine.indptr.tolist() == exact.indptr.tolist()
        assert mine.indices.tolist() == exact.indices.tolist()
        np.testing.assert_allclose(mine.data, exact.data, rtol=1e-12, atol=1e-12)
    assert len(ours.get_feature_names_out()) == ours.n_samples_fit_ == 300
    assert ours.get_feature_names_out()[0] == "boundaryforestneighbors0"


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_kneighbors_graph_is_kneighbors_as_a_matrix(points, mode):
    X, queries = points
    forest = BoundaryForestNeighbors(random_state=0, n_estimators=5).fit(X)
    graph = forest.kneighbors_graph(queries, 7, mode=mode)
    distances, arrivals = forest.kneighbors(queries, 7)
    assert graph.indices.reshape(-1, 7).tolist() == arrivals.tolist()
    weights = distances if mode == "distance" else np.ones_like(distances)
    assert graph.data.reshape(-1, 7).tolist() == weights.tolist()
    assert sort_graph_by_row_values(graph, warn_when_not_sorted=True) is graph


def test_without_queries_every_example_has_others_for_neighbours(points):
    X, _ = points
    forest = BoundaryForestNeighbors(n_estimators=500, random_state=0).fit(X)  # exact
    distances, arrivals = forest.kneighbors()
    exact = NearestNeighbors(n_neighbors=5).fit(X).kneighbors()
    assert arrivals.tolist() == exact[1].tolist()
    np.testing.assert_allclose(distances, exact[0], rtol=1e-12)
    graph = forest.kneighbors_graph(mode="distance")
    assert graph.shape == (300, 300)
    assert graph.diagonal().tolist() == [0] * 300
    assert graph.indices.reshape(-1, 5).tolist() == arrivals.tolist()


@pytest.mark.parametrize("n_neighbors", [1, 4, 59])
def test_among_duplicates_nobody_is_its_own_neighbour(n_neighbors):
    X = np.repeat(np.arange(6.0), 10)[:, None]
    forest = BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X)
    distances, arrivals = forest.kneighbors(None, n_neighbors)
    assert arrivals.shape == (60, n_neighbors)
    assert (arrivals != np.arange(60)[:, None]).all()
    assert all(len(set(row)) == n_neighbors for row in arrivals.tolist())
    assert distances.tolist() == np.abs(X - X[arrivals, 0]).tolist()
    assert (np.diff(distances) >= 0).all()


@pytest.mark.parametrize("mode", ["distance", "connectivity"])
def test_fit_transform_has_every_example_beside_its_neighbours(mode):
    X = np.repeat(np.arange(6.0), 10)[:, None]  # more duplicates than neighbours
    forest = BoundaryForestNeighbors(3, mode=mode, n_estimators=3, random_state=0)
    graph = forest.fit_transform(X)
    n = 4 if mode == "distance" else 3
    rows = graph.indices.reshape(-1, n)
    assert (rows == np.arange(60)[:, None]).sum(axis=1).tolist() == [1] * 60
    assert all(len(set(row)) == n for row in rows.tolist())


@pytest.mark.parametrize(("X", "n_neighbors"), [(None, 5), ([[0.0]], 6)])
def test_more_neighbours_than_there_are_is_refused(X, n_neighbors):
    forest = BoundaryForestNeighbors(random_state=0).fit(np.arange(5.0)[:, None])
    for ask in (forest.kneighbors, forest.kneighbors_graph):
        with pytest.raises(ValueError, match=rf"n_neighbors.*\b{n_neighbors}\b"):
            ask(X, n_neighbors)


def test_an_unknown_mode_is_refused(points):
    forest = BoundaryForestNeighbors(random_state=0).fit(points[0])
    with pytest.raises(ValueError, match=r"mode.*'connectivity', 'distance'.*'distances'"):
        forest.kneighbors_graph(points[1], mode="distances")


def test_the_graph_grows_with_the_stream(points):
    X, queries = points
    forest = BoundaryForestNeighbors(random_state=0, n_estimators=5).fit(X[:100])
    assert forest.transform(queries).shape == (40, 100)
    assert forest.partial_fit(X[100:]).transform(queries).shape == (40, 300)
    assert len(forest.get_feature_names_out()) == 300


def test_classification_on_the_graph():
    X, y = load_digits(return_X_y=True)
    graph = BoundaryForestNeighbors(n_neighbors=5, random_state=0)
    model = make_pipeline(graph, KNeighborsClassifier(5, metric="precomputed"))
    model.fit(X[:1200], y[:1200])
    exact = KNeighborsClassifier(5).fit(X[:1200], y[:1200]).score(X[1200:], y[1200:])
    assert model.score(X[1200:], y[1200:]) > exact - 0.01  # seen: the same, 0.965


def test_clustering_on_the_graph():
    X, y = make_blobs(500, centers=4, cluster_std=0.5, random_state=0)
    graph = BoundaryForestNeighbors(n_neighbors=15, random_state=0)
    model = make_pipeline(graph, DBSCAN(eps=0.6, min_samples=5, metric="precomputed"))
    labels = model.fit_predict(X)
    exact = DBSCAN(eps=0.6, min_samples=5).fit_predict(X)
    assert adjusted_rand_score(labels, exact) > 0.95  # seen: 1.0
    assert adjusted_rand_score(labels, y) > 0.95  # seen: 0.995


def test_embedding_on_the_graph():
    X, _ = make_swiss_roll(400, random_state=0)
    graph = BoundaryForestNeighbors(n_neighbors=10, random_state=0)
    model = make_pipeline(graph, Isomap(n_neighbors=10, metric="precomputed"))
    embedded = model.fit_transform(X)
    exact = Isomap(n_neighbors=10).fit_transform(X)
    assert embedded.shape == (400, 2)
    assert trustworthiness(X, embedded) > trustworthiness(X, exact) - 0.01  # seen: 0.927, 0.931
