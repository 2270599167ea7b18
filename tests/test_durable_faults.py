"""What goes wrong around a durable forest: refusals, interrupts, forks, full disks, kills."""

from __future__ import annotations

import gc
import json
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from conftest import answers
from scipy.sparse import csr_matrix

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    DurableForest,
    JournalError,
    ModelFileError,
    open_durable,
)
from boundary_forest.files import writing


def test_a_batch_that_is_refused_is_not_in_the_journal(classification, tmp_path):
    task = classification
    with open_durable(tmp_path, task.forest()) as forest:
        forest.partial_fit(task.X, task.y)
        with pytest.raises(ValueError, match="features"):
            forest.partial_fit(task.X_more[:, :2], task.y_more)
        assert forest._journal.n_rows == len(task.X)
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == task.taught(shuffle=False).fingerprint()


def test_labels_that_no_file_takes_are_refused_before_they_are_learned(tmp_path):
    labels = np.empty(2, dtype=object)
    labels[:] = [(1, 2), (3, 4)]
    with open_durable(tmp_path, BoundaryForestClassifier(n_estimators=2)) as forest:
        with pytest.raises(TypeError, match="str, int, bool, float and bytes"):
            forest.partial_fit([[0], [1]], labels)
        assert not hasattr(forest, "classes_")


def test_a_batch_that_a_metric_fails_on_is_taken_back(tmp_path):
    def metric(x, y):
        if x[0] > 90 or y[0] > 90:
            raise RuntimeError("too far")
        return abs(x[0] - y[0])

    model = BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)
    with open_durable(tmp_path, model) as forest:
        forest.partial_fit([[1.0], [5.0], [9.0]])
        with pytest.raises(ValueError, match="metric"):
            forest.partial_fit([[2.0], [99.0]])
        forest.partial_fit([[3.0]])
        found = forest.fingerprint()
    with pytest.raises(TypeError, match="metric"):
        open_durable(tmp_path)
    with open_durable(tmp_path, model) as forest:
        assert forest.fingerprint() == found
        assert forest.stats()["examples_seen"] == 4


def test_a_batch_that_ends_the_process_can_be_left_out(tmp_path):
    """It is in the journal, and would end every process that learns the journal again."""
    script = """
import os
from boundary_forest import BoundaryForestNeighbors, open_durable

def metric(x, y):
    if x[0] > 90 or y[0] > 90:
        os._exit(7)
    return abs(x[0] - y[0])

model = BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)
for word, code in (("learn", 7), ("open", 7), ("redo", 0), ("open", 0)):
    child = os.fork()
    if child == 0:
        with open_durable("f", model, redo=word == "redo") as forest:
            if word == "learn":
                forest.partial_fit([[1.0], [5.0], [9.0]])
                forest.partial_fit([[2.0], [99.0]])
            assert forest.stats()["examples_seen"] == 3
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == code, word
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_an_interrupt_keeps_what_was_learned_of_a_batch(retrieval, tmp_path, monkeypatch):
    """The engine publishes block by block; here it is stopped after the first of two."""
    X = csr_matrix(np.tile(retrieval.X, (20, 1)))
    monkeypatch.setattr("boundary_forest.estimators.blocks.BLOCK_VALUES", 4 * 300)
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(X[:100])
        learning = forest.model.fitted
        learn = type(learning.engine).learn
        calls = []

        class Stopping:
            def __init__(self, engine):
                self.engine = engine

            def __getattr__(self, name):
                return getattr(self.engine, name)

            def learn(self, *arguments):
                calls.append(1)
                if len(calls) == 2:
                    raise KeyboardInterrupt
                return learn(self.engine, *arguments)

        forest.model.fitted = replace(learning, engine=Stopping(learning.engine))
        with pytest.raises(KeyboardInterrupt):
            forest.partial_fit(X[100:])
        forest.model.fitted = learning
        kept = forest.stats()["examples_seen"]
        assert 100 < kept < X.shape[0]
        assert forest._journal.n_rows == kept
        found = forest.fingerprint()
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == found == retrieval.forest().fit(X[:kept]).fingerprint()


@pytest.mark.parametrize("last", ["BEGIN IMMEDIATE", "INSERT INTO operations", "COMMIT"])
def test_an_interrupt_while_a_batch_is_written_down_takes_it_back(retrieval, tmp_path, last):
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(retrieval.X)
        database = forest.database
        sql = database._sql

        class Interrupted:
            """An exception that no signal handler puts off, as one set by another thread."""

            def __getattr__(self, name):
                return getattr(sql, name)

            def execute(self, statement, *arguments):
                found = sql.execute(statement, *arguments)
                if statement.startswith(last):
                    database._sql = sql
                    raise KeyboardInterrupt
                return found

        database._sql = Interrupted()
        with pytest.raises(KeyboardInterrupt):
            forest.partial_fit(retrieval.X_more)
        assert forest._journal.n_rows == forest.stats()["examples_seen"] == len(retrieval.X)
        forest.partial_fit(retrieval.X_more)
    with open_durable(tmp_path) as forest:
        plain = retrieval.taught().partial_fit(retrieval.X_more)
        assert forest.fingerprint() == plain.fingerprint()


@pytest.mark.parametrize("failing", [["COMMIT"], ["COMMIT", "ROLLBACK"]])
def test_a_disk_that_fails_while_a_batch_is_written_down_spoils_nothing(
    retrieval, tmp_path, failing
):
    """What a transaction wrote that could not be rolled back is not taken for written."""
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(retrieval.X)
        database = forest.database
        sql, left = database._sql, list(failing)

        class Failing:
            def __getattr__(self, name):
                return getattr(sql, name)

            def execute(self, statement, *arguments):
                if statement in left:
                    left.remove(statement)
                    raise sqlite3.OperationalError("disk I/O error")
                return sql.execute(statement, *arguments)

        database._sql = Failing()
        with pytest.raises(JournalError, match="disk I/O error"):
            forest.partial_fit(retrieval.X_more)
        assert left == []
        shutil.copytree(tmp_path, tmp_path / "crash")
        forest.partial_fit(retrieval.X_more)
    with open_durable(tmp_path / "crash") as forest:
        assert forest.fingerprint() == retrieval.taught().fingerprint()
    with open_durable(tmp_path) as forest:
        plain = retrieval.taught().partial_fit(retrieval.X_more)
        assert forest.fingerprint() == plain.fingerprint()


def test_a_journal_that_cannot_be_told_what_was_not_learned_is_not_gone_on_with(
    tmp_path, monkeypatch
):
    failing = [True]

    def metric(x, y):
        if failing[0] and max(x[0], y[0]) > 90:
            raise RuntimeError("too far")
        return abs(x[0] - y[0])

    def full(*_):
        raise JournalError("journal.sqlite: database or disk is full")

    model = BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)
    with open_durable(tmp_path, model) as forest:
        forest.partial_fit([[1.0], [5.0], [9.0]])
        monkeypatch.setattr(forest._journal, "truncate", full)
        with pytest.raises(JournalError, match="full"):
            forest.partial_fit([[2.0], [99.0]])
        for use in (lambda: forest.partial_fit([[3.0]]), forest.snapshot):
            with pytest.raises(JournalError, match="close the forest and open it again"):
                use()
    failing[0] = False
    with open_durable(tmp_path, model) as forest:
        assert forest.stats()["examples_seen"] == 5


def test_a_fork_leaves_the_journal_to_its_parent(tmp_path):
    """SQLite, closed by a fork, would delete the log that the parent writes to."""
    script = """
