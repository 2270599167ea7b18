"""Hand out rows at a pace at which one can watch what happens. It changes no answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from boundary_forest.session import Batch
from boundary_forest.session.wording import rate

PARTS_PER_S = 12


class Pacer:
    """Cuts batches into parts, and waits before each of them.

    Parameters
    ----------
    rows_per_s : float
        The pace.
    stopped : callable
        Whether there is nothing to wait for any more.
    """

    def __init__(self, rows_per_s: float, stopped: Callable[[], bool]) -> None:
        self._rows_per_s = rows_per_s
        self._stopped = stopped

    def parts_of(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """Yield the rows of batches in small parts, each when its time has come."""
        rows, length = 0, max(1, round(self._rows_per_s / PARTS_PER_S))
        start = time.monotonic()
        for batch in batches:
            first, last = batch.span
            for begin in range(first, last + 1, length):
                self._wait_until(start + rows / self._rows_per_s)
                end = min(last, begin + length - 1)
                yield batch.from_row(begin).up_to_row(end)
                rows += end - begin + 1

    def _wait_until(self, due: float) -> None:
        wait = due - time.monotonic()
        if wait > 0 and not self._stopped():
            time.sleep(wait)

    def remark(self) -> str:
        """Return what the pace was for."""
        return (
            f"slowed down to {rate(self._rows_per_s)} rows per second to be watched; use --fast "
            "for full speed"
        )
