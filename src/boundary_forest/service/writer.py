"""The one thread that writes: jobs that arrive while it learns share the next commit.

Another thread waits for the disk, and delivers: see ``syncer.py``.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from boundary_forest.durable.durable_folder import LOG, SNAPSHOT_BYTES
from boundary_forest.estimators.errors import UnknownIdsError
from boundary_forest.service.errors import ServiceError, too_many, unavailable, unprocessable
from boundary_forest.service.jobs import ALONE, FORGET, SNAPSHOT, Job
from boundary_forest.service.learning import GroupLearner, LearningFailedError, Outcome
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.recorder import Recorder
from boundary_forest.service.settings import Limits
from boundary_forest.service.snapshots import Snapshots
from boundary_forest.service.syncer import Syncer

MOST_ROWS = 4096  # of a group; a longer request is a group of its own
TICK = 1.0  # seconds between two looks at what has expired
ERASING = 10.0  # seconds between two erasures of the write-ahead log because of expiry
_logger = logging.getLogger("boundary_forest.service")


class Writer:
    """A queue of jobs and the thread that does them, in order of arrival.

    Parameters
    ----------
    model : ServiceModel
        The model, which nobody else changes.
    snapshots : Snapshots
        Those for download.
    recorder : Recorder
        What is shown of the service.
    limits : Limits
        Among them the length of the queue.
    failed : callable
        Called, on the writer's thread, if the process must start again.

    Attributes
    ----------
    groups : int
        How many groups were committed.
    """

    def __init__(
        self,
        model: ServiceModel,
        snapshots: Snapshots,
        recorder: Recorder,
        limits: Limits,
        failed: Callable[[Exception], None],
    ) -> None:
        self._model = model
        self._snapshots = snapshots
        self._limits = limits
        self._failed = failed
        self._recorder = recorder
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._held: Job | None = None  # taken from the queue, for the next group
        self._stopping = False
        self._saver: threading.Thread | None = None
        self._erased = self._measured = time.monotonic()  # the log; the journal
        self.groups = 0
        self.is_alive = True
        self._loop = asyncio.get_running_loop()
        self._syncer = Syncer(model.forest.database, self._deliver, self._fail)
        self._learner = GroupLearner(model, recorder, limits, self._syncer.committed)
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._thread.start()

    def __len__(self) -> int:
        return self._jobs.qsize()

    def submit(self, job: Job) -> asyncio.Future[bytes]:
        """Put a job into the queue; ServiceError if it is full."""
        if self._stopping or not self.is_alive:
            raise unavailable("the service is shutting down")
        if len(self) >= self._limits.queue:
            raise too_many(f"{len(self):,} requests wait to be written: retry later")
        self._jobs.put(job)
        return job.future

    def stop(self) -> None:
        """Do what is in the queue, and end the thread; called off the event loop."""
        self._stopping = True
        self._jobs.put(None)
        self._thread.join()
        self._syncer.stop()
        if self._saver is not None:
            self._saver.join()

    def _run(self) -> None:
        try:
            while True:
                jobs = self._group()
                if jobs:
                    self._syncer.done(self._done(jobs))
                    self.groups += 1
                elif self._stopping:
                    return
                self._keep_house()
        except Exception as error:
            self._fail(error)

    def _fail(self, error: Exception) -> None:
        """Refuse what is left, and let the process start again."""
        self.is_alive = False
        _logger.critical("writer failed", extra={"data": {"error": type(error).__name__}})
        refused = unavailable("the service failed and is restarting")
        while (job := self._next(0.0)) is not None:
            self._deliver([(job, refused)])
        self._failed(error)

    def _group(self) -> list[Job]:
        """Take the jobs that can be done together: those of different ids and keys."""
        jobs: list[Job] = []
        names: set[str] = set()
        keys: set[bytes] = set()
        n = 0
        while (job := self._next(0.0 if jobs or self._stopping else TICK)) is not None:
            alone = job.kind in ALONE
            shared = not names.isdisjoint(job.names) or job.key in keys
            if jobs and (alone or shared or n + len(job) > MOST_ROWS):
                self._held = job
                break
            jobs.append(job)
            if alone:
                break
            n += len(job)
            names.update(job.names)
            if job.key is not None:
                keys.add(job.key)
        return jobs

    def _next(self, seconds: float) -> Job | None:
        """Take a job, waiting for it so long; None if there is none."""
        job, self._held = self._held, None
        if job is not None:
            return job
        try:
            return self._jobs.get(timeout=seconds) if seconds else self._jobs.get_nowait()
        except Empty:
            return None

    def _done(self, jobs: list[Job]) -> list[Outcome]:
        job = jobs[0]
        try:
            if job.kind == SNAPSHOT:
                return [(job, json.dumps(self._snapshots.make(self._model.forest)).encode())]
            if job.kind == FORGET:
                return [(job, self._forgotten(job))]
            return self._learner.run(jobs)
        except ServiceError as error:
            return [(job, error)]
        except LearningFailedError:
            refused = unavailable("the rows could not be learned, and the service is restarting")
            self._deliver([(job, refused) for job in jobs])
            raise
        except OSError as error:
            _logger.error("writing failed", extra={"data": {"error": type(error).__name__}})
            refused = unavailable("the disk could not be written")
            return [(job, refused) for job in jobs]

    def _forgotten(self, job: Job) -> bytes:
        """Forget rows wherever they are: in the forest, waiting, in responses and snapshots."""
        model, tables, ids = self._model, self._model.tables, job.body.ids
        assert ids is not None
        learned = [id for id in ids if id not in tables.waiting]
        for i, id in enumerate(ids):
            if id not in tables.waiting and not model.has_learned(id):
                message = f"id {id!r} is unknown (nothing was forgotten)"
                raise ServiceError(404, "unknown_id", message, f"ids[{i}]")
        if learned and not model.has_ids:
            message = "the model that was loaded has learned without ids, so it cannot forget rows"
            raise ServiceError(409, "no_ids", message)
        if learned:
            try:
                _forget_learned(model, learned)
            except ValueError as error:
                raise unprocessable(str(error), "ids") from error
        tables.forget(ids)
        self._snapshots.delete_all()
        return json.dumps({"forgotten": len(ids), "seen": model.forest.examples_seen}).encode()

    def _keep_house(self) -> None:
        """Expire what is too old, erase what was deleted, and save a snapshot if it is due."""
        tables, forest = self._model.tables, self._model.forest
        tables.expire()
        self._recorder.tick(len(self))
        now = time.monotonic()
        if tables.to_erase and now - self._erased > ERASING:
            tables.empty_log()
            self._erased = now
        if now - self._measured < TICK or (self._saver is not None and self._saver.is_alive()):
            return
        self._measured = now
        log = Path(forest.path) / LOG
        if forest.journal_bytes >= SNAPSHOT_BYTES:
            self._saver = threading.Thread(target=self._save, name="saver", daemon=True)
            self._saver.start()
        elif log.exists() and log.stat().st_size >= SNAPSHOT_BYTES:
            tables.empty_log()

    def _save(self) -> None:
        try:
            self._model.forest.snapshot()
        except Exception as error:  # nothing is lost, and it is tried again after the next group
            _logger.error("snapshot failed", extra={"data": {"error": type(error).__name__}})

    def _deliver(self, outcomes: list[Outcome]) -> None:
        if outcomes:
            self._loop.call_soon_threadsafe(_settle, outcomes)


def _forget_learned(model: ServiceModel, ids: list[str]) -> None:
    """Forget rows that were learned; those that the forest did not keep may be in the journal."""
    forest = model.forest
    try:
        forest.forget(ids)
    except UnknownIdsError as error:
        kept = [*({*ids} - {*error.ids})]
        if kept:
            forest.forget(kept)
        else:
            forest.snapshot()


def _settle(outcomes: list[Outcome]) -> None:
    for job, outcome in outcomes:
        if job.future.done():  # the client has gone
            continue
        if isinstance(outcome, bytes):
            job.future.set_result(outcome)
        else:
            job.future.set_exception(outcome)
