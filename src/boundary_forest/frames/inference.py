"""Decide what columns mean from the first rows of a stream.

The decision depends on the values alone, not on the source or on how it was cut into batches: sums
are exact (``math.fsum``), so that the same rows give the same forest everywhere.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import (
    as_booleans,
    as_plain,
    as_texts,
    columns_of,
    plain_columns,
)
from boundary_forest.frames.column_errors import ColumnError, NothingYetError
from boundary_forest.frames.column_kinds import (
    BOOLEAN,
    LIST,
    NUMBER,
    TEXT,
    TIME,
    as_lists,
    usual_length,
)
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import (
    CLASSIFY,
    INTEGER,
    REGRESS,
    VALUES_AT_ONCE,
    Columns,
)
from boundary_forest.frames.features import Feature

MANY_CLASSES = 100  # a target of integers with more values than this is regressed
MOST_CATEGORIES = 256  # of a column; the values that are rarer than these are one more


def choose(table: Any, options: ColumnOptions) -> Columns:
    """Return what the columns of these rows mean; the table is of plain columns."""
    features = []
    columns = plain_columns(columns_of(table, options.feature_names(table.column_names)))
    names, several = [*columns], max(1, VALUES_AT_ONCE // max(1, len(table)))
    for begin in range(0, len(names), several):
        some = {name: columns[name] for name in names[begin : begin + several]}
        # A feature of no numbers is an empty column, and carries no information.
        features += [feature for feature in _features(some, options) if feature.width]
    if not features:
        raise NothingYetError(
            f"no column is left to predict {options.target!r} from: all others are empty or dropped"
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
        dialect=options.dialect,
    )


def _features(columns: dict[str, Any], options: ColumnOptions) -> list[Feature]:
    """Return what columns mean, with columns of numbers alone done all at once."""
    kinds = options.kinds_of(columns)
    numeric = {name: kind for name, (kind, _) in kinds.items() if kind in (NUMBER, TIME)}
    found: dict[str, Feature] = {}
    if numeric:
        numbers = np.array([kinds[name][1] for name in numeric])
        finite = np.isfinite(numbers)
        full = finite.all(axis=1)
        whole = [name for name, is_full in zip(numeric, full.tolist(), strict=True) if is_full]
        named = {name: numeric[name] for name in whole}
        scaled = _number_features(named, numbers[full], options.scaling)
        found = dict(zip(whole, scaled, strict=True))
        for name, row, there in zip(numeric, numbers, finite, strict=True):
            if name not in found:
                found[name] = _number_feature(name, numeric[name], row[there], options.scaling)
    for name, values in columns.items():
        if name not in found:
            found[name] = _other_feature(name, kinds[name][0], values, options.scaling)
    return [found[name] for name in columns]


def _other_feature(name: str, kind: str | None, values: Any, scaling: str) -> Feature:
    if kind == LIST:
        return _list_feature(name, values, scaling)
    texts = as_booleans(values)[0] if kind == BOOLEAN else as_texts(values)
    present = texts.drop_null()
    counts = {item["values"]: item["counts"] for item in pc.value_counts(present).to_pylist()}
    usual = sorted(counts, key=lambda value: (-counts[value], value))[:MOST_CATEGORIES]
    categories, rare = tuple(sorted(usual)), len(counts) > len(usual)
    shares = [counts[category] / len(present) for category in categories]
    if rare:
        n_rare = len(present) - sum(counts[category] for category in categories)
        shares.append(n_rare / len(present))
    return Feature(name, kind or TEXT, tuple(shares), categories=categories, other=rare)


def _list_feature(name: str, values: Any, scaling: str) -> Feature:
    """One scale serves all positions, which keeps the geometry of an embedding."""
    width = usual_length(values)
    numbers = as_lists(values, width)[0] if width else np.zeros((0, 0))
    finite = np.isfinite(numbers).all(axis=1)
    whole = _number_feature(name, LIST, numbers[finite].ravel(), scaling)
    columns = numbers[finite].T.tolist()
    mean = tuple(math.fsum(column) / max(1, len(column)) for column in columns)
    return replace(whole, mean=mean)


def _number_feature(name: str, kind: str, numbers: NDArray[np.float64], scaling: str) -> Feature:
    return _number_features({name: kind}, numbers[np.newaxis], scaling)[0]


def _number_features(
    kinds: dict[str, str], numbers: NDArray[np.float64], scaling: str
) -> list[Feature]:
    """Return the scales of columns by their names, of which each has a row of finite numbers."""
    n = numbers.shape[1]
    if n == 0:
        return [Feature(name, kind, (0.0,)) for name, kind in kinds.items()]
    least, largest = numbers.min(axis=1), numbers.max(axis=1)
    # Halves, and a power of two, so that sums and squares of huge numbers do not overflow.
    extreme = np.maximum(np.abs(least), np.abs(largest))
    unit = np.ldexp(1.0, np.minimum(1023, np.frexp(np.where(extreme, extreme, 1.0))[1]))
    values = numbers / unit[:, np.newaxis]
    mean = np.array([math.fsum(row) for row in values.tolist()]) / n
    shift, scale = np.zeros_like(least), np.ones_like(least)
    if scaling == "minmax":
        with np.errstate(over="ignore"):
            shift, scale = least, largest - least
    elif scaling == "standard":
        squares = np.square(values - mean[:, np.newaxis])
        variance = np.array([math.fsum(row) for row in squares.tolist()]) / n
        shift, scale = mean * unit, np.sqrt(variance) * unit
    if scaling != "none":  # of a constant, there is nothing to scale by
        shift, scale = np.where(least == largest, [least, np.ones_like(least)], [shift, scale])
    scale = np.where(np.isfinite(scale) & (scale > 0), scale, 1.0)
    figures = ((mean * unit).tolist(), shift.tolist(), scale.tolist())
    return [
        Feature(name, kind, (mean,), shift, scale)
        for (name, kind), mean, shift, scale in zip(kinds.items(), *figures, strict=True)
    ]


def _task(table: Any, options: ColumnOptions) -> tuple[str, str]:
    """Return the task and the kind of the target."""
    name = options.target
    values = as_plain(table[name], name) if name in table.column_names else None
    kind, numbers = None, np.zeros(0)
    if values is not None:
        kind, numbers = options.kinds_of({name: values})[name]
    if kind is None:
        if options.task is None:
            raise NothingYetError(
                f"column {name!r} has no value in the first {len(table)} rows, so the task cannot "
                "be inferred: set task to classify or regress"
            )
        return options.task, TEXT if options.task == CLASSIFY else NUMBER
    if kind == LIST:
        raise ColumnError(f"column {name!r} contains lists, which cannot be predicted")
    if kind != NUMBER:
        if options.task == REGRESS:
            raise ColumnError(
                f"column {name!r} contains {kind} values, but regression requires numbers"
            )
        return CLASSIFY, BOOLEAN if kind == BOOLEAN else TEXT
    numbers = numbers[np.isfinite(numbers)]
    whole = bool((numbers == np.floor(numbers)).all()) and bool((np.abs(numbers) <= 2**53).all())
    few = len(np.unique(numbers)) <= MANY_CLASSES
    task = options.task or (CLASSIFY if whole and few else REGRESS)
    return task, INTEGER if task == CLASSIFY and whole else NUMBER
