"""``weights="mixture"`` of forests that forget: accuracy, and what its state goes through."""

from __future__ import annotations

import pickle
from copy import deepcopy
from time import process_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, make_friedman1

import boundary_forest
import boundary_forest.river
from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestRegressor,
    load,
    open_durable,
)
from boundary_forest.estimators.fitted import new_engine

pytestmark = pytest.mark.kernels


def moving_squares(n, seed):
    """Four squares side by side that move, and turn at borders: see benchmarks/drift.py."""
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    step = (np.arange(n) / 120 + 6) % 24
    X = rng.uniform(size=(n, 2))
    X[:, 0] += 2 * y + np.minimum(step, 24 - step)
    return X, y


@pytest.fixture(params=["classes", "targets", "outputs"])
def task(request):
    if request.param == "classes":
        X, y = load_digits(return_X_y=True)
        names = np.array([f"digit {label}" for label in y])
        return BoundaryForestClassifier, X[:500], names[:500], X[500:530]
    X, y = make_friedman1(530, random_state=0)
    y = y if request.param == "targets" else np.column_stack([y, X[:, 0], -y])
    return BoundaryForestRegressor, X[:500], y[:500], X[500:]


def made(estimator, **parameters):
    return estimator.for_streams(**{"random_state": 0, **parameters})


def answered(forest, X):
    return getattr(forest, "predict_proba", forest.predict)(X)


def test_recent_rows_win_where_old_ones_mislead():
    """Accuracy from row 500 on: 0.87 by the trees alone, 0.99 by the mixture."""
    X, y = moving_squares(3000, 0)
    right = {}
    for weights in ("auto", "mixture"):
        answers = made(BoundaryForestClassifier, weights=weights).predict_then_learn(X, y)
        right[weights] = (answers[500:] == y[500:]).mean()
    assert right["mixture"] > 0.98
    assert right["auto"] < 0.95


def test_linear_experts_win_where_a_plane_turns():
    """Accuracy: 0.87 by the trees alone, 0.94 by the mixture."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 8))
    angle = np.arange(3000) / 1000
    y = X[:, 0] * np.cos(angle) + X[:, 1:].sum(axis=1) * np.sin(angle) > 0
    forest = made(BoundaryForestClassifier)
    answers = forest.predict_then_learn(X, y)
    assert (answers[500:] == y[500:]).mean() > 0.92
    assert any(name.startswith("linear") for name in forest.mixture_)


def with_persistent_noise(n, seed):
    """A plane, and noise of which a row takes over 0.95 from the row before."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 4))
    noise = np.zeros(n)
    for i in range(1, n):
        noise[i] = 0.95 * noise[i - 1] + 0.2 * rng.normal()
    return X, X.sum(axis=1), noise


def test_errors_that_persist_are_corrected():
    """Mean absolute errors of targets 0.31, and 0.53 where the same noise is shuffled; accuracies
    of classes 0.88 and 0.84.
    """
    X, plane, noise = with_persistent_noise(3000, 0)
    shuffled = np.random.default_rng(1).permutation(noise)
    errors, accuracies = [], []
    for each in (noise, shuffled):
        y = plane + each
        answers = made(BoundaryForestRegressor).predict_then_learn(X, y)
        errors.append(np.abs(answers[500:] - y[500:]).mean())
        answers = made(BoundaryForestClassifier).predict_then_learn(X, y > 0)
        accuracies.append((answers[500:] == (y > 0)[500:]).mean())
    assert errors[0] < 0.36
    assert errors[1] > 0.48
    assert accuracies[0] > accuracies[1] + 0.02


def test_at_most_four_experts_have_weights_which_sum_to_one(task):
    estimator, X, y, _ = task
    assert made(estimator).partial_fit(X[:48], y[:48]).mixture_ == {"trees": 1.0}
    weights = made(estimator).partial_fit(X, y).mixture_
    assert 1 <= len(weights) <= 4
    assert sum(weights.values()) == pytest.approx(1)
    assert min(weights.values()) > 0


def test_probabilities_are_calibrated_and_none_is_0():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 4))
    y = rng.random(4000) < 1 / (1 + np.exp(-4 * X[:, 0]))
    forest = made(BoundaryForestClassifier).partial_fit(X[:3000], y[:3000])
    P = forest.predict_proba(X[3000:])
    assert P.min() > 0
    np.testing.assert_allclose(P.sum(axis=1), 1)
    assert (forest.classes_[P.argmax(axis=1)] == forest.predict(X[3000:])).all()
    bins = np.minimum((P[:, 1] * 10).astype(int), 9)
    error = sum(abs((P[:, 1] - y[3000:])[bins == b].sum()) for b in range(10)) / 1000
    assert error < 0.06  # 0.02 to 0.04


