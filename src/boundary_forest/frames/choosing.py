"""Decide what columns mean from the first rows of a stream.

The decision depends on the values alone, not on the source or on how it was cut into batches: sums
are exact (``math.fsum``), so that the same rows give the same forest everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.columns import (
    CLASSIFY,
    INTEGER,
    REGRESS,
    Columns,
    Feature,
)
from boundary_forest.frames.values import (
    BOOLEAN,
    NUMBER,
    TEXT,
    ColumnError,
    NothingYetError,
    as_booleans,
    as_numbers,
    as_plain,
    as_texts,
    columns_of,
    kind_of,
)

MANY_CLASSES = 100  # a target of integers with more values than this is regressed
MANY_CATEGORIES = 100  # a column with more of them than this is worth a warning


@dataclass(frozen=True)
class Options:
    """What the user has specified about columns.

    Parameters
    ----------
    target : str
        The column to predict.
    features : tuple of str or None
        The columns to predict from; None: all others.
    drop : tuple of str
        Columns to ignore.
    id : str or None
        The column that identifies rows.
    task : str or None
        "classify" or "regress"; None: inferred from the target's values.
    scaling, missing : str
        See :class:`Columns`.
    """

    target: str
    features: tuple[str, ...] | None = None
    drop: tuple[str, ...] = ()
    id: str | None = None
    task: str | None = None
    scaling: str = "standard"
    missing: str = "error"

    def named(self) -> tuple[str, ...]:
        """Return all columns that the options name."""
        names = (self.target, *(self.features or ()), *self.drop)
        return names if self.id is None else (*names, self.id)

    def check(self, names: list[str]) -> None:
        """Raise ColumnError if the options name a column that is not among ``names``."""
        for name in self.named():
            if name not in names:
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise ColumnError(f"there is no column {name!r}; the columns are {shown}")

    def feature_names(self, names: list[str]) -> list[str]:
        """Return those of the columns ``names`` that the target is predicted from."""
        apart = {self.target, self.id, *self.drop}
        selected = names if self.features is None else self.features
        return [name for name in selected if name not in apart]

    def select(self, table: Any) -> Any:
        """Return the table's features and its target, which is all null if the table has none."""
        columns = columns_of(table, [*self.feature_names(table.column_names), self.target])
        return pa.table({self.target: pa.nulls(len(table)), **columns})


def choose(table: Any, options: Options) -> Columns:
    """Return what the columns of these rows mean; the table is of plain columns."""
    features = []
    columns = columns_of(table, options.feature_names(table.column_names))
    for name, values in columns.items():
        feature = _feature(name, as_plain(values, name), options.scaling)
        if feature.width:  # else the column is empty, and carries no information
            features.append(feature)
    if not features:
        raise NothingYetError(
            f"there is no column to predict {options.target!r} from: every other one is empty or "
            "dropped"
        )
    task, target_kind = _task(table, options)
    return Columns(
        task=task,
        target=options.target,
        target_kind=target_kind,
        features=tuple(features),
        scaling=options.scaling,
        missing=options.missing,
        warmup=len(table),
        id=options.id,
    )


def _feature(name: str, values: Any, scaling: str) -> Feature:
    kind, numbers = kind_of(values)
    if kind == NUMBER:
        return _number_feature(name, numbers[np.isfinite(numbers)], scaling)
    texts = as_booleans(values)[0] if kind == BOOLEAN else as_texts(values)
    present = texts.drop_null()
    counts = {item["values"]: item["counts"] for item in pc.value_counts(present).to_pylist()}
    categories = tuple(sorted(counts))
    shares = tuple(counts[category] / len(present) for category in categories)
    return Feature(name, kind or TEXT, shares, categories=categories)