import os, shutil, sys
import numpy as np
from boundary_forest import BoundaryForestClassifier, JournalError, open_durable
X, y = np.arange(20.0)[:, None], np.arange(20) % 3
def learn():
    try:
        forest.partial_fit(X, y)
    except JournalError as error:
        assert "in the parent process" in str(error)
    else:
        sys.exit("a fork learned")

for number, ending in enumerate((lambda: None, lambda: forest.close(), learn)):
    forest = open_durable(f"f{number}", BoundaryForestClassifier(n_estimators=2, random_state=0))
    forest.partial_fit(X[:10], y[:10])
    child = os.fork()
    if child == 0:
        ending()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0, number
    forest.partial_fit(X[10:], y[10:])
    shutil.copytree(f"f{number}", f"crash{number}")
    with open_durable(f"crash{number}") as again:
        assert again.fingerprint() == forest.fingerprint()
    forest.close()
"""
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True)


def test_a_full_disk_is_found_before_anything_is_learned(retrieval, tmp_path):
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(retrieval.X)
        before = answers(forest, retrieval.queries)
        database = forest.database
        ((pages,),) = database.rows("PRAGMA max_page_count")
        database.rows("PRAGMA max_page_count=1")  # SQLite makes it as many as there are
        with pytest.raises(JournalError, match="full"):
            forest.partial_fit(np.tile(retrieval.X_more, (100, 1)))
        assert answers(forest, retrieval.queries) == before
        database.rows(f"PRAGMA max_page_count={pages}")
        forest.partial_fit(retrieval.X_more)
    with open_durable(tmp_path) as forest:
        plain = retrieval.taught().partial_fit(retrieval.X_more)
        assert forest.fingerprint() == plain.fingerprint()


def test_a_batch_too_large_for_the_journal_is_refused(retrieval, tmp_path):
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.database._sql.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 6000)
        with pytest.raises(JournalError, match="smaller batches"):
            forest.partial_fit(np.tile(retrieval.X, (20, 1)))
        forest.partial_fit(retrieval.X[:3])
    with open_durable(tmp_path) as forest:
        assert forest.stats()["examples_seen"] == 3


def test_the_names_of_new_folders_are_brought_to_the_disk(retrieval, tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(writing, "sync_folder", synced.append)
    open_durable(tmp_path / "a" / "b", retrieval.forest()).close()
    assert synced[:2] == [tmp_path, tmp_path / "a"]


def test_one_at_a_time_has_it_open(retrieval, tmp_path):
    with (
        open_durable(tmp_path, retrieval.forest()),
        pytest.raises(JournalError, match="already open"),
    ):
        open_durable(tmp_path)


def test_a_copy_of_the_folder_lets_no_other_process_in(retrieval, tmp_path):
    """To close a file drops all of SQLite's locks on it that the process has."""
    folder = tmp_path / "f"
    script = f"import boundary_forest; boundary_forest.open_durable({str(folder)!r})"
    with open_durable(folder, retrieval.forest()) as forest:
        forest.partial_fit(retrieval.X)
        shutil.copytree(folder, tmp_path / "copy")
        other = [sys.executable, "-c", script]
        done = subprocess.run(other, capture_output=True, text=True, check=False)
        assert "JournalError" in done.stderr
        assert "already open" in done.stderr
    open_durable(folder).close()


