"""Test, then train: rows in, answers out, and a forest that has learned them.

The first rows go through the warm-up; then the forest learns them, and from there on each row is
answered and learned in turn. How rows are cut into batches changes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable import DurableForest, FolderLock
from boundary_forest.frames.column_errors import Problem
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import CLASSIFY, Labels
from boundary_forest.frames.description import describe, warnings_about
from boundary_forest.frames.model import FrameModel, empty_forest
from boundary_forest.session.events import (
    NO_ANSWERS,
    Answered,
    Decided,
    Event,
    Refused,
    predict,
    predict_then_learn,
)
from boundary_forest.session.resume_state import PredictionLog, ResumeState, SourceChecksum, as_note
from boundary_forest.session.starting_point import SNAPSHOT_BYTES, made_durable, placed_on_cluster
from boundary_forest.session.warmup import WarmUp
from boundary_forest.sources.row_batch import RowBatch

FEWEST_ROWS, MOST_ROWS = 64, 8192  # that are learned by one call
CALL_SECONDS = 0.1  # what a call should take, so that there is something to see
MOST_VALUES = 1 << 20  # of a call's rows, over all features, so that a session can stop soon
MOST_VOTES = 1 << 22  # of a call's rows, over all classes; over all trees if they are recorded
REFUSED, ANSWERED, LEARNED = 0, 1, 2  # what becomes of a row; one that is learned is answered too


@dataclass(frozen=True)
class _Rows:
    """Rows as read by the columns, and what is to become of each."""

    X: NDArray[Any]
    labels: Labels
    unseen: NDArray[np.int64]
    problems: dict[int, Problem]
    fates: NDArray[np.int64]

    def runs(self) -> Iterator[tuple[slice, int]]:
        """Yield successive rows that share a fate."""
        edges = (np.flatnonzero(np.diff(self.fates)) + 1).tolist()
        for begin, end in zip([0, *edges], [*edges, len(self.fates)], strict=True):
            yield slice(begin, end), int(self.fates[begin])


class StreamLearner:
    """The forest of a stream, or the rows that it will be made from.

    Parameters
    ----------
    options : Options
        What the user has specified about columns.
    parameters : dict
        Parameters of a new forest.
    warmup : int
        Number of rows from which it is decided what columns mean.
    model : FrameModel or None
        The model to continue with; None: a new one, after the warm-up.
    state : ResumeState or None
        How far the source is used; the learner keeps its ``consumed`` up to date. A durable forest
        keeps all of it with the rows that it learns.
    lock : FolderLock or None
        Of the folder of a new model that survives crashes.
    predicting, learning : bool
        Whether rows are answered, and whether they are learned.
    predictions : PredictionLog or None
        The file that the answers are written to, which is on the disk before a durable model learns
        more.
    recorded : bool
        Whether answers come with the stored examples that they were made of.
    cluster : str or None
        Where a new forest is; see :class:`~boundary_forest.session.settings.SessionSettings`.
    stopped : callable
        Whether the session is to end; called during the warm-up's decisions.
    """

    def __init__(
        self,
        options: ColumnOptions,
        parameters: dict[str, Any],
        *,
        warmup: int,
        model: FrameModel | None = None,
        state: ResumeState | None = None,
        lock: FolderLock | None = None,
        predicting: bool = True,
        learning: bool = True,
        predictions: PredictionLog | None = None,
        recorded: bool = False,
        cluster: str | None = None,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.options = options
        self.model = model
        self.state = state or ResumeState()
        self._parameters = parameters
        self._lock = lock
        self._predicting = predicting
        self._learning = learning
        self._predictions = predictions
        self._recorded = recorded
        self._cluster = cluster
        self._warmup = WarmUp(
            options,
            warmup,
            parameters,
            predicting=predicting,
            recorded=recorded,
            stopped=stopped,
        )
        self._rows_a_call = FEWEST_ROWS
        # All rows, where an offline forest is fitted with them at the end
        self._gathered: list[tuple[NDArray[Any], NDArray[Any]]] | None = None
        if parameters.get("offline") and model is None:
            self._gathered = []

    @property
    def task(self) -> str:
        """To classify or to regress, as far as it is known."""
        return self._warmup.task if self.model is None else self.model.columns.task

    @property
    def waiting(self) -> int:
        """Number of rows that wait until there is a forest."""
        return self._warmup.waiting

    def take(self, batch: RowBatch) -> Iterator[Event]:
        """Answer and learn the rows of a batch; yield what becomes of them.

        A bad row counts as used when the next event is requested: who stops at it can resume there.
        """
        for table, numbers, bad in batch.runs():
            if len(numbers):
                yield from self._take_rows(table, numbers)
            if bad is not None:
                yield Refused(bad, batch.bad[bad])
                self._use_refused(bad)

    def add_to_checksum(self, batch: RowBatch, checksum: SourceChecksum) -> None:
        """Add rows that an earlier session has used to a checksum."""
        for table, _, bad in batch.from_row(checksum.first).runs():
            if len(table):
                self._add_to(checksum, self._fates(table))
            if bad is not None:
                checksum.add_refused()

    def finish(self) -> Iterator[Event]:
        """End the stream: decide, if the warm-up has not come to its end; fit an offline forest."""
        if self.model is None and self._warmup.waiting:
            yield from self._decide()
        if self._gathered and self.model is not None:
            X, y = (np.concatenate(parts) for parts in zip(*self._gathered, strict=True))
            self._gathered = []
            self.model.forest.fit(X, y)

    def checkpoint(self) -> None:
        """Bring a durable model and how far the source is used to the disk."""
        if self.model is not None and isinstance(self.model.forest, DurableForest):
            forest = self.model.forest
            self._sync_predictions()
            forest.note = as_note(self.state)
            forest.keep_note()
            forest.snapshot()

    def _take_rows(self, table: Any, numbers: NDArray[np.int64]) -> Iterator[Event]:
        used = 0
        if self.model is None:
            for used, event in self._warmup.take(table, numbers):
                self.state.consumed = int(numbers[used - 1])
                yield event
            if self._warmup.is_over:
                yield from self._decide()
        if self.model is not None and used < len(numbers):
            yield from self._take_decided(table.slice(used), numbers[used:])

    def _decide(self) -> Iterator[Event]:
        """Fix what columns mean, plant the forest, and learn the rows that were waiting."""
        table, numbers = self._warmup.table(), self._warmup.numbers()
        columns = self._warmup.decide()
        warnings = warnings_about(columns, table, self.options.categories)
        yield Decided(describe(columns), tuple(warnings))
        forest = placed_on_cluster(empty_forest(columns.task, **self._parameters), self._cluster)
        self.model = FrameModel(forest, columns)
        rows = self._fates(table)
        for row in sorted(rows.problems):
            yield self._refused(int(numbers[row]), rows.problems[row], answered=True)
        usable = rows.fates == LEARNED
        if usable.any():
            self._learn(rows.X[usable], rows.labels.y[usable])
        whole = numbers[0] == 1 and numbers[-1] == len(numbers) == self.state.consumed
        self.state.checksum = SourceChecksum(1 if whole else self.state.consumed + 1)
        if whole:
            self._add_to(self.state.checksum, rows)
        if self._lock is not None:
            # They are in the first snapshot: after a crash before it the stream starts again.
            self._sync_predictions()
            self.model = made_durable(self.model, self._lock, as_note(self.state))

    def _refused(self, number: int, problem: Problem, *, answered: bool = False) -> Refused:
        expected = problem.missing and self.options.missing == "drop"
        return Refused(number, str(problem), expected, answered, problem)

    def _fates(self, table: Any) -> _Rows:
        """Read rows, and tell what is to become of each."""
        assert self.model is not None
        columns = self.model.columns
        positions, labels = columns.positions(table), columns.labels(table)
        if not self._learning:
            labels.problems.clear()
        problems = positions.problems | labels.problems
        fates = np.where(labels.known, LEARNED, ANSWERED)
        fates[list(problems)] = REFUSED
        return _Rows(positions.X, labels, positions.unseen, problems, fates)

    def _add_to(self, checksum: SourceChecksum, rows: _Rows) -> None:
        for here, fate in rows.runs():
            if fate == REFUSED:
                for _ in range(here.start, here.stop):
                    checksum.add_refused()
            else:
                checksum.add(rows.X[here], rows.labels.y[here] if fate == LEARNED else None)

    def _use_refused(self, number: int) -> None:
        self.state.consumed = number
        if self.model is not None:
            self.state.checksum.add_refused()

    def _take_decided(self, table: Any, numbers: NDArray[np.int64]) -> Iterator[Event]:
        rows = self._fates(table)
        for run, fate in rows.runs():
            begin, end = run.start, run.stop
            if fate == REFUSED:
                for row in range(begin, end):
                    yield self._refused(int(numbers[row]), rows.problems[row])
                    self._use_refused(int(numbers[row]))
                continue
            while begin < end:
                here = slice(begin, min(end, begin + self._call_length()))
                unseen = int(rows.unseen[here].sum())
                y = rows.labels.y[here] if fate == LEARNED else None
                some = table.slice(here.start, here.stop - here.start)
                yield self._answered(numbers[here], some, rows.X[here], y, unseen)
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
        forest, task, state = self.model.forest, self.task, self.state
        start = time.perf_counter()
        durable = isinstance(forest, DurableForest) and y is not None and self._learning
        if durable:
            self._keep_answers(forest)
        arrival = forest.examples_seen
        state.consumed = int(numbers[-1])
        if self._lock is not None:
            state.checksum.add(X, y)
        if y is None or not self._learning:
            result = predict(task, forest, X) if self._predicting else NO_ANSWERS
        else:
            if durable:
                forest.note = as_note(state, n=len(X))
            if self._predicting and arrival > 0:
                result = predict_then_learn(task, forest, X, y, with_ends=self._recorded)
            else:
                result = NO_ANSWERS
                self._learn(X, y)
        self._adapt(len(X), time.perf_counter() - start)
        return Answered(task, numbers, rows, X, y, result, unseen, arrival)

    def _learn(self, X: NDArray[Any], y: NDArray[Any]) -> None:
        """Learn rows that are not answered; those of an offline forest at the end."""
        assert self.model is not None
        if self._gathered is None:
            self.model.forest.partial_fit(X, y)
        else:
            self._gathered.append((X, y))

    def _keep_answers(self, forest: DurableForest) -> None:
        """Before more is learned: what was answered is on the disk, and where that ends is noted.

        A snapshot, too, is saved here and not when something was learned: whatever it includes
        cannot be taken back, so its answers must have been delivered.
        """
        if forest.journal_bytes >= SNAPSHOT_BYTES:
            self.checkpoint()
        self._sync_predictions()
        self.state.before = self.state.to_json()

    def _sync_predictions(self) -> None:
        self.state.answers = None if self._predictions is None else self._predictions.sync()

    def _call_length(self) -> int:
        assert self.model is not None
        forest = self.model.forest
        if self._gathered is not None:
            return MOST_ROWS
        if forest.examples_seen == 0:
            return 1  # so that the next row has an answer
        n_votes = len(forest.classes_) if self.task == CLASSIFY else 1
        if self._recorded:
            n_votes = max(n_votes, forest.n_estimators)
        most = min(MOST_VOTES // max(1, n_votes), MOST_VALUES // self.model.columns.width)
        return max(1, min(self._rows_a_call, most))

    def _adapt(self, n: int, seconds: float) -> None:
        if n == self._rows_a_call:
            factor = 2 if seconds < CALL_SECONDS / 2 else 1 if seconds < 2 * CALL_SECONDS else 0.5
            self._rows_a_call = int(min(MOST_ROWS, max(FEWEST_ROWS, n * factor)))
