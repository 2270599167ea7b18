"""A journal of what was learned: batches of examples in SQLite, each on the disk before it counts.

Invariants: a batch has the number of its first example, and the next one begins where it ends. What
``append`` has returned from survives a crash: it is in the write-ahead log, and that was synced.
One process at a time has the journal open; its threads take turns. Deleted batches are overwritten,
and the log is cut off.
"""

from __future__ import annotations

import sqlite3
import threading
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from boundary_forest.errors import JournalError

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
        self._lock = threading.RLock()
        with self._telling():
            self._sql = sqlite3.connect(
                path, isolation_level=None, timeout=0, check_same_thread=False
            )
        try:
            with self._telling():
                self._set_up()
        except BaseException:
            self._sql.close()
            raise

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
        row = (batch.first, batch.n, zlib.crc32(batch.contents), batch.contents)
        with self._lock, self._telling():
            with self._transaction():
                self._sql.execute("INSERT INTO batches VALUES (?, ?, ?, ?)", row)
                # The note before this one stays, in case that the batch is taken back.
                self._sql.execute("DELETE FROM notes WHERE seen < ?", (batch.first,))
                if batch.note is not None:
                    self._keep_note(batch.first + batch.n, batch.note)
            self.n_rows += batch.n
            self.n_bytes += len(batch.contents)

    def take_back(self, batch: Batch) -> None:
        """Forget a batch that was not learned."""
        with self._lock, self._telling():
            with self._transaction():
                self._sql.execute("DELETE FROM batches WHERE first = ?", (batch.first,))
                self._sql.execute("DELETE FROM notes WHERE seen > ?", (batch.first,))
            self.n_rows -= batch.n
            self.n_bytes -= len(batch.contents)

    def take_back_last(self, saved: int) -> str | None:
        """Forget the last batch, if no snapshot of ``saved`` examples has it; its note."""
        with self._lock, self._telling():
            query = "SELECT first, n FROM batches WHERE first >= ? ORDER BY first DESC LIMIT 1"
            last = self._sql.execute(query, (saved,)).fetchone()
            if last is None:
                return None
            first, n = last
            note = self.note(first + n)
            self.take_back(Batch(first, n, b""))
            self._count()
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
        """Let others open it."""
        with self._lock:
            self._sql.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            self._sql.execute("BEGIN IMMEDIATE")
            try:
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
                what = "another process, or this one, has it open"
            elif code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB")):
                what = f"it is damaged ({error})"
            else:
                what = str(error)
            raise JournalError(f"{self.path}: {what}") from error
