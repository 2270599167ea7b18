"""SQLite as a journal needs it: what was committed is on the disk, and its errors are ours.

One process at a time has the database open; its threads take turns. Deleted rows are overwritten,
and the write-ahead log is cut off when it was brought into the database.
"""

from __future__ import annotations

import ctypes
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.durable.locking import IN_USE
from boundary_forest.estimators.errors import JournalError

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


class Database:
    """An SQLite database in WAL mode.

    Attributes
    ----------
    path : Path
        Its file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._process = os.getpid()
        self._lock = threading.RLock()
        self._log: int | None = None  # the write-ahead log, once it was synced
        self._syncs = True  # whether a transaction that ends now would wait for the disk
        self._in_transaction = False  # of ours; SQLite may be in one that nobody has ended
        with self._explained():
            self._sql = sqlite3.connect(
                path, isolation_level=None, timeout=0, check_same_thread=False
            )
        try:
            for setting in _SETTINGS:
                self.rows(f"PRAGMA {setting}")
        except BaseException:
            self._sql.close()
            raise
        _opened.add(self)

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that opened it, whose alone it is."""
        return os.getpid() != self._process

    @property
    def longest_value(self) -> int:
        """How many bytes a blob may have, with room for the other columns of its row."""
        return self._sql.getlimit(sqlite3.SQLITE_LIMIT_LENGTH) - 4096

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return what it gives.

        Parameters
        ----------
        statement : str
            SQL.
        *values : int, str, bytes or None
            For its question marks.
        """
        with self._lock, self._explained():
            if not self._in_transaction:
                self._roll_back()
            return self._sql.execute(statement, values).fetchall()

    @contextmanager
    def transaction(self, *, synced: bool = True) -> Iterator[None]:
        """Return a context whose statements are all on the disk afterwards, or none of them.

        With ``synced=False`` they are on the disk after the next ``sync`` or synced transaction:
        the operating system has them, and a crash of the machine may lose this transaction and all
        that follow it, but no part of one.

        Interrupts are put off to its end. An exception of another kind may come between any two
        steps, and a failing disk may refuse even to roll back: so a transaction which nobody has
        ended is rolled back before the next statement, which must not see what it wrote.
        """
        with Interrupts(), self._lock, self._explained():
            self._roll_back()
            self._in_transaction = True
            try:
                if synced != self._syncs:
                    self._sql.execute(f"PRAGMA synchronous={'FULL' if synced else 'NORMAL'}")
                    self._syncs = synced
                self._sql.execute("BEGIN IMMEDIATE")
                yield
                self._sql.execute("COMMIT")
            except BaseException:
                self._roll_back()
                raise
            finally:
                self._in_transaction = False

    def sync(self) -> None:
        """Bring to the disk what was committed before; from any thread, while others write."""
        try:
            if self._log is None:
                # The log has its name on the disk only once its folder is synced.
                folder = os.open(self.path.parent, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)
                self._log = os.open(f"{self.path}-wal", os.O_RDONLY)
            _sync(self._log)
        except OSError as error:
            raise JournalError(f"{self.path}: {error}") from error

    def _roll_back(self) -> None:
        if self._sql.in_transaction:
            self._sql.execute("ROLLBACK")

    def empty_log(self) -> None:
        """Bring the write-ahead log into the database, and cut it off."""
        with Interrupts():
            self.rows("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Let others open it; a fork leaves it to its parent."""
        if not self.is_inherited:
            with self._lock:
                self._sql.close()
                if self._log is not None:
                    os.close(self._log)
                    self._log = None

    def leave_to_parent(self) -> None:
        """In a fork: never close what is the parent's.

        SQLite would empty the log and delete it, and what the parent learns from then on would be
        written to a file that has no name. So the fork keeps the connection for ever, as it ends
        too.
        """
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._sql))

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise JournalError, which names the file, in place of SQLite's errors."""
        try:
            yield
        except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter of SQLite's own message
            code = getattr(error, "sqlite_errorname", "")
            damaged = code.startswith(("SQLITE_CORRUPT", "SQLITE_NOTADB"))
            if code.startswith("SQLITE_BUSY"):
                what = IN_USE
            elif damaged or isinstance(error, UnicodeDecodeError):
                what = f"it is damaged ({error})"
            else:
                what = str(error)
            raise JournalError(f"{self.path}: {what}") from error


_sync = getattr(os, "fdatasync", os.fsync)  # macOS has no fdatasync
_opened: weakref.WeakSet[Database] = weakref.WeakSet()


def _leave_to_parent() -> None:
    for database in list(_opened):
        database.leave_to_parent()


os.register_at_fork(after_in_child=_leave_to_parent)
