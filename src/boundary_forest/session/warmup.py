"""The warm-up: the first rows, from which it is decided what columns mean.

They are answered at once, each by the nearest of the rows before it. Until the decision is final it
is made provisionally: from the first row, again whenever the number of rows has doubled, and when a
row does not fit the last one. All of this depends on the rows alone, so that the answers are the
same whether rows come together or one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import as_texts, columns_of, is_list, joined
from boundary_forest.frames.column_errors import NothingYetError, Problem
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import CLASSIFY, Columns, Labels
from boundary_forest.frames.inference import choose
from boundary_forest.frames.model import empty_forest
from boundary_forest.frames.positions import Positions
from boundary_forest.session.events import Answered, Event, Refused, predict, predict_then_learn

MOST_ENDS = 1 << 20  # of a call; the nearest row comes once for each tree that there could be
MANY_TABLES = 16  # more of them, of a row each, would take long to concatenate in the end


@dataclass(frozen=True)
class _Read:
    """Rows as read by the provisional decision, which fits the first ``fitting`` of them."""

    positions: Positions
    labels: Labels
    fitting: int


@dataclass(frozen=True)
class _Part:
    """Rows as they came, the features and the target of them as plain columns, and numbers."""

    rows: Any
    plain: Any
    numbers: NDArray[np.int64]

    def slice(self, begin: int, end: int) -> _Part:
        rows, plain = (table.slice(begin, end - begin) for table in (self.rows, self.plain))
        return _Part(rows, plain, self.numbers[begin:end])


class WarmUp:
    """Rows that wait for the decision.

    Parameters
    ----------
    options : Options
        What the user has specified about columns.
    rows : int
        Number of rows after which the warm-up is over.
    parameters : dict
        Parameters of the forest; the metric is that of the answers.
    predicting : bool
        Whether rows are answered.
    recorded : bool
        Whether answers come with the row that decided, unless the warm-up is very long.
    stopped : callable
        Called between the steps of a decision, which takes seconds on 100,000 columns; true ends
        :meth:`take` before the next row.
    """

    def __init__(
        self,
        options: ColumnOptions,
        rows: int,
        parameters: dict[str, Any],
        *,
        predicting: bool = True,
        recorded: bool = False,
        stopped: Callable[[], bool] = lambda: False,
    ) -> None:
        self.options = options
        self.rows = rows
        self.task = options.task or CLASSIFY
        self._parameters = parameters
        self._predicting = predicting
        self._recorded = recorded
        self._stopped = stopped
        self._tables: list[Any] = []
        self._numbers: list[NDArray[np.int64]] = []
        self._unfit: list[Any] = []  # rows that were refused, and still tell of their columns
        self._columns: Columns | None = None
        self._forest: Any = None
        self._chosen_at = -1  # with how many rows waiting

    @property
    def waiting(self) -> int:
        """Number of rows that wait for the decision."""
        return sum(len(table) for table in self._tables)

    @property
    def is_over(self) -> bool:
        """Whether enough rows wait."""
        return self.waiting >= self.rows

    def table(self) -> Any:
        """Return all rows that wait: their features and their target."""
        if len(self._tables) > 1:
            self._tables = [joined(self._tables)]
        return self._tables[0]

    def decide(self) -> Columns:
        """Return what columns mean, from all rows that wait."""
        columns = choose(joined([self.table(), *self._unfit]), self.options)
        return replace(columns, warmup=self.waiting)

    def numbers(self) -> NDArray[np.int64]:
        """Return the numbers of these rows in the source."""
        return np.concatenate(self._numbers)

    def take(self, table: Any, numbers: NDArray[np.int64]) -> Iterator[tuple[int, Event]]:
        """Take rows until it is over; yield how many are used up and what becomes of them."""
        start = 0
        while start < len(table) and not self.is_over:
            waiting = self.waiting
            doubled = waiting & (waiting - 1) == 0  # 0, 1, 2, 4, ...
            until = 1 << waiting.bit_length() if waiting else 1
            rows = table.slice(start, min(until, self.rows) - waiting)
            part = _Part(rows, self.options.select(rows), numbers[start:])
            if self._columns is None or (doubled and waiting != self._chosen_at):
                self._choose(part.plain.slice(0, 1))
                if self._stopped():
                    return
            for used, event in self._take_fitting(part):
                yield start + used, event
                last = used
            start += last

    def _take_fitting(self, part: _Part) -> Iterator[tuple[int, Event]]:
        """Take rows as far as the provisional decision fits, which the next row renews."""
        if self._columns is None:
            yield 1, self._take_empty(part.slice(0, 1))
            return
        read = self._read(part.plain)
        if read.fitting == 0:
            self._choose(part.plain.slice(0, 1))
            read = self._read(part.plain)
            if read.fitting == 0:
                yield 1, self._refused(part.slice(0, 1))
                return
        begin, problems = 0, read.positions.problems
        for row in [*sorted(row for row in problems if row < read.fitting), read.fitting]:
            if row > begin:
                yield from self._take_good(part, read, slice(begin, row))
            if row < read.fitting:
                yield row + 1, self._problem(int(part.numbers[row]), problems[row])
            begin = row + 1

    def _take_good(self, part: _Part, read: _Read, rows: slice) -> Iterator[tuple[int, Event]]:
        """Take rows that can be used, answered from those before them."""
        known = read.labels.known[rows]
        edges = (np.flatnonzero(np.diff(known)) + 1 + rows.start).tolist()
        for begin, end in zip([rows.start, *edges], [*edges, rows.stop], strict=True):
            here = slice(begin, end)
            some = part.slice(begin, end)
            y = read.labels.y[here] if read.labels.known[begin] else None
            self._keep(some)
            for event in self._answered(read.positions.X[here], y, some.rows, some.numbers):
                yield end, event

    def _answered(
        self, X: NDArray[Any], y: NDArray[Any] | None, rows: Any, numbers: NDArray[np.int64]
    ) -> Iterator[Event]:
        if not self._predicting:
            yield Answered(self.task, numbers, rows, X, y)
            return
        if y is None:
            result = predict(self.task, self._forest, X)
            yield Answered(self.task, numbers, rows, X, y, result)
            return
        n = 0
        if self._forest.examples_seen == 0:
            n = 1
            self._forest.partial_fit(X[:1], y[:1])
            yield Answered(self.task, numbers[:1], rows.slice(0, 1), X[:1], y[:1])
        if n < len(X):
            few = (len(X) - n) * self._forest.n_estimators <= MOST_ENDS
            result = predict_then_learn(
                self.task, self._forest, X[n:], y[n:], with_ends=self._recorded and few
            )
            yield Answered(self.task, numbers[n:], rows.slice(n), X[n:], y[n:], result)

    def _take_empty(self, row: _Part) -> Event:
        """Take a row of a stream that has had no value to answer from yet."""
        if self.options.missing != "mean":
            return self._refused(row)
        self._keep(row)
        return Answered(self.task, row.numbers, row.rows, np.zeros((1, 0)), None)

    def _keep(self, part: _Part) -> None:
        self._tables.append(part.plain)
        self._numbers.append(part.numbers)
        if len(self._tables) > MANY_TABLES:
            self._tables = [joined(self._tables)]

    def _refused(self, row: _Part) -> Refused:
        problems: dict[int, Any] = {}
        if self._columns is not None:
            columns, plain = self._columns, row.plain
            problems = columns.labels(plain).problems | columns.positions(plain).problems
        number = int(row.numbers[0])
        if 0 in problems:
            if problems[0].misfit:
                self._unfit.append(row.plain)
            return self._problem(number, problems[0])
        return Refused(number, "it has no values", self.options.missing == "drop")

    def _problem(self, number: int, problem: Problem) -> Refused:
        expected = problem.missing and self.options.missing == "drop"
        return Refused(number, str(problem), expected, problem=problem)

    def _read(self, plain: Any) -> _Read:
        """Return rows as read by the provisional decision, and how many of them it fits."""
        if self._columns is None:
            nothing = np.zeros(0, dtype=np.int64)
            none = Labels(nothing, nothing.astype(bool), {})
            return _Read(Positions(np.zeros((0, 0)), {}, nothing), none, 0)
        positions, labels = self._columns.positions(plain), self._columns.labels(plain)
        rows = [row for row, problem in positions.problems.items() if not problem.missing]
        known = {feature.name for feature in self._columns.features}
        names = self.options.feature_names(plain.column_names)
        later = columns_of(plain, [name for name in names if name not in known])
        for values in later.values():  # nothing has been there before
            present = values if is_list(values.type) else as_texts(values)
            rows.append(present.is_valid().index(True).as_py())
        rows = [row for row in rows if row >= 0]
        return _Read(positions, labels, min([*rows, *labels.problems, len(plain)]))

    def _choose(self, row: Any) -> None:
        """Decide from the rows that wait and a plain one more; make a forest of the former."""
        self._chosen_at = self.waiting
        options = self.options
        rows = [*self._tables, row, *self._unfit]
        try:
            everything = joined(rows)
            try:
                self._columns = choose(everything, options)
            except NothingYetError:
                if options.task is not None:
                    raise
                # No target has come yet: to classify text is as good a guess as any.
                options = replace(options, task=CLASSIFY)
                self._columns = choose(everything, options)
        except NothingYetError:
            self._columns = None
            return
        self.task = self._columns.task
        keeping_all = {
            "n_estimators": min(10**6, self.rows + 1),
            "forgetting": None,
            "max_stored": None,
        }
        self._forest = empty_forest(self.task, **{**self._parameters, **keeping_all})
        if self._predicting and self._tables:
            before = everything.slice(0, self.waiting)
            positions, labels = self._columns.positions(before), self._columns.labels(before)
            usable = labels.known.copy()
            usable[list(positions.problems)] = False
            if usable.any():
                self._forest.partial_fit(positions.X[usable], labels.y[usable])
