"""Requests that write, on their way through the writer's queue, and how each is checked."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from boundary_forest.service.bodies import Body
from boundary_forest.service.errors import ServiceError, unprocessable
from boundary_forest.service.id_log import EXPIRED, LEARNED
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.rows import (
    Checked,
    RowFormat,
    Rows,
    first_format,
    joined,
    packed_rows,
    unpacked_rows,
)
from boundary_forest.service.settings import RETRIEVAL, Limits
from boundary_forest.service.tables import KeptRow
from boundary_forest.service.targets import checked_targets

LEARN, LABEL, PREDICT_THEN_LEARN, KEEP = "learn", "label", "predict-then-learn", "keep"
UPSERT, FORGET, SNAPSHOT = "upsert", "forget", "snapshot"
ALONE = (UPSERT, FORGET, SNAPSHOT)  # each is a group of its own


@dataclass(eq=False)
class Job:
    """A request that writes.

    Parameters
    ----------
    kind : str
        What is to be done.
    body : Body
        What the request says.
    key, digest : bytes or None
        Digests of its idempotency key and of its body.
    answers : list of dict or None
        To ``keep``: what was answered to its rows.
    X : ndarray, list of dict or None
        Its rows as the forest takes them, if the model knew by then what rows look like.
    kept : list of KeptRow
        To ``keep``: its rows.
    future : asyncio.Future
        Gets the response as JSON bytes, or an exception.
    """

    kind: str
    body: Body
    key: bytes | None = None
    digest: bytes | None = None
    answers: list[dict[str, Any]] | None = None
    X: Checked | None = None
    kept: list[KeptRow] = field(default_factory=list)
    future: asyncio.Future[bytes] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )

    @property
    def names(self) -> list[str]:
        """What no other job of its group may have."""
        return [] if self.body.ids is None else self.body.ids

    def __len__(self) -> int:
        rows = self.body.rows if self.body.rows is not None else self.body.ids
        return 0 if rows is None else len(rows)


@dataclass
class Part:
    """A job that was found in order: its share of a group."""

    job: Job
    ids: list[str]
    X: Checked | None = None
    y: list[Any] = field(default_factory=list)
    answers: list[dict[str, Any]] | None = None
    kept: list[KeptRow] = field(default_factory=list)

    @property
    def n(self) -> int:
        """How many rows it learns."""
        return 0 if self.X is None else len(self.X)


class Preparation:
    """Checks the jobs of one group, which may be the first that a model learns.

    Parameters
    ----------
    model : ServiceModel
        The model, which is not changed.
    limits : Limits
        What a client may take.
    jobs : sequence of Job
        The group.

    Attributes
    ----------
    format, target_kind
        Those of the model once the group is learned.
    """

    def __init__(self, model: ServiceModel, limits: Limits, jobs: Sequence[Job]) -> None:
        self._model = model
        self._limits = limits
        labels = (id for job in jobs if job.kind == LABEL for id in job.names)
        self._waiting = model.tables.kept(labels)
        self.format: RowFormat | None = model.format
        self.target_kind = model.target_kind

    def part(self, job: Job) -> Part:
        """Return a job's share of the group; ServiceError if it cannot be done."""
        if job.kind == KEEP:
            return self._kept(job)
        if job.kind == LABEL:
            return self._labelled(job)
        ids = job.body.ids
        if ids is None:
            ids = [secrets.token_urlsafe(12) for _ in range(len(job))]
        elif job.kind != UPSERT:
            self._check_new(ids)
        assert job.body.rows is not None
        y = [] if self._model.task == RETRIEVAL else self._targets(job.body.targets)
        X = self._checked(job.body.rows) if job.X is None else job.X
        return Part(job, ids, X, y)

    def _targets(self, values: list[Any] | None) -> list[Any]:
        assert values is not None
        found, kind = checked_targets(values, self._model.task)
        if self.target_kind not in (None, kind):
            raise unprocessable(f"targets of this model are {self.target_kind}, got {kind}")
        self.target_kind = kind
        return found

    def _checked(self, rows: Rows) -> Checked:
        format = self.format
        if format is None:
            as_frame = not self._model.takes_any_columns
            format = first_format(rows, self._limits.columns, as_frame=as_frame)
        X = format.checked(rows)
        self.format = format
        return X

    def _check_new(self, ids: list[str]) -> None:
        """Refuse ids that are known."""
        model, tables = self._model, self._model.tables
        for i, id in enumerate(ids):
            if id in tables.waiting:
                what = "waits for its label: use label"
            elif (LEARNED, id) in tables.ids:
                what = "was learned already"
            else:
                continue
            raise ServiceError(409, "repeated_id", f"id {id!r} {what}", f"ids[{i}]")
        fitted = model.forest.model.fitted
        if fitted is None or not model.has_ids:
            return
        try:
            fitted.engine.check_ids(ids, False)
        except ValueError as error:
            raise ServiceError(409, "repeated_id", str(error), "ids") from error

    def _kept(self, job: Job) -> Part:
        ids = job.body.ids
        assert ids is not None
        assert job.answers is not None
        for i, id in enumerate(ids):
            if self._model.has_learned(id):
                raise ServiceError(
                    409, "repeated_id", f"id {id!r} was learned already", f"ids[{i}]"
                )
        return Part(job, ids, kept=job.kept, answers=job.answers)

    def _labelled(self, job: Job) -> Part:
        tables, ids = self._model.tables, job.body.ids
        assert ids is not None
        for i, id in enumerate(ids):
            if id not in tables.waiting:
                raise self._no_waiting(id, i)
        y = self._targets(job.body.targets)
        kept = [self._waiting[id] for id in ids]
        X = joined([self._checked(rows) for rows in unpacked_rows([row.row for row in kept])])
        return Part(job, ids, X, y, [json.loads(row.answer) for row in kept])

    def _no_waiting(self, id: str, i: int) -> ServiceError:
        tables, where = self._model.tables, f"ids[{i}]"
        if self._model.has_learned(id):
            return ServiceError(409, "repeated_id", f"id {id!r} has its label already", where)
        if (EXPIRED, id) in tables.ids:
            return ServiceError(410, "expired_id", f"id {id!r} has waited too long", where)
        return ServiceError(404, "unknown_id", f"id {id!r} does not wait for a label", where)


def kept_rows(
    ids: list[str], rows: Rows, format: RowFormat | None, answers: list[dict[str, Any]]
) -> list[KeptRow]:
    """Return rows as they are kept until their labels come."""
    return [
        KeptRow(id, row, json.dumps(answer))
        for id, row, answer in zip(ids, packed_rows(rows, format), answers, strict=True)
    ]
