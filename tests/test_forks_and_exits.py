"""Forks and exits while other threads learn and query: nothing hangs, nothing crashes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

N_TIMES = int(os.environ.get("BOUNDARY_FOREST_FORKS", "5"))

FORKS = """
import os, signal, sys, threading, time, warnings
import numpy as np
from boundary_forest import BoundaryForestClassifier

warnings.simplefilter("ignore", DeprecationWarning)
rng = np.random.default_rng(0)
X = rng.normal(size=(30000, 12))
y = (X[:, 0] > 0).astype(int)
callable_metric = {callable_metric}
metric = (lambda a, b: float(abs(a - b).sum())) if callable_metric else "euclidean"
step = 20 if callable_metric else 3000
forest = BoundaryForestClassifier(n_estimators=6, n_jobs=2, random_state=0, metric=metric)
forest.partial_fit(X[:100], y[:100])
done = False

def work():
    at = 100
    while not done:
        if {learning}:
            at = 100 if at + step > len(X) else at
            forest.partial_fit(X[at : at + step], y[at : at + step])
            at += step
        else:
            forest.predict(X[:step])

threads = [threading.Thread(target=work, daemon=True) for _ in range(1 if {learning} else 3)]
for thread in threads:
    thread.start()
for attempt in range({n_times}):
    time.sleep(0.003 * (attempt % 7))
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that hangs is ended, and counted
        before = forest.examples_seen
        forest.predict(X[:50])
        forest.partial_fit(X[:30], y[:30])
        forest.predict(X[:50])
        os._exit(0 if forest.examples_seen == before + 30 else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0, f"attempt {{attempt}}: {{status}}"
done = True
for thread in threads:
    thread.join()
print("whole", forest.examples_seen > 0)
"""

LONG_CALLS = """
import os, signal, threading, time, warnings
import numpy as np
from boundary_forest import BoundaryForestClassifier

warnings.simplefilter("ignore", DeprecationWarning)
rng = np.random.default_rng(0)
X = rng.normal(size=(100000, 12))
y = rng.integers(5, size=len(X))
forests = [BoundaryForestClassifier(n_estimators=20, random_state=i) for i in range(2)]
for forest in forests:
    forest.partial_fit(X[:100], y[:100])
stopped = threading.Event()

def learn(forest):
    while not stopped.is_set():
        forest.partial_fit(X, y)

threads = [threading.Thread(target=learn, args=(f,), daemon=True) for f in forests]
for thread in threads:
    thread.start()
while min(forest.examples_seen for forest in forests) < 300:
    time.sleep(0.01)
child = os.fork()
if child == 0:
    signal.alarm(60)
    before = [forest.examples_seen for forest in forests]
    for forest in forests:
        forest.partial_fit(X[:30], y[:30])
    seen = [forest.examples_seen for forest in forests]
    os._exit(0 if seen == [n + 30 for n in before] and min(seen) < len(X) else 1)
_, status = os.waitpid(child, 0)
print(status, max(forest.examples_seen for forest in forests) < len(X), flush=True)
os._exit(0)  # this thread does not wait for the others
"""

HANDLERS = """
import os, threading, time, warnings

warnings.simplefilter("ignore", DeprecationWarning)
forking = threading.Event()

def let_others_run():
    forking.set()
    time.sleep(0.3)

# Handlers run in reverse order before a fork: this one comes when the engine's locks are held.
os.register_at_fork(before=let_others_run)

import copy
from boundary_forest import BoundaryForestClassifier

X, y = [[float(i)] for i in range(60)], [i % 3 for i in range(60)]
forest = BoundaryForestClassifier(n_estimators=3, random_state=0).fit(X, y)
others = [copy.copy(forest)]
calls = [
    lambda: forest.examples_seen,
    lambda: forest.predict(X),
    lambda: forest.stats(),
    lambda: forest.explain(X[0]),
    lambda: copy.deepcopy(forest),
    lambda: BoundaryForestClassifier().fit(X, y),
    lambda: others.clear(),
]
for number, call in enumerate(calls):
    forking.clear()
    asking = threading.Thread(target=lambda: forking.wait() and call(), daemon=True)
    asking.start()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    asking.join(60)
    assert not asking.is_alive(), number
print("asked", len(calls))
"""

# Each child ends as the interpreter does, while two threads of it work.
EXITS = """
import os, signal, sys, threading, time
import numpy as np
from boundary_forest import BoundaryForestClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 20))
y = (X[:, 0] > 0).astype(int)
metric = (lambda a, b: float(abs(a - b).sum())) if {callable_metric} else "euclidean"
n = 30 if {callable_metric} else len(X)
calls = [
    lambda: forest.predict(X[:n]),
    lambda: forest.partial_fit(X[:n], y[:n]),
    lambda: forest.kneighbors(X[:1] if {callable_metric} else X[:200], 3),
]

def work(call):
    while True:
        call()

for attempt in range({n_times}):
    for number, call in enumerate(calls):
        for n_jobs in (1,) if {callable_metric} else (1, 2):  # functions run on one thread
            child = os.fork()
            if child == 0:
                signal.alarm(60)  # a child that hangs is ended, and counted
                forest = BoundaryForestClassifier(
                    n_estimators=5, random_state=0, n_jobs=n_jobs, metric=metric
                )
                forest.partial_fit(X[:100], y[:100])
                for _ in range(2):
                    threading.Thread(target=work, args=(call,), daemon=True).start()
                time.sleep(0.05 * (1 + attempt % 5))
                sys.exit()
            _, status = os.waitpid(child, 0)
            assert status == 0, (number, n_jobs, status)
print("ended")
"""


def run(program, **words):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program).format(**words)],
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.mark.parametrize("callable_metric", [False, True])
@pytest.mark.parametrize("learning", [False, True])
def test_a_forked_child_queries_and_learns(learning, callable_metric):
    done = run(FORKS, learning=learning, callable_metric=callable_metric, n_times=N_TIMES)
    assert (done.returncode, done.stdout) == (0, "whole True\n"), done.stderr


def test_a_fork_does_not_wait_for_long_learning_calls_of_other_threads_to_end():
    done = run(LONG_CALLS)
    assert (done.returncode, done.stdout) == (0, "0 True\n"), done.stderr


def test_calls_during_the_handlers_of_a_fork_do_not_hold_it_up():
    done = run(HANDLERS)
    assert (done.returncode, done.stdout) == (0, "asked 7\n"), done.stderr


@pytest.mark.parametrize("callable_metric", [False, True])
def test_the_interpreter_ends_while_a_daemon_thread_works(callable_metric):
    done = run(EXITS, callable_metric=callable_metric, n_times=max(1, N_TIMES // 2))
    assert (done.returncode, done.stdout, done.stderr) == (0, "ended\n", "")
