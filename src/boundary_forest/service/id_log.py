"""The latest ids that were learned or that expired, as digests: bounded in memory and on disk."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable

import numpy as np

from boundary_forest.durable.database import Database

TABLE = (
    "CREATE TABLE IF NOT EXISTS service_ids "
    "(number INTEGER PRIMARY KEY, kind TEXT NOT NULL, digests BLOB NOT NULL)"
)
LEARNED, EXPIRED = "learned", "expired"


def digest_of(id: str) -> int:
    """Return 64 bits that stand for an id."""
    return int.from_bytes(hashlib.blake2b(id.encode(), digest_size=8).digest(), "little")


class IdLog:
    """Digests of ids by kind, appended one blob per write, so that no index is rewritten.

    Parameters
    ----------
    database : Database
        Where the table is.
    limits : dict of str to int
        How many ids of each kind are remembered, at least.
    """

    def __init__(self, database: Database, limits: dict[str, int]) -> None:
        self._database = database
        self._limits = limits
        database.rows(TABLE)
        self.load()

    def load(self) -> None:
        """Read everything from the disk."""
        self._found: dict[str, dict[int, int]] = {kind: {} for kind in self._limits}
        self._blobs: dict[str, deque[tuple[int, int]]] = {kind: deque() for kind in self._limits}
        self.last = 0
        rows = self._database.rows("SELECT number, kind, digests FROM service_ids ORDER BY number")
        for number, kind, digests in rows:
            self._add(number, kind, np.frombuffer(digests, "<u8").tolist())

    def __contains__(self, item: tuple[str, str]) -> bool:
        """Whether an id is remembered as of a kind: ``(kind, id) in log``."""
        kind, id = item
        return digest_of(id) in self._found[kind]

    def write(self, kind: str, digests: list[int], number: int) -> None:
        """Append ids, inside a transaction; ``added`` is called once it is on the disk."""
        blob = np.array(digests, "<u8").tobytes()
        self._database.rows("INSERT INTO service_ids VALUES (?, ?, ?)", number, kind, blob)
        n, blobs = len(self._found[kind]), self._blobs[kind]
        if blobs and n - blobs[0][1] >= self._limits[kind]:
            self._database.rows("DELETE FROM service_ids WHERE number = ?", blobs[0][0])

    def added(self, kind: str, digests: list[int], number: int) -> None:
        """Take note of what was written."""
        found, blobs = self._found[kind], self._blobs[kind]
        if blobs and len(found) - blobs[0][1] >= self._limits[kind]:
            oldest, _ = blobs.popleft()
            for digest in [d for d, at in _until(found, oldest)]:
                del found[digest]
        self._add(number, kind, digests)

    def _add(self, number: int, kind: str, digests: list[int]) -> None:
        for digest in digests:
            self._found[kind].pop(digest, None)  # the latest counts, in this order
            self._found[kind][digest] = number
        self._blobs[kind].append((number, len(digests)))
        self.last = max(self.last, number)

    def erase(self, ids: Iterable[str]) -> None:
        """Remove ids of any kind from memory and, inside a transaction, from the table."""
        gone = {digest_of(id) for id in ids}
        numbers = {
            found[digest] for found in self._found.values() for digest in gone & found.keys()
        }
        for number in numbers:
            ((digests,),) = self._database.rows(
                "SELECT digests FROM service_ids WHERE number = ?", number
            )
            kept = [d for d in np.frombuffer(digests, "<u8").tolist() if d not in gone]
            self._database.rows(
                "UPDATE service_ids SET digests = ? WHERE number = ?",
                np.array(kept, "<u8").tobytes(),
                number,
            )
        for found in self._found.values():
            for digest in gone:
                found.pop(digest, None)

    def take_back(self, after: int) -> None:
        """Remove what was written after a number, inside a transaction; ``load`` must follow."""
        self._database.rows("DELETE FROM service_ids WHERE number > ?", after)


def _until(found: dict[int, int], number: int) -> list[tuple[int, int]]:
    """Return the first entries of the dict that were written up to a number."""
    first = []
    for digest, at in found.items():
        if at > number:
            break
        first.append((digest, at))
    return first
