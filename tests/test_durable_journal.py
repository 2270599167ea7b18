"""The journal is a log of numbered operations; a snapshot says which of them it includes."""

from __future__ import annotations

import errno
import fcntl
import random
import shutil
import sqlite3

import numpy as np
import pytest

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    JournalError,
    ModelFileError,
    open_durable,
)
from boundary_forest.durable import reserve
from boundary_forest.durable.journal import Journal
from boundary_forest.durable.operations import LEARN, TRUNCATE, Operation


def operations(folder) -> list[tuple]:
    """Number, kind, call, first and n of all, read by whoever likes to."""
    sql = sqlite3.connect(folder / "journal.sqlite")
    found = sql.execute("SELECT number, kind, call, first, n FROM operations").fetchall()
    sql.close()
    return found


def changed(folder, statement: str) -> None:
    sql = sqlite3.connect(folder / "journal.sqlite")
    sql.execute(statement)
    sql.commit()
    sql.close()


@pytest.fixture
def failing(tmp_path):
    """A folder in which one call of three failed."""

    def metric(x, y):
        if max(x[0], y[0]) > 90:
            raise RuntimeError("too far")
        return abs(x[0] - y[0])

    model = BoundaryForestNeighbors(n_estimators=2, metric=metric, random_state=0)
    with open_durable(tmp_path / "f", model, note="new") as forest:
        for rows in ([[1.0], [5.0]], [[2.0], [99.0]], [[3.0]]):
            forest.note = f"after {rows}"
            if rows[-1] == [99.0]:
                with pytest.raises(ValueError, match="metric"):
                    forest.partial_fit(rows)
            else:
                forest.partial_fit(rows)
    return tmp_path / "f", model


def test_what_failed_is_followed_by_an_operation_that_says_so(failing):
    folder, model = failing
    assert operations(folder) == [
        (1, LEARN, 1, 0, 2),
        (2, LEARN, 2, 2, 2),
        (3, TRUNCATE, 2, 2, 0),
        (4, LEARN, 4, 2, 1),
    ]
    with open_durable(folder, model) as forest:
        assert forest.examples_seen == 3
        assert forest.note == "after [[3.0]]"


def test_a_call_that_failed_is_not_the_one_that_is_taken_back(failing):
    folder, model = failing
    for taken_back, seen in (("after [[3.0]]", 2), ("after [[1.0], [5.0]]", 0), (None, 0)):
        with open_durable(folder, model, redo=True) as forest:
            assert forest.taken_back == taken_back
            assert forest.examples_seen == seen
    assert [number for number, *_ in operations(folder)] == list(range(1, 7))


def test_numbers_go_on_after_a_snapshot(classification, tmp_path):
    task = classification
    with open_durable(tmp_path, task.forest()) as forest:
        forest.partial_fit(task.X, task.y)
        forest.snapshot()
        forest.partial_fit(task.X_more, task.y_more)
    assert operations(tmp_path) == [(2, LEARN, 2, len(task.X), len(task.X_more))]


@pytest.fixture
def folder(tmp_path):
    """A snapshot that includes operation 1, and operations 2 and 3."""
    X = np.arange(60.0).reshape(30, 2)
    model = BoundaryForestClassifier(n_estimators=3, random_state=0)
    with open_durable(tmp_path / "f", model) as forest:
        forest.partial_fit(X[:10], np.arange(10) % 3, ids=range(10))
        forest.snapshot()
        for i in (1, 2):
            part = slice(10 * i, 10 * i + 10)
            forest.partial_fit(X[part], np.arange(10) % 3, ids=range(10 * i, 10 * i + 10))
    return tmp_path / "f"


@pytest.mark.parametrize("log", ["living", "none"])
def test_a_journal_that_was_deleted_is_missed(folder, tmp_path, log):
    with open_durable(folder) as forest:
        forest.partial_fit([[7.0, 7.0]], [1], ids=[99])
        left = shutil.copytree(folder, tmp_path / "left")
    (left / "journal.sqlite").unlink()
    if log == "none":
        (left / "journal.sqlite-wal").unlink()
    before = sorted(path.name for path in left.iterdir())
    for _ in range(2):
        with pytest.raises(JournalError, match="missing or empty"):
            open_durable(left)
        assert sorted(path.name for path in left.iterdir()) == before


