"""Threads, forks and interrupts: readers see whole prefixes, and nothing depends on n_jobs."""

from __future__ import annotations

import multiprocessing
import signal
import subprocess
import sys
import textwrap
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import answers, state
from joblib import parallel_config
from sklearn.datasets import load_digits

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

READERS = 4
N_T = 10
LONGEST = 30.0  # seconds until a test that hangs is given up


@pytest.fixture
def eager_switching():
    """Threads take turns often, so that a gap between two steps is found."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.argsort(y, kind="stable")[::3]  # a new class every 60 rows
    return X[order].astype(np.uint8), y[order], X[1::60].astype(np.uint8)


def while_reading(read, write):
    """What READERS threads got by reading again and again while this one writes."""
    done = threading.Event()

    def keep_reading():
        seen = [read()]
        while not done.is_set():
            seen.append(read())
        return [*seen, read()]

    with ThreadPoolExecutor(READERS) as pool:
        readers = [pool.submit(keep_reading) for _ in range(READERS)]
        try:
            write()
        finally:
            done.set()
        return [got for reader in readers for got in reader.result(timeout=LONGEST)]


# --- Reading while writing ------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    ("estimator", "read"),
    [
        (BoundaryForestClassifier, lambda forest, X: forest.predict(X).tolist()),
        (BoundaryForestRegressor, lambda forest, X: forest.predict(X).tolist()),
        (BoundaryForestNeighbors, lambda forest, X: forest.apply(X).tolist()),
        (BoundaryForestNeighbors, lambda forest, X: forest.kneighbors(X, 5)[1].tolist()),
    ],
    ids=["classifier", "regressor", "neighbors apply", "neighbors kneighbors"],
)
def test_every_answer_during_learning_is_that_of_some_published_prefix(
    digits, eager_switching, estimator, read, n_jobs
):
    X, y, queries = digits
    # An index looks at the depth of its trees after 512 examples, and publishes what it has.
    cuts = sorted({*range(20, len(X) - N_T, 20), 512 - N_T})
    batches = np.split(np.arange(N_T, len(X)), cuts)
    forest, frozen = (estimator(n_estimators=N_T, random_state=0, n_jobs=n_jobs) for _ in "ab")
    allowed = [read(frozen.fit(X[:N_T], y[:N_T]), queries)]
    allowed += [read(frozen.partial_fit(X[rows], y[rows]), queries) for rows in batches]
    forest.fit(X[:N_T], y[:N_T])

    def write():
        for rows in batches:
            forest.partial_fit(X[rows], y[rows])

    seen = while_reading(lambda: read(forest, queries), write)
    assert all(answer in allowed for answer in seen)
    assert seen[-1] == allowed[-1]
    assert forest.fingerprint() == frozen.fingerprint()


def test_shares_and_classes_agree_while_new_classes_come(digits, eager_switching):
    X, y, queries = digits
    names = np.array([str(i) * (i + 1) for i in range(10)])
    forest = BoundaryForestClassifier(n_estimators=N_T, random_state=0)
    forest.fit(X[:N_T], names[y[:N_T]])

    def write():
        for i in range(N_T, len(X), 5):
            forest.partial_fit(X[i : i + 5], names[y[i : i + 5]])

    def read():
        shares = forest.predict_proba(queries)
        np.testing.assert_allclose(shares.sum(axis=1), 1.0, rtol=1e-12)
        return set(forest.predict(queries).tolist())

    assert set().union(*while_reading(read, write)) <= set(names.tolist())


def test_calls_that_fail_are_not_seen_by_readers(digits, eager_switching):
    X, y, queries = digits
    forest = BoundaryForestClassifier(n_estimators=N_T, random_state=0).fit(X, y)
    before = answers(forest, queries)

    def write():
        for _ in range(100):
            with pytest.raises(ValueError, match="rows"):
                forest.partial_fit(X, np.append(y, 10))
            with pytest.raises(ValueError, match="rows"):
                forest.fit(X[:, :7], np.append(y + 20, 10))

    assert all(got == before for got in while_reading(lambda: answers(forest, queries), write))


def test_readers_never_find_the_forest_empty_or_its_classes_mixed_during_fit(
    digits, eager_switching
):
    X, y, queries = digits
    names = np.array([f"digit {i}" for i in range(10)])
    forest = BoundaryForestClassifier(n_estimators=N_T, random_state=0).fit(X, y)

    def write():
        for _ in range(30):
            forest.fit(X, names[y])
            forest.fit(X, y)

    seen = while_reading(lambda: forest.predict(queries[:2]).tolist(), write)
    assert all(set(answer) <= set(range(10)) or set(answer) <= set(names) for answer in seen)


def test_two_teachers_take_turns(task):
    forest = task.forest()
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(forest.partial_fit, task.X, task.y) for _ in range(20)]
        for call in calls:
            call.result(timeout=LONGEST)
    assert forest.stats()["examples_seen"] == 20 * len(task.X)


class Peeked:
    """A metric; once, in the middle of learning, another thread asks and the teacher waits."""

    def __init__(self):
        self.read, self.got = None, None

    def __call__(self, x, y):
        read, self.read = self.read, None
        if read is not None:
            with ThreadPoolExecutor(1) as pool:
                self.got = pool.submit(read).result(timeout=LONGEST)
        return float(np.abs(x - y).sum())


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_another_thread_asked_in_the_middle_of_learning_answers_as_before(task, method):
    metric = Peeked()
    forest = task.taught(metric=metric)
    before = answers(forest, task.queries)
    metric.read = lambda: answers(forest, task.queries)
    getattr(forest, method)(task.X_more[::-1], task.y_more[::-1])
    assert metric.got == before
    assert answers(forest, task.queries) != before


# --- n_jobs ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [2, 8, -1, -2])
def test_n_jobs_changes_no_answer(task, n_jobs):
    forest = task.taught(n_jobs=n_jobs).partial_fit(task.X_more, task.y_more)
    plain = task.taught().partial_fit(task.X_more, task.y_more)
    assert state(forest, task.queries) == state(plain, task.queries)


def test_joblibs_context_changes_no_answer(task):
    with parallel_config(n_jobs=2):
        forest = task.taught()
        assert state(forest, task.queries) == state(task.taught(n_jobs=1), task.queries)


@pytest.mark.parametrize("n_jobs", [1, 4])
def test_a_python_metric_runs_on_the_calling_thread(task, n_jobs):
    callers = set()

    def metric(x, y):
        callers.add(threading.get_ident())
        return float(np.abs(x - y).sum())

    answers(task.taught(metric=metric, n_jobs=n_jobs), task.queries)
    assert callers == {threading.get_ident()}


# --- Processes ------------------------------------------------------------------------------------


def learn_and_tell(forest, task, pipe):
    forest.partial_fit(task.X_more, task.y_more)
    pipe.send(state(forest, task.queries))


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_forest_works_on_in_a_forked_child(task):
    forest = task.taught(n_jobs=2)
    answers(forest, task.queries)  # the pool's threads run here, and not in the child
    ours, theirs = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(
        target=learn_and_tell, args=(forest, task, theirs)
    )
    child.start()
    assert ours.poll(LONGEST), "the child hangs"
    told = ours.recv()
    child.join(LONGEST)
    assert child.exitcode == 0
    forest.partial_fit(task.X_more, task.y_more)
    assert told == state(forest, task.queries)


INTERRUPTED = """
import signal, sys, threading, time
import numpy as np
from boundary_forest import BoundaryForestClassifier

