"""``fit`` learns its rows in an order drawn from the seed, and rows keep their numbers."""

from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from sklearn.datasets import load_iris, load_wine, make_classification
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
)
from boundary_forest.estimators.row_order import permuted
from boundary_forest.reference.randomness import learned_row

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4))
Y = (X[:, 0] > 0).astype(int) + 2 * (X[:, 1] > 0)


def order_of(forest, n: int = 300) -> np.ndarray:
    """The rows in the order in which they were learned."""
    return permuted(forest.seed_, n, np.arange(n))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 2**64 - 1), n=st.integers(1, 700))
def test_the_order_is_a_permutation_of_seed_and_n_and_that_of_the_reference(seed, n):
    order = permuted(seed, n, np.arange(n))
    assert sorted(order.tolist()) == list(range(n))
    some = range(0, n, max(1, n // 7))
    assert [learned_row(seed, n, a) for a in some] == order[list(some)].tolist()


def test_orders_differ_by_seed_and_are_spread_out():
    orders = np.array([permuted(seed, 500, np.arange(500)) for seed in range(200)])
    assert len(np.unique(orders, axis=0)) == 200
    assert abs(np.corrcoef(np.arange(500), orders[0])[0, 1]) < 0.15
    # Each place has each part of the rows about equally often: 200 draws of ten parts.
    counts = np.array([np.bincount(orders[:, place] // 50, minlength=10) for place in range(500)])
    assert counts.max() < 50


@pytest.mark.parametrize(
    "kind", [BoundaryForestClassifier, BoundaryForestRegressor, BoundaryForest]
)
@pytest.mark.parametrize("sparse", [False, True])
def test_it_is_the_forest_of_the_rows_in_that_order(kind, sparse):
    rows = csr_matrix(X) if sparse else X
    shuffled = kind(n_estimators=5, random_state=3).fit(rows, Y)
    order = order_of(shuffled)
    plain = kind(n_estimators=5, random_state=3, shuffle=False).fit(X[order], Y[order])
    np.testing.assert_array_equal(shuffled.apply(X), order[plain.apply(X)])
    np.testing.assert_array_equal(shuffled.predict(X), plain.predict(X))
    for (nodes, parents), (arrivals, above) in zip(shuffled.trees(), plain.trees(), strict=True):
        np.testing.assert_array_equal(nodes, order[arrivals])
        np.testing.assert_array_equal(parents, np.where(above < 0, -1, order[above]))


def test_rows_keep_their_numbers_everywhere(tmp_path):
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0).fit(X, Y)
    distances, rows = forest.kneighbors(X, 4)
    np.testing.assert_allclose(distances, np.linalg.norm(X[rows] - X[:, None], axis=2), atol=1e-12)
    for step in (step for tree in forest.explain(X[0]).trees for step in tree.steps):
        assert step.label == Y[step.arrival]
        assert step.distance == pytest.approx(np.linalg.norm(X[step.arrival] - X[0]))
    _, ends = forest.predict_then_learn(X[:5] + 0.1, Y[:5], return_ends=True)
    np.testing.assert_array_equal(ends.labels, Y[ends.arrivals])
    forest.save(tmp_path / "m.bf")
    for other in (load(tmp_path / "m.bf"), pickle.loads(pickle.dumps(forest))):
        np.testing.assert_array_equal(other.apply(X), forest.apply(X))
        assert other.fingerprint() == forest.fingerprint()


def test_functions_of_the_general_form_get_the_numbers_of_rows():
    forest = BoundaryForest(
        n_estimators=3, estimator=lambda y, nodes: nodes[0].arrival, random_state=0
    ).fit(X, Y)
    np.testing.assert_array_equal(forest.predict(X[:50]), forest.apply(X[:50])[:, 0])


def test_ids_stay_with_their_rows():
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0)
    forest.fit(X, Y, ids=[f"row {i}" for i in range(300)])
    twin = BoundaryForestClassifier(n_estimators=5, random_state=0).fit(X, Y)
    names, rows = (f.kneighbors(X, 3, return_distance=False) for f in (forest, twin))
    assert names.tolist() == [[f"row {i}" for i in some] for some in rows]


def test_what_comes_later_is_numbered_on():
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0).fit(X, Y)
    forest.partial_fit(X[:3] + 50, [7, 8, 9])
    assert forest.kneighbors(X[:3] + 50, 1)[1].ravel().tolist() == [300, 301, 302]


def test_without_shuffling_fit_is_partial_fit_from_nothing():
    for make in (BoundaryForestClassifier, BoundaryForestRegressor, BoundaryForest):
        fitted = make(random_state=0, shuffle=False).fit(X, Y)
        assert fitted.fingerprint() == make(random_state=0).partial_fit(X, Y).fingerprint()
    assert not BoundaryForestClassifier.for_streams().shuffle
    assert "shuffle" not in BoundaryForestNeighbors().get_params()


def test_offline_it_has_no_effect():
    one, two = (
        BoundaryForestClassifier(random_state=0, offline=True, shuffle=s).fit(X, Y)
        for s in (False, True)
    )
    assert one.fingerprint() == two.fingerprint()


def test_an_interrupted_fit_keeps_a_random_subset(monkeypatch):
    monkeypatch.setattr("boundary_forest.estimators.training.slices", blocks_of_100)
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0)
    order = permuted(0, 300, np.arange(300))
    calls = iter([None, KeyboardInterrupt()])

    class Interrupting(np.ndarray):
        def __getitem__(self, at):
            error = next(calls, None) if isinstance(at, np.ndarray) else None
            if error is not None:
                raise error
            return np.asarray(self)[at]

    prepared = forest._prepared

    def interrupted(*args, **more):
        found = prepared(*args, **more)
        object.__setattr__(found, "labels", found.labels.view(Interrupting))
        return found

    monkeypatch.setattr(forest, "_prepared", interrupted)
    with pytest.raises(KeyboardInterrupt) as raised:
        forest.fit(X, Y)
    assert "100 of 300 rows, drawn at random" in raised.value.__notes__[0]
    assert forest.examples_seen == 100
    assert set(np.unique(forest.apply(X))) <= set(order[:100].tolist())
    monkeypatch.undo()
    forest.partial_fit(X[:1] + 50, [9])
    assert forest.kneighbors(X[:1] + 50, 1)[1].ravel().tolist() == [300]
    assert pickle.loads(pickle.dumps(forest)).apply(X[:1] + 50)[0, 0] == 300


def blocks_of_100(n_rows, _):
    return (slice(start, min(start + 100, n_rows)) for start in range(0, n_rows, 100))


def test_a_metric_that_fails_leaves_the_forest_as_it_was(monkeypatch):
    monkeypatch.setattr("boundary_forest.estimators.training.slices", blocks_of_100)

    def metric(x, y):
        if x[0] > 90 or y[0] > 90:
            raise RuntimeError("too far")
        return float(abs(x - y).sum())

    forest = BoundaryForestClassifier(n_estimators=2, metric=metric, random_state=0)
    before = forest.fit(X[:50], Y[:50]).fingerprint()
    bad = X.copy()
    bad[order_of(forest)[250], 0] = 99.0
    with pytest.raises(ValueError, match="too far"):
        forest.fit(bad, Y)
    assert forest.fingerprint() == before


def test_rows_sorted_by_class_are_learned_like_shuffled_ones():
    data, y = make_classification(4000, weights=[0.97], random_state=0)
    data, test, y, y_test = train_test_split(data, y, random_state=0)
    order = np.argsort(y, kind="stable")
    score = BoundaryForestClassifier(random_state=0).fit(data[order], y[order]).score(test, y_test)
    assert score > 0.93  # seen: 0.95; 0.05 in the order given
    for load_data in (load_wine, load_iris):
        rows, y = load_data(return_X_y=True)
        mixed = np.random.default_rng(0).permutation(len(y))
        model = BoundaryForestClassifier.for_tables(random_state=0)
        scores = cross_val_score(model, rows, y)
        others = cross_val_score(model, rows[mixed], y[mixed])
        error = np.sqrt((scores.var() + others.var()) / 5)
        assert scores.mean() > others.mean() - max(error, 0.02)
    search = GridSearchCV(BoundaryForestClassifier(random_state=0), {"n_estimators": [5, 20]})
    assert search.fit(rows, y).best_score_ > 0.9


@pytest.mark.parametrize("method", ["partial_fit", "predict_then_learn", "fit"])
def test_rows_in_long_runs_of_one_class_are_warned_of_once(method):
    y = np.repeat([0, 1, 2], 100)
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0, shuffle=False)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        getattr(forest, method)(X, y)
        forest.partial_fit(X, y)
    (warning,) = caught
    assert "changed only 2 times in 300 rows" in str(warning.message)
    assert warning.category is UserWarning
    assert warning.filename == __file__  # the caller's line, which is what must be changed


def test_rows_in_no_such_order_are_not_warned_of():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for offline in (False, True):
            forest = BoundaryForestClassifier(n_estimators=3, random_state=0, offline=offline)
            forest.fit(X, np.repeat([0, 1, 2], 100))
        forest = BoundaryForestClassifier(n_estimators=3, random_state=0)
        for start in range(0, 300, 3):
            forest.partial_fit(X[start : start + 3], Y[start : start + 3])
        runs = np.repeat(RNG.integers(0, 2, 30), 10)  # as of a stream whose classes last a while
        BoundaryForestClassifier(n_estimators=3, random_state=0).partial_fit(X, runs)
