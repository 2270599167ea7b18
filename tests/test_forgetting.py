"""Forests that forget: trees that come and go, votes by recent accuracy, a bound on storage."""

from __future__ import annotations

import copy
import pickle
import threading

import numpy as np
import pytest
from conftest import REFUSED, answers
from hypothesis import given, settings
from hypothesis import strategies as st
from test_learned_weights import N, stream

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor, load
from boundary_forest.durable import open_durable

TASKS = ["classify", "regress", "outputs"]
LIFETIMES = [None, 16, 100, 5]
STREAMS = {
    "n_estimators": 7,
    "feature_weights": "learned",
    "max_samples": 0.5,
    "weights": "auto",
    "forgetting": LIFETIMES,
    "max_stored": 200,
}


def forest(task, **params):
    made = BoundaryForestClassifier if task == "classify" else BoundaryForestRegressor
    return made(**{"random_state": 3, **STREAMS, **params})


def taught(task, cuts=(), begin=None, end=N, **params):
    X, y = stream(task)
    learner, start = (forest(task, **params), 0) if begin is None else begin
    for cut in [*(cut for cut in cuts if start < cut < end), end]:
        learner.partial_fit(X[start:cut], y[start:cut])
        start = cut
    return learner


def same(one, other, task):
    queries = stream(task)[0][N:]
    assert one.fingerprint() == other.fingerprint()
    assert answers(one, queries) == answers(other, queries)
    return True


@pytest.mark.parametrize("task", TASKS)
def test_single_rows_and_threads_change_nothing(task):
    whole = taught(task)
    assert same(taught(task, cuts=range(N)), whole, task)
    assert same(taught(task, n_jobs=2), whole, task)


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    task=st.sampled_from(TASKS),
    cuts=st.sets(st.integers(1, N - 1), max_size=6).map(sorted),
    lifetimes=st.lists(st.sampled_from([2, 3, 16, 63, 500]), max_size=4).map(lambda s: [None, *s]),
    max_stored=st.sampled_from([None, 28, 100]),
    samples=st.sampled_from([0.05, 0.5, None]),
)
def test_cuts_change_nothing(task, cuts, lifetimes, max_stored, samples):
    params = {"forgetting": lifetimes, "max_stored": max_stored, "max_samples": samples}
    assert same(taught(task, cuts, **params), taught(task, **params), task)


@pytest.mark.parametrize("task", TASKS)
def test_predict_then_learn_answers_as_asking_and_learning_one_by_one(task):
    X, y = stream(task)
    together, one_by_one = taught(task, end=10), taught(task, end=10)
    found = together.predict_then_learn(X[10:400], y[10:400])
    expected = []
    for i in range(10, 400):
        expected.append(one_by_one.predict(X[i : i + 1])[0])
        one_by_one.partial_fit(X[i : i + 1], y[i : i + 1])
    assert found.tolist() == np.array(expected).tolist()
    assert together.fingerprint() == one_by_one.fingerprint()


@pytest.mark.parametrize("cut", [3, 7, 60, 125, 133, 240, 499])
@pytest.mark.parametrize("task", TASKS)
def test_copies_and_files_go_on_as_the_forest_itself(task, cut, tmp_path):
    before = taught(task, end=cut)
    before.save(tmp_path / "model.bf")
    copies = [load(tmp_path / "model.bf"), load(tmp_path / "model.bf", mmap=True)]
    copies += [pickle.loads(pickle.dumps(before)), copy.deepcopy(before)]
    for one in copies:
        assert one.get_params() == before.get_params()
        same(one, before, task)
    expected = taught(task)
    for one in copies:
        assert same(taught(task, begin=(one, cut)), expected, task)


def test_a_durable_folder_goes_on_as_the_forest_itself(tmp_path):
    X, y = stream("classify")
    for begin, end in [(0, 110), (110, 260), (260, N)]:
        begun = [forest("classify")] if begin == 0 else []
        with open_durable(tmp_path, *begun) as durable:
            durable.partial_fit(X[begin:end], y[begin:end])
            last = durable.fingerprint()
    assert last == taught("classify").fingerprint()


