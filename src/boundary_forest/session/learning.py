"""Test, then train: rows in, answers out, and a forest that has learned them.

The first rows go through the warm-up; then the forest learns them, and from there on each row is
answered and learned in its turn. How rows are cut into batches changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable import DurableForest, open_durable
from boundary_forest.frames.choosing import Wishes, choose, doubts, told
from boundary_forest.frames.columns import Problem
from boundary_forest.frames.model import FrameModel, empty_forest
from boundary_forest.session.asking import ask, ask_then_teach, is_taught
from boundary_forest.session.batches import Batch
from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.warmup import WarmUp

FEWEST_ROWS, MOST_ROWS = 64, 8192  # that are learned by one call
CALL_SECONDS = 0.1  # what a call should take, so that there is something to see
MOST_VOTES = 1 << 22  # of a call's rows, over all classes


class Learner:
    """The forest of a stream, or what it will be made of.

    Parameters
    ----------
    wishes : Wishes
        What the user has said about columns.
    parameters : dict
        Of the forest.
    warmup : int
        By how many rows it is decided what columns mean.
    model : FrameModel or None
        What to go on with; None: a new one, after the warm-up.
    durable : Path or None
        The folder of a new model that survives crashes.
    answering, teaching : bool
        Whether rows are answered, and whether they are learned.
    """

    def __init__(
        self,
        wishes: Wishes,
        parameters: dict[str, Any],
        *,
        warmup: int,
        model: FrameModel | None = None,
        durable: Path | None = None,
        answering: bool = True,
        teaching: bool = True,
    ) -> None:
        self.wishes = wishes
        self.model = model
        self.consumed = 0  # the number of the last row that was used up
        # What a durable forest keeps with the rows that it learns next, given how many they are and
        # how many rows of the source came before them.
        self.note: Callable[[int, int], str] | None = None
        self._parameters = parameters
        self._durable = durable
        self._answering = answering
        self._teaching = teaching
        self._warmup = WarmUp(wishes, warmup, parameters, answering=answering)
        self._rows_a_call = FEWEST_ROWS

    @property
    def task(self) -> str:
        """To classify or to regress, as far as it is known."""
        return self._warmup.task if self.model is None else self.model.columns.task

    @property
    def stored(self) -> int:
        """Rows that are waiting, until there is a forest."""
        return self._warmup.waiting

    def take(self, batch: Batch) -> Iterator[Event]:
        """Answer and learn the rows of a batch, and tell what came of them."""
        begin = 0
        for number in [*sorted(batch.bad), None]:
            if number is None:
                end = len(batch.numbers)
            else:
                end = int(np.searchsorted(batch.numbers, number))
            if end > begin:
                rows = batch.table.slice(begin, end - begin)
                yield from self._take_rows(rows, batch.numbers[begin:end])
            if number is not None:
                yield Refused(number, batch.bad[number])
                self.consumed = number  # unless the run has ended with it
            begin = end

    def finish(self) -> Iterator[Event]:
        """The stream is over: decide, if the warm-up has not come to its end."""
        if self.model is None and self._warmup.waiting:
            yield from self._decide()

    def _take_rows(self, table: Any, numbers: NDArray[np.int64]) -> Iterator[Event]:
        used = 0
        if self.model is None:
            for used, event in self._warmup.take(table, numbers):
                self.consumed = int(numbers[used - 1])
                yield event
            if self._warmup.is_over:
                yield from self._decide()
        if self.model is not None and used < len(numbers):
            yield from self._take_decided(table.slice(used), numbers[used:])

    def _decide(self) -> Iterator[Event]:
        """Fix what columns mean, plant the forest, and learn the rows that were waiting."""
        table, numbers = self._warmup.table(), self._warmup.numbers()
        columns = choose(table, self.wishes)
        yield Decided(told(columns), tuple(doubts(columns, table)))
        forest = empty_forest(columns.task, **self._parameters)
        self.model = FrameModel(forest, columns)
        positions, labels = columns.positions(table), columns.labels(table)
        problems = positions.problems | labels.problems
        for row in sorted(problems):
            yield self._refused(int(numbers[row]), problems[row], answered=True)
        usable = labels.known.copy()
        usable[list(problems)] = False
        if usable.any():
            forest.partial_fit(positions.X[usable], labels.y[usable])
        if self._durable is not None:
            # They are in the first snapshot: a crash before it begins the stream anew.
            note = None if self.note is None else self.note(0, 0)
            attachments = self.model.attachments
            durable = open_durable(self._durable, forest, note=note, attachments=attachments)
            self.model = FrameModel(durable, columns)

    def _refused(self, number: int, problem: Problem, *, answered: bool = False) -> Refused:
        wanted = problem.missing and self.wishes.missing == "drop"
        return Refused(number, str(problem), wanted, answered)

    def _take_decided(self, table: Any, numbers: NDArray[np.int64]) -> Iterator[Event]:
        assert self.model is not None
        columns = self.model.columns
        positions, labels = columns.positions(table), columns.labels(table)
        if not self._teaching:
            labels.problems.clear()
        problems = positions.problems | labels.problems
        # 0: refused, 1: only answered, 2: learned as well; stretches of the same go together.
        fate = 1 + labels.known.astype(np.int64)
        fate[list(problems)] = 0
        edges = np.flatnonzero(np.diff(fate)) + 1
        for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), len(fate)], strict=True):
            if fate[begin] == 0:
                for row in range(begin, end):
                    yield self._refused(int(numbers[row]), problems[row])
                    self.consumed = int(numbers[row])  # unless the run has ended with it
                continue
            while begin < end:
                here = slice(begin, min(end, begin + self._call_length()))
                unseen = int(positions.unseen[here].sum())
                y = labels.y[here] if fate[begin] == 2 else None
                rows = table.slice(here.start, here.stop - here.start)
                yield self._answered(numbers[here], rows, positions.X[here], y, unseen)
                begin = here.stop

    def _answered(
        self,
        numbers: NDArray[np.int64],
        rows: Any,
        X: NDArray[Any],
        y: NDArray[Any] | None,
        unseen: int,
    ) -> Answered:
        assert self.model is not None
        forest, task = self.model.forest, self.task
        start = time.perf_counter()
        arrival = forest.stats()["examples_seen"] if is_taught(forest) else 0
        before, self.consumed = self.consumed, int(numbers[-1])
        if y is None or not self._teaching:
            said = ask(task, forest, X) if self._answering else (None, None)
        elif not self._answering or not is_taught(forest):
            self._write_down(len(X), before)
            forest.partial_fit(X, y)
            said = None, None
        else:
            self._write_down(len(X), before)
            said = ask_then_teach(task, forest, X, y)
        self._adapt(len(X), time.perf_counter() - start)
        return Answered(task, numbers, rows, X, y, *said, unseen=unseen, arrival=arrival)

    def _write_down(self, n: int, before: int) -> None:
        """What is learned next goes to the disk together with how far the source was read."""
        assert self.model is not None
        if isinstance(self.model.forest, DurableForest) and self.note is not None:
            self.model.forest.note = self.note(n, before)

    def _call_length(self) -> int:
        assert self.model is not None
        if not is_taught(self.model.forest):
            return 1  # so that the next row has an answer
        classes = getattr(self.model.forest, "classes_", [0])
        return max(1, min(self._rows_a_call, MOST_VOTES // max(1, len(classes))))

    def _adapt(self, n: int, seconds: float) -> None:
        if n == self._rows_a_call:
            factor = 2 if seconds < CALL_SECONDS / 2 else 1 if seconds < 2 * CALL_SECONDS else 0.5
            self._rows_a_call = int(min(MOST_ROWS, max(FEWEST_ROWS, n * factor)))
