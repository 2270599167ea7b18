"""A compiled forest whose columns are named features: dicts and frames as rows of numbers.

A feature that is absent counts as 0.0; one that first appears later becomes a further column, zero
in all rows stored before. Columns are in order of first appearance; those that come with the same
example are sorted, because the order inside a dict means nothing in River and so must not decide a
tie between distances.

One example at a time is the way River works, so that path is kept bare: a dict becomes a row in one
pass, and no array is checked twice.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import replace
from numbers import Integral
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from boundary_forest.estimators.adaptive import mixture_in
from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.columns.layout import width_for
from boundary_forest.estimators.columns.reading import natural_order
from boundary_forest.estimators.copying import filled
from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.estimators.explaining import explanation_of
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.fitted import Fitted, Forest, new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import check_kind, checked_ids, engine_ids, forget_known
from boundary_forest.estimators.learning_call import new_labels
from boundary_forest.estimators.lifetime_stats import forest_stats
from boundary_forest.river.narrow_models import narrow_models

if TYPE_CHECKING:
    import pandas as pd

ELEMENT_TYPE = "float64"  # what Python's numbers are

# What to do about a value that is no number, and about one that is missing.
FEATURE_WAYS_OUT = (
    "encode it first, for example with River's preprocessing.OneHotEncoder",
    "omit it (it then counts as 0.0), or impute it first, for example with River's "
    "preprocessing.StatImputer",
)
TARGET_WAYS_OUT = (
    "BoundaryForestClassifier learns labels that are not numbers",
    "skip examples without a target",
)

_NUMBERS = {float, int, np.float64}


class NamedColumns:
    """Which column a feature has, and dicts and frames as rows of numbers; never changed."""

    def __init__(self, names: Iterable[Hashable] = (), *, spare: bool) -> None:
        self.of = {name: column for column, name in enumerate(names)}
        self.spare = spare  # whether there may be columns that no feature has yet
        self.width = width_for(len(self.of)) if spare else max(1, len(self.of))
        # itemgetter is three times as fast as a loop, but answers for one name without a tuple.
        pick = itemgetter(*self.of) if len(self.of) > 1 else None
        self._pick: Any = pick or (lambda x: [x[name] for name in self.of])
        self._pack_into: Any = struct.Struct(f"{len(self.of)}d").pack_into

    def joined_by(self, names: Iterable[Hashable]) -> NamedColumns:
        """These columns, and further ones for those of the names that have none."""
        new = [name for name in names if name not in self.of]
        if not new:
            return self
        return NamedColumns([*self.of, *sorted(new, key=natural_order)], spare=self.spare)

    def row(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        """The features that have a column, as a matrix of one row."""
        try:
            values = self._pick(x if type(x) is dict else {**x})  # a defaultdict would grow
        except KeyError:
            values = [x.get(name, 0.0) for name in self.of]
        try:
            size = math.hypot(*values)  # accepts what float() does, except text
        except (TypeError, OverflowError):
            size = math.inf
        if not size < LARGEST_INTEGER:  # perhaps one is not finite, or too large an integer
            for name, value in zip(self.of, values, strict=True):
                number(f"feature {name!r}", value)
        row = np.zeros((1, self.width))
        self._pack_into(row, 0, *values)
        return row

    def row_of_numbers(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64] | None:
        """The same for a dict that has a number for each column; None for others."""
        if type(x) is not dict:
            return None
        try:
            values = self._pick(x)
            if not (
                _NUMBERS.issuperset(map(type, values)) and math.hypot(*values) < LARGEST_INTEGER
            ):
                return None
        except (KeyError, OverflowError):
            return None
        row = np.zeros((1, self.width))
        self._pack_into(row, 0, *values)
        return row

    def rows(self, X: pd.DataFrame) -> NDArray[np.float64]:
        """The frame's columns that have a column here, as a matrix."""
        rows = np.zeros((len(X), self.width))
        for position, name in enumerate(X.columns):
            column = self.of.get(name)
            if column is not None:
                rows[:, column] = numbers(f"feature {name!r}", X.iloc[:, position])
        return rows


