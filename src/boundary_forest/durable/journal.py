"""A journal: a log of operations in SQLite, each on the disk before it counts.

Operations have numbers of their own, consecutive and never used twice; a snapshot of the forest
records the last one that it includes, and what has a larger number comes after it. Nothing that was
written is changed: a call that was not learned whole is followed by an operation that says how much
of it counts. A call may be several ``learn`` operations, written in one transaction, and examples
are numbered through: the next call begins where what counts of the one before ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from boundary_forest.durable.database import Database
from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.durable.log import LearnedCall, Log
from boundary_forest.durable.operations import (
    CONTENTS,
    ERASE,
    HEADERS,
    INSERT,
    LEARN,
    REPLACE,
    TABLE,
    TRUNCATE,
    WITH_EXAMPLES,
    Operation,
)
from boundary_forest.estimators.errors import JournalError
from boundary_forest.files import LAYOUT, OTHER_LAYOUT

SCHEMA = 1
_FOLDER = "CREATE TABLE folder (identity TEXT NOT NULL)"
_NOTES = "CREATE TABLE notes (operation INTEGER PRIMARY KEY, note TEXT)"


@dataclass(frozen=True, slots=True)
class Recorded:
    """Examples to be learned again, or an erasure to be repeated.

    Attributes
    ----------
    operation : Operation
        Where they are.
    kept : int
        How many of them count, from the first one on.
    contents : bytes
        As ``batches.packed`` made them.
    """

    operation: Operation
    kept: int
    contents: bytes


class Journal:
    """The operations since the last snapshot, and perhaps some that it includes.

    Parameters
    ----------
    path : Path
        The database; a new one is made if it is not there.

    Attributes
    ----------
    path : Path
        The database.
    identity : str
        Drawn when the journal was made; every snapshot that belongs to it has the same.
    n_rows, n_bytes : int
        How many examples, and bytes of them, the operations hold.
    database : Database
        The database itself, for tables of the caller's own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.database = Database(path)
        try:
            self._set_up()
        except BaseException:
            self.database.close()
            raise

    @property
    def is_inherited(self) -> bool:
        """Whether this process is a fork of the one that opened it, whose alone it is."""
        return self.database.is_inherited

    @property
    def last(self) -> int:
        """The number of the last operation that was ever written; 0 if there was none."""
        found = self.database.rows("SELECT seq FROM sqlite_sequence WHERE name = 'operations'")
        last = found[0][0] if found else 0
        if type(last) is not int or last < 0:
            raise JournalError(
                f"{self.path} is damaged: its last operation has the number {str(last)[:40]}"
            )
        return last

    @property
    def note(self) -> str | None:
        """The note of the last call that was learned whole, or one that was kept after it."""
        found = self.database.rows("SELECT note FROM notes ORDER BY operation DESC LIMIT 1")
        note = found[0][0] if found else None
        if not isinstance(note, str | None):
            raise JournalError(f"{self.path} is damaged: its last note is not text")
        return note

    def _set_up(self) -> None:
        if not self.database.rows("SELECT 1 FROM sqlite_master LIMIT 1"):
            self._make()
        ((layout,),) = self.database.rows("PRAGMA application_id")
        if layout != LAYOUT:
            raise JournalError(f"{self.path}: {OTHER_LAYOUT}")
        ((schema,),) = self.database.rows("PRAGMA user_version")
        if schema > SCHEMA:
            raise JournalError(
                f"{self.path}: its schema is {schema}, but this release reads only {SCHEMA}: "
                "install a newer boundary-forest"
            )
        found = self.database.rows("SELECT identity FROM folder")
        if len(found) != 1 or not isinstance(found[0][0], str):
            raise JournalError(f"{self.path} is damaged: it has no identity")
        self.identity = found[0][0]
        self._count(self._read())

    def _make(self) -> None:
        with self.database.transaction():
            for table in (TABLE, _FOLDER, _NOTES):
                self.database.rows(table)
            self.database.rows("INSERT INTO folder VALUES (?)", secrets.token_hex(16))
            self.database.rows(f"PRAGMA application_id={LAYOUT}")
            self.database.rows(f"PRAGMA user_version={SCHEMA}")
        # So that the file alone tells what it is, and that it is not the one of another folder.
        self.database.empty_log()

    def _count(self, log: Log) -> None:
        self.n_rows = sum(call.kept for call in log.calls)
        self.n_bytes = log.n_bytes

    def _read(self) -> Log:
        log = Log()
        for row in self.database.rows(f"{HEADERS} ORDER BY number"):
            with self._refused(row[0]):
                operation, n_bytes = Operation.of_row(row)
                if (
                    operation.kind not in WITH_EXAMPLES
                ):  # whose contents are checked when they are read
                    operation.check(b"")
                log.add(operation, n_bytes)
        if log.operations and log.operations[-1].number > self.last:
            raise JournalError(
                f"{self.path} is damaged: its last operation has the number {self.last}"
            )
        return log

    @contextmanager
    def _refused(self, number: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise JournalError(f"{self.path}: operation {number}: {error}") from error

    # Writing

    def begin(self, note: str | None) -> None:
        """Keep the note that a new folder begins with; refuse one that has operations already.

        Parameters
        ----------
        note : str or None
            It may be written again, because the crash may come before the first snapshot.
        """
        if self.last > 0:
            raise JournalError(
                f"{self.path} contains operations, but the snapshot is missing: restore it, or "
                "use another folder"
            )
        if note is not None:
            self.keep_note(note)

    def append(
        self,
        first: int,
        parts: Iterable[tuple[int, bytes]],
        note: str | None,
        *,
        replaces: bool = False,
        along: Callable[[], None] | None = None,
        synced: bool = True,
    ) -> None:
        """Write a call down; returns once all of it is on the disk.

        Parameters
        ----------
        first : int
            How many examples had been learned before.
        parts : iterable of (int, bytes)
            Its examples in order: how many, and their contents. Should it raise, nothing of the
            call is written.
        note : str or None
            Holds once all of them are learned.
        replaces : bool, default=False
            Whether they take the places of those that have their ids.
        along : callable or None, default=None
            Called inside the transaction, to write to other tables of the database.
        synced : bool, default=True
            Whether to wait for the disk; else ``database.sync`` must follow.
        """
        kind = REPLACE if replaces else LEARN
        with Interrupts():
            n_rows = n_bytes = 0
            with self.database.transaction(synced=synced):
                call = self.last + 1
                number = call
                for number, (n, contents) in enumerate(parts, call):
                    self._check_length(n, contents)
                    operation = Operation(number, kind, call, first + n_rows, n)
                    self.database.rows(INSERT, *operation.row(contents))
                    n_rows, n_bytes = n_rows + n, n_bytes + len(contents)
                # The note before this one stays, in case that the call is truncated.
                self.database.rows(
                    "DELETE FROM notes WHERE operation < (SELECT max(operation) FROM notes)"
                )
                self.database.rows("INSERT INTO notes VALUES (?, ?)", number, note)
                if along is not None:
                    along()
            self.n_rows += n_rows
            self.n_bytes += n_bytes

    def append_erasure(self, seen: int) -> None:
        """Write down that what was forgotten was erased; returns once that is on the disk.

        Parameters
        ----------
        seen : int
            How many examples had been learned before.
        """
        with Interrupts(), self.database.transaction():
            number = self.last + 1
            operation = Operation(number, ERASE, number, seen, 0)
            self.database.rows(INSERT, *operation.row(b""))

    def _check_length(self, n: int, contents: bytes) -> None:
        most = self.database.longest_value
        if len(contents) > most:
            raise JournalError(
                f"{self.path}: {n:,} examples take {len(contents):,} bytes, but at most {most:,} "
                "can be written at once: use smaller batches"
            )

    def truncate(self, seen: int) -> None:
        """Write down that nothing was learned beyond ``seen`` examples, if something was to be.

        Parameters
        ----------
        seen : int
            How many examples the forest has learned; that is within the last call, or at its end.
        """
        with Interrupts():
            log = self._read()
            last = log.calls[-1] if log.calls else None
            if last is not None and last.end > seen:
                if seen < last.first:
                    raise JournalError(
                        f"{self.path}: its last call begins after {last.first} examples, but the "
                        f"forest has learned {seen}"
                    )
                self._truncate(last, seen - last.first)

    def take_back_last(self, after: int) -> str | None:
        """Let nothing count of the last call, if it has a number above ``after``; return its note.

        Parameters
        ----------
        after : int
            The last operation that the snapshot includes.
        """
        with Interrupts():
            log = self._read()
            if not log.calls or log.calls[-1].number <= after:
                return None
            note = self.note if log.calls[-1].kept == log.calls[-1].n else None
            self._truncate(log.calls[-1], 0)
            return note

    def _truncate(self, call: LearnedCall, kept: int) -> None:
        with self.database.transaction():
            operation = Operation(self.last + 1, TRUNCATE, call.number, call.first, kept)
            self.database.rows(INSERT, *operation.row(b""))
            self.database.rows("DELETE FROM notes WHERE operation >= ?", call.number)
        self._count(self._read())

    def keep_note(self, note: str) -> None:
        """Return once the disk has the note, in place of that of the last operation.

        Parameters
        ----------
        note : str
            Any text.
        """
        with self.database.transaction():
            self.database.rows("INSERT OR REPLACE INTO notes VALUES (?, ?)", self.last, note)

    def drop_until(self, number: int) -> None:
        """Remove what a snapshot made needless.

        Parameters
        ----------
        number : int
            The last operation that it includes. Notes stay, and so does the count of operations.
        """
        with Interrupts():
            with self.database.transaction():
                self.database.rows("DELETE FROM operations WHERE number <= ?", number)
            self.database.empty_log()
            self._count(self._read())

    def drop_included(self, number: int) -> None:
        """Remove what a snapshot made needless, if a crash came before that was done.

        Parameters
        ----------
        number : int
            The last operation that it includes.
        """
        if self.database.rows("SELECT 1 FROM operations WHERE number <= ? LIMIT 1", number):
            self.drop_until(number)

    # Reading

    def after(self, number: int) -> Iterator[Recorded]:
        """Return what is to be learned after a snapshot, in order.

        Parameters
        ----------
        number : int
            The last operation that the snapshot includes.
        """
        log, last = self._read(), self.last
        later = [operation for operation in log.operations if operation.number > number]
        if number > last:
            raise JournalError(
                f"{self.path} is older than its snapshot: its last operation is {last}, but the "
                f"snapshot includes operation {number}"
            )
        if len(later) != last - number:
            raise JournalError(
                f"{self.path} is incomplete: it has {len(later)} of the {last - number} "
                "operations since the snapshot"
            )
        ends = {call.number: call.end for call in log.calls}
        for operation in later:
            if operation.call <= number:
                raise JournalError(
                    f"{self.path}: operation {operation.number} belongs to the call of operation "
                    f"{operation.call}, which the snapshot already includes"
                )
            if operation.number in log.between:
                yield Recorded(operation, 0, b"")
            kept = min(operation.n, ends.get(operation.call, 0) - operation.first)
            if operation.kind in WITH_EXAMPLES and kept > 0:
                ((contents,),) = self.database.rows(CONTENTS, operation.number)
                with self._refused(operation.number):
                    contents = operation.check(contents)
                yield Recorded(operation, kept, contents)

    def close(self) -> None:
        """Let others open it; a fork leaves it to its parent."""
        self.database.close()
