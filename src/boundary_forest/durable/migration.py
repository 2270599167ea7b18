"""The journal of the first schema, and how it becomes one of operations.

It had a table of batches, known by the number of their first example, and one of notes, known by
how many examples had been learned when they held. A batch belonged after a snapshot unless that
had seen all of its examples.
"""

from __future__ import annotations

import zlib
from typing import Any

from boundary_forest.durable.database import Database
from boundary_forest.durable.operations import INSERT, LEARN, Operation
from boundary_forest.estimators.errors import JournalError


def migrate(database: Database, seen: int, notes: str) -> None:
    """Turn batches and notes into operations and their notes, inside a transaction.

    Parameters
    ----------
    database : Database
        Of the first schema, but with the table of operations, still empty.
    seen : int
        How many examples the snapshot has learned. It has no number of an operation, which is as
        good as 0: the operations are those batches that it does not include.
    notes : str
        The statement that makes the new table of notes.
    """
    kept_notes = dict(database.rows("SELECT seen, note FROM notes"))
    firsts = database.rows("SELECT first FROM batches WHERE first + n > ? ORDER BY first", seen)
    database.rows("DROP TABLE notes")
    database.rows(notes)
    new_notes = {0: kept_notes.get(seen)}
    for number, (first,) in enumerate(firsts, 1):
        query = "SELECT n, checksum, contents FROM batches WHERE first = ?"
        ((n, checksum, contents),) = database.rows(query, first)
        _check(database, first, n, checksum, contents)
        operation = Operation(number, LEARN, number, first, n)
        database.rows(INSERT, *operation.row(contents))
        new_notes[number] = kept_notes.get(first + n)
    for number, note in list(new_notes.items())[-2:]:
        database.rows("INSERT INTO notes VALUES (?, ?)", number, note)
    database.rows("DROP TABLE batches")


def _check(database: Database, first: Any, n: Any, checksum: Any, contents: Any) -> None:
    numbers = type(first) is int and type(n) is int and first >= 0 and n > 0
    if not numbers or not isinstance(contents, bytes):
        raise JournalError(f"{database.path}: the batch of example {first} is damaged")
    if zlib.crc32(contents) != checksum:
        raise JournalError(
            f"{database.path}: the batch of example {first} has another checksum than it was "
            "written with"
        )
