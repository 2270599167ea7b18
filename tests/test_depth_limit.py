"""Rows in order make chains of trees: where trees are not the paper's, they are grown again."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_learned_weights_equal_reference import assert_same, both

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
)
from boundary_forest.reference.depth import most_depth

ORDERS = {
    "sorted": lambda n: np.arange(n, dtype=float)[:, None],
    "to a point": lambda n: np.cumprod(np.full(n, 0.999))[:, None],
    "sorted among others": lambda n: np.c_[
        np.arange(n), np.random.default_rng(0).normal(size=(n, 5))
    ],
    "all equal": lambda n: np.ones((n, 3)),
}
SETTINGS = {
    "for_tables": lambda **p: BoundaryForestClassifier.for_tables(random_state=0, **p),
    "for_streams": lambda **p: BoundaryForestClassifier.for_streams(random_state=0, **p),
    "without weights": lambda **p: BoundaryForestClassifier.for_streams(
        random_state=0, feature_weights=None, **p
    ),
}


def index(**params):
    return BoundaryForestNeighbors(random_state=0, **params)


def depth(nodes, parents):
    depths = {}
    for arrival, parent in zip(nodes.tolist(), parents.tolist(), strict=True):
        depths[arrival] = depths.get(parent, -1) + 1
    return max(depths.values())


def labels(order, n):
    return np.arange(n) % (97 if order == "all equal" else 2)


def case(order, n, **other):
    return {
        "task": "classify", "X": ORDERS[order](n), "y": labels(order, n)[:, None].astype(float),
        "queries": ORDERS[order](n)[-5:], "epsilon": 0.0, "label_metric": "discrete", "n_T": 2,
        "k": 50, "seed": 3, "n_jobs": 2, "offline": False,
        "cuts": [cut for cut in (100, 511, 700, 1025) if cut < n],
        "feature_weights": "learned", "max_samples": 0.5, "weights": "distance", **other,
    }  # fmt: skip


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("order", "n", "other"),
    [
        ("sorted", 530, {"n_T": 1, "max_samples": 0.8, "k": 3}),
        ("sorted", 1040, {"n_T": 1}),
        ("to a point", 1040, {"lifetimes": [0, 600], "max_samples": 0.45}),
        ("sorted among others", 1040, {"n_T": 1, "max_samples": 0.6, "max_stored": 900}),
    ],
)
def test_what_is_learned_again_is_the_references(order, n, other):
    one = case(order, n, **other)
    engine, oracle = both(one)
    assert_same(engine, oracle, one)
    assert oracle.n_regrown > 0


def comparisons(forest, order, n):
    if isinstance(forest, BoundaryForestNeighbors):
        return forest.partial_fit(ORDERS[order](n)).stats()["comparisons"]["learn"]
    return forest.partial_fit(ORDERS[order](n), labels(order, n)).stats()["comparisons"]["learn"]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("setting", SETTINGS)
def test_rows_in_any_order_cost_little_more_than_n_log_n(setting, order):
    """Seen: 3.8 to 5.3 times as many comparisons for 4 times the rows; chains take 16 times."""
    few, many = (comparisons(SETTINGS[setting](n_estimators=4), order, n) for n in (8000, 32000))
    assert many < 6 * few


@pytest.mark.parametrize("setting", SETTINGS)
def test_trees_stay_shallow_and_answers_right(setting):
    X, y = ORDERS["sorted"](8192), labels("sorted", 8192)
    # Labels that alternate are noise to a mixture, which smooths them.
    params = {"n_estimators": 8, "max_samples": None, "weights": "auto"}
    forest = SETTINGS[setting](**params).partial_fit(X, y)
    for nodes, parents in forest.trees():
        assert depth(nodes, parents) <= most_depth(len(nodes))
    assert (forest.predict(X[-100:]) == y[-100:]).mean() > 0.95  # seen: 1.0


def test_the_papers_forest_has_no_limit():
    X, y = ORDERS["sorted"](600), labels("sorted", 600)
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0).partial_fit(X, y)
    assert all(depth(*tree) > 500 for tree in forest.trees())


def taught(forest, cuts, n=1200):
    X, y = ORDERS["sorted"](n), labels("sorted", n)
    for begin, end in zip([0, *cuts], [*cuts, n], strict=True):
        forest.partial_fit(X[begin:end], y[begin:end])
    return forest


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    setting=st.sampled_from(sorted(SETTINGS)),
    cuts=st.sets(st.integers(1, 1199), max_size=5).map(sorted),
    n_jobs=st.sampled_from([1, 2]),
    max_stored=st.sampled_from([None, 300]),
)
def test_cuts_and_threads_change_nothing(setting, cuts, n_jobs, max_stored):
    params = {"n_estimators": 4, "max_samples": 0.7, "max_stored": max_stored}
    whole = taught(SETTINGS[setting](**params), [])
    assert taught(SETTINGS[setting](**params, n_jobs=n_jobs), cuts).fingerprint() == (
        whole.fingerprint()
    )


@pytest.mark.parametrize("cut", [500, 512, 1024])
def test_a_forest_that_was_saved_goes_on_as_itself(cut, tmp_path):
    X, y = ORDERS["sorted"](1200), labels("sorted", 1200)
    whole = taught(SETTINGS["for_tables"](n_estimators=4, max_samples=0.7), [])
    begun = SETTINGS["for_tables"](n_estimators=4, max_samples=0.7).partial_fit(X[:cut], y[:cut])
    begun.save(tmp_path / "model.bf")
    resumed = load(tmp_path / "model.bf").partial_fit(X[cut:], y[cut:])
    assert resumed.fingerprint() == whole.fingerprint()


def test_predict_then_learn_answers_as_asking_and_learning_one_by_one():
    X, y = ORDERS["sorted"](1100), np.arange(1100) // 3 % 5
    begun = [
        SETTINGS["for_streams"](n_estimators=4).partial_fit(X[:400], y[:400]) for _ in range(2)
    ]
    found = begun[0].predict_then_learn(X[400:], y[400:])
    expected = []
    for i in range(400, 1100):
        expected.append(begun[1].predict(X[i : i + 1])[0])
        begun[1].partial_fit(X[i : i + 1], y[i : i + 1])
    assert found.tolist() == expected
    assert begun[0].fingerprint() == begun[1].fingerprint()


def test_targets_in_order_cost_little_more_than_n_log_n():
    few, many = (
        BoundaryForestRegressor.for_tables(n_estimators=8, random_state=0)
        .partial_fit(ORDERS["sorted"](n), np.arange(n) % 7.0)
        .stats()["comparisons"]["learn"]
        for n in (2000, 8000)
    )
    assert many < 6 * few


@pytest.mark.parametrize("order", ORDERS)
def test_an_index_of_rows_in_any_order_costs_little_more_than_n_log_n(order):
    """Seen: 5.3 to 5.5 times as many comparisons for 4 times the rows; chains take 16 times."""
    few, many = (comparisons(index(n_estimators=4), order, n) for n in (4000, 16000))
    assert many < 5.8 * few


def test_the_papers_index_has_no_limit():
    few, many = (
        comparisons(index(n_estimators=2, search="paper"), "sorted", n) for n in (500, 2000)
    )
    assert many > 15 * few


def taught_index(cuts, n=1200, **params):
    X, ids = ORDERS["sorted"](n), np.arange(n)
    grown = index(n_estimators=4, **params)
    for begin, end in zip([0, *cuts], [*cuts, n], strict=True):
        grown.partial_fit(X[begin:end], ids=ids[begin:end])
    return grown


def near(grown, X):
    return grown.kneighbors(X[::100] + 0.4, 3, return_distance=False, exact=False, beam=5)


@settings(max_examples=10, deadline=None, derandomize=True)
@given(
    cuts=st.sets(st.integers(1, 5199), max_size=5).map(sorted),
    n_jobs=st.sampled_from([1, 2]),
)
def test_cuts_and_threads_change_no_index(cuts, n_jobs):
    whole = taught_index([], n=5200)
    other = taught_index(cuts, n=5200, n_jobs=n_jobs)
    assert other.fingerprint() == whole.fingerprint()
    assert np.array_equal(near(other, ORDERS["sorted"](5200)), near(whole, ORDERS["sorted"](5200)))


@pytest.mark.parametrize("cut", [500, 512, 1024, 1100])
@pytest.mark.parametrize("forgets", [False, True])
@pytest.mark.parametrize("mmap", [False, True])
def test_an_index_that_was_saved_goes_on_as_itself(cut, forgets, mmap, tmp_path):
    X, ids = ORDERS["sorted"](1200), np.arange(1200)
    whole = index(n_estimators=4).partial_fit(X[:cut], ids=ids[:cut])
    if forgets:
        whole.forget(range(0, cut, 3))
    whole.save(tmp_path / "model.bf")
    resumed = load(tmp_path / "model.bf", mmap=mmap)
    assert resumed.fingerprint() == whole.fingerprint()
    assert np.array_equal(near(resumed, X[:cut]), near(whole, X[:cut]))
    for one in (whole, resumed):
        one.partial_fit(X[cut:], ids=ids[cut:])
    assert resumed.fingerprint() == whole.fingerprint()
    assert np.array_equal(near(resumed, X), near(whole, X))


def test_rows_that_turn_sorted_late_cost_little_more_than_n_log_n():
    """Seen: 545 comparisons per row and tree; chains would take 5,000."""
    X = np.r_[np.random.default_rng(0).uniform(-9000, 0, size=(9000, 1)), ORDERS["sorted"](16000)]
    spent = index(n_estimators=2).partial_fit(X).stats()["comparisons"]["learn"]
    assert spent < 2 * len(X) * 800
