"""A prepared batch goes into the engine, block by block."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.blocks import is_sparse, joined, row_blocks, slices
from boundary_forest.estimators.columns import ColumnEncoder, RawRows
from boundary_forest.estimators.element_type import as_queries, as_rows
from boundary_forest.estimators.ids import engine_ids
from boundary_forest.estimators.learning_call import LearningMode, PreparedBatch

BLOCKS_PER_GATHERING = 4  # shuffled rows are copied, 8 MB at a time as float64

_WITH_ANSWERS = (LearningMode.PREDICT_THEN_LEARN, LearningMode.ESTIMATE_THEN_LEARN)


def train_engine(prepared: PreparedBatch, parts: Iterable[LearningBatch], n_threads: int) -> Any:
    """Learn the parts of a batch in order, and return the engine's answers, or None.

    A forest that has learned nothing has no answer to its first row, and none is returned.
    """
    batch, answers = prepared.batch, []
    if prepared.shuffle:
        return _train_shuffled(prepared, n_threads)
    ids = None if batch.ids is None else engine_ids(batch.ids)
    columns = _Columns(prepared)
    for part in parts:
        start = part.first - batch.first
        for rows, query in columns.blocks(part.X, start):
            block = slice(start, start + len(rows))
            names = None if ids is None else ids[block]
            try:
                answers.append(_train_block(prepared, rows, block, n_threads, names, query))
            except BaseException as error:
                if start:
                    error.add_note(f"{start} rows were learned before this error and are kept")
                raise
            start = block.stop
    answers = [answer for answer in answers if answer is not None]  # of the first row, none
    return joined(answers) if answers else None


def _train_shuffled(prepared: PreparedBatch, n_threads: int) -> None:
    """Learn a batch in the order of the settings; rows are gathered a block at a time."""
    batch, settings = prepared.batch, prepared.fitted.settings
    engine, order, columns = prepared.fitted.engine, settings.row_order, _Columns(prepared)
    for block in slices(len(batch), settings.n_features * BLOCKS_PER_GATHERING):
        at = order.rows(np.arange(block.start, block.stop))
        ids = None if batch.ids is None else engine_ids(batch.ids[at])
        try:
            labels = prepared.labels[at]
            engine.learn(columns.learned(batch.X[at], labels), labels, n_threads, ids)
        except KeyboardInterrupt as error:
            error.add_note(
                f"{engine.seen:,} of {len(batch):,} rows, drawn at random, were learned before "
                "this and are kept"
            )
            raise


def _train_block(
    prepared: PreparedBatch,
    rows: NDArray[Any],
    block: slice,
    n_threads: int,
    ids: Any,
    query: NDArray[Any] | None,
) -> Any:
    """Learn a block of rows, and return the answers; ``query`` is a row that has other features
    when it is answered than when it is learned.
    """
    fitted, labels = prepared.fitted, prepared.labels[block]
    method = getattr(fitted.engine, prepared.mode.value)
    if prepared.mode not in _WITH_ANSWERS:
        return method(rows, labels, n_threads, ids)
    if fitted.engine.seen == 0:  # the first row of all is learned without an answer
        fitted.engine.learn(rows[:1], labels[:1], n_threads, None if ids is None else ids[:1])
        rows, labels, ids = rows[1:], labels[1:], None if ids is None else ids[1:]
    # All classes of the batch are known by now, and will be met.
    ranks = fitted.labels.ranks()
    if query is not None and fitted.engine.seen > 0:
        answer = _answer(prepared, query, n_threads, ranks)
        fitted.engine.learn(rows, labels, n_threads, ids)
        return answer
    return method(rows, labels, n_threads, ids, ranks=ranks, with_ends=prepared.with_leaves)


def _answer(prepared: PreparedBatch, row: NDArray[Any], n_threads: int, ranks: Any) -> Any:
    """Return the answer to one row, as the mode of the call has it."""
    engine = prepared.fitted.engine
    predicts = prepared.mode is LearningMode.PREDICT_THEN_LEARN
    answer = (engine.predict if predicts else engine.estimate)(row, n_threads, ranks)
    if not prepared.with_leaves:
        return answer
    trees, weights, _, (_, labels, arrivals, _), _ = engine.paths(row)
    ends = np.array([places[-1] for places, _ in trees])
    distances = np.array([distances[-1] for _, distances in trees])
    return answer, (arrivals[ends][None], labels[ends][None], distances[None], weights[None])


class _Columns:
    """The rows of a batch as positions, in order; columns of any kind become features."""

    def __init__(self, prepared: PreparedBatch) -> None:
        self._prepared = prepared
        self._settings = prepared.fitted.settings
        after, rows = prepared.fitted.encoder, prepared.batch.X
        self._as_they_are = (
            after is not None
            and after.layout.is_plain
            and rows.shape[1] == self._settings.n_features
            and rows.is_complete
        )
        # What is known before the next row: the first has the features of the whole batch.
        self._before: ColumnEncoder | None = prepared.encoder
        self._known: ColumnEncoder | None = prepared.encoder

    def learned(self, X: Any, labels: NDArray[np.float64]) -> NDArray[Any]:
        """Return the next rows as positions."""
        after = self._prepared.fitted.encoder
        if isinstance(X, RawRows) and self._as_they_are:
            X = X.values
        if isinstance(X, RawRows):
            assert self._before is not None
            assert after is not None
            X, self._before = self._before.learned_rows(
                X, labels, after.layout, self._settings.n_features
            )
        return as_rows(X.toarray() if is_sparse(X) else X, self._settings.element_type)

    def blocks(self, X: Any, first: int) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Return rows by blocks, and a row that is answered with other features than it is learned.

        ``first`` is the number of the first row in the batch. Sparse and encoded rows come in
        blocks of their own, unless a call that fails half-way must be taken back whole.
        """
        prepared = self._prepared
        functions = (self._settings.metric, *prepared.fitted.labels.rules.values())
        whole = prepared.mode is LearningMode.LEARN_OFFLINE or any(map(callable, functions))
        if not isinstance(X, RawRows):
            element_type = self._settings.element_type
            for rows in row_blocks(X, lambda rows: as_rows(rows, element_type), whole=whole):
                yield rows, None
        elif prepared.mode in _WITH_ANSWERS:
            yield from self._answered(X, prepared.labels[first : first + len(X)])
        else:
            labels = prepared.labels[first : first + len(X)]
            for block in self._slices(0, len(X), whole=whole):
                yield self.learned(X[block], labels[block]), None

    def _answered(
        self, X: RawRows, labels: NDArray[np.float64]
    ) -> Iterator[tuple[NDArray[Any], NDArray[Any] | None]]:
        """Return blocks between the rows that add features, and these one by one.

        ``predict`` would not know such a feature, so it must not count in the answer.
        """
        assert self._known is not None
        start = 0
        for row in [*self._known.novel(X, labels), len(X)]:
            for block in self._slices(start, row):
                yield self.learned(X[block], labels[block]), None
            if row > start:
                self._known = self._known.learned(X[start:row], labels[start:row])
            if row < len(X):
                one, own, query = X[row : row + 1], labels[row : row + 1], None
                if self._known.n_columns:
                    query = as_queries(self._known.query_rows(one, self._settings.n_features))
                yield self.learned(one, own), query
                self._known = self._known.learned(one, own)
            start = row + 1

    def _slices(self, start: int, stop: int, *, whole: bool = False) -> Iterator[slice]:
        after = self._prepared.fitted.encoder
        if start == stop:
            return
        if whole or (after is not None and after.layout.is_plain):
            yield slice(start, stop)
            return
        for block in slices(stop - start, self._settings.n_features):
            yield slice(start + block.start, start + block.stop)