def test_batches_and_threads_do_not_matter(task):
    estimator, X, y, queries = task
    whole = made(estimator).partial_fit(X, y)
    parts = made(estimator, n_jobs=2)
    for begin, end in [(0, 1), (1, 63), (63, 66), (66, 124), (124, 126), (126, 390), (390, 500)]:
        parts.partial_fit(X[begin:end], y[begin:end])
    assert parts.fingerprint() == whole.fingerprint()
    assert (answered(parts, queries) == answered(whole, queries)).all()


def test_predictions_before_learning_are_those_of_the_rows_before(task):
    estimator, X, y, _ = task
    forest = made(estimator).partial_fit(X[:50], y[:50])
    one, many = deepcopy(forest), deepcopy(forest)
    expected = []
    for i in range(50, 180):
        expected.append(one.predict(X[i : i + 1])[0])
        one.partial_fit(X[i : i + 1], y[i : i + 1])
    assert (many.predict_then_learn(X[50:180], y[50:180]) == expected).all()
    assert many.fingerprint() == one.fingerprint()


def test_saved_and_copied_forests_go_on_alike(task, tmp_path):
    estimator, X, y, queries = task
    whole = made(estimator).partial_fit(X, y)
    for cut in (30, 100, 460):
        forest = made(estimator).partial_fit(X[:cut], y[:cut])
        forest.save(tmp_path / "model")
        for again in (
            load(tmp_path / "model"), load(tmp_path / "model", mmap=True), deepcopy(forest),
            pickle.loads(pickle.dumps(forest)),
        ):  # fmt: skip
            again.partial_fit(X[cut:], y[cut:])
            assert again.fingerprint() == whole.fingerprint()
            assert (answered(again, queries) == answered(whole, queries)).all()


@pytest.mark.parametrize("feature_weights", [None, "given"])
def test_forests_that_learn_no_weights_are_saved_and_copied(task, feature_weights, tmp_path):
    estimator, X, y, queries = task
    if feature_weights == "given":
        feature_weights = np.linspace(1, 2, X.shape[1])
    forest = made(estimator, feature_weights=feature_weights, columns=None)
    forest.partial_fit(X[:300], y[:300])
    forest.save(tmp_path / "model")
    for again in (load(tmp_path / "model"), pickle.loads(pickle.dumps(forest))):
        assert (answered(again, queries) == answered(forest, queries)).all()


def test_a_reopened_folder_has_the_same_mixture(task, tmp_path):
    estimator, X, y, queries = task
    whole = made(estimator).partial_fit(X, y)
    with open_durable(tmp_path / "folder", made(estimator), snapshot_rows=200) as journalled:
        for begin in range(0, 500, 50):
            journalled.partial_fit(X[begin : begin + 50], y[begin : begin + 50])
    with open_durable(tmp_path / "folder") as again:
        assert again.fingerprint() == whole.fingerprint()
        assert (again.predict(queries) == whole.predict(queries)).all()


