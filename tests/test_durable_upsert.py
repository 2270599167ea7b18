"""A durable index whose rows are replaced is the same again when its folder is opened."""

from __future__ import annotations

import copy
import sqlite3

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors, JournalError, load, open_durable
from boundary_forest.durable.operations import ERASE, LEARN, REPLACE, TRUNCATE
from boundary_forest.files import writing

RNG = np.random.default_rng(0)
X, MORE = RNG.normal(size=(300, 5)), RNG.normal(size=(300, 5))
IDS = np.arange(300)


def model(**params):
    return BoundaryForestNeighbors(n_estimators=4, random_state=0, **params)


def kinds(folder):
    sql = sqlite3.connect(folder / "journal.sqlite")
    found = [kind for (kind,) in sql.execute("SELECT kind FROM operations ORDER BY number")]
    sql.close()
    return found


def check_same(one, other):
    assert one.fingerprint() == other.fingerprint()
    for options in ({"beam": 4, "exact": False}, {"exact": True}):
        np.testing.assert_array_equal(
            one.kneighbors(X[:20], 3, **options), other.kneighbors(X[:20], 3, **options)
        )


@pytest.mark.parametrize("n", [40, 150, 290])
def test_an_upsert_is_learned_again(tmp_path, n):
    """Many replaced ones have it grown anew within a call."""
    with open_durable(tmp_path, model()) as index:
        assert index.partial_fit(X, ids=IDS).upsert(MORE[:n], IDS[:n]) is index
        index.upsert(MORE[n : n + 5], IDS[n : n + 5] + 1000)
    assert kinds(tmp_path) == [LEARN, REPLACE, REPLACE]
    plain = model().fit(X, ids=IDS).upsert(MORE[:n], IDS[:n])
    plain.upsert(MORE[n : n + 5], IDS[n : n + 5] + 1000)
    with open_durable(tmp_path) as index:
        assert index.stats()["examples_stored"] == 300 + len(MORE[n : n + 5])
        check_same(index, plain)


@pytest.mark.parametrize("how", ["save", "copy", "snapshot"])
def test_what_is_erased_in_between_is_erased_again(tmp_path, how):
    """Trees depend on when they were grown anew, so that the journal must know it."""
    with open_durable(tmp_path / "f", model()) as index:
        index.partial_fit(X, ids=IDS).upsert(MORE[:40], IDS[:40])
        assert index.fitted.engine.n_forgotten == 40
        if how == "save":
            index.save(tmp_path / "other.bf")
            check_same(load(tmp_path / "other.bf"), index)
        if how == "copy":
            copy.deepcopy(index.model)
        if how == "snapshot":
            index.snapshot()
        assert index.fitted.engine.n_forgotten == 0
        index.upsert(MORE[40:80], IDS[20:60])
        live = copy.deepcopy(index.model)
        found = index.fingerprint()
    before = [] if how == "snapshot" else [LEARN, REPLACE, ERASE]
    assert kinds(tmp_path / "f") == [*before, REPLACE, ERASE]
    with open_durable(tmp_path / "f") as index:
        assert index.fingerprint() == found
        check_same(index, live)


def test_an_erasure_that_cannot_be_written_is_written_before_more_is_learned(tmp_path):
    with open_durable(tmp_path, model()) as index:
        index.partial_fit(X, ids=IDS).upsert(MORE[:40], IDS[:40])
        append = index._journal.append_erasure
        index._journal.append_erasure = lambda *_: (_ for _ in ()).throw(JournalError("full"))
        copy.deepcopy(index.model)
        with pytest.raises(JournalError, match="full"):
            index.partial_fit(MORE[50:60], ids=IDS[50:60] + 1000)
        index._journal.append_erasure = append
        index.partial_fit(MORE[50:60], ids=IDS[50:60] + 1000)
        found = index.fingerprint()
    assert kinds(tmp_path) == [LEARN, REPLACE, ERASE, LEARN]
    with open_durable(tmp_path) as index:
        assert index.fingerprint() == found


def test_a_snapshot_that_fails_leaves_folder_and_index_the_same(tmp_path, monkeypatch):
    with open_durable(tmp_path, model()) as index:
        index.partial_fit(X, ids=IDS).upsert(MORE[:40], IDS[:40])

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patched:
            patched.setattr(writing.os, "fsync", full)
            with pytest.raises(OSError, match="No space"):
                index.snapshot()
        index.upsert(MORE[40:60], IDS[10:30])
        found = index.fingerprint()
    with open_durable(tmp_path) as index:
        assert index.fingerprint() == found


def test_a_call_that_fails_or_is_taken_back_replaces_nothing(tmp_path):
    def metric(x, y):
        if max(x[0], y[0]) > 90:
            raise RuntimeError("too far")
        return float(abs(x - y).sum())

    rows, bad = X[:30], X[:3].copy()
    bad[2, 0] = 99.0
    started = model(metric=metric)
    with open_durable(tmp_path, started) as index:
        index.partial_fit(rows, ids=IDS[:30])
        found = index.kneighbors(rows, 3)
        with pytest.raises(ValueError, match="metric"):
            index.upsert(bad, IDS[10:13])
        np.testing.assert_array_equal(index.kneighbors(rows, 3), found)
        index.upsert(MORE[:3], IDS[10:13])
    assert kinds(tmp_path) == [LEARN, REPLACE, TRUNCATE, REPLACE]
    with open_durable(tmp_path, started) as index:
        assert index.examples_seen == 33
    with open_durable(tmp_path, started, redo=True) as index:
        assert index.examples_seen == 30
        np.testing.assert_array_equal(index.kneighbors(rows, 3), found)


def test_a_call_that_is_taken_back_takes_the_erasure_after_it_with_it(tmp_path):
    with open_durable(tmp_path, model()) as index:
        before = index.partial_fit(X, ids=IDS).fingerprint()
        index.upsert(MORE[:40], IDS[:40])
        copy.deepcopy(index.model)
    with open_durable(tmp_path, redo=True) as index:
        assert index.fingerprint() == before
        last = index.partial_fit(MORE[50:60], ids=IDS[50:60] + 1000).fingerprint()
    assert kinds(tmp_path) == [LEARN, REPLACE, ERASE, TRUNCATE, LEARN]
    with open_durable(tmp_path) as index:
        assert index.fingerprint() == last


def test_what_is_refused_is_not_in_the_journal(tmp_path):
    with open_durable(tmp_path / "graph", model()) as index:
        index.partial_fit(X, ids=IDS)
        with pytest.raises(ValueError, match="unique"):
            index.upsert(MORE[:2], [7, 7])
        with pytest.raises(ValueError, match="features"):
            index.upsert(MORE[:2, :2], [7, 8])
    assert kinds(tmp_path / "graph") == [LEARN]
    with open_durable(tmp_path / "paper", model(search="paper")) as index:
        index.partial_fit(X, ids=IDS)
        with pytest.raises(ValueError, match="search='graph'"):
            index.upsert(MORE[:2], [7, 8])
    assert kinds(tmp_path / "paper") == [LEARN]
