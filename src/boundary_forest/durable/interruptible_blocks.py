"""A durable call, block by block: interrupts are handled between two of them.

Interrupts are put off while a block is learned: so it should take a part of a second, which is
measured, because it depends on the forest. Learning in blocks costs nothing that can be measured if
they are not much smaller than the engine's own, which has 256 to 4,096 rows in one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.durable.packing import rows_of
from boundary_forest.estimators.batch import LearningBatch

FEWEST_ROWS, FIRST_ROWS, MOST_ROWS = 16, 1024, 8192
BLOCK_BYTES = 1 << 26
BLOCK_SECONDS = 0.5


class BlockPace:
    """How many rows a block has, by how long the last ones took."""

    def __init__(self) -> None:
        self._rows = FIRST_ROWS

    def blocks(self, batch: LearningBatch, interrupts: Interrupts) -> Iterator[LearningBatch]:
        """Cut a batch into blocks, and handle interrupts between them.

        Parameters
        ----------
        batch : LearningBatch
            What is learned, a block at a time, by whoever takes the next one.
        interrupts : Interrupts
            Those that are put off.
        """
        begin = 0
        while begin < len(batch):
            rows = min(self._rows, rows_of(batch, BLOCK_BYTES))
            end = min(begin + rows, len(batch))
            start = time.perf_counter()
            yield batch.part(begin, end)
            self._adapt(end - begin, time.perf_counter() - start)
            begin = end
            if begin < len(batch):
                interrupts.handle()

    def _adapt(self, n: int, seconds: float) -> None:
        if seconds > BLOCK_SECONDS:
            self._rows = max(FEWEST_ROWS, n // 2)
        elif n == self._rows and seconds < BLOCK_SECONDS / 4:
            self._rows = min(MOST_ROWS, 2 * n)


def interruptible(
    parts: Iterable[tuple[int, bytes]], interrupts: Interrupts
) -> Iterator[tuple[int, bytes]]:
    """Return the parts of a batch as bytes, and handle interrupts before each."""
    for part in parts:
        interrupts.handle()
        yield part
