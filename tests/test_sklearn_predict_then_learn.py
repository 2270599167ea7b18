"""predict_then_learn: predict and then partial_fit, row by row, in one call."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from conftest import state, unchanged
from scipy import sparse
from sklearn.exceptions import NotFittedError

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from boundary_forest.estimators import blocks


def row_by_row(forest, X, y):
    said = []
    for x, label in zip(X, y, strict=True):
        said.append(forest.predict([x])[0].tolist())
        forest.partial_fit([x], [label])
    return said


@pytest.fixture(params=["classification", "regression"])
def predicting(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize("n", [1, 3, 40], ids=["one example", "before there are trees", "trees"])
@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
def test_it_says_and_learns_what_a_loop_would(predicting, n, n_jobs, offline):
    task = predicting
    start = {"offline": offline, "n_jobs": n_jobs}
    one, two, three = (task.forest(**start).fit(task.X[:n], task.y[:n]) for _ in range(3))
    said = one.predict_then_learn(task.X_more, task.y_more)
    assert said.tolist() == row_by_row(two, task.X_more, task.y_more)
    three.partial_fit(task.X_more, task.y_more)
    assert state(one, task.queries) == state(two, task.queries) == state(three, task.queries)


def test_long_batches_are_said_as_short_ones():
    """Longer than the blocks in which the engine learns."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 30, size=(5000, 3)).astype(np.uint8)
    y = (X.sum(axis=1) // 9).astype(str)
    whole, parts = (
        BoundaryForestClassifier(n_estimators=4, random_state=0).fit(X[:1], y[:1]) for _ in "ab"
    )
    said = whole.predict_then_learn(X[1:], y[1:])
    cuts = [1, 2, 5, 700, 2000, 2001, 5000]
    bits = [parts.predict_then_learn(X[a:b], y[a:b]) for a, b in pairwise(cuts)]
    assert said.tolist() == np.concatenate(bits).tolist()
    assert whole.fingerprint() == parts.fingerprint()


def test_a_class_is_never_answered_before_its_first_example():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(300, 2)), np.repeat([f"class {i}" for i in range(29, -1, -1)], 10)
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0).partial_fit(X[:1], y[:1])
    said = forest.predict_then_learn(X[1:], y[1:])
    known = {y[0]}
    for answer, label in zip(said, y[1:], strict=True):
        assert answer in known
        known.add(label)
    assert said.dtype == forest.classes_.dtype


def test_equal_shares_go_to_the_first_class_known_then():
    ties = 0
    for seed in range(30):
        forest = BoundaryForestClassifier(n_estimators=2, random_state=seed)
        forest.fit([[-1.0], [1.0]], ["later", "earlier"])
        if forest.predict_proba([[0.0]]).tolist() == [[0.5, 0.5]]:
            ties += 1
            # "a" sorts first of all, but is not known when the first row is asked about
            assert forest.predict_then_learn([[0.0], [0.0]], ["a", "a"]).tolist() == [
                "earlier",
                "a",
            ]
    assert ties > 0


@pytest.mark.parametrize("outputs", [1, 2])
def test_answers_have_the_shape_of_the_targets(regression, outputs):
    y, y_more = (np.stack([t] * outputs, axis=1) for t in (regression.y, regression.y_more))
    said = regression.forest().fit(regression.X, y).predict_then_learn(regression.X_more, y_more)
    assert said.shape == y_more.shape
    flat = regression.taught().predict_then_learn(regression.X_more, regression.y_more)
    assert flat.shape == regression.y_more.shape


@pytest.mark.parametrize("n", [1, 2, 40])
def test_an_empty_forest_answers_from_the_second_row_on(predicting, n, monkeypatch):
    """The first answer is None, or NaN: it equals no label, so that it counts as an error."""
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 20)
    task = predicting
    X, y = task.X[:n], task.y[:n]
    one, two = task.forest(), task.forest().partial_fit(X[:1], y[:1])
    said = one.predict_then_learn(X, y)
    assert len(said) == n
    assert said[0] is None or np.isnan(said[0])
    assert (said == y).tolist()[0] is False
    if n > 1:
        assert said[1:].tolist() == two.predict_then_learn(X[1:], y[1:]).tolist()
    assert one.fingerprint() == two.fingerprint()
    thin = task.forest()
    assert thin.predict_then_learn(sparse.csr_array(X), y)[1:].tolist() == said[1:].tolist()
    assert thin.fingerprint() == one.fingerprint()


def test_no_class_has_a_share_in_the_first_row_of_all(classification):
    one, two = classification.forest(), classification.forest()
    shares = one.predict_proba_then_learn(classification.X, classification.y)
    assert shares.shape == (len(classification.X), len(one.classes_))
    assert not shares[0].any()
    said = two.predict_then_learn(classification.X, classification.y)
    assert one.classes_[shares[1:].argmax(axis=1)].tolist() == said[1:].tolist()


def test_several_outputs_and_ids_are_no_exception(regression):
    y = np.stack([regression.y, -regression.y], axis=1)
    forest = regression.forest()
    said = forest.predict_then_learn(regression.X, y, ids=np.arange(len(y)) + 100)
    assert said.shape == y.shape
    assert np.isnan(said[0]).all()
    assert np.isfinite(said[1:]).all()
    assert forest.kneighbors(regression.X[:1], 1)[1][0, 0] >= 100


def test_an_empty_forest_learns_nothing_of_a_call_that_fails():
    calls = []

    def failing(x, y):
        calls.append(1)
        if len(calls) > 3:
            raise RuntimeError("no more")
        return float(abs(x - y).sum())

    forest = BoundaryForestClassifier(metric=failing)
    with pytest.raises(ValueError, match="no more"):
        forest.predict_then_learn(np.arange(9.0)[:, None], ["a"] * 9)
    assert forest.examples_seen == 0
    forest = BoundaryForestClassifier()
    with pytest.raises(ValueError, match="X"):
        forest.predict_then_learn([[1.0], [np.nan]], ["a", "b"])
    assert forest.examples_seen == 0


@pytest.mark.parametrize("estimator", [BoundaryForestClassifier, BoundaryForestRegressor])
def test_with_no_example_no_tree_ends_anywhere(estimator):
    with pytest.raises(NotFittedError, match="partial_fit with at least one example"):
        estimator().predict_then_learn([[0.0]], [1], return_ends=True)


def test_bad_input_teaches_nothing(predicting):
    task = predicting
    forest = task.taught()
    with unchanged(forest, task.queries):
        with pytest.raises(ValueError, match="X"):
            forest.predict_then_learn(np.append(task.X_more, [[np.nan] * 4], axis=0), task.y_more)
        with pytest.raises(ValueError, match="y"):
            forest.predict_then_learn(task.X_more, task.y_more[1:])


def test_sparse_rows_are_said_as_dense_ones(predicting, monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 20)
    task = predicting
    y_more = task.y_more.copy()
    y_more[-3:] = 7  # a new class in the last block
    dense, thin = task.taught(), task.taught()
    said = dense.predict_then_learn(task.X_more, y_more)
    assert thin.predict_then_learn(sparse.csr_array(task.X_more), y_more).tolist() == said.tolist()
    assert thin.fingerprint() == dense.fingerprint()
