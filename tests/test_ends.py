"""return_ends: what the trees ended at just before each row was learned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import sparse

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor, open_durable
from boundary_forest.durable import interruptible_blocks
from boundary_forest.estimators import blocks

CASES = {
    "plain": {},
    "few children": {"max_children": 2},
    "sampling": {"max_samples": 0.4},
    "equal votes": {"weights": "uniform"},
    "votes that change": {"weights": "auto", "max_samples": 0.5},
    "learned weights": {"feature_weights": "learned"},
    "another metric": {"metric": "manhattan"},
}


def stream(kind, n=300):
    """Rows of which some come twice, with other labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    X[::7] = X[0]
    if kind is BoundaryForestRegressor:
        return X, X.sum(axis=1) + rng.normal(size=n) / 4
    return X, np.where(rng.random(n) < 0.2, "noise", np.where(X[:, 0] > 0, "right", "left"))


def forest_of(kind, **parameters):
    return kind(**{"n_estimators": 6, "random_state": 0, **parameters})


def assert_as_explained(kind, ends, twin, X, y):
    """Against ``apply`` and ``explain`` of a twin that learns row by row."""
    labels = ends.labels
    for i in range(len(X)):
        assert ends.arrivals[i].tolist() == twin.apply(X[i : i + 1])[0].tolist()
        trees = twin.explain(X[i]).trees
        steps = [tree.steps[-1] for tree in trees]
        assert ends.arrivals[i].tolist() == [step.arrival for step in steps]
        assert labels[i].tolist() == [step.label for step in steps]
        assert ends.distances[i].tolist() == pytest.approx([step.distance for step in steps])
        assert ends.weights[i].tolist() == [tree.weight for tree in trees]
        twin.partial_fit(X[i : i + 1], y[i : i + 1])


@pytest.mark.parametrize("kind", [BoundaryForestClassifier, BoundaryForestRegressor])
@pytest.mark.parametrize("name", CASES)
def test_ends_are_those_of_just_before_each_row(kind, name):
    """From the second row on, so that the first are answered before there are trees."""
    X, y = stream(kind)
    one, twin = (forest_of(kind, **CASES[name]).partial_fit(X[:1], y[:1]) for _ in "12")
    _, ends = one.predict_then_learn(X[1:], y[1:], return_ends=True)
    assert ends.arrivals.shape == ends.labels.shape == (299, 6)
    assert ends.arrivals.dtype == np.int64
    assert_as_explained(kind, ends, twin, X[1:], y[1:])
    assert one.fingerprint() == twin.fingerprint()


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("kind", [BoundaryForestClassifier, BoundaryForestRegressor])
def test_answers_are_made_of_the_ends_and_as_without_them(kind, n_jobs):
    X, y = stream(kind, 2000)
    with_ends, without = (
        forest_of(kind, weights="auto", n_jobs=n_jobs).partial_fit(X[:1], y[:1]) for _ in "12"
    )
    answers, ends = with_ends.predict_then_learn(X[1:], y[1:], return_ends=True)
    assert answers.tolist() == without.predict_then_learn(X[1:], y[1:]).tolist()
    assert with_ends.fingerprint() == without.fingerprint()
    assert ends.weights.sum(axis=1) == pytest.approx(np.ones(len(ends)))
    if kind is BoundaryForestRegressor:
        assert (ends.weights * ends.labels).sum(axis=1) == pytest.approx(answers)
    else:
        own = (ends.weights * (ends.labels == answers[:, None])).sum(axis=1)
        others = {c: (ends.weights * (ends.labels == c)).sum(axis=1) for c in np.unique(y)}
        assert own == pytest.approx(np.max(list(others.values()), axis=0))


def test_shares_are_the_sums_of_the_ends_weights():
    X, y = stream(BoundaryForestClassifier)
    forest = forest_of(BoundaryForestClassifier).partial_fit(X[:20], y[:20])
    shares, ends = forest.predict_proba_then_learn(X[20:], y[20:], return_ends=True)
    for column, label in enumerate(forest.classes_):
        assert (ends.weights * (ends.labels == label)).sum(axis=1) == pytest.approx(
            shares[:, column]
        )


def test_before_there_are_trees_every_column_has_the_nearest_example():
    forest = BoundaryForestClassifier(n_estimators=50).partial_fit([[0.0], [9.0]], ["a", "b"])
    answers, ends = forest.predict_then_learn([[8.0], [7.9]], ["c", "a"], return_ends=True)
    assert answers.tolist() == ["b", "c"]
    assert ends.arrivals.tolist() == [[1] * 50, [2] * 50]
    assert ends.labels.tolist() == [["b"] * 50, ["c"] * 50]
    assert ends.distances == pytest.approx(np.repeat([[1.0], [0.1]], 50, axis=1))
    assert ends.weights == pytest.approx(np.full((2, 50), 0.02))


def test_targets_of_several_outputs_have_an_axis_of_their_own():
    X, y = stream(BoundaryForestRegressor)
    y = np.stack([y, -y], axis=1)
    forest = forest_of(BoundaryForestRegressor).partial_fit(X[:20], y[:20])
    answers, ends = forest.predict_then_learn(X[20:], y[20:], return_ends=True)
    assert ends.labels.shape == (280, 6, 2)
    assert (ends.weights[:, :, None] * ends.labels).sum(axis=1) == pytest.approx(answers)


def test_some_rows_are_taken_out_whole():
    X, y = stream(BoundaryForestClassifier)
    forest = forest_of(BoundaryForestClassifier).partial_fit(X[:20], y[:20])
    _, ends = forest.predict_then_learn(X[20:], y[20:], return_ends=True)
    some = ends[5:7]
    assert len(some) == 2
    for name in ("arrivals", "labels", "distances", "weights"):
        assert getattr(some, name).tolist() == getattr(ends, name)[5:7].tolist()


def assert_same_ends(one, other):
    for name in ("arrivals", "labels", "distances", "weights"):
        assert getattr(one, name).tolist() == getattr(other, name).tolist()


def test_sparse_rows_have_the_ends_of_dense_ones(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 20)
    X, y = stream(BoundaryForestClassifier)
    dense, thin = (forest_of(BoundaryForestClassifier).partial_fit(X[:9], y[:9]) for _ in "12")
    _, expected = dense.predict_then_learn(X[9:], y[9:], return_ends=True)
    _, ends = thin.predict_then_learn(sparse.csr_array(X[9:]), y[9:], return_ends=True)
    assert_same_ends(ends, expected)


@pytest.mark.parametrize("method", ["predict_then_learn", "predict_proba_then_learn"])
def test_a_durable_forest_returns_them_too(method, tmp_path, monkeypatch):
    monkeypatch.setattr(interruptible_blocks, "FIRST_ROWS", 50)  # so that a call is several blocks
    X, y = stream(BoundaryForestClassifier)
    plain, kept = (forest_of(BoundaryForestClassifier).partial_fit(X[:9], y[:9]) for _ in "12")
    expected = getattr(plain, method)(X[9:], y[9:], return_ends=True)
    with open_durable(tmp_path, kept) as forest:
        said = getattr(forest, method)(X[9:], y[9:], return_ends=True)
    assert said[0].tolist() == expected[0].tolist()
    assert_same_ends(said[1], expected[1])
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == plain.fingerprint()
