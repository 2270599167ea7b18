"""Which features rows add, and from which row on."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.cells import TEXT
from boundary_forest.estimators.columns.label_slots import LabelSlots
from boundary_forest.estimators.columns.layout import VALUE, Feature, Layout, slot_of_place
from boundary_forest.estimators.columns.raw_rows import RawRows
from boundary_forest.estimators.columns.text_columns import TextColumns

BEFORE = -1  # the row of what is known before the first one
# Features up to which categories are among them. Without this limit, errors on sick are 1.09 and
# 1.12 times as large (missing at random, and because high), on credit.g 1.02 and 1.00 times.
MOST_WITH_CATEGORIES = 32


def begins_of(layout: Layout, rows: RawRows) -> NDArray[np.int64]:
    """Return the row from which on the kind of each column is known, or BEFORE."""
    begins = np.full(rows.shape[1], BEFORE, dtype=np.int64)
    kinds = layout.kinds
    for column in np.flatnonzero(~rows.typed).tolist():
        if column >= len(kinds) or kinds[column] is None:
            there = np.isfinite(rows.values[:, column])
            begins[column] = there.argmax() if there.any() else len(rows)
    return begins


def kinds_after(layout: Layout, rows: RawRows, begins: NDArray[np.int64]) -> tuple[str | None, ...]:
    """Return the kinds of all columns after rows."""
    kinds = layout.kinds
    if None not in kinds and len(kinds) == rows.shape[1]:
        return kinds
    found = [
        kinds[j] if j < len(kinds) and kinds[j] is not None else kind
        for j, kind in enumerate(rows.kinds)
    ]
    return tuple(
        None if begin == len(rows) else kind
        for kind, begin in zip(found, begins.tolist(), strict=True)
    )


def new_features(
    layout: Layout,
    slots: LabelSlots,
    categories: TextColumns,
    rows: RawRows,
    labels: NDArray[np.float64],
    begins: NDArray[np.int64],
) -> list[tuple[int, Feature]]:
    """Return the features that rows add, in order, each with the row that it comes with.

    Parameters
    ----------
    layout : Layout
        The features that are known.
    slots : LabelSlots
        Those of the labels before.
    categories : TextColumns
        What is known of the columns of text.
    rows, labels
        What is learned.
    begins : ndarray of shape (n_columns,), of int
        As ``begins_of`` returns them.
    """
    known, kinds = set(layout.features), layout.kinds
    found: list[tuple[int, Feature]] = []
    after = slots.joined_by(labels)
    texts = []
    for column, begin in enumerate(begins.tolist()):
        kind = kinds[column] if column < len(kinds) and kinds[column] else rows.kinds[column]
        if kind is None or begin == len(rows):
            continue
        if kind == TEXT:
            texts.append((column, begin))
        elif (column, VALUE) not in known:
            found.append((begin, Feature(column)))
    came = _slots_came(slots, labels, after) if texts else {}
    for column, begin in texts:
        new = (slot for slot in after.shown if (column, slot) not in known)
        found += [(max(begin, came[slot]), Feature(column, slot)) for slot in new]
        shown = categories.shown(rows, column, begin)
        found += [(row, Feature(column, slot_of_place(place))) for row, place in shown]
    return _without_excess(sorted(found), len(layout.features))


def _without_excess(found: list[tuple[int, Feature]], n: int) -> list[tuple[int, Feature]]:
    """Return features but for categories that come after so many others; n are known."""
    kept: list[tuple[int, Feature]] = []
    for row, feature in found:
        if feature.slot >= VALUE or n + len(kept) < MOST_WITH_CATEGORIES:
            kept.append((row, feature))
    return kept


def _slots_came(
    before: LabelSlots, labels: NDArray[np.float64], after: LabelSlots
) -> dict[int, int]:
    """Return the row from which on each slot is a feature, or BEFORE."""
    if after.classes is None:
        return dict.fromkeys(after.shown, BEFORE)
    n = len(before.classes or ())
    # A bit comes with the class after that of the bit before it.
    return {
        slot: BEFORE if slot + 1 < n else int(np.argmax(labels[:, 0] == after.classes[slot + 1]))
        for slot in after.shown
    }
