"""Renewals that are brought forward: by hand, by a drift detector, and again after a crash."""

from __future__ import annotations

import copy
import pickle
import shutil
import threading

import numpy as np
import pandas as pd
import pytest
from damaged_files import Parts
from hypothesis import given, settings
from hypothesis import strategies as st
from test_forgetting import N, answers_of, forest, same, stream, taught

from boundary_forest import BoundaryForestClassifier, JournalError, ModelFileError, load
from boundary_forest.durable import open_durable
from boundary_forest.estimators.turnover import turnover_in
from boundary_forest.river import BoundaryForestClassifier as RiverClassifier
from boundary_forest.river import BoundaryForestRegressor as RiverRegressor

drift = pytest.importorskip("river.drift")

TASKS = ["classify", "regress", "outputs"]


def renewed(task, times, cuts=(), begin=None, end=N, **params):
    """A forest that was taught, and renewed after so many rows."""
    learner, start = (forest(task, **params), 0) if begin is None else begin
    X, y = stream(task)
    for cut in sorted({*times, *cuts, end}):
        if start < cut <= end:
            learner.partial_fit(X[start:cut], y[start:cut])
            if cut in times:
                learner.renew()
            start = cut
    return learner


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    task=st.sampled_from(TASKS),
    times=st.sets(st.integers(1, N), min_size=1, max_size=8),
    cuts=st.sets(st.integers(1, N - 1), max_size=6),
    lifetimes=st.lists(st.sampled_from([2, 3, 16, 63, 500]), max_size=4).map(lambda s: [None, *s]),
    max_stored=st.sampled_from([None, 28, 100]),
    samples=st.sampled_from([0.05, 0.5, None]),
)
def test_cuts_and_threads_change_nothing(task, times, cuts, lifetimes, max_stored, samples):
    params = {"forgetting": lifetimes, "max_stored": max_stored, "max_samples": samples}
    one = renewed(task, times, **params)
    assert same(renewed(task, times, cuts, n_jobs=2, **params), one, task)


def test_a_renewal_changes_the_forest_at_once_and_for_good():
    learner = taught("classify", end=200)
    before, trees = learner.fingerprint(), turnover_in(learner.fitted).renewals
    lasting = [nodes.tolist() for nodes, _ in learner.trees()][::4]
    assert learner.renew().fingerprint() != before
    assert turnover_in(learner.fitted).renewals > trees
    assert [nodes.tolist() for nodes, _ in learner.trees()][::4] == lasting
    again = learner.fingerprint()
    assert learner.renew().fingerprint() == again  # nothing grows any more
    later = taught("classify", begin=(learner, 200))
    assert later.fingerprint() != taught("classify").fingerprint()


@pytest.mark.parametrize("cut", [3, 40, 133, 240, 499])
@pytest.mark.parametrize("task", TASKS)
def test_copies_and_files_go_on_as_the_forest_itself(task, cut, tmp_path):
    times = {2, 30, cut, 260}
    before = renewed(task, times, end=cut)
    before.save(tmp_path / "model.bf")
    copies = [load(tmp_path / "model.bf"), load(tmp_path / "model.bf", mmap=True)]
    copies += [pickle.loads(pickle.dumps(before)), copy.deepcopy(before)]
    expected = renewed(task, times)
    for one in copies:
        assert same(one, before, task)
        assert same(renewed(task, times, begin=(one, cut)), expected, task)


@pytest.mark.parametrize("value", [-1, 10**6, "x", None, 0.5])
def test_a_damaged_time_of_renewal_is_refused(value, tmp_path):
    path = tmp_path / "model.bf"
    renewed("classify", {133}).save(path)
    parts = Parts(path.read_bytes())
    assert parts.document["forest"]["renewed"] == 133
    parts.document["forest"]["renewed"] = value
    path.write_bytes(parts.content())
    with pytest.raises(ModelFileError, match="renewed"):
        load(path)


def test_a_forest_without_lifetimes_cannot_be_renewed(tmp_path):
    X, y = stream("classify")
    learner = BoundaryForestClassifier(random_state=0).partial_fit(X, y)
    with pytest.raises(ValueError, match="needs forgetting"):
        learner.renew()
    with open_durable(tmp_path, learner) as durable:
        with pytest.raises(ValueError, match="needs forgetting"):
            durable.renew()
        assert durable.examples_seen == len(X)
    with open_durable(tmp_path) as again:
        assert again.fingerprint() == learner.fingerprint()


@pytest.mark.parametrize("snapshot_rows", [None, 150])
def test_after_a_crash_renewals_are_repeated(tmp_path, snapshot_rows):
    X, y = stream("classify")
    times, crashes = [4, 90, 91, 200, 333], 0
    with open_durable(tmp_path / "f", forest("classify"), snapshot_rows=snapshot_rows) as durable:
        for begin, end in zip([0, *times], [*times, N], strict=True):
            durable.partial_fit(X[begin:end], y[begin:end])
            if end in times:
                durable.renew()
            left = tmp_path / f"crash{(crashes := crashes + 1)}"
            shutil.copytree(tmp_path / "f", left)
            with open_durable(left) as again:
                assert again.fingerprint() == durable.fingerprint()
        assert durable.fingerprint() == renewed("classify", times).fingerprint()


def test_a_call_that_is_taken_back_takes_the_renewal_after_it_with_it(tmp_path):
    X, y = stream("classify")
    with open_durable(tmp_path, forest("classify")) as durable:
        durable.partial_fit(X[:100], y[:100])
        durable.renew()
        before = durable.fingerprint()
        durable.partial_fit(X[100:150], y[100:150])
        durable.renew()
    with open_durable(tmp_path, redo=True) as durable:
        assert durable.fingerprint() == before
        durable.partial_fit(X[100:], y[100:])
        last = durable.fingerprint()
    with open_durable(tmp_path) as durable:
        assert durable.fingerprint() == last


