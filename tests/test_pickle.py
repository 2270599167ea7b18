"""A forest that was pickled or copied is the same forest, and goes on learning as it would have."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
import threading
from dataclasses import fields, replace

import joblib
import numpy as np
import pytest
from conftest import make_task, state

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors


def by_joblib(forest, folder):
    joblib.dump(forest, folder / "forest.joblib")
    return joblib.load(folder / "forest.joblib")


def by_joblib_mapped(forest, folder):
    joblib.dump(forest, folder / "forest.joblib")
    return joblib.load(folder / "forest.joblib", mmap_mode="r")


WAYS = {
    "pickle": lambda forest, folder: pickle.loads(pickle.dumps(forest)),
    "old pickle": lambda forest, folder: pickle.loads(pickle.dumps(forest, protocol=2)),
    "joblib": by_joblib,
    "joblib, mapped": by_joblib_mapped,
    "deepcopy": lambda forest, folder: copy.deepcopy(forest),
    "copy": lambda forest, folder: copy.copy(forest),
}
ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())


@ways
@pytest.mark.parametrize("n", [3, 40], ids=["before there are trees", "trees"])
@pytest.mark.parametrize("offline", [False, True], ids=["online", "offline"])
def test_a_copy_answers_and_goes_on_learning_as_the_original(task, way, n, offline, tmp_path):
    forest = task.forest(offline=offline).fit(task.X[:n], task.y[:n])
    other = way(forest, tmp_path)
    assert state(other, task.queries) == state(forest, task.queries)
    assert other.stats()["comparisons"]["learn"] == forest.stats()["comparisons"]["learn"]
    before = state(forest, task.queries)
    other.partial_fit(task.X_more, task.y_more)
    assert state(forest, task.queries) == before  # they share nothing
    forest.partial_fit(task.X_more, task.y_more)
    assert state(other, task.queries) == state(forest, task.queries)


@ways
def test_an_estimator_that_has_learned_nothing_can_be_copied(task, way, tmp_path):
    forest = way(task.forest(max_children=3), tmp_path)
    assert forest.get_params() == task.forest(max_children=3).get_params()
    assert not hasattr(forest, "seed_")
    assert forest.fit(task.X, task.y).fingerprint() == task.taught(max_children=3).fingerprint()


def test_parameters_set_after_learning_do_not_enter_a_copy(task):
    forest = task.taught().set_params(metric="manhattan", n_estimators=2, max_children=2)
    other = pickle.loads(pickle.dumps(forest))
    assert other.get_params() == forest.get_params()
    other.partial_fit(task.X_more, task.y_more)
    plain = task.taught().partial_fit(task.X_more, task.y_more)
    assert other.fingerprint() == plain.fingerprint()


def gap(x, y, weight=1.0):
    return weight * float(np.abs(x - y).sum())


@pytest.mark.parametrize(
    "params",
    [
        {"metric": "minkowski", "metric_params": {"p": 3}},
        {"metric": gap, "metric_params": {"weight": 2.0}},
    ],
    ids=["minkowski", "callable"],
)
def test_the_metric_comes_along(task, params):
    forest = task.taught(**params)
    other = pickle.loads(pickle.dumps(forest)).partial_fit(task.X_more, task.y_more)
    assert other.fingerprint() == forest.partial_fit(task.X_more, task.y_more).fingerprint()


GO_ON = """
import pickle, sys
for forest, X, y, queries in pickle.load(sys.stdin.buffer):
    forest.partial_fit(X, y)
    print(forest.fingerprint(), forest.apply(queries).tolist())