def test_a_log_is_kept_whose_journal_and_snapshot_were_deleted(folder, tmp_path):
    """A new journal of the same name would be the end of it."""
    with open_durable(folder) as forest:
        forest.partial_fit([[7.0, 7.0]], [1], ids=[99])
        left = shutil.copytree(folder, tmp_path / "left")
    for name in ("journal.sqlite", "model.bf"):
        (left / name).unlink()
    log = (left / "journal.sqlite-wal").read_bytes()
    with pytest.raises(JournalError, match="belongs to a journal that is missing"):
        open_durable(left, BoundaryForestClassifier(n_estimators=3, random_state=0))
    assert (left / "journal.sqlite-wal").read_bytes() == log


def test_a_journal_of_another_folder_is_refused(folder, tmp_path):
    with open_durable(tmp_path / "other", BoundaryForestClassifier(random_state=0)):
        pass
    shutil.copy(tmp_path / "other" / "journal.sqlite", folder)
    with pytest.raises(JournalError, match="does not belong to"):
        open_durable(folder)


def test_a_journal_older_than_its_snapshot_is_refused(folder, tmp_path):
    shutil.copy(folder / "journal.sqlite", tmp_path / "older")
    with open_durable(folder) as forest:
        forest.partial_fit([[7.0, 7.0]], [1], ids=[99])
        forest.snapshot()
    shutil.copy(tmp_path / "older", folder / "journal.sqlite")
    with pytest.raises(JournalError, match="older than its snapshot"):
        open_durable(folder)


def test_a_snapshot_older_than_what_the_journal_has_is_refused(folder, tmp_path):
    shutil.copy(folder / "model.bf", tmp_path / "older")
    with open_durable(folder) as forest:
        forest.snapshot()
        forest.partial_fit([[7.0, 7.0]], [1], ids=[99])
    shutil.copy(tmp_path / "older", folder / "model.bf")
    with pytest.raises(JournalError, match=r"it has 1 of the 3 operations since the snapshot"):
        open_durable(folder)


def test_a_snapshot_that_was_deleted_is_missed(folder):
    (folder / "model.bf").unlink()
    with pytest.raises(FileNotFoundError, match="no forest yet"):
        open_durable(folder)
    with pytest.raises(JournalError, match="the snapshot is missing"):
        open_durable(folder, BoundaryForestClassifier(n_estimators=3, random_state=0))
    assert not (folder / "model.bf").exists()


def test_a_snapshot_of_a_journal_must_be_saved_by_it(folder):
    with open_durable(folder) as forest:
        forest.model.save(folder / "model.bf")  # by hand: it has more than it says
    with pytest.raises(JournalError, match="was not saved by open_durable"):
        open_durable(folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("SET contents = 'text' WHERE number = 3", "operation 3: its contents are not bytes"),
        ("SET contents = 7 WHERE number = 3", "operation 3: its contents are not bytes"),
        ("SET contents = x'00' WHERE number = 3", "operation 3: it is damaged"),
        ("SET n = 'many' WHERE number = 3", "operation 3: it has a column that is not"),
        ("SET n = 9 WHERE number = 3", "operation 3: it is damaged"),
        ("SET n = 9 WHERE number = 2", "operation 3: it begins after 20 examples instead of 19"),
        ("SET n = 0 WHERE number = 3", "operation 3: it has no examples"),
        (
            "SET first = 21 WHERE number = 3",
            "operation 3: it begins after 21 examples instead of 20",
        ),
        (
            "SET first = 9 WHERE number = 2",
            "operation 3: it begins after 20 examples instead of 19",
        ),
        ("SET call = 9 WHERE number = 3", "operation 3: it belongs to a call that comes later"),
        ("SET call = 1 WHERE number = 3", "operation 3: it continues the call of operation 1"),
        ("SET kind = 'dream' WHERE number = 3", "operation 3: it has the unknown kind 'dream'"),
        ("SET kind = 'truncate' WHERE number = 3", "operation 3: it is damaged"),
        (
            "SET number = 5 WHERE number = 3",
            "operation 5: it follows operation 2, so operations are missing",
        ),
        ("SET checksum = 'x' WHERE number = 3", "operation 3: it has a column that is not"),
    ],
)
def test_a_damaged_operation_raises_a_journal_error(folder, change, message):
    changed(folder, f"UPDATE operations {change}")
    with pytest.raises(JournalError, match=message):
        open_durable(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM operations WHERE number = 2",
        "DELETE FROM operations WHERE number = 3",
        "DELETE FROM folder",
        "DROP TABLE operations",
        "UPDATE folder SET identity = 7",
        "UPDATE notes SET note = x'ff'",
        "UPDATE sqlite_sequence SET seq = 'many'",
        "PRAGMA user_version = 9",
    ],
)
def test_a_damaged_journal_raises_a_journal_error(folder, statement):
    changed(folder, statement)
    with pytest.raises(JournalError):
        open_durable(folder)


