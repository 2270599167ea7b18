"""Streams sorted by class: noticed, and warned of once."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.errors import callers_level

FEWEST_CHANGES = 50  # expected in random order before a warning is given
SUSPICIOUS = 0.02  # of them: fewer changes are those of a stream that was sorted
LONGEST = 20_000  # rows after which nobody looks any more


class ClassRuns:
    """Counts how often the class changes from one row to the next."""

    def __init__(self) -> None:
        self._n = self._n_changes = 0
        self._next_look = FEWEST_CHANGES  # at so many rows, because a look takes longer than a row
        self._last: float | None = None
        self._counts: Counter[float] = Counter()

    def watch(self, codes: NDArray[Any]) -> None:
        """Warn if rows of one class follow each other in long runs; once, and early in a stream.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            The classes of the next rows, in order.
        """
        if self._n > LONGEST or len(codes) == 0:
            return
        first = codes.item(0)
        self._n_changes += self._last is not None and first != self._last
        self._n += len(codes)
        if len(codes) == 1:
            self._last = first
            self._counts[first] += 1
        else:
            self._last = codes.item(-1)
            self._n_changes += int(np.count_nonzero(codes[1:] != codes[:-1]))
            self._counts.update(codes.tolist())
        if self._n < self._next_look:
            return
        self._next_look = self._n + self._n // 8
        same = sum((count / self._n) ** 2 for count in self._counts.values())
        expected = self._n * (1.0 - same)
        if expected >= FEWEST_CHANGES and self._n_changes < SUSPICIOUS * expected:
            times = "once" if self._n_changes == 1 else f"{self._n_changes:,} times"
            warnings.warn(
                f"the class changed only {times} in {self._n:,} rows: a forest "
                "that learns rows sorted by class predicts badly. Shuffle them first, or call "
                "fit(), which shuffles",
                UserWarning,
                stacklevel=callers_level(),
            )
            self._n = LONGEST + 1
