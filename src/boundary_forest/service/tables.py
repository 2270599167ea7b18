"""What the service keeps besides the forest, in the journal's own database.

Waiting rows, idempotency keys with their responses, remembered ids and the running scores are
tables next to the journal's, so that one transaction holds a learning call and everything that is
recorded of it. In that transaction the call is only written down; it is learned right after. Two
things can still go wrong between the commit and the answer:

- The process dies. The journal is learned again at the next start. If the responses were known at
  the commit (``learn``, ``label``), they are in the tables and nothing is left to do. If they are
  only known after learning (``predict-then-learn``), the group was marked as unanswered: nobody who
  learns has got an answer, so all that it learned is taken back, in the journal and here. Predicted
  rows that wait need no more than the commit; they stay.
- Learning fails (no memory). The journal then records how much of the call counts, the process
  ends, and at the next start the group is taken back likewise, because ``examples_seen`` is not
  what the group expected.

``Group`` records what taking back needs; rows that were labelled stay until the next write for that
reason. Memory changes only after a commit.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from boundary_forest.durable.database import Database
from boundary_forest.service.id_log import EXPIRED, LEARNED, IdLog, digest_of
from boundary_forest.service.settings import Limits

_TABLES = (
    "CREATE TABLE IF NOT EXISTS service_state (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS service_waiting (number INTEGER PRIMARY KEY, id TEXT NOT NULL, "
    "at REAL NOT NULL, row BLOB NOT NULL, answer TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS service_responses (number INTEGER PRIMARY KEY, key BLOB NOT NULL, "
    "body BLOB NOT NULL, at REAL NOT NULL, content BLOB)",
)
ROWS_PER_STATEMENT = 100
_SLACK = 100  # so much of a limit is freed at once, as a part


@dataclass
class Group:
    """The last learning call that was written, and what its taking back needs.

    Attributes
    ----------
    first, n : int
        How many examples had been seen before, and how many the call has.
    answered : bool
        Whether all responses were committed.
    responses, ids : int
        The last numbers in the tables before.
    labelled : list of int
        Numbers of the waiting rows that it labelled.
    before : dict of str to str or None
        What the documents were that it changed.
    """

    first: int = 0
    n: int = 0
    answered: bool = True
    responses: int = 0
    ids: int = 0
    labelled: list[int] = field(default_factory=list)
    before: dict[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class KeptRow:
    """A predicted row that waits for its label: its id, itself and its answer as JSON."""

    id: str
    row: bytes
    answer: str


@dataclass(frozen=True)
class Response:
    """A response that an idempotency key repeats; ``content`` is None if it was erased."""

    key: bytes
    body: bytes
    content: bytes | None


@dataclass
class Changes:
    """What one transaction writes."""

    kept: list[KeptRow] = field(default_factory=list)
    labelled: list[str] = field(default_factory=list)
    learned: list[str] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    state: dict[str, str] = field(default_factory=dict)
    group: Group | None = None


class ServiceTables:
    """The service's tables, and what of them must be at hand.

    Parameters
    ----------
    database : Database
        The journal's.
    limits : Limits
        How much is kept.

    Attributes
    ----------
    state : dict of str
        JSON documents by name.
    waiting : dict of str to (int, float)
        Number and time of each waiting row by its id, the oldest first.
    group : Group
        The last learning call.
    """

    def __init__(self, database: Database, limits: Limits) -> None:
        self._database = database
        self._limits = limits
        with database.transaction():
            for table in _TABLES:
                database.rows(table)
        self.ids = IdLog(database, {LEARNED: limits.learned_ids, EXPIRED: limits.expired_ids})
        self.to_erase = False  # whether the write-ahead log may have bytes that were deleted
        self.load()

    def load(self) -> None:
        """Read everything from the disk."""
        self.ids.load()
        self.state = dict(self._database.rows("SELECT name, value FROM service_state"))
        self.group = Group(**json.loads(self.state.pop("group", "{}")))
        waiting = self._database.rows("SELECT id, number, at FROM service_waiting ORDER BY number")
        labelled = {*self.group.labelled}
        self.waiting = {id: (number, at) for id, number, at in waiting if number not in labelled}
        self._last_waiting = max((number for _, number, _ in waiting), default=0)
        keys = self._database.rows("SELECT key, number, at FROM service_responses ORDER BY number")
        self._keys = {key: (number, at) for key, number, at in keys}
        self._last_response = max((number for _, number, _ in keys), default=0)

    def new_group(self, first: int, n: int, *, answered: bool) -> Group:
        """Return the record of a learning call that is about to be written."""
        return Group(first, n, answered, self._last_response, self.ids.last)

    # Reading

    def response(self, key: bytes) -> Response | None:
        """Return what was answered to an idempotency key; None if the key is new."""
        number = self._keys.get(key)
        if number is None:
            return None
        ((body, content),) = self._database.rows(
            "SELECT body, content FROM service_responses WHERE number = ?", number[0]
        )
        return Response(key, body, content)

    def kept(self, ids: Iterable[str]) -> dict[str, KeptRow]:
        """Return those of the rows that are waiting, by id."""
        numbers = [self.waiting[id][0] for id in ids if id in self.waiting]
        found = self._database.rows(
            "SELECT id, row, answer FROM service_waiting "
            "WHERE number IN (SELECT value FROM json_each(?))",
            json.dumps(numbers),
        )
        return {id: KeptRow(id, row, answer) for id, row, answer in found}

    @property
    def oldest_waiting(self) -> float | None:
        """When the oldest waiting row was predicted."""
        return next((at for _, at in self.waiting.values()), None)

    # Writing

    def write(self, changes: Changes) -> None:
        """Write changes, inside a transaction."""
        now = time.time()
        replaced = [self.waiting[row.id][0] for row in changes.kept if row.id in self.waiting]
        self._delete("service_waiting", [*self.group.labelled, *replaced])
        group = self.group if changes.group is None else changes.group
        group.labelled = [self.waiting[id][0] for id in changes.labelled]
        if changes.group is not None:
            group.before = {name: self.state.get(name) for name in changes.state}
        self._insert(
            "service_waiting",
            [
                (number, row.id, now, row.row, row.answer)
                for number, row in enumerate(changes.kept, self._last_waiting + 1)
            ],
        )
        self._insert(
            "service_responses",
            [
                (number, response.key, response.body, now, response.content)
                for number, response in enumerate(changes.responses, self._last_response + 1)
            ],
        )
        if changes.learned:
            digests = [digest_of(id) for id in changes.learned]
            self.ids.write(LEARNED, digests, self.ids.last + 1)
        state = {**changes.state, "group": json.dumps(vars(group))}
        marks = ", ".join(["(?, ?)"] * len(state))
        pairs = [part for pair in state.items() for part in pair]
        self._database.rows(f"INSERT OR REPLACE INTO service_state VALUES {marks}", *pairs)

    def written(self, changes: Changes) -> None:
        """Take note of changes that are on the disk."""
        now = time.time()
        for id in changes.labelled:
            del self.waiting[id]
        for number, row in enumerate(changes.kept, self._last_waiting + 1):
            self.waiting.pop(row.id, None)
            self.waiting[row.id] = (number, now)
        self._last_waiting += len(changes.kept)
        for number, response in enumerate(changes.responses, self._last_response + 1):
            self._keys[response.key] = (number, now)
        self._last_response += len(changes.responses)
        if changes.learned:
            digests = [digest_of(id) for id in changes.learned]
            self.ids.added(LEARNED, digests, self.ids.last + 1)
        self.state |= changes.state
        self.group = self.group if changes.group is None else changes.group

    def expire(self) -> int:
        """Erase waiting rows and responses that are too old or too many; return how many rows."""
        now, limits = time.time(), self._limits
        ids = _outdated(self.waiting, limits.waiting, now - limits.waiting_seconds)
        keys = _outdated(self._keys, limits.keys, now - limits.key_seconds)
        if not ids and not keys:
            return 0
        digests = [digest_of(id) for id in ids]
        with self._database.transaction():
            self._delete("service_waiting", [self.waiting[id][0] for id in ids])
            self._delete("service_responses", [self._keys[key][0] for key in keys])
            if ids:
                self.ids.write(EXPIRED, digests, self.ids.last + 1)
        if ids:
            self.ids.added(EXPIRED, digests, self.ids.last + 1)
        for id in ids:
            del self.waiting[id]
        for key in keys:
            del self._keys[key]
        self.to_erase = True
        return len(ids)

    def forget(self, ids: list[str]) -> None:
        """Erase everything that has one of these ids: waiting rows, responses, and the ids.

        An idempotency key stays, without its response, so that nothing is learned twice.
        """
        gone = {*ids}
        with self._database.transaction():
            numbers = [self.waiting[id][0] for id in gone & self.waiting.keys()]
            # Those that the last call has labelled may be among them.
            self._delete("service_waiting", [*self.group.labelled, *numbers])
            self.group.labelled = []
            self._database.rows(
                "INSERT OR REPLACE INTO service_state VALUES ('group', ?)",
                json.dumps(vars(self.group)),
            )
            self._database.rows(
                "UPDATE service_responses SET content = NULL, body = x'' WHERE EXISTS (SELECT 1 "
                "FROM json_each(service_responses.content, '$.ids') AS one, json_each(?) AS gone "
                "WHERE one.value = gone.value)",
                json.dumps(ids),
            )
            self.ids.erase(ids)
        for id in gone:
            self.waiting.pop(id, None)
        self.empty_log()

    def empty_log(self) -> None:
        """Cut off the write-ahead log, so that no deleted byte is left in it."""
        self._database.empty_log()
        self.to_erase = False

    def take_back(self, seen: int) -> None:
        """Undo the last learning call here, after the journal has undone it."""
        group = self.group
        with self._database.transaction():
            self._database.rows("DELETE FROM service_responses WHERE number > ?", group.responses)
            self.ids.take_back(group.ids)
            state = {**group.before, "group": json.dumps(vars(Group(first=seen)))}
            for name, value in state.items():
                self._database.rows("DELETE FROM service_state WHERE name = ?", name)
                if value is not None:
                    self._database.rows("INSERT INTO service_state VALUES (?, ?)", name, value)
        self.load()

    # One statement for many rows: each one lets other threads of Python run, and waits for them.

    def _delete(self, table: str, numbers: list[int]) -> None:
        if numbers:
            self._database.rows(
                f"DELETE FROM {table} WHERE number IN (SELECT value FROM json_each(?))",
                json.dumps(numbers),
            )

    def _insert(self, table: str, rows: list[tuple[Any, ...]]) -> None:
        for begin in range(0, len(rows), ROWS_PER_STATEMENT):
            some = rows[begin : begin + ROWS_PER_STATEMENT]
            marks = ", ".join(["(?, ?, ?, ?, ?)"] * len(some))
            values = [value for row in some for value in row]
            self._database.rows(f"INSERT INTO {table} VALUES {marks}", *values)


def _outdated(found: dict[Any, tuple[int, float]], most: int, oldest: float) -> list[Any]:
    """Return the keys that are too old, and the oldest if there are too many."""
    too_many = len(found) - most
    if too_many > 0:
        too_many += most // _SLACK
    outdated: list[Any] = []
    for key, (_, at) in found.items():
        if at >= oldest and len(outdated) >= too_many:
            break
        outdated.append(key)
    return outdated