class NamedForest:
    """A compiled forest whose columns are features; it can be copied and pickled.

    Attributes
    ----------
    columns : NamedColumns
        As wide as the engine.
    ids : str
        What the engine calls ids of the kind that all examples have; NONE if they have none.
    """

    def __init__(self, estimator: BaseBoundaryForest, seed: int, ids: str = NONE) -> None:
        self._estimator = estimator  # never fitted: it knows what its engine is made of
        self._seed = seed
        self.ids = ids
        self.columns = NamedColumns(spare=_may_have_spare_columns(estimator))
        self._engine = self._make_engine()
        # From before a widening after which learning may fail.
        self._narrower: tuple[NamedColumns, Forest] | None = None

    def row_to_learn(
        self, x: Mapping[Hashable, Any], label: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """A row with all features of x, after making room for the new ones."""
        columns = self.columns
        if x.keys() <= columns.of.keys():
            return columns.row(x)
        columns = columns.joined_by(x)
        row = columns.row(x)
        self._widen(columns)
        return row

    def rows_to_learn(self, X: pd.DataFrame, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Rows with all columns of the frame, after making room for the new ones."""
        if not X.columns.is_unique:
            name = X.columns[X.columns.duplicated()][0]
            raise ValueError(f"X has more than one column named {name!r}: rename or drop one")
        columns = self.columns.joined_by(X.columns)
        rows = columns.rows(X)
        self._widen(columns)
        return rows

    def check_ids(self, ids: NDArray[Any] | None) -> None:
        """Raise an error if ids cannot be those of the rows that are learned next."""
        check_kind(ids, self.ids)
        if ids is not None:
            self._engine.check_ids(engine_ids(ids))

    def learn(
        self,
        rows: NDArray[np.float64],
        labels: NDArray[np.float64],
        n_jobs: int,
        ids: NDArray[Any] | None = None,
    ) -> None:
        """Learn rows that were made to be learned, with one label each, and an id if checked."""
        try:
            self._engine.learn(rows, labels, n_jobs, None if ids is None else engine_ids(ids))
        except Exception:
            if self._narrower is not None:
                self.columns, self._engine = self._narrower
            raise
        finally:
            self._narrower = None

    def forget(self, ids: Any, n_jobs: int) -> None:
        """Forget the examples with these ids; KeyError if some are not known, and none is."""
        fitted = Fitted(self._engine, self._settings(), new_labels(self._estimator))
        wanted = checked_ids(fitted, ids)
        if len(wanted):
            forget_known(self._engine, wanted, n_jobs)

    def weigh_classes(self, weights: NDArray[np.float64]) -> None:
        """Multiply the votes for each class by its weight, by code, from the next rows on."""
        self._engine.weigh_classes(weights)

    def predict_one(self, x: Mapping[Hashable, Any]) -> float:
        """The code of the class with the most votes, of equals the first to appear; or the mean."""
        code_or_mean: float = self._engine.predict(self._query_row(x), 1).item()
        return code_or_mean

    def predict(self, X: pd.DataFrame, n_jobs: int) -> NDArray[np.float64]:
        """The same for every row of a frame."""
        codes_or_means: NDArray[np.float64] = self._engine.predict(self._query_rows(X), n_jobs)
        return codes_or_means[:, 0]

    def shares_one(self, x: Mapping[Hashable, Any]) -> list[float]:
        """Each class's share of the votes, by code."""
        shares: list[float] = self._engine.estimate(self._query_row(x), 1).tolist()[0]
        return shares

    def shares(self, X: pd.DataFrame, n_jobs: int) -> NDArray[np.float64]:
        """The same for every row of a frame."""
        shares: NDArray[np.float64] = self._engine.estimate(self._query_rows(X), n_jobs)
        return shares

    def explanation(self, x: Mapping[Hashable, Any], labels: NDArray[Any]) -> Explanation:
        """Why the forest answers as it does; classes are known by their codes.

        ``labels`` are the codes of all classes in order, or any target.
        """
        policy = new_labels(self._estimator).encoded(labels, None, len(labels), 0)[1]
        columns = self.columns
        fitted = Fitted(self._engine, self._settings(), policy)
        n, names = len(columns.of), [str(name) for name in columns.of]
        # Columns to spare are no features.
        return explanation_of(fitted, columns.row(x)).in_columns(
            names, range(n), lambda row: row[:n]
        )

    def as_estimator(self, labels: NDArray[Any]) -> BaseBoundaryForest:
        """A copy as the scikit-learn estimator that is the same learner.

        ``labels`` are all classes in order of their codes, or any target. Columns to spare are left
        out; the others have their features' names if all of these are text.
        """
        n = max(1, len(self.columns.of))
        state = self._engine.snapshot().state()
        for name in ("positions", "log_weights", "window_positions"):
            if np.ndim(state[name]) == 2:
                state[name] = np.ascontiguousarray(state[name][:, :n])
        forgets = self._estimator.get_params().get("forgetting") is not None
        state |= narrow_models(state, self.columns.width, n, forgets=forgets)
        policy = new_labels(self._estimator).encoded(labels, None, len(labels), 0)[1]
        settings = replace(self._settings(), n_features=n)
        texts = all(isinstance(name, str) for name in self.columns.of)
        names = np.array(list(self.columns.of), dtype=object) if texts and self.columns.of else None
        estimator: BaseBoundaryForest = clone(self._estimator).set_params(random_state=self._seed)
        empty = Fitted(new_engine(settings, policy), settings, policy, names)
        estimator.fitted = filled(empty, state, positions="copied")
        return estimator

    def neighbors(self, x: Mapping[Hashable, Any], n: int) -> tuple[list[float], list[int]]:
        """Distances and arrival numbers of the n nearest, nearest first."""
        distances, arrivals, _ = self._engine.neighbors(self._query_row(x), n, 1)
        return distances[0].tolist(), arrivals[0].tolist()

    def by_name(
        self, of: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    ) -> dict[Hashable, float]:
        """What a function makes of the features' weights and variances, by feature."""
        values = of(*self._engine.features()).tolist()
        # Another thread may have added columns since.
        columns = self.columns.of.items()
        return {name: values[column] for name, column in columns if column < len(values)}

    def by_column(
        self, of: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]
    ) -> dict[Hashable, float]:
        """The same, summed over the features of each column."""
        return self.by_name(of)

    def _query_row(self, x: Mapping[Hashable, Any]) -> NDArray[np.float64]:
        return self.columns.row(x)

    def _query_rows(self, X: pd.DataFrame) -> NDArray[np.float64]:
        return self.columns.rows(X)

    @property
    def mixture(self) -> dict[str, float]:
        """The weight of each expert that has one."""
        return mixture_in(Fitted(self._engine, self._settings(), new_labels(self._estimator)))

    @property
    def examples_seen(self) -> int:
        """How many examples were learned."""
        return int(self._engine.seen)

    def stats(self) -> dict[str, Any]:
        """What was learned and what it cost."""
        return forest_stats(Fitted(self._engine, self._settings(), new_labels(self._estimator)))

    @property
    def n_bytes(self) -> int:
        """The engine's memory, in bytes."""
        return int(self._engine.stats()["bytes"]["total"])

    def _widen(self, columns: NamedColumns) -> None:
        if columns.width > self.columns.width:
            if callable(self._estimator.metric):
                self._narrower = (self.columns, self._engine)
            self._engine = self._engine.widened(columns.width)
        self.columns = columns

    def _settings(self) -> ForestSettings:
        return ForestSettings.of(
            vars(self._estimator),
            element_type=ELEMENT_TYPE,
            n_features=self.columns.width,
            label_length=1,
            seed=self._seed,
            ids=self.ids,
        )

    def _make_engine(self) -> Forest:
        return new_engine(self._settings(), new_labels(self._estimator))

    def __getstate__(self) -> dict[str, Any]:
        return {
            "estimator": self._estimator,
            "seed": self._seed,
            "ids": self.ids,
            "names": list(self.columns.of),
            "engine": self._engine.snapshot().state(),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._estimator, self._seed, self.ids = state["estimator"], state["seed"], state["ids"]
        self.columns = NamedColumns(state["names"], spare=_may_have_spare_columns(self._estimator))
        self._narrower = None
        self._engine = self._make_engine()
        self._engine.restore(state["engine"])


def _may_have_spare_columns(estimator: BaseBoundaryForest) -> bool:
    """A column of zeros changes no distance, but a user's function would see it, and Hamming's
    counts it.
    """
    return isinstance(estimator.metric, str) and estimator.metric != "hamming"


def number(what: str, value: Any) -> float:
    """A value as a number that float64 holds, or an error that says which it was."""
    encode, impute = TARGET_WAYS_OUT if what == "y" else FEATURE_WAYS_OUT
    if value is None:
        raise ValueError(f"{what} is None: {impute}")
    try:
        math.hypot(value)  # float() would read text
        number = float(value)
    except TypeError:
        raise TypeError(f"{what} must be a number, got {value!r}: {encode}") from None
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{what} must be finite, got {value!r}: {impute}")
    if isinstance(value, Integral) and abs(int(value)) > LARGEST_INTEGER:
        raise ValueError(
            f"{what} is the integer {value!r}, but float64 is exact only up to 2**53: scale or "
            "encode it first"
        )
    return number


def numbers(what: str, column: pd.Series) -> NDArray[Any] | list[float]:
    """A column's values as numbers that float64 holds, or an error that says which was not."""
    if not (isinstance(column.dtype, np.dtype) and column.dtype.kind in "biuf"):
        return [number(what, value) for value in column]
    values: NDArray[Any] = column.to_numpy()
    if len(values) and not max(values.max(), -float(values.min())) < LARGEST_INTEGER:
        for value in values:
            number(what, value)
    return values