def test_trees_of_a_lifetime_know_only_what_is_recent():
    learner = taught(
        "classify", forgetting=[8], feature_weights=None, max_samples=None, max_stored=None
    )
    oldest = [nodes.min() for nodes, _ in learner.trees()]
    assert min(oldest) >= N - 12  # a lifetime and a half
    assert learner.stats()["examples_stored"] <= 12
    lasting = taught(
        "classify", forgetting=[None, 8], feature_weights=None, max_samples=None, max_stored=None
    )
    assert [nodes.min() < 7 for nodes, _ in lasting.trees()] == [True, False] * 3 + [True]


def test_a_stream_that_changes_is_followed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 8))
    y = np.where(np.arange(5000) < 3000, X.sum(axis=1) > 0, X.sum(axis=1) < 0)
    forgetting = BoundaryForestClassifier.for_streams(random_state=0)
    lasting = BoundaryForestClassifier.for_streams(random_state=0, forgetting=None)
    right = []
    for learner in (forgetting, lasting):
        learner.partial_fit(X[:100], y[:100])
        right.append((learner.predict_then_learn(X[100:], y[100:]) == y[100:])[2900:3900].mean())
    assert right[0] > right[1] + 0.1


@pytest.mark.parametrize("max_stored", [28, 60, 333])
@pytest.mark.parametrize("forgetting", [None, LIFETIMES])
def test_no_more_is_ever_stored_than_max_stored(max_stored, forgetting):
    X, y = stream("regress")
    learner = forest("regress", max_stored=max_stored, forgetting=forgetting, max_samples=None)
    most = 0
    for begin in range(0, N, 13):
        learner.partial_fit(X[begin : begin + 13], y[begin : begin + 13])
        most = max(most, learner.stats()["examples_stored"])
    assert max_stored * 0.8 <= most <= max_stored
    offline = BoundaryForestRegressor(
        n_estimators=7, offline=True, max_stored=max_stored, random_state=0
    )
    assert offline.fit(X, y).stats()["examples_stored"] <= max_stored


