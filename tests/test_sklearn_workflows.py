"""scikit-learn's tools around the estimators: searches, pipelines, meta-estimators, processes."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import load_diabetes, load_digits
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.random_projection import GaussianRandomProjection

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:1000], y[:1000], X[1000:], y[1000:]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_grid_search_over_trees_and_children(digits, n_jobs):
    X, y, X_test, y_test = digits
    grid = {"n_estimators": [2, 20], "max_children": [2, 50, None]}
    forest = BoundaryForestClassifier(random_state=0)
    search = GridSearchCV(forest, grid, cv=3, n_jobs=n_jobs).fit(X, y)
    assert search.best_params_["n_estimators"] == 20
    assert search.best_estimator_.score(X_test, y_test) > 0.90  # seen over 4 seeds: 0.928 to 0.937
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


@pytest.mark.parametrize(
    "estimator",
    [BoundaryForestClassifier, BoundaryForestRegressor, BoundaryForestNeighbors, BoundaryForest],
)
def test_a_pipeline_that_makes_frames_gives_their_names_to_its_forest(estimator):
    X, y = load_diabetes(return_X_y=True, as_frame=True)
    labels = y > 100 if estimator is BoundaryForestClassifier else y
    model = make_pipeline(StandardScaler(), estimator(n_estimators=5, random_state=0))
    model.set_output(transform="pandas").fit(X[:100], labels[:100])
    assert model[-1].feature_names_in_.tolist() == X.columns.tolist()


@pytest.mark.parametrize(
    "before",
    [StandardScaler(), GaussianRandomProjection(40, random_state=0)],
    ids=["StandardScaler", "GaussianRandomProjection"],
)
def test_pipelines(digits, before):
    X, y, X_test, y_test = digits
    model = make_pipeline(before, BoundaryForestClassifier(random_state=0)).fit(X, y)
    assert (
        model.score(X_test, y_test) > 0.88
    )  # seen over 4 seeds: 0.921 to 0.935 and 0.907 to 0.922
    assert model.predict_proba(X_test).shape == (len(X_test), 10)


def test_regression_in_pipelines_and_meta_estimators():
    X, y = load_diabetes(return_X_y=True)
    forest = BoundaryForestRegressor(random_state=0)
    plain = cross_val_score(make_pipeline(StandardScaler(), forest), X, y, cv=3)
    scaled = TransformedTargetRegressor(forest, transformer=StandardScaler())
    told = cross_val_score(make_pipeline(StandardScaler(), scaled), X, y, cv=3)
    np.testing.assert_allclose(plain, told, rtol=1e-6)  # epsilon="auto" goes with the targets
    assert plain.mean() > 0.3  # seen over 4 seeds: 0.389 to 0.401


def test_cross_validation_in_other_processes_gives_the_same_scores(digits):
    X, y, _, _ = digits
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0)
    results = [cross_validate(forest, X, y, cv=3, n_jobs=n, return_estimator=True) for n in (1, 2)]
    here, there = (result["test_score"].tolist() for result in results)
    assert here == there
    prints = [[one.fingerprint() for one in result["estimator"]] for result in results]
    assert prints[0] == prints[1]


def test_it_votes_with_other_classifiers(digits):
    X, y, X_test, y_test = digits
    members = [
        ("forest", BoundaryForestClassifier(random_state=0)),
        ("knn", KNeighborsClassifier()),
    ]
    model = VotingClassifier(members, voting="soft").fit(X, y)
    assert model.score(X_test, y_test) > 0.93  # seen over 4 seeds: 0.951 to 0.956
