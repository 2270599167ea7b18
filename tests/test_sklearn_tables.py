"""scikit-learn's own tools with weights of features, sampling and the choice of votes."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

KINDS = pytest.mark.parametrize("kind", [BoundaryForestClassifier, BoundaryForestRegressor])


def examples(n=1100, seed=0):
    """Two useful features of eight, at scales that differ."""
    X = np.random.default_rng(seed).normal(size=(n, 8))
    y = (X[:, 1] + X[:, 6] > 0).astype(float)
    return X * 10.0 ** np.arange(-4, 4), y


def weighing(kind, **parameters):
    return kind.for_tables(**{"n_estimators": 20, "random_state": 0, **parameters})


@KINDS
def test_select_from_model_keeps_the_useful_features(kind):
    X, y = examples()
    selector = SelectFromModel(weighing(kind), max_features=2).fit(X, y)
    assert selector.get_support(indices=True).tolist() == [1, 6]
    chained = make_pipeline(selector, weighing(kind)).fit(X, y)
    queries, truth = examples(200, seed=1)
    assert chained.score(queries, truth) > 0.6


@KINDS
@pytest.mark.parametrize("weights", ["learned", None, [1.0, 2.0], np.array([0.5, 0.0])])
def test_clones_have_the_parameters_and_nothing_learned(kind, weights):
    estimator = kind(feature_weights=weights, max_samples=0.5, weights="auto")
    X, y = examples(60)
    copied = clone(estimator.fit(X[:, :2], y))
    assert np.array_equal(copied.feature_weights, weights)
    assert (copied.max_samples, copied.weights) == (0.5, "auto")
    assert not hasattr(copied, "feature_weights_")


def test_a_grid_can_be_searched_over_all_of_them():
    X, y = examples(400)
    grid = {
        "feature_weights": [None, "learned"],
        "max_samples": [None, 0.5],
        "weights": ["distance", "auto"],
    }
    search = GridSearchCV(BoundaryForestClassifier(n_estimators=20, random_state=0), grid, cv=2)
    search.fit(X, y)
    assert search.best_params_["feature_weights"] == "learned"
    assert search.best_estimator_.feature_importances_[[1, 6]].sum() > 0.8


@KINDS
def test_a_pickled_forest_goes_on_as_the_forest_does(kind):
    X, y = examples()
    forest = weighing(kind).fit(X[:600], y[:600])
    other = pickle.loads(pickle.dumps(forest))
    for each in (forest, other):
        each.partial_fit(X[600:], y[600:])
    assert other.fingerprint() == forest.fingerprint()
    assert other.feature_weights_.tolist() == forest.feature_weights_.tolist()
    assert other.vote_power_ == forest.vote_power_
    assert other.predict(X).tolist() == forest.predict(X).tolist()


@KINDS
def test_the_vote_power_is_that_of_the_parameter_or_one_of_four(kind):
    X, y = examples(300)
    powers = [
        kind(weights=weights, random_state=0).fit(X, y).vote_power_
        for weights in ("distance", "uniform", "auto")
    ]
    assert powers[:2] == [1.0, 0.0]
    assert powers[2] in (0.0, 0.5, 1.0, 2.0)
