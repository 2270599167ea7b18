"""Runbooks: who comes and goes when, and what is counted as found."""

from __future__ import annotations

import numpy as np

from benchmarks import runbook
from benchmarks.harness import Settings
from benchmarks.sections import runbook as section


def test_every_row_comes_once_and_goes_after_it_came_or_never():
    came, went = {}, {}
    for step in runbook.expiring(900, 20, seed=0):
        assert not set(step.insert) & came.keys()
        came |= dict.fromkeys(step.insert.tolist(), step.number)
        assert set(step.delete.tolist()) <= came.keys() - went.keys()
        went |= dict.fromkeys(step.delete.tolist(), step.number)
    assert sorted(came) == list(range(900))
    assert {went[row] - came[row] for row in went} == {2, 10}
    assert 0.3 < 1 - len(went) / 900 < 0.6  # a third for good, and those that still live


def test_the_same_seed_is_the_same_runbook():
    once, again, other = (list(runbook.expiring(300, 5, seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a.delete, b.delete) for a, b in zip(once, again, strict=True))
    assert any(not np.array_equal(a.delete, b.delete) for a, b in zip(once, other, strict=True))


def test_recall_counts_rows_that_are_near_enough_whatever_their_names():
    X = np.array([[0.0], [1.0], [1.0], [5.0]], dtype=np.float32)
    queries = np.array([[0.0]], dtype=np.float32)
    kth = runbook.nearest(X, np.array([0, 1, 2, 3]), queries, 2)
    assert kth.tolist() == [1.0]
    assert runbook.recall(X, queries, np.array([[0, 2]]), kth) == 1.0  # 2 is as far as 1
    assert runbook.recall(X, queries, np.array([[0, 3]]), kth) == 0.5
    assert runbook.nearest(X, np.array([1, 3]), queries, 2).tolist() == [5.0]


def test_a_small_run_finds_no_ghosts():
    result = section.measure(Settings(smoke=True))
    assert all(found["ok"] for found in result["checks"])
    points = result["sides"][section.FOREST]["checkpoints"]
    assert [point["step"] for point in points] == list(range(1, 11))
    assert points[-1]["live"] < 2000


def test_an_index_that_keeps_what_was_deleted_is_found_out(monkeypatch):
    monkeypatch.setattr(runbook.Forest, "delete", lambda self, names: None)
    result = section.measure(Settings(smoke=True))
    (ghosts, _) = result["checks"]
    assert not ghosts["ok"]
