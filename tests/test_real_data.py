"""The paper's and other public data sets: error, R2, cost, and the offline form beside.

These tests run where BOUNDARY_FOREST_DATA names a folder of the sets, and skip elsewhere. MNIST
takes about 10 s: it is the paper's main result, and no smaller part of it has the same figures.
"""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from sklearn.preprocessing import StandardScaler
from test_memory import assert_within_promise_5

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

N_T = 50


def shuffled_fit(data, seed, estimator=BoundaryForestClassifier, **params):
    order = np.random.default_rng(seed).permutation(len(data["X_train"]))
    forest = estimator(n_estimators=N_T, max_children=50, random_state=seed, **params)
    return forest.fit(data["X_train"][order], data["y_train"][order])


def percent_wrong(forest, X, y):
    return 100 * np.mean(forest.predict(X) != y)


# Seen over these 2 shuffles: letter 5.69 and 4.60 offline, pendigits 2.83 and 2.03, dna 13.62 and
# 12.23; online over 30 (letter: 10) 5.6, 2.6 and 14.2. The paper has 5.4, 2.62 and 14.3 online.
@pytest.mark.parametrize(
    ("name", "ceiling", "offline_ceiling"),
    [("letter", 6.0, 5.0), ("pendigits", 3.0, 2.4), ("dna", 15.5, 13.0)],
)
def test_error_is_the_papers_and_one_pass_leaves_under_one_percent(
    name, ceiling, offline_ceiling, real_data
):
    data = real_data(name)
    errors, offline_errors = [], []
    for seed in range(2):
        forest = shuffled_fit(data, seed)
        errors.append(percent_wrong(forest, data["X_test"], data["y_test"]))
        assert percent_wrong(forest, data["X_train"], data["y_train"]) < 1
        assert max(forest.stats()["nodes_per_tree"]) < len(data["X_train"])
        offline = shuffled_fit(data, seed, offline=True)
        offline_errors.append(percent_wrong(offline, data["X_test"], data["y_test"]))
    assert np.mean(errors) <= ceiling
    assert np.mean(offline_errors) <= offline_ceiling


def test_mnist_error_cost_and_memory_are_as_measured_in_advance(real_data):
    """Seen: error 2.31 % (over 20 shuffles 2.38 +- 0.11 %; the paper has 2.24), 64.9 comparisons a
    tree and example (64 to 69); 18.3 bytes a node."""
    data = real_data("mnist")
    forest = shuffled_fit(data, 0)
    stats = forest.stats()
    assert 2.1 <= percent_wrong(forest, data["X_test"], data["y_test"]) <= 2.6
    assert 60 <= stats["comparisons"]["learn"] / (N_T * len(data["X_train"])) <= 75
    assert percent_wrong(forest, data["X_train"][:10000], data["y_train"][:10000]) < 1
    assert_within_promise_5(stats, row_bytes=784)


def standardised(data):
    scaler = StandardScaler().fit(data["X_train"])
    return {**data, **{name: scaler.transform(data[name]) for name in ("X_train", "X_test")}}


def mean_r2(data, n_shuffles):
    forests = [shuffled_fit(data, seed, BoundaryForestRegressor) for seed in range(n_shuffles)]
    assert all(max(f.stats()["nodes_per_tree"]) < len(data["X_train"]) for f in forests)
    return np.mean([forest.score(data["X_test"], data["y_test"]) for forest in forests])


def test_california_is_told_almost_as_well_as_by_five_nearest_neighbours(real_data):
    data = standardised(real_data("california"))
    five = KNeighborsRegressor(5).fit(data["X_train"], data["y_train"])  # 0.694
    exact = five.score(data["X_test"], data["y_test"])
    assert mean_r2(data, 2) >= exact - 0.04  # seen over 3 shuffles: 0.660 to 0.675; offline 0.690


def test_abalone_comes_between_one_and_five_nearest_neighbours(real_data):
    """Targets are noisy (1-NN: 0.063, 5-NN: 0.449), and a tree keeps above all what it was wrong
    about; the forest averages over 50 of them. Seen: 0.342 to 0.365, mean 0.357; offline 0.405."""
    assert mean_r2(standardised(real_data("abalone")), 5) >= 0.32
