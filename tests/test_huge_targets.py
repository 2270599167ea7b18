"""Targets near the largest double: means and thresholds are finite and right."""

import warnings

import numpy as np
import pytest

import boundary_forest
from boundary_forest import BoundaryForest, BoundaryForestRegressor, reference

LARGEST = np.finfo(np.float64).max


@pytest.fixture(autouse=True)
def _nothing_overflows():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", module="numpy")  # in scikit-learn's check of y
        yield


def stream(seed=0, n=300, outputs=1):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.uniform(-1, 1, size=(n, outputs))


@pytest.mark.parametrize("value", [LARGEST, -LARGEST])
def test_the_mean_of_equal_targets_is_that_target_however_large(value):
    X, _ = stream()
    forest = BoundaryForestRegressor(epsilon=0.0, random_state=0).fit(X, np.full(len(X), value))
    assert (forest.predict(X + 0.1) == value).all()


@pytest.mark.parametrize("epsilon", [0.05, "auto"])
@pytest.mark.parametrize("outputs", [1, 3])
def test_targets_times_a_power_of_two_give_the_same_forest_and_scaled_answers(epsilon, outputs):
    X, y = stream(outputs=outputs)
    scale = 2.0**1023

    def taught(factor):
        threshold = epsilon if epsilon == "auto" else epsilon * factor
        forest = BoundaryForestRegressor(epsilon=threshold, n_estimators=20, random_state=0)
        return forest.partial_fit(X[:100], y[:100] * factor).partial_fit(X[100:], y[100:] * factor)

    plain, huge = taught(1.0), taught(scale)
    same = zip(plain.trees(), huge.trees(), strict=True)
    assert all(np.array_equal(a, b) for one, two in same for a, b in zip(one, two, strict=True))
    answers = huge.predict(X + 0.1)
    assert np.isfinite(answers).all()
    assert answers / scale == pytest.approx(plain.predict(X + 0.1), rel=1e-12)
    explained = huge.explain(X[0] + 0.1)
    assert explained.confidence == pytest.approx(plain.explain(X[0] + 0.1).confidence, rel=1e-9)


def test_targets_of_both_signs_do_not_cancel_into_nan():
    X = np.array([[0.0], [2.0]])
    forest = BoundaryForestRegressor(n_estimators=50, random_state=0, epsilon=0.0)
    forest.fit(np.repeat(X, 25, axis=0), np.repeat([LARGEST, -LARGEST], 25))
    assert np.isfinite(forest.predict([[0.5], [1.0], [1.5]])).all()


def test_a_small_output_beside_a_huge_constant_one_still_sets_the_threshold():
    X, y = stream()
    both = np.column_stack([np.full(len(y), 1e300), y])
    plain, beside = (
        BoundaryForestRegressor(n_estimators=5, random_state=0).fit(X, t) for t in (y, both)
    )
    assert plain.stats()["nodes_per_tree"] == beside.stats()["nodes_per_tree"]


def test_a_saved_forest_of_huge_targets_continues_as_it_would_have(tmp_path):
    X, y = stream()
    y = y[:, 0] * LARGEST
    whole = BoundaryForestRegressor(n_estimators=5, random_state=0).partial_fit(X, y)
    first = BoundaryForestRegressor(n_estimators=5, random_state=0).partial_fit(X[:99], y[:99])
    first.save(tmp_path / "f.bf")
    rest = boundary_forest.load(tmp_path / "f.bf").partial_fit(X[99:], y[99:])
    assert rest.fingerprint() == whole.fingerprint()


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_the_reference_builds_the_same_forest_of_huge_targets():
    X, y = stream(n=120, outputs=2)
    y = y * [LARGEST, 1e200]
    y[:40] /= 1e308  # so that the units change on the way
    forest = BoundaryForest(n_estimators=4, random_state=3, epsilon="auto").partial_fit(X, y)
    oracle = reference.BoundaryForest(n_T=4, epsilon=None, seed=3)
    for x, c in zip(X, y, strict=True):
        oracle.BFTrain(x, c)
    for (arrivals, _), tree in zip(forest.trees(), oracle.trees, strict=True):
        assert arrivals.tolist() == [v.arrival for v in tree.nodes]
    Q = X[:20] + 0.05
    assert forest.predict(Q).tolist() == [oracle.shepard_mean(q).tolist() for q in Q]
