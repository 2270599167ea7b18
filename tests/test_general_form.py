"""The paper's general form: any label vectors, any d_c, any E."""

import numpy as np
import pytest

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

SMALL = {"n_estimators": 8, "max_children": 5, "random_state": 1}


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(4)
    X = rng.integers(0, 5, size=(400, 6)).astype(np.float32)
    return X, X[:, :2] @ np.array([[1.0, 0.5], [0.0, 2.0]])


def trees_of(forest):
    return [(arrivals.tolist(), parents.tolist()) for arrivals, parents in forest.trees()]


def test_regression_is_a_special_case(data):
    X, y = data
    general = BoundaryForest(epsilon="auto", **SMALL).fit(X, y)
    regressor = BoundaryForestRegressor(**SMALL).fit(X, y)
    assert trees_of(general) == trees_of(regressor)
    assert general.predict(X).tolist() == regressor.predict(X).tolist()


def test_classification_is_a_special_case_with_indicator_vectors(data):
    X, y = data
    classes = (y[:, 0] % 3).astype(int)
    indicators = np.eye(3)[classes]
    general = BoundaryForest(label_metric="discrete", **SMALL).fit(X, indicators)
    classifier = BoundaryForestClassifier(**SMALL).fit(X, classes)
    assert trees_of(general) == trees_of(classifier)
    assert np.allclose(general.predict(X), classifier.predict_proba(X), rtol=0, atol=1e-12)


def test_retrieval_is_a_special_case(data):
    X, y = data
    general = BoundaryForest(label_metric="always", estimator="nearest", **SMALL).partial_fit(X, y)
    index = BoundaryForestNeighbors(**SMALL, search="paper").fit(X)
    assert trees_of(general) == trees_of(index)
    nearest = index.kneighbors(X[:50] + 0.3, 1, return_distance=False)[:, 0]
    assert general.predict(X[:50] + 0.3).tolist() == y[nearest].tolist()


@pytest.mark.parametrize("name", ["euclidean", "manhattan", "chebyshev"])
def test_a_label_metric_by_name_is_the_same_as_by_function(data, name):
    X, y = data
    order = {"euclidean": 2, "manhattan": 1, "chebyshev": np.inf}[name]
    by_name = BoundaryForest(label_metric=name, epsilon=1.3, **SMALL).fit(X, y)
    by_function = BoundaryForest(
        label_metric=lambda a, b: np.linalg.norm(a - b, order), epsilon=1.3, **SMALL
    ).fit(X, y)
    assert trees_of(by_name) == trees_of(by_function)


def test_an_estimator_of_ones_own_is_given_each_trees_example(data):
    X, y = data
    queries = X[:20] + 0.25

    def weighted_mean(query, nodes):
        assert query.shape == (6,)
        assert len(nodes) == SMALL["n_estimators"]
        weights = np.array([1 / node.distance for node in nodes])
        return weights @ np.array([node.label for node in nodes]) / weights.sum()

    own = BoundaryForest(estimator=weighted_mean, **SMALL).fit(X, y)
    built_in = BoundaryForest(**SMALL).fit(X, y)
    assert np.allclose(own.predict(queries), built_in.predict(queries), rtol=1e-12)
    arrivals = own.apply(queries)
    seen = []
    own.set_params(estimator=lambda q, nodes: seen.append(nodes) or 0.0).fit(X, y)
    own.predict(queries)
    assert [[node.arrival for node in nodes] for nodes in seen] == arrivals.tolist()
    for nodes in seen:
        for node in nodes:
            assert node.position.tolist() == X[node.arrival].tolist()
            assert node.label.tolist() == y[node.arrival].tolist()


def test_a_label_metric_that_fails_takes_the_whole_call_back(data):
    X, y = data
    calls = []

    def failing(a, b):
        calls.append(1)
        if len(calls) > 2000:
            raise ZeroDivisionError
        return abs(a[0] - b[0])

    forest = BoundaryForest(label_metric=failing, **SMALL).fit(X[:100], y[:100])
    before = trees_of(forest)
    with pytest.raises(ValueError, match="label_metric raised ZeroDivisionError"):
        forest.partial_fit(X, y)
    assert trees_of(forest) == before
    assert forest.stats()["examples_seen"] == 100


@pytest.mark.parametrize(
    ("parameter", "params"),
    [
        ("label_metric", {"label_metric": "cosine"}),
        ("label_metric", {"label_metric": lambda a, b: np.nan}),
        ("label_metric", {"label_metric": lambda a, b: "far"}),
        ("epsilon", {"epsilon": -1}),
        ("estimator", {"estimator": "median"}),
        ("inner_product", {"metric": "inner_product"}),
    ],
)
def test_what_does_not_fit_is_refused_by_name(data, parameter, params):
    X, y = data
    with pytest.raises((ValueError, TypeError), match=parameter):
        BoundaryForest(**SMALL, **params).fit(X, y)


def test_inner_product_serves_an_estimator_of_ones_own(data):
    X, y = data
    forest = BoundaryForest(
        metric="inner_product", estimator=lambda q, nodes: nodes[0].label, **SMALL
    )
    assert forest.fit(X, y).predict(X[:3]).shape == (3, 2)


def test_one_number_a_label_stays_one_number_an_answer(data):
    X, y = data
    assert BoundaryForest(**SMALL).fit(X, y[:, 0]).predict(X[:3]).shape == (3,)
    forest = BoundaryForest(**SMALL).fit(X, y)
    with pytest.raises(ValueError, match="y has 1 numbers per row, but the first batch had 2"):
        forest.partial_fit(X, y[:, 0])


def test_examples_may_have_ids(data):
    X, y = data
    forest = BoundaryForest(label_metric="always", **SMALL)
    forest.fit(X[:50], y[:50], ids=[f"row {i}" for i in range(50)])
    forest.partial_fit(X[50:60] + 10, y[50:60], ids=[f"row {i}" for i in range(50, 60)])
    assert forest.kneighbors(X[55:56] + 10, 1)[1].tolist() == [["row 55"]]