def test_a_forest_that_was_dropped_can_be_opened_again(retrieval, tmp_path):
    open_durable(tmp_path, retrieval.forest()).partial_fit(retrieval.X)
    gc.collect()
    with open_durable(tmp_path) as forest:
        assert forest.stats()["examples_seen"] == len(retrieval.X)


def test_what_was_closed_learns_no_more_but_answers(retrieval, tmp_path):
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(retrieval.X)
    with pytest.raises(JournalError, match="was closed"):
        forest.partial_fit(retrieval.X_more)
    with pytest.raises(JournalError, match="was closed"):
        forest.model.partial_fit(retrieval.X_more)
    assert forest.stats()["examples_seen"] == len(retrieval.X)
    forest.close()


@pytest.mark.parametrize("n_learned", [0, 20])
def test_no_way_leads_to_forgetting(retrieval, tmp_path, n_learned):
    with open_durable(tmp_path, retrieval.forest()) as forest:
        if n_learned:
            forest.partial_fit(retrieval.X[:n_learned])
            forest.snapshot()
        for forget in (forest.fit, forest.fit_transform, forest.model.fit):
            with pytest.raises(TypeError, match="would discard"):
                forget(retrieval.X)
        assert forest._journal.n_rows == 0


def test_a_wrong_beginning_is_told(classification, tmp_path):
    task = classification
    with pytest.raises(FileNotFoundError, match="no forest yet"):
        open_durable(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    with pytest.raises(TypeError, match="must be an estimator"):
        open_durable(tmp_path / "none", task)
    with pytest.raises(ValueError, match="'metric' parameter"):
        open_durable(tmp_path, task.forest(metric="none of them"))
    open_durable(tmp_path, task.forest()).close()
    with pytest.raises(ValueError, match="created with max_children=50, got 9"):
        open_durable(tmp_path, task.forest(max_children=9))
    with pytest.raises(ValueError, match="contains a BoundaryForestClassifier"):
        open_durable(tmp_path, BoundaryForestNeighbors(random_state=0))
    with pytest.raises(ValueError, match="snapshot_rows must be at least 1"):
        open_durable(tmp_path, snapshot_rows=0)
    with open_durable(tmp_path, task.forest(n_jobs=2, random_state=5)) as forest:
        assert forest.model.n_jobs == 2
        with pytest.raises(TypeError, match="would discard"):
            forest.fit(task.X, task.y)


def test_a_copy_of_the_model_has_no_journal(classification, tmp_path):
    task = classification
    with open_durable(tmp_path, task.forest()) as forest:
        forest.partial_fit(task.X, task.y)
        copy = pickle.loads(pickle.dumps(forest.model))
        copy.partial_fit(task.X_more, task.y_more)
        assert forest.stats()["examples_seen"] == forest._journal.n_rows == len(task.X)
        assert isinstance(forest, DurableForest)


def test_damage_is_told(classification, tmp_path):
    task = classification
    with open_durable(tmp_path, task.forest()) as forest:
        forest.partial_fit(task.X, task.y)
    journal, snapshot = tmp_path / "journal.sqlite", tmp_path / "model.bf"
    good = journal.read_bytes()
    at = good.find(task.X[3].tobytes())
    journal.write_bytes(good[:at] + b"\xff" + good[at + 1 :])
    with pytest.raises(JournalError, match="operation 1: it is damaged"):
        open_durable(tmp_path)
    journal.write_bytes(b"no database at all, but some text that is long enough" * 50)
    with pytest.raises(JournalError, match="damaged"):
        open_durable(tmp_path)
    journal.write_bytes(good)
    snapshot.write_bytes(snapshot.read_bytes()[:-1])
    with pytest.raises(ModelFileError):
        open_durable(tmp_path)


@pytest.mark.parametrize(("kind", "kills"), [("plain", "10"), ("learned", "8"), ("mixed", "8")])
def test_kill_9_at_any_moment_loses_nothing(kind, kills, tmp_path):
    """Real processes; BOUNDARY_FOREST_KILLS=200 for more of them than the few here."""
    kills = os.environ.get("BOUNDARY_FOREST_KILLS", kills)
    script = Path(__file__).with_name("killed_learners.py")
    done = subprocess.run(
        [sys.executable, script, kills, tmp_path, kind], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == int(kills)
    assert told["learned"] > 0
    assert told["during"].keys() <= {"learning", "snapshot", "saving", "deciding"}
    assert ("deciding" in told["during"]) == (kind == "learned")  # a kill came in a decision
