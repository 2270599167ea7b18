"""A call that changes a forest excludes the others, and leaves no trace if it fails."""

from __future__ import annotations

import copy
import pickle
import threading
from contextlib import suppress

import numpy as np
import pytest

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, load, open_durable

X = np.random.default_rng(0).normal(size=(400, 3))


class Metric:
    """Fails at its ``fails_at``-th call."""

    def __init__(self) -> None:
        self.calls, self.fails_at = 0, None

    def __call__(self, x, y):
        self.calls += 1
        if self.fails_at is not None and self.calls >= self.fails_at:
            raise RuntimeError("the metric fails now")
        return float(((x - y) ** 2).sum())

    def fail_at(self, call):
        self.calls, self.fails_at = 0, call


def new_index(metric):
    return BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)


def content(index):
    found = index.kneighbors(X[:20], index.stats()["examples_stored"], exact=True)
    return index.fingerprint(), index.examples_seen, [part.tolist() for part in found]


CHANGES = {
    "forget": lambda index: index.forget(np.arange(20, 36)),
    "upsert": lambda index: index.upsert(X[100:130], np.arange(20, 50)),
    "twice rebuilt": lambda index: index.upsert(X[100:220], np.arange(0, 120)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_what_fails_while_an_index_is_rebuilt_is_undone(change):
    metric = Metric()

    def marked():
        metric.fail_at(None)
        return new_index(metric).fit(X[:60], ids=np.arange(60)).forget(np.arange(15))

    index = marked()
    before = content(index)
    metric.fail_at(10**9)
    expected = content(change(marked()))
    metric.fail_at(None)
    change(index)
    n_calls, n_failed = metric.calls, 0
    for call in [*range(1, n_calls, max(1, n_calls // 60)), n_calls]:
        index = marked()
        metric.fail_at(call)
        with pytest.raises(ValueError, match="fails now"):
            change(index)
        metric.fail_at(None)
        assert content(index) == before
        n_failed += 1
    assert n_failed > 50
    assert content(change(index)) == expected


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_folder_whose_call_failed_can_be_opened_again(tmp_path, change):
    metric, n_calls = Metric(), None
    for i, share in enumerate((None, 0.0, 0.05, 0.3, 0.7, 1.0)):
        metric.fail_at(None)
        with open_durable(tmp_path / str(i), new_index(metric)) as index:
            index.partial_fit(X[:60], ids=np.arange(60)).upsert(X[60:75], np.arange(15))
            before = content(index)
            metric.fail_at(None if share is None else max(1, int(share * n_calls)))
            if share is None:
                change(index)
                n_calls = metric.calls
                continue
            with pytest.raises(ValueError, match="fails now"):
                change(index)
            metric.fail_at(None)
            assert content(index) == before
            index.partial_fit(X[300:340], ids=np.arange(1000, 1040))
            index.upsert(X[350:370], np.arange(10, 30))
            last = content(index)
        with open_durable(tmp_path / str(i), new_index(metric)) as index:
            assert content(index) == last


@pytest.mark.parametrize("how", ["save", "pickle", "copy", "snapshot"])
def test_no_deletion_is_lost_to_a_call_that_erases(tmp_path, how):
    """The other call stops inside its erasure, and the deletion waits for it."""
    metric = Metric()
    with open_durable(tmp_path / "d", new_index(metric)) as index:
        index.partial_fit(X[:100], ids=np.arange(100)).upsert(X[200:220], np.arange(80, 100))
        inside, go_on = threading.Event(), threading.Event()
        plain = metric.__class__.__call__

        def waits(self, x, y):
            if threading.current_thread() is other:
                inside.set()
                go_on.wait(10)
            return plain(self, x, y)

        calls = {
            "save": lambda: index.save(tmp_path / "other.bf"),
            "pickle": lambda: pickle.dumps(index.model),
            "copy": lambda: copy.deepcopy(index.model),
            "snapshot": index.snapshot,
        }

        def call():
            # What follows the erasure, such as pickling the metric, is another matter.
            with suppress(pickle.PicklingError, AttributeError, TypeError):
                calls[how]()

        other = threading.Thread(target=call)
        forgetting = threading.Thread(target=lambda: index.forget([7]))
        Metric.__call__ = waits
        try:
            other.start()
            assert inside.wait(10)
            forgetting.start()
            forgetting.join(0.2)
            assert forgetting.is_alive()
        finally:
            go_on.set()
            other.join()
            forgetting.join()
            Metric.__call__ = plain
        assert 7 not in index.kneighbors(X[:100], 99)[1]
    with open_durable(tmp_path / "d", new_index(metric)) as index:
        assert 7 not in index.kneighbors(X[:100], 99)[1]


def test_whoever_has_paused_learning_may_do_anything(tmp_path):
    y = np.arange(200) % 3
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0)
    forest.partial_fit(X[:200], y, ids=np.arange(200))
    index = BoundaryForestNeighbors(n_estimators=3, random_state=0)
    index.fit(X[:200], ids=np.arange(200)).forget([1])
    durable = open_durable(
        tmp_path / "d", BoundaryForestNeighbors(n_estimators=3, random_state=0)
    ).partial_fit(X[:200], ids=np.arange(200))
    for one in (forest, index, durable):
        with one.learning_paused():
            one.partial_fit(X[:1] + 9, y[:1], ids=[1000])
            one.forget([2])
            one.save(tmp_path / "m.bf")
            assert load(tmp_path / "m.bf").fingerprint() == one.fingerprint()
            if one is durable:
                one.snapshot()
            else:
                assert copy.deepcopy(one).fingerprint() == one.fingerprint()
            if one is not forest:
                one.upsert(X[:1], [5])
            assert one.examples_seen == 201 + (one is not forest)
    durable.close()


def test_a_metric_that_calls_its_forest_is_refused():
    def metric(x, y):
        if calls:
            calls.pop()()
        return float(abs(x - y).sum())

    calls = []
    index = new_index(metric).fit(X[:30], ids=np.arange(30))
    for call in (
        lambda: index.partial_fit(X[:1], ids=[99]),
        lambda: index.fit(X[:5]),
        lambda: index.forget([3]),
        lambda: index.upsert(X[:1], [3]),
        lambda: pickle.dumps(index),
        lambda: index.kneighbors(X[:1], 1),
    ):
        before = index.fingerprint()
        calls.append(call)
        with pytest.raises(ValueError, match="must not call the forest"):
            index.partial_fit(X[30:33], ids=[100, 101, 102])
        assert index.fingerprint() == before


def test_a_durable_forest_says_why_it_cannot_be_pickled(tmp_path):
    with open_durable(tmp_path, BoundaryForestNeighbors(random_state=0)) as index:
        for refused in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="its model instead"):
                refused(index)
