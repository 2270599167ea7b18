"""How fast rows are processed, and how much memory that takes."""

from __future__ import annotations

import resource
import sys
import time
from collections import deque

RECENT_SECONDS = 3.0


class Pace:
    """Rows a second, since the start and recently.

    Parameters
    ----------
    rows : int
        Number of rows that were counted before the start.
    """

    def __init__(self, rows: int = 0) -> None:
        self._rows_before = rows
        self._start = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque([(self._start, rows)])

    def at(self, rows: int) -> dict[str, float]:
        """Return ``seconds``, ``rows_per_s`` and ``recent_rows_per_s`` after so many rows."""
        now = time.monotonic()
        before = self._marks[0]
        self._marks.append((now, rows))
        while self._marks[0][0] < now - RECENT_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        seconds = max(1e-9, now - self._start)
        return {
            "seconds": seconds,
            "rows_per_s": (rows - self._rows_before) / seconds,
            "recent_rows_per_s": (rows - before[1]) / max(1e-9, now - before[0]),
        }


def peak_memory() -> int:
    """Return the peak memory of the process in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