signal.signal(signal.SIGINT, signal.default_int_handler)  # it is ignored where tests run behind &

rng = np.random.default_rng(0)
X, y = rng.normal(size=(400_000, 8)).astype(np.float32), rng.integers(0, 5, size=400_000)

def new_forest():
    return BoundaryForestClassifier(n_estimators=10, random_state=0, n_jobs=N_JOBS)

forest = new_forest().partial_fit(X[:100], y[:100])

def tell_when_learning():
    while forest.stats()["examples_seen"] == 100:
        time.sleep(0.001)
    print("learning", flush=True)

threading.Thread(target=tell_when_learning, daemon=True).start()
try:
    forest.partial_fit(X[100:], y[100:])
except KeyboardInterrupt as interrupt:
    seen = forest.stats()["examples_seen"]
    print(seen, getattr(interrupt, "__notes__", []))
    assert forest.fingerprint() == new_forest().partial_fit(X[:seen], y[:seen]).fingerprint()
    forest.partial_fit(X[seen : seen + 100], y[seen : seen + 100])
    prefix = new_forest().partial_fit(X[: seen + 100], y[: seen + 100])
    assert forest.fingerprint() == prefix.fingerprint()
    print("kept and went on")
"""


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_an_interrupt_keeps_the_published_prefix_and_says_how_far_it_came(n_jobs):
    script = textwrap.dedent(INTERRUPTED).replace("N_JOBS", str(n_jobs))
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout.readline() == "learning\n"
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=LONGEST)
    assert child.returncode == 0, err
    told, end = out.splitlines()
    seen, note = told.split(" ", 1)
    assert 100 < int(seen) < 400_000
    assert f"{int(seen) - 100} of 399900 rows" in note
    assert end == "kept and went on"


class RefitsWhenRead:
    """Ids to search among; while they are checked, the index is fitted again with other ids."""

    def __init__(self, ids, refit):
        self.ids, self.refit = ids, refit

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        return self.ids[i]

    def __iter__(self):
        return iter(self.ids)

    def __array__(self, dtype=None, copy=None):
        with ThreadPoolExecutor(1) as pool:
            pool.submit(self.refit).result(timeout=LONGEST)
        return np.array(self.ids, dtype=dtype)


@pytest.mark.parametrize("method", ["kneighbors", "radius_neighbors"])
def test_a_search_and_its_options_belong_to_one_forest_even_if_another_thread_fits(method):
    X = np.arange(8.0)[:, None]
    index = BoundaryForestNeighbors(random_state=0).fit(X, ids=np.arange(8))
    texts = [f"row {i}" for i in range(8)]
    allowed = RefitsWhenRead([6, 7], lambda: index.fit(X, ids=texts))
    names = getattr(index, method)([[0.0]], 2, return_distance=False, allowed=allowed)
    assert names.dtype == (np.int64 if method == "kneighbors" else object)
    assert list(names[0]) == ([6, 7] if method == "kneighbors" else [])
    assert index.kneighbors([[0.0]], 1, return_distance=False).tolist() == [["row 0"]]
