"""One learning call at a time."""

from __future__ import annotations

import os
import threading
import weakref
from contextlib import AbstractContextManager


class LearningLock:
    """Learning calls of one estimator exclude each other, and one inside another is refused.

    A flag that is set and cleared could be left set by an interrupt between two steps, and a
    context manager written in Python could lose a lock that it has just taken. So the only state is
    the lock itself, taken by a ``with`` statement in the caller.
    """

    def __init__(self) -> None:
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Begin with a lock that nobody holds."""
        self._lock = threading.RLock()
        self._owned = threading.Condition(self._lock)

    def taken(self) -> AbstractContextManager[bool]:
        """Return the lock, unless this thread holds it: that can only come from a metric."""
        try:
            self._owned.notify(0)  # raises unless this thread holds the lock, and wakes nobody
        except RuntimeError:
            return self._lock
        raise RuntimeError("metric must not call the forest that is calling it")


_all: weakref.WeakSet[LearningLock] = weakref.WeakSet()


def _renew_all() -> None:
    """Drop the locks of threads that are not in a forked child; the engine does so with its own."""
    for lock in list(_all):
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
