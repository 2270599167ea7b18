"""The paper's data sets: error rates, cost, and one pass that leaves almost no training error.

These tests run where BOUNDARY_FOREST_DATA names a folder of the sets, and skip elsewhere. MNIST
takes about 40 s: it is the paper's main result, and no smaller part of it has the same figures.
"""

import numpy as np
import pytest
from test_memory import assert_within_promise_5

from boundary_forest import BoundaryForestClassifier

N_T = 50


def shuffled_fit(data, seed):
    order = np.random.default_rng(seed).permutation(len(data["X_train"]))
    forest = BoundaryForestClassifier(n_estimators=N_T, max_children=50, random_state=seed)
    return forest.fit(data["X_train"][order], data["y_train"][order])


def percent_wrong(forest, X, y):
    return 100 * np.mean(forest.predict(X) != y)


# Seen as means over 30 shuffles (letter: 10): 5.6, 2.6, 14.2. The paper has 5.4, 2.62, 14.3.
@pytest.mark.parametrize(("name", "ceiling"), [("letter", 6.2), ("pendigits", 3.1), ("dna", 15.5)])
def test_error_is_the_papers_and_one_pass_leaves_under_one_percent(name, ceiling, real_data):
    data = real_data(name)
    errors = []
    for seed in range(3):
        forest = shuffled_fit(data, seed)
        errors.append(percent_wrong(forest, data["X_test"], data["y_test"]))
        assert percent_wrong(forest, data["X_train"], data["y_train"]) < 1
    assert np.mean(errors) <= ceiling


def test_mnist_error_cost_and_memory_are_as_measured_in_advance(real_data):
    """Seen over 20 shuffles: error 2.38 +- 0.11 % (so a mean of 3 lies within 2.2 to 2.6; the paper
    has 2.24), 64 to 69 comparisons a tree and example; 18.3 bytes a node."""
    data = real_data("mnist")
    errors = []
    for seed in range(3):
        forest = shuffled_fit(data, seed)
        errors.append(percent_wrong(forest, data["X_test"], data["y_test"]))
    stats = forest.stats()
    assert 2.1 <= np.mean(errors) <= 2.6
    assert 60 <= stats["comparisons"]["learn"] / (N_T * len(data["X_train"])) <= 75
    assert percent_wrong(forest, data["X_train"][:10000], data["y_train"][:10000]) < 1
    assert_within_promise_5(stats, row_bytes=784)