def test_a_call_that_fails_leaves_no_trace(task):
    estimator, X, y, _ = task
    forest = made(estimator, columns=None).partial_fit(X[:200], y[:200])
    before = forest.fingerprint()
    bad = X[200:300].copy()
    bad[50, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        forest.partial_fit(bad, y[200:300])
    assert forest.fingerprint() == before


def test_nothing_is_left_of_forgotten_rows(task):
    estimator, X, y, queries = task
    forest = made(estimator).partial_fit(X, y, ids=np.arange(500))
    forest.forget(np.arange(0, 500, 7))
    state = forest.fitted.engine.snapshot().state()
    assert not np.isin(np.arange(0, 500, 7), state["window_arrivals"]).any()
    explained = forest.explain(queries[0])
    assert not any(row.arrival % 7 == 0 for row in explained.recent)
    # The models are those of the rows that are left, at the arrivals that they had.
    again = deepcopy(forest)
    forest.forget([1])
    forgotten = forest.fitted.engine.snapshot().state()["linear_sums"]
    assert not np.array_equal(forgotten, state["linear_sums"])
    again.forget([1])
    assert again.fingerprint() == forest.fingerprint()


def test_an_explanation_shows_the_mixture_and_its_rows(task):
    estimator, X, y, queries = task
    forest = made(estimator).partial_fit(X, y)
    explained = forest.explain(queries[0])
    assert dict(explained.mixture) == forest.mixture_ == explained.to_dict()["mixture"]
    linear = sum(w for name, w in forest.mixture_.items() if name.startswith("linear"))
    recent = sum(w for name, w in forest.mixture_.items() if name.startswith("nearest"))
    assert sum(row.share for row in explained.recent) == pytest.approx(recent)
    assert sum(e.share for e in explained.examples) == pytest.approx(1 - linear - recent)
    np.testing.assert_array_equal(explained.answer, forest.predict(queries[:1])[0])
    assert "mixture of " in str(explained)
    assert ("from rows that arrived lately" in str(explained)) == bool(explained.recent)


def test_memory_is_bounded_and_counted(task):
    estimator, X, y, _ = task
    forest = made(estimator, max_stored=256).partial_fit(X, y)
    assert forest.stats()["examples_stored"] <= 256
    plain = made(estimator, max_stored=256, weights="auto").partial_fit(X, y)
    assert forest.stats()["bytes"]["window"] > plain.stats()["bytes"]["window"]


def test_a_rare_class_gets_more_with_its_weight():
    X, y = load_digits(return_X_y=True)
    rare = y == 8
    plain = made(BoundaryForestClassifier).partial_fit(X[:800], rare[:800])
    weighed = made(BoundaryForestClassifier, class_weight={True: 20.0})
    weighed.partial_fit(X[:800], rare[:800])
    p = plain.predict_proba(X[800:900])[:, 1]
    odds = p / (1 - p) * 20
    np.testing.assert_allclose(weighed.predict_proba(X[800:900])[:, 1], odds / (1 + odds))


def test_many_features_and_classes_are_mixed_without_linear_models():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 210)), rng.integers(0, 150, size=400)
    wide = made(BoundaryForestClassifier).partial_fit(X, y > 75)
    many = made(BoundaryForestClassifier).partial_fit(X[:, :3], y)
    for forest in (wide, many):
        assert not any(name.startswith("linear") for name in forest.mixture_)
    assert many.predict_proba(X[:5, :3]).shape == (5, len(np.unique(y)))


def test_the_time_of_a_row_does_not_grow_with_the_classes():
    """As long as for 100 classes; to predict took 4 times as long for 4,000 of them."""
    rng = np.random.default_rng(0)
    X, queries = rng.normal(size=(12_000, 8)), rng.normal(size=(500, 8))
    learning, predicting = [], []
    for n_classes in (100, 12_000):
        y = rng.permutation(np.arange(len(X)) % n_classes)
        forest = made(BoundaryForestClassifier, n_jobs=1)
        learning.append(least_time(lambda forest=forest, y=y: forest.partial_fit(X, y), 1))
        predicting.append(least_time(lambda forest=forest: forest.predict(queries), 3))
    assert learning[1] < 2 * learning[0]
    assert predicting[1] < 3 * predicting[0]


def least_time(call, n_times):
    times = []
    for _ in range(n_times):
        begin = process_time()
        call()
        times.append(process_time() - begin)
    return min(times)


@pytest.mark.parametrize("n_classes", [20, 90, 110, 600])
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_the_class_of_the_largest_probability_is_predicted(n_classes, class_weight):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 4))
    y = (np.abs(X[:, 0]) * n_classes / 3 + rng.integers(4, size=900)).astype(int)
    forest = made(BoundaryForestClassifier, class_weight=class_weight).partial_fit(X[:600], y[:600])
    P = forest.predict_proba(X[600:])
    np.testing.assert_allclose(P.sum(axis=1), 1)
    np.testing.assert_array_equal(forest.classes_[P.argmax(axis=1)], forest.predict(X[600:]))


def test_huge_targets_and_features_stay_finite():
    X, y = make_friedman1(400, random_state=0)
    for factor in (1e150, 1e300):
        forest = made(BoundaryForestRegressor).partial_fit(X * 1e100, y * factor)
        assert np.isfinite(forest.predict(X[:50])).all()


# What makes sums overflow, vanish or cancel.
NUMBERS = st.sampled_from(
    [0.0, 1.0, -1.0, 0.5, 3.0, 1e6, -1e15, 1e-300, 5e-324, 1e150, 1e300, -1e308]
)


