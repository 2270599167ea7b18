"""Forks and exits while other threads learn and query: nothing hangs, nothing crashes."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

N_TIMES = int(os.environ.get("BOUNDARY_FOREST_FORKS", "10"))

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

EXITS = """
import threading, time
import numpy as np
from boundary_forest import BoundaryForestClassifier

rng = np.random.default_rng(0)
X = rng.normal(size=(20000, 20))
y = (X[:, 0] > 0).astype(int)
forest = BoundaryForestClassifier(n_estimators=5, random_state=0, n_jobs={n_jobs})
forest.partial_fit(X[:200], y[:200])

def work():
    while True:
        {call}

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep({wait})
print("ending")
"""


def run(program, **words):
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program).format(**words)],
        capture_output=True,
        text=True,
        timeout=600,
    )


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("callable_metric", [False, True])
@pytest.mark.parametrize("learning", [False, True])
def test_a_forked_child_queries_and_learns(learning, callable_metric):
    done = run(FORKS, learning=learning, callable_metric=callable_metric, n_times=N_TIMES)
    assert (done.returncode, done.stdout) == (0, "whole True\n"), done.stderr


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize(
    "call", ["forest.predict(X)", "forest.partial_fit(X, y)", "forest.kneighbors(X[:200], 3)"]
)
def test_the_interpreter_ends_while_a_daemon_thread_works(call, n_jobs):
    for attempt in range(max(1, N_TIMES // 5)):
        done = run(EXITS, call=call, n_jobs=n_jobs, wait=0.05 * (1 + attempt % 5))
        assert (done.returncode, done.stdout) == (0, "ending\n"), done.stderr
        assert done.stderr == ""
