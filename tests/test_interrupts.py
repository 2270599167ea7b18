"""Wherever an interrupt comes, the forest is that of the rows it kept, and goes on from there.

CPython runs signal handlers between two instructions, but not between the end of a ``with`` block
and its ``__exit__``. So a ``with`` statement's line is interrupted when it is entered, and not when
it is left. BOUNDARY_FOREST_INTERRUPTS=2000 for more interrupts by a timer than the few here.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import os
import pickle
import random
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from conftest import answers
from scipy.sparse import csr_matrix

import boundary_forest
from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, load

SOURCE = str(Path(boundary_forest.__file__).parent)
BY_TIMER = int(os.environ.get("BOUNDARY_FOREST_INTERRUPTS", "60"))

rng = np.random.default_rng(7)
X = rng.integers(0, 6, size=(60, 3)).astype(np.float64)
Y = np.array(["a", "bb", "a", "ccc", "d"])[rng.integers(0, 5, size=60)]
Y[:20] = np.array(["a", "bb"])[rng.integers(0, 2, size=20)]  # the rest is new in the second batch
NAMES = {"int64": np.arange(60) * 7, "text": np.array([f"row {i}" for i in range(60)])}
QUERIES = rng.integers(0, 6, size=(20, 3)) + 0.25


class Injector:
    """Raises KeyboardInterrupt at the k-th line of the package that is about to run."""

    def __init__(self, k):
        self.left = k

    def __call__(self, frame, event, argument):
        if not frame.f_code.co_filename.startswith(SOURCE):
            return None
        return self.in_frame

    def in_frame(self, frame, event, argument):
        if event == "line" and frame.f_lasti not in ends_of_withs(frame.f_code):
            self.left -= 1
            if self.left == 0:
                raise KeyboardInterrupt
        return self.in_frame


@functools.cache
def ends_of_withs(code):
    """Offsets from which a context manager's __exit__ is called, with three Nones."""
    instructions = list(dis.get_instructions(code))
    nones = [one.opname == "LOAD_CONST" and one.argval is None for one in instructions]
    return {one.offset for i, one in enumerate(instructions) if sum(nones[i : i + 4]) >= 3}


def interrupted_at(k, call, *arguments, **named):
    """Whether the call was interrupted, at the k-th line."""
    sys.settrace(Injector(k))
    try:
        call(*arguments, **named)
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(None)
    return False


def begun(ids):
    forest = BoundaryForestClassifier(n_estimators=4, random_state=0)
    return forest.partial_fit(X[:20], Y[:20], ids=NAMES[ids][:20])


@functools.cache
def expected(ids, n):
    """What is seen of a forest of the first n rows that nobody interrupted."""
    forest = begun(ids)
    if n > 20:
        forest.partial_fit(X[20:n], Y[20:n], ids=NAMES[ids][20:n])
    return seen_of(forest)


def seen_of(forest):
    """All that can be asked of it."""
    return {
        "fingerprint": forest.fingerprint(),
        "classes": forest.classes_.tolist(),
        "seen": forest.examples_seen,
        **answers(forest, QUERIES),
    }


def check_consistent(forest, ids, path):
    n = forest.examples_seen
    forest.save(path)
    for other in (load(path), pickle.loads(pickle.dumps(forest)), forest):
        assert seen_of(other) == expected(ids, n)
        if n < 60:
            other.partial_fit(X[n:], Y[n:], ids=NAMES[ids][n:])
            assert seen_of(other) == expected(ids, 60)
    return n


@pytest.mark.parametrize(
    ("ids", "method"), [("text", "partial_fit"), ("int64", "predict_then_learn")]
)
def test_a_call_interrupted_at_any_line_leaves_a_forest_of_its_first_rows(
    ids, method, tmp_path, monkeypatch
):
    monkeypatch.setattr("boundary_forest.estimators.blocks.BLOCK_VALUES", 3 * 15)
    start, kept, k = pickle.dumps(begun(ids)), [], 1
    while True:
        forest = pickle.loads(start)
        rows = csr_matrix(X[20:])  # sparse, so that it is learned block by block
        if not interrupted_at(k, getattr(forest, method), rows, Y[20:], ids=NAMES[ids][20:]):
            break
        kept.append(check_consistent(forest, ids, tmp_path / "model.bf"))
        k += 1
    assert forest.examples_seen == 60
    assert len(kept) > 100
    assert set(kept) == {20, 35, 50, 60}
    assert kept == sorted(kept)