@pytest.mark.parametrize("max_stored", [4, 5, 6, 7, 8])
def test_a_single_tree_of_few_examples_does_not_depend_on_batches(max_stored):
    """Below 8 there is no eighth that must stay free, but there is room for the next row."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 7, 300)
    params = {"n_estimators": 1, "max_stored": max_stored, "random_state": 0}
    whole = BoundaryForestClassifier(**params).partial_fit(X, y)
    rows = BoundaryForestClassifier(**params)
    for i in range(len(X)):
        rows.partial_fit(X[i : i + 1], y[i : i + 1], classes=np.arange(7) if i == 0 else None)
        assert rows.stats()["examples_stored"] <= max_stored
    assert rows.trees()[0][0].tolist() == whole.trees()[0][0].tolist()
    assert rows.predict(X).tolist() == whole.predict(X).tolist()


def test_a_limit_below_four_examples_per_tree_is_refused():
    X, y = stream("classify")
    with pytest.raises(ValueError, match=r"max_stored must be at least 28 \(4 for each of 7 trees"):
        forest("classify", max_stored=27).partial_fit(X, y)


def test_one_who_asks_while_trees_come_and_go_sees_one_state():
    X, y = stream("classify")
    alone = taught("classify", end=20)
    known = {answers_of(alone, X[N:])}
    for i in range(20, 220):
        known.add(answers_of(alone.partial_fit(X[i : i + 1], y[i : i + 1]), X[N:]))
    learner, seen = taught("classify", end=20), set()
    done = threading.Event()

    def ask():
        while not done.is_set():
            seen.add(answers_of(learner, X[N:]))

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for begin in range(20, 220, 20):
        learner.partial_fit(X[begin : begin + 20], y[begin : begin + 20])
    done.set()
    for asker in askers:
        asker.join()
    assert seen <= known


def answers_of(learner, queries):
    return learner.predict_proba(queries).tobytes()


@pytest.mark.parametrize(
    ("parameter", "value"),
    [
        ("forgetting", "always"),
        ("forgetting", []),
        ("forgetting", [1]),
        ("forgetting", [True]),
        ("forgetting", [16, 2.5]),
        ("forgetting", [10**10]),
        ("forgetting", 16),
        ("max_stored", 0),
        ("max_stored", 27),
        ("max_stored", 2.5),
    ],
)
def test_bad_values_are_refused_by_name_and_nothing_is_learned(parameter, value):
    X, y = stream("classify")
    learner = forest("classify", **{parameter: value})
    with pytest.raises(REFUSED, match=parameter):
        learner.partial_fit(X, y)
    assert not hasattr(learner, "classes_")


@pytest.mark.parametrize("element_type", ["uint8", "float32", "float64"])
def test_the_paper_s_parameters_work_with_forgetting(element_type):
    X, y = stream("classify", element_type)
    for params in ({"weights": "distance"}, {"weights": "uniform"}, {"feature_weights": None}):
        for metric in ("euclidean", "manhattan") if "feature_weights" in params else ("euclidean",):
            learner = forest("classify", metric=metric, **params)
            ids = np.arange(len(X))
            learner.partial_fit(X[:300], y[:300], ids=ids[:300])
            learner.partial_fit(X[300:], y[300:], ids=ids[300:])
            one = forest("classify", metric=metric, **params).partial_fit(X, y, ids=ids)
            assert one.fingerprint() == learner.fingerprint()
            assert learner.kneighbors(X[:5], 3)[0].shape == (5, 3)
            assert learner.explain(X[0]) is not None


class FailingMetric:
    """Manhattan's distance, that fails once in so many calls."""

    def __init__(self):
        self.left = 10**9

    def __call__(self, x, y):
        self.left -= 1
        if self.left == 0:
            raise ArithmeticError("no distance")
        return float(np.abs(x - y).sum())


@pytest.mark.parametrize("calls", [1, 20, 150, 700, 2500])
def test_a_call_that_fails_while_trees_come_and_go_is_taken_back(calls):
    X, y = stream("classify")
    params = {"metric": FailingMetric(), "feature_weights": None, "forgetting": [None, 3, 16]}
    learner = forest("classify", max_stored=40, **params).partial_fit(X[:30], y[:30])
    params["metric"].left = calls
    before = learner.fingerprint()
    with pytest.raises(ValueError, match="no distance"):
        learner.partial_fit(X[30:400], y[30:400])
    assert learner.fingerprint() == before
    params["metric"].left = 10**9
    untroubled = forest("classify", max_stored=40, **params).partial_fit(X[:200], y[:200])
    assert learner.partial_fit(X[30:200], y[30:200]).fingerprint() == untroubled.fingerprint()


def test_neighbours_are_ranked_by_the_newest_weights_and_come_once():
    """Trees of different weights measure differently; their distances cannot be compared."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2600, 4)) * [1, 10, 100, 1000]
    y = (X[:, 0] > 0) ^ (np.arange(2600) // 700 % 2 == 0) & (X[:, 1] > 0)
    forest = BoundaryForestClassifier.for_streams(n_estimators=12, random_state=0).fit(X, y)
    for n in (1, 8):
        distances, arrivals = forest.kneighbors(X[2000:2100], n)
        assert all(len(set(row)) == n for row in arrivals.tolist())
        apart = (X[arrivals] - X[2000:2100, None]) ** 2 * forest.feature_weights_
        np.testing.assert_allclose(distances, np.sqrt(apart.sum(axis=-1)), rtol=1e-9)
        assert (np.diff(distances, axis=1) >= 0).all()
