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

from boundary_forest.frames.arrow_columns import as_booleans, as_plain, as_texts, columns_of
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
from boundary_forest.frames.columns import CLASSIFY, INTEGER, REGRESS, Columns
from boundary_forest.frames.features import Feature

MANY_CLASSES = 100  # a target of integers with more values than this is regressed
MOST_CATEGORIES = 256  # of a column; the values that are rarer than these are one more


def choose(table: Any, options: ColumnOptions) -> Columns:
    """Return what the columns of these rows mean; the table is of plain columns."""
    features = []
    columns = columns_of(table, options.feature_names(table.column_names))
    for name, values in columns.items():
        feature = _feature(name, as_plain(values, name), options)
        if feature.width:  # else the column is empty, and carries no information
            features.append(feature)
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


def _feature(name: str, values: Any, options: ColumnOptions) -> Feature:
    kind, numbers = options.kind_of(name, values)
    if kind in (NUMBER, TIME):
        return _number_feature(name, kind, numbers[np.isfinite(numbers)], options.scaling)
    if kind == LIST:
        return _list_feature(name, values, options.scaling)
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
    if len(numbers) == 0:
        return Feature(name, kind, (0.0,))
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
    return Feature(name, kind, (mean * unit,), shift, scale if usable else 1.0)


def _task(table: Any, options: ColumnOptions) -> tuple[str, str]:
    """Return the task and the kind of the target."""
    name = options.target
    values = as_plain(table[name], name) if name in table.column_names else None
    kind, numbers = (None, np.zeros(0)) if values is None else options.kind_of(name, values)
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
