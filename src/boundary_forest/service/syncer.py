"""The thread that waits for the disk, so that the writer learns meanwhile.

It brings commits to the disk one after the other, the latest with all before it, and delivers what
became of jobs once that is on the disk and, if they learn, also learned.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue

from boundary_forest.durable.database import Database
from boundary_forest.service.errors import unavailable
from boundary_forest.service.learning import Outcome


class Syncer:
    """Syncs what the writer commits; the writer calls all of its methods.

    Parameters
    ----------
    database : Database
        Whose transactions do not wait for the disk.
    deliver : callable
        Takes outcomes that clients may see, on either thread.
    failed : callable
        Called, on this thread, if the disk could not be written.
    """

    def __init__(
        self,
        database: Database,
        deliver: Callable[[list[Outcome]], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self._database = database
        self._deliver = deliver
        self._failed = failed
        self._lock = threading.Lock()  # of what follows
        self._committed = 0  # how many transactions were committed, and how many the disk has
        self._synced = 0
        self._outcomes: list[tuple[int, list[Outcome]]] = []  # and the commits they wait for
        self._has_failed = False
        self._commits: SimpleQueue[int | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="syncer", daemon=True)
        self._thread.start()

    def committed(self, outcomes: list[Outcome]) -> None:
        """Take note of a commit, and of jobs that need no more than that."""
        self._committed += 1
        self._commits.put(self._committed)
        self.done(outcomes)

    def done(self, outcomes: list[Outcome]) -> None:
        """Deliver outcomes as soon as the disk has all that was committed by now."""
        with self._lock:
            waits = self._committed > self._synced
            if waits and not self._has_failed:
                self._outcomes.append((self._committed, outcomes))
                return
        self._deliver(_refused(outcomes) if waits else outcomes)

    def stop(self) -> None:
        """Sync and deliver what is left, and end the thread."""
        self._commits.put(None)
        self._thread.join()

    def _run(self) -> None:
        while (number := self._commits.get()) is not None:
            stops = False
            while not stops:
                try:
                    following = self._commits.get_nowait()
                except Empty:
                    break
                stops = following is None
                number = number if following is None else following
            try:
                self._database.sync()
            except Exception as error:
                with self._lock:
                    self._has_failed = True
                    left = [one for _, outcomes in self._outcomes for one in outcomes]
                    self._outcomes.clear()
                self._deliver(_refused(left))
                self._failed(error)
                return
            with self._lock:
                self._synced = number
                ready = [one for n, outcomes in self._outcomes if n <= number for one in outcomes]
                self._outcomes = [(n, outcomes) for n, outcomes in self._outcomes if n > number]
            self._deliver(ready)
            if stops:
                return


def _refused(outcomes: list[Outcome]) -> list[Outcome]:
    refused = unavailable("the disk could not be written")
    return [(job, refused) for job, _ in outcomes]
