"""Ctrl-C during a durable call: the folder and the living forest stay one and the same."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from boundary_forest import BoundaryForestClassifier, open_durable
from boundary_forest.durable.interrupts import Interrupts

RUNS = os.environ.get("BOUNDARY_FOREST_INTERRUPTS")


@pytest.mark.parametrize("kind", ["plain", "ids", "learned"])
def test_an_interrupt_at_any_moment_leaves_folder_and_forest_the_same(kind, tmp_path):
    """BOUNDARY_FOREST_INTERRUPTS=2000 interrupts so many calls, at any bytecode."""
    script = Path(__file__).with_name("interrupted_learners.py")
    how = ["60", tmp_path, kind, "lines"] if RUNS is None else [RUNS, tmp_path, kind, "bytecodes"]
    done = subprocess.run(
        [sys.executable, script, *how], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["interrupted"] == int(how[0])
    assert min(told["none learned"], told["part learned"], told["all learned"]) > 0


def in_child(script: str, tmp_path: Path) -> dict:
    """What a script prints that has a main thread of its own, which gets the signals."""
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


LONG_CALL = """
import json, os, signal, threading, time
import numpy as np
from boundary_forest import BoundaryForestClassifier, open_durable
rng = np.random.default_rng(0)
X, y = rng.normal(size=(150_000, 20)), rng.integers(0, 50, 150_000)
with open_durable("f", BoundaryForestClassifier(n_estimators=100, random_state=0)) as forest:
    forest.partial_fit(X[:100], y[:100])
    sent = []
    def interrupt():
        while forest.examples_seen < 3_000:
            time.sleep(0.01)
        sent.append(time.monotonic())
        os.kill(os.getpid(), signal.SIGINT)
    threading.Thread(target=interrupt).start()
    forest.note = "all of it"
    try:
        forest.partial_fit(X[100:], y[100:])
    except KeyboardInterrupt as error:
        waited, notes = time.monotonic() - sent[0], error.__notes__
    found = {"waited": waited, "notes": notes, "seen": forest.examples_seen}
    fingerprint = forest.fingerprint()
with open_durable("f") as forest:
    assert forest.fingerprint() == fingerprint
    assert forest.note is None
print(json.dumps(found))
"""


def test_a_long_call_ends_soon_after_ctrl_c_and_says_how_far_it_came(tmp_path):
    """Within a second on an idle machine; it would take a minute to its end."""
    found = in_child(LONG_CALL, tmp_path)
    assert found["waited"] < 5
    assert 3_000 <= found["seen"] < 100_000
    assert found["notes"] == [f"{found['seen'] - 100:,} of 149,900 examples were learned"]


SLOW_METRIC = """
import json, os, signal, threading, time
import numpy as np
from boundary_forest import BoundaryForestNeighbors, open_durable
calls = []
def metric(x, y):
    calls.append(1)
    time.sleep(0.01)
    return float(np.abs(x - y).sum())
model = BoundaryForestNeighbors(n_estimators=1, metric=metric, random_state=0)
with open_durable("f", model) as forest:
    forest.partial_fit(np.arange(3.0)[:, None])
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        forest.partial_fit(np.arange(3.0, 5000.0)[:, None])
    except KeyboardInterrupt:
        pass
    n_calls, seen = len(calls), forest.examples_seen
    forest.partial_fit([[-1.0]])
with open_durable("f", model) as forest:
    print(json.dumps({"calls": n_calls, "seen": seen, "again": forest.examples_seen}))
"""


def test_a_metric_of_ones_own_can_be_interrupted_at_once(tmp_path):
    """It may take long for a row, and the whole of its call is taken back."""
    found = in_child(SLOW_METRIC, tmp_path)
    assert found["calls"] < 1000
    assert (found["seen"], found["again"]) == (3, 4)


@pytest.fixture
def handled_sigint():
    """Python's own handler: SIGINT is ignored where tests run in the background."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("handled_sigint")
def test_interrupts_are_remembered_and_handled_in_the_end():
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("this process runs its tests in another thread, which gets no signals")
    reached = []

    def work() -> None:
        with Interrupts() as outer:
            with Interrupts():
                signal.raise_signal(signal.SIGINT)
                reached.append("inner")
            reached.append("outer")
            with pytest.raises(KeyboardInterrupt):
                outer.handle()
            outer.handle()  # once is enough
            signal.raise_signal(signal.SIGINT)
            reached.append("end")

    with pytest.raises(KeyboardInterrupt):
        work()
    assert reached == ["inner", "outer", "end"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_ones_own_is_called_later_and_stays(tmp_path):
    if threading.current_thread() is not threading.main_thread():
        pytest.skip("this process runs its tests in another thread, which gets no signals")
    called = []
    before = signal.signal(signal.SIGINT, lambda *_: called.append(time.monotonic()))
    try:
        ours = signal.getsignal(signal.SIGINT)
        with Interrupts():
            signal.raise_signal(signal.SIGINT)
            assert called == []
        assert len(called) == 1
        assert signal.getsignal(signal.SIGINT) is ours
    finally:
        signal.signal(signal.SIGINT, before)


def test_other_threads_learn_without_touching_signals(classification, tmp_path):
    task, errors = classification, []

    def learn() -> None:
        try:
            forest.partial_fit(task.X, task.y)
        except BaseException as error:
            errors.append(error)

    with open_durable(tmp_path, task.forest()) as forest:
        thread = threading.Thread(target=learn)
        thread.start()
        thread.join()
        assert errors == []
        assert forest.examples_seen == len(task.X)


@pytest.mark.parametrize("rows", [3, 50])
def test_the_blocks_of_a_call_change_nothing(tmp_path, monkeypatch, rows):
    """Answers before learning, classes that come later, names of features, declared classes."""
    monkeypatch.setattr("boundary_forest.durable.interruptible_blocks.FIRST_ROWS", rows)
    monkeypatch.setattr("boundary_forest.durable.interruptible_blocks.MOST_ROWS", rows)
    monkeypatch.setattr("boundary_forest.durable.packing.OPERATION_BYTES", 5 * rows)
    X = np.random.default_rng(0).integers(0, 9, size=(120, 2)).astype(np.uint8)
    y = np.repeat(["c", "a", "d", "b"], 30)
    plain = BoundaryForestClassifier(n_estimators=3, random_state=0)
    with open_durable(tmp_path, plain) as forest:
        for learner in (forest, plain):
            learner.partial_fit(X[:40], y[:40], classes=["a", "c", "z"], ids=range(40))
        shares = [
            f.predict_proba_then_learn(X[40:], y[40:], ids=range(40, 120)) for f in (forest, plain)
        ]
        assert shares[0].tolist() == shares[1].tolist()
        assert forest.fingerprint() == plain.fingerprint()
        assert forest._journal.last == -(-40 // (5 * rows // 2)) + -(-80 // (5 * rows // 2))
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == plain.fingerprint()
        assert forest.classes_.tolist() == plain.classes_.tolist() == ["a", "b", "c", "d", "z"]
        assert forest.kneighbors(X[:9], 4)[1].tolist() == plain.kneighbors(X[:9], 4)[1].tolist()
