"""One entry of the journal, as a row of its table, checked before it is believed.

Kinds, so far: ``learn`` holds examples, and so does ``replace``, whose examples take the places of
those that have their ids; ``truncate`` follows them if not all were learned; ``erase`` holds
none. A kind that comes later needs no other table: what it is about is in ``contents``.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass
from typing import Any, Self

LEARN, REPLACE, TRUNCATE, ERASE = "learn", "replace", "truncate", "erase"
KINDS = (LEARN, REPLACE, TRUNCATE, ERASE)
WITH_EXAMPLES = (LEARN, REPLACE)

TABLE = (
    "CREATE TABLE operations (number INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, "
    "call INTEGER NOT NULL, first INTEGER NOT NULL, n INTEGER NOT NULL, "
    "checksum INTEGER NOT NULL, contents BLOB NOT NULL)"
)
INSERT = "INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?)"
HEADERS = "SELECT number, kind, call, first, n, checksum, length(contents) FROM operations"
CONTENTS = "SELECT contents FROM operations WHERE number = ?"


@dataclass(frozen=True, slots=True)
class Operation:
    """All of an entry but for its contents.

    Attributes
    ----------
    number : int
        1 for the first of a folder, and one more for each that follows, for ever.
    kind : str
        One of KINDS.
    call : int
        The number of the first operation of the call that this one is part of; of a ``truncate``,
        of the call that it is about; of an ``erase``, its own.
    first : int
        How many examples had been learned before this operation, or before that call.
    n : int
        How many examples it holds; of a ``truncate``, how many of that call's count.
    checksum : int
        CRC-32 of all of this and of the contents.
    """

    number: int
    kind: str
    call: int
    first: int
    n: int
    checksum: int = 0

    @classmethod
    def of_row(cls, row: tuple[Any, ...]) -> tuple[Self, int]:
        """Return what HEADERS gives of an operation, and the length of its contents.

        ValueError if it cannot be one.
        """
        number, kind, call, first, n, checksum, n_bytes = row
        for value in (number, call, first, n, checksum, n_bytes):
            if type(value) is not int or value < 0:
                raise ValueError("it has a column that is not an integer >= 0")
        if kind not in KINDS:
            raise ValueError(f"it has the unknown kind {str(kind)[:40]!r}")
        if call > number:
            raise ValueError("it belongs to a call that comes later")
        if kind in WITH_EXAMPLES and n == 0:
            raise ValueError("it has no examples")
        if kind == ERASE and (n > 0 or call != number):
            raise ValueError(f"it has examples, but an operation of kind {kind!r} must have none")
        return cls(number, kind, call, first, n, checksum), n_bytes

    def sealed(self, contents: bytes) -> Operation:
        """Return the operation with the checksum that goes with these contents."""
        line = json.dumps((*self._place(), 0))
        checksum = zlib.crc32(contents, zlib.crc32(line.encode()))
        return Operation(*self._place(), checksum)

    def _place(self) -> tuple[int, str, int, int, int]:
        # dataclasses.astuple takes as long as the checksum of small contents.
        return self.number, self.kind, self.call, self.first, self.n

    def row(self, contents: bytes) -> tuple[Any, ...]:
        """Return the row of the table that holds this operation with these contents."""
        return (*self._place(), self.sealed(contents).checksum, contents)

    def check(self, contents: Any) -> bytes:
        """Return the contents; ValueError if they are not those it was written with."""
        if not isinstance(contents, bytes):
            raise ValueError("its contents are not bytes")
        if self.sealed(contents) != self:
            raise ValueError("it is damaged: the checksum differs")
        return contents
