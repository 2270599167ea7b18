"""A journal of what was learned: batches of examples in SQLite, each on the disk before it counts.

Invariants: a batch has the number of its first example, and the next one begins where it ends. What
``append`` has returned from survives a crash: it is in the write-ahead log, and that was synced.
One process at a time has the journal open; its threads take turns. Deleted batches are overwritten,
and the log is cut off.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import sqlite3
import threading
import weakref
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from boundary_forest.estimators.errors import JournalError

SCHEMA = 1
# Pages of 16 kB take a batch of images in half the time of SQLite's 4 kB, and a single small row
# still costs but a few of them.
_SETTINGS = (
    "page_size=16384",
    "auto_vacuum=FULL",  # gives back the space of batches that a snapshot made needless
    "locking_mode=EXCLUSIVE",  # before WAL, so that no file of shared memory is needed
    "journal_mode=WAL",
    "synchronous=FULL",
    "secure_delete=ON",
    "wal_autocheckpoint=0",  # most batches are deleted before they would leave the log
)
_BATCHES = (
    "CREATE TABLE IF NOT EXISTS batches (first INTEGER PRIMARY KEY, n INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL, contents BLOB NOT NULL)"
)
_NOTES = "CREATE TABLE IF NOT EXISTS notes (seen INTEGER PRIMARY KEY, note TEXT NOT NULL)"

_IN_USE = "another process, or this one, has it open"


def _locked(folder: Path) -> int:
    """The folder, opened and locked.

    SQLite's own lock is lost as soon as this process closes the database once, whoever opened it:
    to copy the folder is enough. This one is not.
    """
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(opened)
        raise JournalError(f"{folder}: {_IN_USE}") from None
    except OSError:  # a file system that locks no folders has SQLite's lock still
        pass
    return opened


@dataclass(frozen=True)
class Batch:
    """``n`` examples in bytes, the first of which came after ``first`` others.

    ``note`` is a text of the user's that holds once they are learned.
    """

    first: int
    n: int
    contents: bytes
    note: str | None = None


class Journal:
    """The batches since the last snapshot.

    Attributes
    ----------
    path : Path
        The database.
    n_rows, n_bytes : int
        How much the batches hold.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._unlock_folder = weakref.finalize(self, os.close, _locked(path.parent))
        try:
            with self._telling():
                self._sql = sqlite3.connect(
                    path, isolation_level=None, timeout=0, check_same_thread=False
                )
                self._set_up()
        except BaseException:
            if hasattr(self, "_sql"):
                self._sql.close()
            self._unlock_folder()
            raise
        _opened.add(self)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that opened it, whose alone it is."""
        return os.getpid() != self._process

    def _set_up(self) -> None:
        for setting in _SETTINGS:
            self._sql.execute(f"PRAGMA {setting}")
        (schema,) = self._sql.execute("PRAGMA user_version").fetchone()
        if schema not in (0, SCHEMA):
            raise JournalError(
                f"{self.path}: its schema is {schema}, and this release knows {SCHEMA}: install a "
                "newer boundary-forest"
            )
        if schema == 0:
            with self._transaction():
                self._sql.execute(_BATCHES)
                self._sql.execute(_NOTES)
                self._sql.execute(f"PRAGMA user_version={SCHEMA}")
        self._count()

    def _count(self) -> None:
        totals = "SELECT coalesce(sum(n), 0), coalesce(sum(length(contents)), 0) FROM batches"
        self.n_rows, self.n_bytes = self._sql.execute(totals).fetchone()

    def append(self, batch: Batch) -> None:
        """Returns once the batch is on the disk."""
        with self._lock, self._telling():
            with self._transaction():
                self._insert(batch)
                # The note before this one stays, in case that the batch is taken back.
                self._sql.execute("DELETE FROM notes WHERE seen < ?", (batch.first,))
                if batch.note is not None:
                    self._keep_note(batch.first + batch.n, batch.note)
            self.n_rows += batch.n
            self.n_bytes += len(batch.contents)

    def _insert(self, batch: Batch) -> None:
        most = self._sql.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - 100  # for the other columns
        if len(batch.contents) > most:
            raise JournalError(
                f"{self.path}: these {batch.n:,} examples take {len(batch.contents):,} bytes, and "
                f"at most {most:,} can be written at once: learn them in smaller batches"
            )
        row = (batch.first, batch.n, zlib.crc32(batch.contents), batch.contents)
        self._sql.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", row)

    def replace(self, batch: Batch, part: Batch | None) -> None:
        """Put what was learned of a batch in its place, if it is there; None if that is nothing."""
        with self._lock, self._telling():
            with self._transaction():
                self._sql.execute("DELETE FROM batches WHERE first = ?", (batch.first,))
                self._sql.execute("DELETE FROM notes WHERE seen > ?", (batch.first,))
                if part is not None:
                    self._insert(part)
            self._count()

    def take_back_last(self, saved: int) -> str | None:
        """Forget the last batch, if no snapshot of ``saved`` examples has it; its note."""
        with self._lock, self._telling():
            query = "SELECT first, n FROM batches WHERE first >= ? ORDER BY first DESC LIMIT 1"
            last = self._sql.execute(query, (saved,)).fetchone()
            if last is None:
                return None
            first, n = last
            note = self.note(first + n)
            self.replace(Batch(first, n, b""), None)
            return note

    def keep_note(self, seen: int, note: str) -> None:
        """Returns once the disk has the note for when ``seen`` examples have been learned."""
        with self._lock, self._telling(), self._transaction():
            self._keep_note(seen, note)

    def _keep_note(self, seen: int, note: str) -> None:
        self._sql.execute("INSERT OR REPLACE INTO notes VALUES (?, ?)", (seen, note))

    def note(self, seen: int) -> str | None:
        """The note for when ``seen`` examples have been learned."""
        with self._lock, self._telling():
            found = self._sql.execute("SELECT note FROM notes WHERE seen = ?", (seen,)).fetchone()
            return None if found is None else str(found[0])

    def batches(self) -> Iterator[Batch]:
        """All of them in order, checked; their notes are apart."""
        with self._telling():
            firsts = [f for (f,) in self._sql.execute("SELECT first FROM batches ORDER BY first")]
            for first in firsts:
                query = "SELECT n, checksum, contents FROM batches WHERE first = ?"
                n, checksum, contents = self._sql.execute(query, (first,)).fetchone()
                if zlib.crc32(contents) != checksum:
                    raise JournalError(
                        f"{self.path}: the batch of example {first} has another checksum than it "
                        "was written with"
                    )
                yield Batch(first, n, contents)

    def forget(self, seen: int) -> None:
        """A snapshot has the first ``seen`` examples: their batches are needless."""
        with self._lock, self._telling():
            with self._transaction():
                self._sql.execute("DELETE FROM batches WHERE first + n <= ?", (seen,))
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            self._count()

    def close(self) -> None:
        """Let others open it; a fork leaves it to its parent."""
        if self.is_inherited:
            return
        with self._lock:
            self._sql.close()
            self._unlock_folder()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:  # an interrupt may come as soon as it has begun
                self._sql.execute("BEGIN IMMEDIATE")
                yield
                self._sql.execute("COMMIT")
            except BaseException:
                if self._sql.in_transaction:
                    self._sql.execute("ROLLBACK")
                raise

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """SQLite's errors in this library's words."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorname", "")
            if code.startswith("SQLITE_BUSY"):
                what = _IN_USE
            elif code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                what = f"it is damaged ({error})"
            else:
                what = str(error)
            raise JournalError(f"{self.path}: {what}") from error


_opened: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """In a fork: never close what is the parent's.

    SQLite would empty the log and delete it, and what the parent learns from then on would be
    written to a file that has no name. So the fork keeps the connection for ever, as it ends too.
    """
    for journal in _opened:
        journal._unlock_folder()  # the parent keeps it locked
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(journal._sql))


os.register_at_fork(after_in_child=_leave_to_parent)