def _number_feature(name: str, numbers: NDArray[np.float64], scaling: str) -> Feature:
    if len(numbers) == 0:
        return Feature(name, NUMBER, (0.0,))
    least, largest = float(numbers.min()), float(numbers.max())
    # Halves, and a power of two, so that sums and squares of huge numbers do not overflow.
    unit = math.ldexp(1.0, min(1023, math.frexp(max(abs(least), abs(largest)) or 1.0)[1]))
    values = numbers / unit
    mean = math.fsum(values.tolist()) / len(values)
    if scaling == "minmax":
        shift, scale = least, largest - least
    elif scaling == "standard":
        variance = math.fsum(np.square(values - mean).tolist()) / len(values)
        shift, scale = mean * unit, math.sqrt(variance) * unit
    else:
        shift, scale = 0.0, 1.0
    if least == largest and scaling != "none":  # constant: nothing to scale by
        shift, scale = least, 1.0
    usable = math.isfinite(scale) and scale > 0
    return Feature(name, NUMBER, (mean * unit,), shift, scale if usable else 1.0)


def _task(table: Any, options: Options) -> tuple[str, str]:
    """Return the task and the kind of the target."""
    name = options.target
    values = as_plain(table[name], name) if name in table.column_names else None
    kind, numbers = (None, np.zeros(0)) if values is None else kind_of(values)
    if kind is None:
        if options.task is None:
            raise NothingYetError(
                f"none of the first {len(table)} rows has a value in column {name!r}, so the task "
                "cannot be inferred: set task to classify or regress"
            )
        return options.task, TEXT if options.task == CLASSIFY else NUMBER
    if kind != NUMBER:
        if options.task == REGRESS:
            raise ColumnError(f"column {name!r} holds {kind} values, and regression needs numbers")
        return CLASSIFY, kind
    numbers = numbers[np.isfinite(numbers)]
    whole = bool((numbers == np.floor(numbers)).all()) and bool((np.abs(numbers) <= 2**53).all())
    few = len(np.unique(numbers)) <= MANY_CLASSES
    task = options.task or (CLASSIFY if whole and few else REGRESS)
    return task, INTEGER if task == CLASSIFY and whole else NUMBER


def describe(columns: Columns) -> tuple[str, ...]:
    """Return what was decided, in a few lines."""
    numbers = [f.name for f in columns.features if f.kind == NUMBER]
    others = [f for f in columns.features if f.kind != NUMBER]
    what = {TEXT: "text", BOOLEAN: "booleans", INTEGER: "integers", NUMBER: "numbers"}
    lines = [f"{columns.task} {columns.target!r}: {what[columns.target_kind]}"]
    if numbers:
        scaled = {"none": "not scaled", "standard": "standardised", "minmax": "scaled to [0, 1]"}
        lines.append(f"{_count(numbers, 'number')}, {scaled[columns.scaling]}: {_listed(numbers)}")
    if others:
        named = [f"{f.name} ({len(f.categories)})" for f in others]
        lines.append(f"{_count(others, 'column')} one-hot encoded: {_listed(named)}")
    n = columns.warmup
    lines.append(f"decided from the first {n:,} rows" if n > 1 else "decided from the first row")
    if columns.missing != "error":
        effect = {
            "mean": "missing values are replaced by the mean",
            "drop": "rows with missing values are dropped",
        }
        lines.append(effect[columns.missing])
    return tuple(lines)


def warnings_about(columns: Columns, table: Any) -> list[str]:
    """Return what looks wrong about the columns of these rows, one line each."""
    found = []
    labels = columns.labels(table)
    different = len(np.unique(labels.y[labels.known]))
    n = int(labels.known.sum())
    if n > 1 and different == 1:
        found.append(f"column {columns.target!r} has one value in the first {n:,} rows")
    elif columns.task == CLASSIFY and different > MANY_CLASSES:
        found.append(
            f"column {columns.target!r} has {different:,} classes in the first {n:,} rows: is it "
            "the right target?"
        )
    for feature in columns.features:
        if len(feature.categories) > MANY_CATEGORIES:
            found.append(
                f"column {feature.name!r} has {len(feature.categories):,} categories, each encoded "
                f"as a feature{_numbers_among(feature)}: drop it if it identifies rows"
            )
    return found


def _numbers_among(feature: Feature) -> str:
    """Return the reason if only a few values keep the column from being numeric, else ''."""
    _, misfit = as_numbers(pa.array(feature.categories, pa.string()))
    if misfit is None or misfit.sum() > len(misfit) / 2:
        return ""
    which = feature.categories[int(np.flatnonzero(misfit)[0])]
    return f", because {which!r} is not a number"


def _count(items: list[Any], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f", ... {names[-1]}" if len(names) > 8 else "")