@pytest.mark.filterwarnings("ignore:the class changed only")
@settings(max_examples=30, deadline=None, derandomize=True)
@given(st.lists(st.lists(NUMBERS, min_size=1, max_size=6), min_size=1, max_size=3), st.data())
def test_whatever_comes_predictions_are_numbers(values, data):
    """Columns take a few numbers each, and so do labels, which may also be sorted."""
    n = 260
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = np.column_stack([rng.choice(of_column, n) for of_column in values])
    X += np.where(
        rng.random(X.shape) < data.draw(st.sampled_from([0.0, 0.5])), rng.random(X.shape), 0
    )
    labels = rng.choice(data.draw(st.lists(NUMBERS, min_size=1, max_size=4)), n)
    labels = np.sort(labels) if data.draw(st.booleans()) else labels
    classifier, regressor = made(BoundaryForestClassifier), made(BoundaryForestRegressor)
    for batch in np.split(np.arange(n), [1, 40, 130]):
        if batch[0] > 0:
            P = classifier.predict_proba_then_learn(X[batch], labels[batch].astype(str))
            assert (P >= 0).all()
            np.testing.assert_allclose(P.sum(axis=1), 1)
            assert np.isfinite(regressor.predict_then_learn(X[batch], labels[batch])).all()
        else:
            classifier.partial_fit(X[batch], labels[batch].astype(str))
            regressor.partial_fit(X[batch], labels[batch])
        P = classifier.predict_proba(X[:20])
        assert (P > 0).all()
        np.testing.assert_allclose(P.sum(axis=1), 1)
        assert np.isfinite(regressor.predict(X[:20])).all()


def test_a_far_origin_does_not_spoil_linear_models():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(3000, 3)) + 1e6
    X[0] = 0.0
    y = X @ [1.0, 2.0, -3.0]
    forest = made(BoundaryForestRegressor)
    answers = forest.predict_then_learn(X, y)
    assert np.abs(answers[2000:] - y[2000:]).mean() < 0.1


@pytest.mark.parametrize("field", ["mixture_weights", "mixture_trial", "class_order"])
@pytest.mark.parametrize("change", ["shorter", "invalid", "absent"])
def test_a_damaged_state_is_refused(field, change):
    X, y = load_digits(return_X_y=True)
    forest = made(BoundaryForestClassifier).partial_fit(X[:200], y[:200])
    state = forest.fitted.engine.snapshot().state()
    values = state[field].copy()
    values[0] = 1000 if field == "class_order" else -1
    state[field] = {"invalid": values, "shorter": state[field][:-1], "absent": values[:0]}[change]
    engine = new_engine(forest.fitted.settings, forest.fitted.labels)
    with pytest.raises(ValueError, match="inconsistent state"):
        engine.restore(state)


def test_frames_with_categories_are_mixed():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"colour": rng.choice(["red", "green", "blue"], 600), "size": rng.normal(size=600)}
    )
    y = np.where(frame.colour == "red", frame["size"] > 0, frame["size"] > 1)
    forest = made(BoundaryForestClassifier)
    answers = forest.predict_then_learn(frame, y)
    assert (answers[300:] == y[300:]).mean() > 0.9
    assert forest.mixture_


@pytest.mark.parametrize("name", ["BoundaryForestClassifier", "BoundaryForestRegressor"])
def test_river_rows_are_mixed_as_arrays_are(name):
    pytest.importorskip("river")
    X, y = make_friedman1(300, random_state=0)
    y = y > 14 if name.endswith("Classifier") else y
    one = getattr(boundary_forest.river, name).for_streams(seed=0)
    for x, label in zip(X.tolist(), y.tolist(), strict=True):
        one.learn_one({f"x{i}": value for i, value in enumerate(x)}, label)
    many = getattr(boundary_forest, name).for_streams(random_state=0).partial_fit(X, y)
    assert one.mixture_ == many.mixture_


def test_other_metrics_are_not_mixed():
    make = BoundaryForestClassifier.for_streams
    assert make().weights == make(metric="l2").weights == "mixture"
    assert make(metric="manhattan", feature_weights=None).weights == "auto"
    assert make(forgetting=None).weights == "mixture"


def test_for_streams_on_a_cluster_does_not_mix():
    ray = pytest.importorskip("boundary_forest.ray")
    assert ray.BoundaryForestClassifier.for_streams().weights == "auto"
    assert ray.BoundaryForestRegressor.for_streams().weights == "auto"
