"""A compiled forest that is given dicts with values of any kind: columns="auto" for River.

A key that a dict lacks is a missing value. A key that is new is a new column.

Most streams have numbers alone, and none is missing. Then a row's features are its numbers, and all
that is learned about columns is sums: they are added up when something else is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.columns import ColumnEncoder, LabelSlots, LearnedPart, RawRows
from boundary_forest.estimators.columns.cells import NUMBER
from boundary_forest.estimators.columns.reading import read_dicts, read_single
from boundary_forest.estimators.copying import filled
from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.estimators.explaining import explanation_of
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.fitted import Fitted, new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import engine_ids
from boundary_forest.estimators.labels import ClassLabels
from boundary_forest.estimators.learning_call import new_labels
from boundary_forest.river.named_forest import ELEMENT_TYPE, NamedColumns, NamedForest

if TYPE_CHECKING:
    import pandas as pd

Rows = Sequence[Mapping[Hashable, Any]]

MOST_UNSUMMED = 1000  # rows


class EncodedForest(NamedForest):
    """A compiled forest with an encoder of columns; it can be copied and pickled."""

    def __init__(self, estimator: BaseBoundaryForest, seed: int, ids: str = NONE) -> None:
        classes = () if isinstance(new_labels(estimator), ClassLabels) else None
        self._summed: ColumnEncoder | LearnedPart = ColumnEncoder(LabelSlots(classes, 1))
        # Rows that were learned since, with their labels; all are numbers.
        self._unsummed: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = []
        self._names: list[Hashable] = []
        # The columns, if features are the numbers in them; none was missing so far.
        self._numbers: NamedColumns | None = None
        self._width = 1
        # What is to be learned, and what its columns are then called.
        self._batch: tuple[RawRows, NDArray[np.float64], ColumnEncoder] | None = None
        super().__init__(estimator, seed, ids)

    @property
    def _encoder(self) -> ColumnEncoder:
        """What was learned about the columns."""
        return self._sum_up()

    def _sum_up(self) -> ColumnEncoder:
        summed = self._summed.encoder if isinstance(self._summed, LearnedPart) else self._summed
        if self._unsummed:
            rows, labels = map(np.concatenate, zip(*self._unsummed, strict=True))
            summed = summed.learned(RawRows.of_numbers(rows), labels)
        self._summed, self._unsummed = summed, []
        return summed

    def _set_encoder(self, encoder: ColumnEncoder, names: Sequence[Hashable]) -> None:
        self._summed, self._names = encoder, list(names)
        layout = encoder.layout
        is_plain = layout.is_plain and layout.width == self._width == len(names)
        is_plain &= all(kind == NUMBER for kind in layout.kinds) and encoder.numbers.are_complete
        self._numbers = NamedColumns(names, spare=False) if is_plain else None

    def row_to_learn(
        self, x: Mapping[Hashable, Any], label: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """A row of features, after making room for new ones."""
        if self._numbers is not None and len(x) == len(self._names):
            row = self._numbers.row_of_numbers(x)
            if row is not None:
                self._batch = None
                return row
        return self._rows_to_learn([x], label)

    def rows_to_learn(self, X: pd.DataFrame, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """The rows of a frame as features, as if they were dicts."""
        return self._rows_to_learn(_records(X), labels)

    def _rows_to_learn(self, dicts: Rows, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        encoder = self._encoder
        rows = self._read(dicts)
        after = encoder.learned(rows, labels)
        if after.width > self._width:
            self._engine, self._width = self._engine.widened(after.width), after.width
        self._batch = rows, labels, after
        plain = after.plain_rows(rows, self._width)
        if plain is not None:
            return plain
        return encoder.learned_rows(rows, labels, after.layout, self._width)[0]

    def _read(self, dicts: Rows) -> RawRows:
        kinds = self._encoder.layout.kinds
        names = self._names
        is_known = len(dicts) == 1 and dicts[0].keys() == set(names) and len(kinds) == len(names)
        if is_known and all(kind == NUMBER for kind in kinds):  # the fast path of queries
            rows = read_single(dicts, names, kinds)
            if rows is not None:
                return replace(rows, names=tuple(names))
        return read_dicts(dicts, self._names, kinds, grows=True)

    def learn(
        self,
        rows: NDArray[np.float64],
        labels: NDArray[np.float64],
        n_jobs: int,
        ids: NDArray[Any] | None = None,
    ) -> None:
        """Learn rows that were made to be learned, with one label each, and an id if checked."""
        of_engine = None if ids is None else engine_ids(ids)
        if self._batch is None:
            self._learn_numbers(rows, labels, n_jobs, of_engine)
            return
        before, encoder = self.examples_seen, self._encoder
        try:
            self._engine.learn(rows, labels, n_jobs, of_engine)
        finally:  # an interrupted call keeps the rows that were published
            n = self.examples_seen - before
            raw, given, after = self._batch
            if n:
                whole = n == len(raw)
                if whole:
                    self._set_encoder(after, raw.names or ())
                else:
                    self._summed = LearnedPart(encoder, raw, given, slice(0, n))
                    self._names, self._numbers = list(raw.names or ()), None
            self._batch = None

    def _learn_numbers(
        self, row: NDArray[np.float64], label: NDArray[np.float64], n_jobs: int, ids: Any
    ) -> None:
        seen, n = self.examples_seen, len(self._unsummed)
        try:
            self._unsummed.append((row, label))
            self._engine.learn(row, label, n_jobs, ids)
        except BaseException:
            if self.examples_seen == seen:
                del self._unsummed[n:]
            raise
        if len(self._unsummed) >= MOST_UNSUMMED:
            self._sum_up()

    def _query_row(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        if self._numbers is not None and (row := self._numbers.row_of_numbers(x)) is not None:
            return row
        rows = read_single([x], self._names, self._encoder.layout.kinds)
        assert rows is not None
        return self._encoder.query_rows(rows, self._width)

    def _query_rows(self, X: pd.DataFrame) -> NDArray[np.float64]:
        kinds = self._encoder.layout.kinds
        rows = read_dicts(_records(X), self._names, kinds, grows=False)
        return self._encoder.query_rows(rows, self._width)

    def explanation(self, x: Mapping[Hashable, Any], labels: NDArray[Any]) -> Explanation:
        """Why the forest answers as it does; classes are known by their codes."""
        return explanation_of(self._fitted(labels), self._query_row(x))

    def as_estimator(self, labels: NDArray[Any]) -> BaseBoundaryForest:
        """A copy as the scikit-learn estimator that is the same learner."""
        found = self._fitted(labels)
        empty = Fitted(
            new_engine(found.settings, found.labels),
            found.settings,
            found.labels,
            found.feature_names,
            found.encoder,
        )
        estimator: BaseBoundaryForest = clone(self._estimator).set_params(random_state=self._seed)
        estimator.fitted = filled(empty, self._engine.snapshot().state(), positions="copied")
        return estimator

    def _fitted(self, labels: NDArray[Any]) -> Fitted:
        policy = new_labels(self._estimator).encoded(labels, None, len(labels), 0)[1]
        names = np.array([str(name) for name in self._names], dtype=object)
        return Fitted(self._engine, self._settings(), policy, names, self._encoder)

    def by_name(
        self, of: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    ) -> dict[Hashable, float]:
        """What a function makes of the features' weights and variances, by feature."""
        names = self._encoder.feature_names(self._names)
        return dict(zip(names, of(*self._engine.features()).tolist(), strict=False))

    def by_column(
        self, of: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    ) -> dict[Hashable, float]:
        """The same, summed over the features of each column."""
        values, columns = of(*self._engine.features()), self._encoder.column_of
        sums = np.bincount(columns, values[: len(columns)], minlength=len(self._names))
        return dict(zip(self._names, sums.tolist(), strict=True))

    def _settings(self) -> ForestSettings:
        return ForestSettings.of(
            vars(self._estimator),
            element_type=ELEMENT_TYPE,
            n_features=self._width,
            label_length=1,
            seed=self._seed,
            ids=self.ids,
        )

    def __getstate__(self) -> dict[str, Any]:
        own = {"names": self._names, "encoder": self._encoder, "width": self._width}
        return {**super().__getstate__(), **own}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._width, self._batch, self._unsummed = state["width"], None, []
        self._set_encoder(state["encoder"], state["names"])
        super().__setstate__({**state, "names": []})


def _records(X: pd.DataFrame) -> Rows:
    if not X.columns.is_unique:
        name = X.columns[X.columns.duplicated()][0]
        raise ValueError(f"X has more than one column named {name!r}: rename or drop one")
    records: Rows = X.to_dict("records")
    return records
