"""Rows sorted by class are learned nearly as well as shuffled ones, in forests with a reservoir."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

from boundary_forest import BoundaryForestClassifier

SETTINGS = {
    "tables": BoundaryForestClassifier.for_tables,
    "streams": BoundaryForestClassifier.for_streams,
}


def split(seed):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    return X[order[:1347]], y[order[:1347]], X[order[1347:]], y[order[1347:]]


def is_replaying(forest):
    return forest.fitted.engine.snapshot().state(with_positions=False)["replays"]


@pytest.mark.filterwarnings("ignore:.*sorted by class")
@pytest.mark.parametrize(("kind", "least"), [("tables", 0.97), ("streams", 0.95)])
def test_digits_sorted_by_class_are_learned(kind, least):
    """Observed over 6 splits: 0.986 and 0.972."""
    right = []
    for seed in range(3):
        X, y, X_test, y_test = split(seed)
        order = np.argsort(y, kind="stable")
        forest = SETTINGS[kind](random_state=seed).partial_fit(X[order], y[order])
        assert is_replaying(forest)
        right.append(forest.score(X_test, y_test))
    assert np.mean(right) > least


@pytest.mark.parametrize("kind", sorted(SETTINGS))
def test_rows_in_random_order_are_never_replayed(kind):
    X, y, *_ = split(0)
    forest = SETTINGS[kind](random_state=0)
    for begin in range(0, len(X), 64):
        forest.partial_fit(X[begin : begin + 64], y[begin : begin + 64])
        assert not is_replaying(forest)


def test_what_is_in_the_reservoir_is_stored_and_within_max_stored():
    X, y, *_ = split(0)
    forest = BoundaryForestClassifier.for_tables(random_state=0, max_stored=400)
    for begin in range(0, len(X), 100):
        forest.partial_fit(X[begin : begin + 100], y[begin : begin + 100])
        assert forest.stats()["examples_stored"] <= 400
    state = forest.fitted.engine.snapshot().state()
    assert len(state["reservoir_arrivals"]) == 100
    assert np.isin(state["reservoir_arrivals"], state["arrivals"]).all()