def test_contents_that_cannot_be_examples_raise_a_journal_error(folder):
    """Their checksum is right, as whoever can change a file can make it."""
    good = Journal(folder / "journal.sqlite")
    contents = [recorded.contents for recorded in good.after(1)][1]
    good.close()
    rng = random.Random(0)
    header = 8 + int.from_bytes(contents[:8], "little")
    for trial in range(60):
        at = rng.randrange(8, header)
        bad = contents[:at] + bytes([rng.randrange(32, 127)]) + contents[at + 1 :]
        bad = [bad, contents[:at], b"", contents + b"more"][trial % 4]
        _, *row = Operation(3, LEARN, 3, 20, 10).row(bad)
        sql = sqlite3.connect(folder / "journal.sqlite")
        columns = "kind = ?, call = ?, first = ?, n = ?, checksum = ?, contents = ?"
        sql.execute(f"UPDATE operations SET {columns} WHERE number = 3", row)
        sql.commit()
        sql.close()
        try:
            with open_durable(folder) as forest:  # a name of a column may be any
                assert forest.examples_seen == 30
        except JournalError:
            continue


def test_random_damage_is_found_or_harmless(folder, tmp_path):
    with open_durable(folder) as forest:
        fingerprint = forest.fingerprint()
    good = (folder / "journal.sqlite").read_bytes()
    used = [at for at in range(len(good)) if good[at]]
    rng = random.Random(0)
    found = 0
    for _ in range(100):
        bad = bytearray(good)
        bad[rng.choice(used)] ^= 1 << rng.randrange(8)
        (folder / "journal.sqlite").write_bytes(bad)
        try:
            with open_durable(folder) as forest:
                assert forest.fingerprint() == fingerprint
        except (JournalError, ModelFileError):
            found += 1
    assert found > 20


# --- attachments ----------------------------------------------------------------------------------


def test_attachments_come_back_with_every_snapshot(tmp_path):
    model = BoundaryForestClassifier(n_estimators=2, random_state=0)
    with open_durable(tmp_path / "f", model, attachments={"about": {"a": [1, None]}}) as forest:
        forest.partial_fit([[0], [9]], [0, 1])
    with open_durable(tmp_path / "f") as forest:
        assert forest.attachments == {"about": {"a": [1, None]}}
        forest.attachments["more"] = "text"
        forest.snapshot()
    with open_durable(tmp_path / "f") as forest:
        assert forest.attachments == {"about": {"a": [1, None]}, "more": "text"}
    with pytest.raises(ValueError, match="reserved for the journal"):
        open_durable(tmp_path / "other", model, attachments={"durable": {}})


# --- locks ----------------------------------------------------------------------------------------


def test_a_folder_that_is_reserved_is_nobody_elses(retrieval, tmp_path):
    folder = tmp_path / "new" / "f"
    with reserve(folder) as lock:
        for take in (reserve, lambda path: open_durable(path, retrieval.forest())):
            with pytest.raises(JournalError, match="already open"):
                take(folder)
        with open_durable(folder, retrieval.forest(), lock=lock) as forest:
            forest.partial_fit(retrieval.X)
            with pytest.raises(JournalError, match="already open"):
                reserve(folder)
        assert not lock.is_held  # the forest has released it
        with pytest.raises(ValueError, match="lock must be a held lock"):
            open_durable(folder, lock=lock)
    with reserve(tmp_path) as other, pytest.raises(ValueError, match="lock must be a held lock"):
        open_durable(folder, lock=other)
    open_durable(folder).close()


def test_a_lock_that_was_given_outlives_a_failure(retrieval, tmp_path):
    with reserve(tmp_path) as lock:
        with pytest.raises(ValueError, match="'metric' parameter"):
            open_durable(tmp_path, retrieval.forest(metric="none"), lock=lock)
        assert lock.is_held
        open_durable(tmp_path, retrieval.forest(), lock=lock).close()


def test_where_folders_cannot_be_locked_sqlite_keeps_others_out(tmp_path, monkeypatch):
    def unsupported(opened, how):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", unsupported)
    model = BoundaryForestClassifier(n_estimators=2, random_state=0)
    with open_durable(tmp_path, model) as forest:
        forest.partial_fit([[0], [9]], ["a", "b"])
        with pytest.raises(JournalError, match="already open"):
            open_durable(tmp_path)
    with open_durable(tmp_path) as forest:
        assert forest.examples_seen == 2
