"""Items on the peers' parameters, on regression and HOG, and on the paper's future work."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.utils import Bunch

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from boundary_forest import BoundaryForestRegressor
from paper import registry, runner
from paper.baselines import make
from paper.context import Context
from paper.datasets import DataAbsentError
from paper.item import DATA_ABSENT, FAILED, REPRODUCED
from paper.items import (
    cover_tree_parameters,
    hog_metric,
    kd_trees,
    random_projections,
    regression,
)
from paper.shares import two_standard_errors

ALWAYS = ["kd-trees", "cover-tree-parameters", "regression", "random-projections", "tracking"]
SHAPES = {"mnist": 784, "letter": 16, "pendigits": 16, "dna": 180, "california": 8, "abalone": 10}


@pytest.fixture
def no_data(monkeypatch):
    def load(self, name):
        raise DataAbsentError(f"{name} is not here")

    monkeypatch.setattr(Context, "load", load)


@pytest.fixture
def small_data(monkeypatch):
    """Blobs in the shapes of the sets; protein and seismic are absent."""

    def load(self, name):
        if name not in SHAPES:
            raise DataAbsentError(f"{name} is not here")
        rng = np.random.default_rng(len(name))
        y = rng.integers(3, size=260)
        X = rng.integers(0, 60, size=(260, SHAPES[name])) + 60 * y[:, None]
        X = X.astype(np.uint8)
        return Bunch(X_train=X[:200], y_train=y[:200], X_test=X[200:], y_test=y[200:])

    monkeypatch.setattr(Context, "load", load)


def ran(name, folder):
    (record,) = runner.run_items([registry.all_items()[name]], runner.Settings(folder, "tiny"))
    assert record["verdict"] != FAILED, record["error"]
    return record


@pytest.mark.parametrize("name", ALWAYS)
def test_an_item_says_something_without_data(name, tmp_path, no_data):
    record = ran(name, tmp_path)
    assert record["verdict"] != DATA_ABSENT
    assert record["remark"]
    assert record["plots"] == [name]
    absent = [row["what"] for row in record["rows"] if row["verdict"] == DATA_ABSENT]
    assert len(absent) == len(record["data"])
    assert ran(name, tmp_path)["rows"] == json.loads(json.dumps(record["rows"]))


@pytest.mark.parametrize("name", [*ALWAYS[:-1], "hog-metric"])
def test_an_item_runs_with_the_papers_sets(name, tmp_path, small_data):
    record = ran(name, tmp_path)
    at_hand = [set_name for set_name in record["data"] if set_name in SHAPES]
    told = " ".join(row["what"] for row in record["rows"] if row["ours"] is not None)
    assert all(set_name in told for set_name in at_hand)


def test_without_mnist_there_is_no_hog(tmp_path, no_data):
    assert ran("hog-metric", tmp_path)["verdict"] == DATA_ABSENT


def test_two_standard_errors_of_equal_shares():
    # sqrt(2 * 0.1 * 0.9 / 200) = 0.03
    assert two_standard_errors(10, 10, 200) == pytest.approx(6.0)
    assert two_standard_errors(0, 0, 200) == 0


# --- HOG ------------------------------------------------------------------------------------------


def test_hog_has_as_many_features_as_told_and_does_not_mind_light():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 120, size=(2, 784)).astype(np.uint8)
    found = hog_metric.features(X, (9, 7, 2))
    assert found.shape == (2, 3 * 3 * 2 * 2 * 9)
    assert found.dtype == np.float32
    np.testing.assert_allclose(hog_metric.features(2 * X, (9, 7, 2)), found, atol=1e-3)


def test_the_hog_is_chosen_by_rows_of_the_training_set_alone(small_data, tmp_path):
    data = hog_metric.task(Context(tmp_path, "tiny"), "mnist")
    tried = hog_metric.held_out(data, 150)
    assert len(tried.X_train) + len(tried.X_test) == 150
    both = np.concatenate([tried.X_train, tried.X_test])
    assert {row.tobytes() for row in both} == {row.tobytes() for row in data.X_train[:150]}


# --- kd trees and cover trees ---------------------------------------------------------------------


def test_a_search_that_visits_all_points_misses_none():
    rng = np.random.default_rng(0)
    X, y = rng.random((300, 3), dtype=np.float32), rng.integers(2, size=300)
    of = kd_trees.Search("cube", X, X[:40] + np.float32(0.01), y, y[:40])
    exact = kd_trees.exhaustive(of)
    found = kd_trees.sweep(of, 4, exact["distances"], 0)
    assert found["missed"][-1] == 0
    assert found["error"][-1] == exact["error"]


def test_a_cover_tree_queried_with_epsilon_costs_less_and_learns_alike():
    rng = np.random.default_rng(0)
    X, y = rng.random((400, 2)), rng.integers(2, size=400)
    found = cover_tree_parameters.measured(X, y, X[:50], y[:50], 1.5)
    assert found["query"] == sorted(found["query"], reverse=True)
    assert found["query"][0] > found["query"][-1]
    tree = make("CT", base=1.5).fit(X, y)
    assert found["learn"] == tree.stats()["comparisons"]["learn"] / 400
    assert found["error"][0] == 0  # the queries are what it learned, and epsilon is 0


def test_querying_is_not_judged_where_a_query_already_sees_everything():
    bases = [{"learn": b, "query": [100.0] * 4, "error": [None] * 4} for b in (1.0, 2.0, 3.0, 4.0)]
    of = {"N": 100, "queries": 10, "bases": bases}
    epsilon, training, querying = cover_tree_parameters.claims("hypercube", of)
    assert (epsilon.verdict, training.verdict) == (REPRODUCED, REPRODUCED)
    assert querying.verdict == "measured"


# --- regression -----------------------------------------------------------------------------------


def test_answers_of_equal_weight_count_one_each():
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])
    query = np.zeros((1, 2))
    found = regression.averaged(X, query, np.array([[0, 1, 2, 0, 1, 2]]))
    assert (found["distinct"], found["effective"]) == (3, pytest.approx(3))
    assert regression.averaged(X, query, np.array([[0, 0, 0]]))["effective"] == pytest.approx(1)
    # At distance zero an example decides alone.
    assert regression.averaged(X, X[:1], np.array([[0, 1, 2]]))["effective"] == pytest.approx(1)


def test_the_neighbours_averaged_give_the_forests_answer():
    rng = np.random.default_rng(0)
    X, y = rng.random((200, 3)), rng.random(200)
    forest = BoundaryForestRegressor(n_estimators=5, random_state=0).fit(X, y)
    query = rng.random((1, 3))
    answers = forest.apply(query)[0]
    weights = 1 / np.linalg.norm(X[answers] - query, axis=1)
    assert forest.predict(query)[0] == pytest.approx(np.average(y[answers], weights=weights))


def test_features_are_standardised_by_the_training_part_alone():
    X = np.array([[0.0, 7.0], [2.0, 7.0]])
    found = regression.standardised("x", X, np.zeros(2), X + 10, np.zeros(2))
    np.testing.assert_array_equal(found.X_train, [[-1, 0], [1, 0]])
    np.testing.assert_array_equal(found.X_test, [[9, 10], [11, 10]])
    perfect = regression.Problem("x", X, X[:, 0], X, X[:, 0])
    assert perfect.score(X[:, 0]) == {"r2": 1.0, "mae": 0.0}


# --- random projections ---------------------------------------------------------------------------


def test_a_projection_keeps_squared_distances_on_the_average():
    x = np.random.default_rng(0).normal(size=300).astype(np.float32)
    ratios = [
        np.sum((x @ random_projections.projection(300, 20, seed)) ** 2) / np.sum(x**2)
        for seed in range(200)
    ]
    # The mean of 200 has a standard deviation of sqrt(2 / 20 / 200) = 0.022.
    assert np.mean(ratios) == pytest.approx(1, abs=0.08)
    assert np.var(ratios) == pytest.approx(2 / 20, rel=0.4)


def test_the_projections_needed_are_those_of_the_chi_distribution():
    # 99 % of chi_d / sqrt(d) are within 1 +- 2.576 / sqrt(2 d), which is 0.2 at d = 83.
    found = random_projections.needed(200, 100, seed=0, turns=3)
    assert found == pytest.approx(83, rel=0.15)


def test_the_best_number_of_projections_is_the_quickest_that_is_as_good():
    def turn(error, seconds):
        return [{"error": error, "learn_s": seconds, "query_s": 0.0, "comparisons": 1.0}]

    found = {
        "none": turn(5.0, 10.0),
        "projected": {"8": turn(50.0, 1.0), "16": turn(5.1, 3.0), "32": turn(5.0, 4.0)},
        "queries": 1_000,
    }
    assert random_projections.best_d(found) == "16"
    found["projected"] = {"8": turn(50.0, 1.0)}
    assert random_projections.best_d(found) is None
