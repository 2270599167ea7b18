"""What columns mean, decided by the first rows of a stream.

The decision depends on the values alone, not on the source or on how it was cut: sums are exact
(``math.fsum``), so that the same rows give the same forest everywhere.
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

MANY_CLASSES = 100  # integers with more values than this are numbers to regress
MANY_CATEGORIES = 100  # more of them in one column are worth a word


@dataclass(frozen=True)
class Wishes:
    """What the user has said about columns.

    Parameters
    ----------
    target : str
        The column to be answered.
    features : tuple of str or None
        The columns to answer from; None: all others.
    drop : tuple of str
        Columns to leave out.
    id : str or None
        The column that names rows.
    task : str or None
        "classify" or "regress"; None: by the target's values.
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
        """All columns that were named."""
        names = (self.target, *(self.features or ()), *self.drop)
        return names if self.id is None else (*names, self.id)

    def check(self, names: list[str]) -> None:
        """Refuse what names columns that there are not."""
        for name in self.named():
            if name not in names:
                shown = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
                raise ColumnError(f"there is no column {name!r}; there are {shown}")

    def feature_names(self, names: list[str]) -> list[str]:
        """The columns to answer from, of those that there are."""
        apart = {self.target, self.id, *self.drop}
        wanted = names if self.features is None else self.features
        return [name for name in wanted if name not in apart]

    def wanted(self, table: Any) -> Any:
        """The table without the columns that nobody asks for; the target is there in any case."""
        columns = columns_of(table, [*self.feature_names(table.column_names), self.target])
        return pa.table({self.target: pa.nulls(len(table)), **columns})


def choose(table: Any, wishes: Wishes) -> Columns:
    """What the columns of these rows mean; the table is of plain columns."""
    features = []
    columns = columns_of(table, wishes.feature_names(table.column_names))
    for name, values in columns.items():
        feature = _feature(name, as_plain(values, name), wishes.scaling)
        if feature.width:  # else it is empty, and says nothing
            features.append(feature)
    if not features:
        raise NothingYetError(
            f"there is no column to answer {wishes.target!r} from: every other one is empty or "
            "left out"
        )
    task, target_kind = _task(table, wishes)
    return Columns(
        task=task,
        target=wishes.target,
        target_kind=target_kind,
        features=tuple(features),
        scaling=wishes.scaling,
        missing=wishes.missing,
        warmup=len(table),
        id=wishes.id,
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


def _task(table: Any, wishes: Wishes) -> tuple[str, str]:
    """The task, and the kind of the target."""
    name = wishes.target
    values = as_plain(table[name], name) if name in table.column_names else None
    kind, numbers = (None, np.zeros(0)) if values is None else kind_of(values)
    if kind is None:
        if wishes.task is None:
            raise NothingYetError(
                f"none of the first {len(table)} rows has a value in column {name!r}, so the task "
                "cannot be told: give --task classify or --task regress"
            )
        return wishes.task, TEXT if wishes.task == CLASSIFY else NUMBER
    if kind != NUMBER:
        if wishes.task == REGRESS:
            raise ColumnError(f"column {name!r} holds {kind}, and regression needs numbers")
        return CLASSIFY, kind
    numbers = numbers[np.isfinite(numbers)]
    whole = bool((numbers == np.floor(numbers)).all()) and bool((np.abs(numbers) <= 2**53).all())
    few = len(np.unique(numbers)) <= MANY_CLASSES
    task = wishes.task or (CLASSIFY if whole and few else REGRESS)
    return task, INTEGER if task == CLASSIFY and whole else NUMBER


def told(columns: Columns) -> tuple[str, ...]:
    """What was decided, one line each."""
    numbers = [f.name for f in columns.features if f.kind == NUMBER]
    others = [f for f in columns.features if f.kind != NUMBER]
    what = {TEXT: "text", BOOLEAN: "booleans", INTEGER: "integers", NUMBER: "numbers"}
    lines = [f"{columns.task} {columns.target!r}: {what[columns.target_kind]}"]
    if numbers:
        scaled = {"none": "as they are", "standard": "standardised", "minmax": "scaled to [0, 1]"}
        lines.append(f"{_count(numbers, 'number')}, {scaled[columns.scaling]}: {_listed(numbers)}")
    if others:
        named = [f"{f.name} ({len(f.categories)})" for f in others]
        lines.append(f"{_count(others, 'column')} one-hot encoded: {_listed(named)}")
    n = columns.warmup
    lines.append(f"decided by the first {n:,} rows" if n > 1 else "decided by the first row")
    if columns.missing != "error":
        does = {"mean": "take the mean", "drop": "leave the row out"}[columns.missing]
        lines.append(f"missing values {does}")
    return tuple(lines)


def doubts(columns: Columns, table: Any) -> list[str]:
    """What the user should know of before going on."""
    words = []
    labels = columns.labels(table)
    different = len(np.unique(labels.y[labels.known]))
    n = int(labels.known.sum())
    if n > 1 and different == 1:
        words.append(f"column {columns.target!r} has one value in the first {n:,} rows")
    elif columns.task == CLASSIFY and different > MANY_CLASSES:
        words.append(
            f"column {columns.target!r} has {different:,} classes in the first {n:,} rows: is it "
            "the right one?"
        )
    for feature in columns.features:
        if len(feature.categories) > MANY_CATEGORIES:
            words.append(
                f"column {feature.name!r} has {len(feature.categories):,} categories, each a "
                f"number of its own{_numbers_among(feature)}: --drop it if it names rows"
            )
    return words


def _numbers_among(feature: Feature) -> str:
    """Whether a few values keep the column from being numbers."""
    _, misfit = as_numbers(pa.array(feature.categories, pa.string()))
    if misfit is None or misfit.sum() > len(misfit) / 2:
        return ""
    which = feature.categories[int(np.flatnonzero(misfit)[0])]
    return f", because {which!r} is not a number"


def _count(items: list[Any], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"


def _listed(names: list[str]) -> str:
    return ", ".join(names[:8]) + (f", ... {names[-1]}" if len(names) > 8 else "")
