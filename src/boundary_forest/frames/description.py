"""What was decided about columns, and what looks doubtful about it, in plain lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.arrow_columns import as_texts, columns_of
from boundary_forest.frames.column_errors import listed
from boundary_forest.frames.column_kinds import (
    BOOLEAN,
    LIST,
    NUMBER,
    TEXT,
    TIME,
    as_numbers,
    dialect_hint,
    looks_like_dates,
)
from boundary_forest.frames.columns import CLASSIFY, INTEGER, Columns
from boundary_forest.frames.features import Feature
from boundary_forest.frames.inference import MANY_CLASSES
from boundary_forest.frames.positions import column_in

MANY_CATEGORIES = 100  # a column with more of them than this is worth a warning
FEWEST_NUMBERED = 20  # fewer integers may be different by chance


def describe(columns: Columns) -> tuple[str, ...]:
    """Return what was decided, in a few lines."""
    numbers = [_with_kind(f) for f in columns.features if f.is_numeric]
    others = [f for f in columns.features if not f.is_numeric]
    what = {TEXT: "text", BOOLEAN: "booleans", INTEGER: "integers", NUMBER: "numbers"}
    lines = [f"{columns.task} {columns.target!r}: {what[columns.target_kind]}"]
    if numbers:
        scaled = {"none": "not scaled", "standard": "standardised", "minmax": "scaled to [0, 1]"}
        lines.append(
            f"{_count(numbers, 'number')}, {scaled[columns.scaling]}: {listed(numbers, 12)}"
        )
    if others:
        named = [f"{f.name} ({len(f.categories)}{' and other' * f.other})" for f in others]
        lines.append(f"{_count(others, 'column')} one-hot encoded: {listed(named, 12)}")
    n = columns.warmup
    lines.append(f"inferred from the first {n:,} rows" if n > 1 else "inferred from the first row")
    if columns.missing != "error":
        effect = {
            "mean": "missing values are replaced by the mean",
            "drop": "rows with missing values are dropped",
        }
        lines.append(effect[columns.missing])
    return tuple(lines)


def warnings_about(columns: Columns, table: Any, categories: Collection[str] = ()) -> list[str]:
    """Return what looks wrong about the columns of these rows, one line each.

    Those that the user has called ``categories`` are not taken for numbers.
    """
    found = []
    labels = columns.labels(table)
    different = len(np.unique(labels.y[labels.known]))
    n = int(labels.known.sum())
    if n > 1 and different == 1:
        found.append(f"column {columns.target!r} has only one value in the first {n:,} rows")
    elif columns.task == CLASSIFY and different > MANY_CLASSES:
        found.append(
            f"column {columns.target!r} has {different:,} classes in the first {n:,} rows: is it "
            "the right target?"
        )
    # With fewer rows, numbers are not described: there may be 100,000 columns of them.
    few = len(table) < FEWEST_NUMBERED
    features = [f for f in columns.features if f.kind == TEXT or (f.kind == NUMBER and not few)]
    present = columns_of(table, [feature.name for feature in features])
    for feature in features:
        values = column_in(present, feature.name, len(table))
        found += _about(feature, columns, values, specified=feature.name in categories)
    return found


def _about(feature: Feature, columns: Columns, values: Any, *, specified: bool) -> Iterator[str]:
    """Yield what looks wrong about a column, whose kind the user may have ``specified``."""
    name = feature.name
    if feature.kind == NUMBER:
        if _counts_rows(as_numbers(values, columns.dialect)[0]):
            yield f"column {name!r} looks like a row number: drop it, or use it as the id"
        return
    texts = as_texts(values).drop_null()
    if not specified and looks_like_dates(texts):
        yield (
            f"column {name!r} has dates such as {texts[0].as_py()!r}, which are read as "
            "categories: write them as 2024-06-29, so that they are read as times"
        )
        return
    hint = dialect_hint(texts) if columns.dialect.is_plain and not specified else None
    if hint is not None:
        misfit = as_numbers(texts)[1]
        odd = texts[0 if misfit is None else int(misfit.argmax())].as_py()
        yield f"column {name!r} has categories such as {odd!r}; {hint} to read them as numbers"
    elif len(feature.categories) > MANY_CATEGORIES:
        different = len(texts.unique())
        each = "and each is encoded as a feature"
        if feature.other:
            each = f"and only the {len(feature.categories):,} most frequent are encoded separately"
        yield f"column {name!r} has {different:,} categories, {each}: drop it if it identifies rows"


def _counts_rows(numbers: NDArray[np.float64]) -> bool:
    """Return whether integers without repetition fill most of their range, in whatever order."""
    present = np.unique(numbers[~np.isnan(numbers)])
    n = len(present)
    if n < FEWEST_NUMBERED or n < np.count_nonzero(~np.isnan(numbers)):
        return False
    whole = np.isfinite(present).all() and (present == np.floor(present)).all()
    return bool(whole and present[-1] - present[0] < 2 * n)


def _with_kind(feature: Feature) -> str:
    """Return the name of numbers, and what they are besides."""
    if feature.kind == LIST:
        return f"{feature.name} (a list of {feature.width})"
    return f"{feature.name} (a time)" if feature.kind == TIME else feature.name


def _count(items: list[Any], what: str) -> str:
    return f"{len(items)} {what}{'' if len(items) == 1 else 's'}"
