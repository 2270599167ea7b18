"""What every source gives: numbered rows in batches, or the error that says why there are none."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BATCH_ROWS, BATCH_VALUES = 8192, 1 << 22  # at most, but not fewer than a few rows


class StreamError(Exception):
    """A session or a source cannot start or cannot continue: why, and what to do."""


@dataclass(frozen=True)
class RowBatch:
    """Rows of a source.

    Parameters
    ----------
    table : pyarrow.Table
        The rows that could be read.
    numbers : ndarray of int64
        Their numbers in the source, from 1.
    bad : dict
        The numbers of the rows that could not be read, and why.
    """

    table: Any
    numbers: NDArray[np.int64]
    bad: dict[int, str] = field(default_factory=dict)

    def from_row(self, number: int) -> RowBatch:
        """Return the batch without the rows before this one."""
        if number <= self.span[0]:  # slicing takes long if there are very many columns
            return self
        first = int(np.searchsorted(self.numbers, number))
        bad = {row: why for row, why in self.bad.items() if row >= number}
        return RowBatch(self.table.slice(first), self.numbers[first:], bad)

    def up_to_row(self, number: int) -> RowBatch:
        """Return the batch without the rows after this one."""
        end = int(np.searchsorted(self.numbers, number, side="right"))
        bad = {row: why for row, why in self.bad.items() if row <= number}
        return RowBatch(self.table.slice(0, end), self.numbers[:end], bad)

    @property
    def span(self) -> tuple[int, int]:
        """The numbers of its first and last row; 0 and 0 if it has none."""
        every = [*self.numbers[:1].tolist(), *self.numbers[-1:].tolist(), *self.bad]
        return min(every, default=0), max(every, default=0)

    def runs(self) -> Iterator[tuple[Any, NDArray[np.int64], int | None]]:
        """Yield rows that could be read, and the number of the one after them that could not."""
        if not self.bad:
            yield self.table, self.numbers, None
            return
        begin = 0
        for number in [*sorted(self.bad), None]:
            if number is None:
                end = len(self.numbers)
            else:
                end = int(np.searchsorted(self.numbers, number))
            yield self.table.slice(begin, end - begin), self.numbers[begin:end], number
            begin = end


@dataclass
class Source:
    """Rows from somewhere, to be iterated over once.

    Parameters
    ----------
    name : str
        Where they come from, for display.
    format : str
        "csv", "ndjson", "parquet", "arrow", "libsvm" or "npz".
    names : list of str or None
        The columns; None if each row may have others.
    total_rows : int or None
        Number of rows, if that is known.
    batches : iterator of RowBatch
        The rows.
    is_pipe : bool
        Whether rows arrive while they are being written.
    expect_numbers : callable
        Takes the names of columns known to hold numbers, which may then be read faster.
    """

    name: str
    format: str
    names: list[str] | None
    total_rows: int | None
    batches: Iterator[RowBatch]
    is_pipe: bool = False
    expect_numbers: Callable[[list[str]], None] = lambda names: None


def numbered(first: int, n_read: int, bad: dict[int, str]) -> NDArray[np.int64]:
    """Return the numbers of the rows that were read, if the first of all has number ``first``."""
    every = np.arange(first, first + n_read + len(bad), dtype=np.int64)
    return every[~np.isin(every, list(bad))] if bad else every