"""


def test_forests_unpickled_in_another_process_go_on_exactly_as_the_originals():
    tasks = [make_task(name) for name in ("classifier", "regressor", "neighbors")]
    sent = [(t.taught(random_state=None), t.X_more, t.y_more, t.queries) for t in tasks]
    there = subprocess.run(
        [sys.executable, "-c", GO_ON], input=pickle.dumps(sent), capture_output=True, check=True
    )
    for forest, X, y, _ in sent:
        forest.partial_fit(X, y)
    here = [f"{forest.fingerprint()} {forest.apply(q).tolist()}" for forest, _, _, q in sent]
    assert there.stdout.decode().splitlines() == here


def test_classes_come_along(tmp_path):
    X, y = np.arange(6.0)[:, None], np.array(["b", "a", "cc", "b", "a", "b"])
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.partial_fit(X, y, classes=["zz"])
    other = pickle.loads(pickle.dumps(forest)).partial_fit([[9.0]], ["a longer name"])
    assert other.classes_.tolist() == ["a", "a longer name", "b", "cc", "zz"]
    assert forest.classes_.tolist() == ["a", "b", "cc", "zz"]
    assert other.predict([[9.0], [2.0]]).tolist() == ["a longer name", "cc"]


def test_pickling_while_another_thread_learns_gives_a_forest_between_two_calls():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    forest = BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:10], ids=np.arange(10))

    def learn():
        for i in range(10, len(X), 10):
            forest.partial_fit(X[i : i + 10], ids=np.arange(i, i + 10))

    thread = threading.Thread(target=learn)
    thread.start()
    copies = [pickle.loads(pickle.dumps(forest)) for _ in range(20)]
    thread.join()
    for one in copies:
        n = one.stats()["examples_seen"]
        plain = BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:n])
        assert n % 10 == 0
        assert one.fingerprint() == plain.fingerprint()
        assert one.kneighbors(X[n - 1 : n], 1, return_distance=False).tolist() == [[n - 1]]


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_copy_and_its_original_go_their_own_ways(way):
    original = BoundaryForestClassifier(n_estimators=1).fit([[0], [9]], ["a", "b"], ids=[1, 2])
    other = way(original)
    other.partial_fit([[5]], ["c"], ids=[3])
    original.partial_fit([[5]], ["d"], ids=[3])
    assert other.predict([[5]]).tolist() == ["c"]
    assert original.predict([[5]]).tolist() == ["d"]
    assert other.classes_.tolist() == ["a", "b", "c"]
    assert original.kneighbors([[5]], 1)[1].tolist() == [[3]]


ODD = (None, "text", b"bytes", -1, 2**70, 1.5, [], [None], {}, (), np.zeros((2, 3)), np.array("x"))


def damaged_states(state):
    """Every value of a pickled forest in turn, missing or of another type."""
    parts = state["_parts"]
    for name in ("state", "columns", "labels", "parameters"):
        content = getattr(parts, name)
        for key in content:
            yield {**state, "_parts": replace(parts, **{name: without(content, key)})}
            for value in ODD:
                yield {**state, "_parts": replace(parts, **{name: {**content, key: value}})}
    for field in fields(parts.settings):
        for value in ODD:
            settings = replace(parts.settings, **{field.name: value})
            yield {**state, "_parts": replace(parts, settings=settings)}
    yield from ({**state, "_parts": value} for value in ODD[1:])


def without(content, key):
    return {name: value for name, value in content.items() if name != key}


LEARNED = {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"}


@pytest.mark.parametrize("params", [{}, LEARNED], ids=["plain", "learned weights"])
def test_a_damaged_pickle_is_a_clear_error_or_a_forest_that_answers(task, params):
    if task.estimator is BoundaryForestNeighbors and params:
        pytest.skip("retrieval has no labels to learn weights from")
    forest = task.taught(**params)
    for _ in range(3):  # beyond the first decision
        forest.partial_fit(task.X_more, task.y_more)
    messages = []
    for damaged in damaged_states(forest.__getstate__()):
        other = type(forest).__new__(type(forest))
        try:
            other.__setstate__(damaged)
        except ValueError as error:
            messages.append(str(error))
        else:
            assert other.examples_seen >= 0
    assert len(messages) > 150
    assert all("the pickled forest is damaged" in message for message in messages)