def test_an_interrupted_first_batch_leaves_nothing_or_its_first_rows(tmp_path, monkeypatch):
    monkeypatch.setattr("boundary_forest.estimators.blocks.BLOCK_VALUES", 3 * 15)
    kept, k = set(), 1
    while True:
        forest = BoundaryForestNeighbors(n_estimators=4, random_state=0)
        if not interrupted_at(k, forest.partial_fit, csr_matrix(X), ids=NAMES["int64"]):
            break
        n = forest.examples_seen
        kept.add(n)
        assert hasattr(forest, "seed_") == hasattr(forest, "n_features_in_") == (n > 0)
        if n < 60:
            forest.partial_fit(X[n:], ids=NAMES["int64"][n:])
        whole = BoundaryForestNeighbors(n_estimators=4, random_state=0)
        whole.partial_fit(X, ids=NAMES["int64"])
        assert forest.fingerprint() == whole.fingerprint()
        assert answers(forest, QUERIES) == answers(whole, QUERIES)
        k += 1
    assert kept >= {0, 15, 60}


def test_an_interrupted_fit_leaves_the_old_forest_or_first_rows_of_the_new_one():
    old = BoundaryForestClassifier(n_estimators=4, random_state=0).fit(X[:20], Y[:20])
    start, before, k, found = pickle.dumps(old), seen_of(old), 1, set()
    after = seen_of(BoundaryForestClassifier(n_estimators=4, random_state=0).fit(X, Y))
    while True:
        forest = pickle.loads(start)
        if not interrupted_at(k, forest.fit, X, Y):
            break
        assert seen_of(forest) in (before, after)
        found.add(forest.examples_seen)
        k += 1
    assert found == {20, 60}


def test_classes_of_a_call_that_learned_nothing_do_not_show_and_leave_no_trace():
    forest = begun("int64")
    k, traced = 1, 0
    while forest.examples_seen == 20:
        example = [[1.0, 2.0, 3.0]], ["new"], ["other"]
        if not interrupted_at(k, forest.partial_fit, *example, ids=[10_000]):
            break
        if forest.examples_seen == 20:
            assert forest.classes_.tolist() == ["a", "bb"]
            assert forest.predict_proba(QUERIES).shape[1] == 2
            traced += 1
        k += 1
    assert traced > 50
    forest, other = begun("int64"), begun("int64")
    assert interrupted_at(traced // 2, forest.partial_fit, [[1, 2, 3]], ["new"], ids=[1])
    for one in (forest, other):
        one.partial_fit([[5.0, 5, 5]], ["another"], ids=[10_001])
    assert seen_of(forest) == seen_of(other)


@contextlib.contextmanager
def timer():
    """A function that arranges for KeyboardInterrupt after so many seconds, or for none."""
    assert threading.current_thread() is threading.main_thread()

    def interrupt(*_):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        yield lambda seconds: signal.setitimer(signal.ITIMER_REAL, seconds)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupted_by_timer(n_hits, new, learn):
    """Learners that were interrupted at random moments of learning; fewer if it is too quick."""
    chance = random.Random(0)
    took = time.perf_counter()
    learn(new())
    took = time.perf_counter() - took
    hits = tries = 0
    with timer() as interrupt_after:
        while hits < n_hits and tries < 20 * n_hits:
            tries += 1
            learner = new()
            try:
                try:
                    interrupt_after(chance.uniform(1e-6, took))
                    learn(learner)
                finally:
                    interrupt_after(0)
            except KeyboardInterrupt:
                hits += 1
                yield learner


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("ids", NAMES)
def test_a_call_interrupted_by_a_timer_leaves_a_forest_of_its_first_rows(ids, tmp_path):
    start, hits = pickle.dumps(begun(ids)), 0
    for forest in interrupted_by_timer(
        BY_TIMER,
        lambda: pickle.loads(start),
        lambda forest: forest.partial_fit(X[20:], Y[20:], ids=NAMES[ids][20:]),
    ):
        check_consistent(forest, ids, tmp_path / "model.bf")
        hits += 1
    assert hits == BY_TIMER


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_in_a_decision_comes_after_it(n_jobs):
    """Decisions at 125, 250, 500 and 1,000 arrivals take most of the time, and end their blocks."""
    Z = np.random.default_rng(0).integers(0, 256, size=(1100, 12)).astype(np.uint8)
    labels = Z[:, 0] // 64 + Z[:, 1] // 128

    def new():
        return BoundaryForestClassifier(
            n_estimators=6, random_state=0, n_jobs=n_jobs,
            feature_weights="learned", max_samples=0.5, weights="auto",
        )  # fmt: skip

    @functools.cache
    def fingerprint(n):
        return new().partial_fit(Z[:n], labels[:n]).fingerprint()

    kept = Counter()
    for forest in interrupted_by_timer(
        BY_TIMER // 4, new, lambda forest: forest.partial_fit(Z, labels)
    ):
        n = forest.examples_seen
        kept[n] += 1
        assert n == 0 or forest.fingerprint() == fingerprint(n)
        for other in (pickle.loads(pickle.dumps(forest)), forest):
            if n < len(Z):
                other.partial_fit(Z[n:], labels[n:])
            assert other.fingerprint() == fingerprint(len(Z))
    assert kept.total() == BY_TIMER // 4
    assert kept[500] + kept[1000] > 0