def test_a_renewal_that_fails_after_it_was_written_down_closes_the_folder(tmp_path, monkeypatch):
    X, y = stream("classify")
    with open_durable(tmp_path, forest("classify")) as durable:
        durable.partial_fit(X[:100], y[:100])
        with pytest.raises(MemoryError) as raised, durable.renewing():
            raise MemoryError
        assert "open it again" in raised.value.__notes__[0]
        with pytest.raises(JournalError, match="closed"):
            durable.partial_fit(X[100:], y[100:])
    with open_durable(tmp_path) as durable:
        assert durable.fingerprint() == renewed("classify", {100}, end=100).fingerprint()


def test_one_who_asks_meanwhile_sees_a_forest_before_or_after():
    X, y = stream("classify")
    alone, known = taught("classify", end=20), set()
    for i in range(20, 220):
        alone.partial_fit(X[i : i + 1], y[i : i + 1])
        known.add(answers_of(alone, X[N:]))
        if i % 20 == 19:
            known.add(answers_of(alone.renew(), X[N:]))
    learner, seen, done = taught("classify", end=20), set(), threading.Event()
    known.add(answers_of(learner, X[N:]))

    def ask():
        while not done.is_set():
            seen.add(answers_of(learner, X[N:]))

    askers = [threading.Thread(target=ask) for _ in range(2)]
    for asker in askers:
        asker.start()
    for begin in range(20, 220, 20):
        learner.partial_fit(X[begin : begin + 20], y[begin : begin + 20]).renew()
    done.set()
    for asker in askers:
        asker.join()
    assert seen <= known


# River


class EveryFifty:
    """A detector that is none of River's: it signals after each fifty values."""

    def __init__(self):
        self.values = []

    def update(self, value):
        self.values.append(value)

    @property
    def drift_detected(self):
        return len(self.values) % 50 == 0


def river_model(task, detector):
    made = RiverClassifier if task == "classify" else RiverRegressor
    params = {"n_estimators": 7, "forgetting": [None, 16, 100, 5], "max_samples": 0.5, "seed": 3}
    return made(weights="auto", drift_detector=detector, **params)


def rows(task, n=300):
    X, y = stream(task)
    y = y[:n].tolist()
    return [dict(zip("abcdefgh"[: X.shape[1]], x, strict=True)) for x in X[:n].tolist()], y


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_a_detector_sees_each_loss_and_its_signals_renew(task):
    X, y = rows(task)
    detector = EveryFifty()
    watched, plain, losses = river_model(task, detector), river_model(task, None), []
    for i, (x, label) in enumerate(zip(X, y, strict=True)):
        if i > 0:
            said = plain.predict_one(x)
            losses.append(float(said != label) if task == "classify" else abs(said - label))
            assert watched.predict_one(x) == said
        watched.learn_one(x, label)
        plain.learn_one(x, label)
        if i > 0 and i % 50 == 0:
            plain.renew()
    assert watched._detector.values == losses
    assert detector.values == []  # a parameter is not changed
    assert watched.stats()["turnover"] == plain.stats()["turnover"]


@pytest.mark.parametrize("task", ["classify", "regress"])
def test_rows_of_a_frame_are_watched_one_by_one(task):
    X, y = rows(task)
    one, many = (river_model(task, drift.ADWIN(clock=1)) for _ in range(2))
    for x, label in zip(X, y, strict=True):
        one.learn_one(x, label)
    many.learn_many(pd.DataFrame(X[:170]), pd.Series(y[:170]))
    many.learn_many(pd.DataFrame(X[170:]), pd.Series(y[170:]))
    assert one.stats() == many.stats()
    assert one._detector.estimation == many._detector.estimation


def test_clones_and_pickles_have_their_own_detector():
    X, y = rows("classify")
    model = river_model("classify", drift.ADWIN())
    for x, label in zip(X[:150], y[:150], strict=True):
        model.learn_one(x, label)
    fresh = model.clone()
    assert isinstance(fresh.drift_detector, drift.ADWIN)
    assert fresh.drift_detector is not model.drift_detector
    assert fresh._detector is None
    copies = [model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)]
    for one in copies:
        for x, label in zip(X[150:], y[150:], strict=True):
            one.learn_one(x, label)
    assert len({str(one.stats()) for one in copies}) == 1
    assert len({one._detector.estimation for one in copies}) == 1
    model = river_model("classify", EveryFifty())
    assert model.clone().drift_detector.values == []


def test_a_stream_that_changes_is_noticed():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1500, 4))
    y = np.where(np.arange(1500) < 1000, X.sum(axis=1) > 0, X.sum(axis=1) < 0)
    watched, plain = (
        RiverClassifier.for_streams(seed=0, drift_detector=detector)
        for detector in (drift.ADWIN(clock=1), None)
    )
    for model in (watched, plain):
        for x, label in zip(X.tolist(), y.tolist(), strict=True):
            model.learn_one(dict(enumerate(x)), label)
    assert watched.stats()["turnover"] != plain.stats()["turnover"]


@pytest.mark.parametrize(
    ("params", "error"),
    [
        ({"drift_detector": 5, "forgetting": "auto"}, TypeError),
        ({"drift_detector": drift.ADWIN()}, ValueError),
    ],
)
def test_what_cannot_work_is_refused(params, error):
    with pytest.raises(error, match="drift_detector"):
        RiverClassifier(**params)
    with pytest.raises(ValueError, match="needs forgetting"):
        RiverClassifier().renew()
