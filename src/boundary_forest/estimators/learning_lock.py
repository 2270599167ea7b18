"""Calls that change a forest: one at a time, and none inside another."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager


class LearningLock:
    """Excludes the changing calls of other threads, and refuses one inside another.

    A thread may hold it any number of times, such as by ``learning_paused`` and, inside that, by
    ``partial_fit``. A call inside a call is another matter: it can only come from a metric.

    A flag that is set and cleared could be left set by an interrupt between two steps, and a
    context manager written in Python could lose a lock that it has just taken. So the only state is
    the locks themselves, taken by a ``with`` statement in the caller.
    """

    def __init__(self) -> None:
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Begin with locks that nobody holds."""
        self._lock = threading.RLock()
        self._call = threading.RLock()  # held by a call, whose thread holds the other lock too
        self._owned = threading.Condition(self._call)

    def held(self) -> AbstractContextManager[bool]:
        """Return the lock that excludes other threads."""
        return self._lock

    def call(self) -> AbstractContextManager[bool]:
        """Return the lock of a call, unless this thread is inside one."""
        try:
            self._owned.notify(0)  # raises unless this thread holds the lock, and wakes nobody
        except RuntimeError:
            return self._call
        raise RuntimeError("metric must not call the forest that is calling it")


_all: weakref.WeakSet[LearningLock] = weakref.WeakSet()


def _renew_all() -> None:
    """Drop the locks of threads that are not in a forked child; the engine does so with its own."""
    for lock in list(_all):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
