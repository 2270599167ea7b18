"""What the features of a forest are that was given columns of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.columns.cells import BOOLEAN, NUMBER, TEXT

VALUE = -1  # the slot of a feature that is the value of its column


class Feature(NamedTuple):
    """What a feature is: the value of a column; of text the mean of a slot of labels, or, by
    ``slot_of_place``, whether the value is a certain category.
    """

    column: int
    slot: int = VALUE


@dataclass(frozen=True, eq=False)
class Layout:
    """The kinds of the columns, and what each feature is; never changed.

    Parameters
    ----------
    kinds : tuple of str or None
        The kind of each column; None as long as all its values were missing.
    features : tuple of Feature
        In order of appearance.
    """

    kinds: tuple[str | None, ...] = ()
    features: tuple[Feature, ...] = ()

    @cached_property
    def width(self) -> int:
        """Number of features, and of columns to spare for more of them."""
        return width_for(len(self.features), spare=not self.is_plain)

    @cached_property
    def is_plain(self) -> bool:
        """Whether features are the columns themselves: all are numbers or booleans."""
        return self.is_numeric and self.features == tuple(map(Feature, range(len(self.kinds))))

    @cached_property
    def is_numeric(self) -> bool:
        """Whether no column has text or dates."""
        return all(kind in (NUMBER, BOOLEAN) for kind in self.kinds)

    @cached_property
    def texts(self) -> tuple[int, ...]:
        """The columns of text."""
        return tuple(column for column, kind in enumerate(self.kinds) if kind == TEXT)

    @cached_property
    def values(self) -> NDArray[np.int64]:
        """Features and columns of those that are the value of their column, of shape (2, n)."""
        found = [(i, f.column) for i, f in enumerate(self.features) if f.slot == VALUE]
        return np.array(found, dtype=np.int64).reshape(-1, 2).T

    @cached_property
    def means(self) -> dict[int, NDArray[np.int64]]:
        """Features and slots of those that are means of labels, of shape (2, n), by column."""
        pairs = self.mean_pairs.items()
        return {column: np.array(found, dtype=np.int64).T for column, found in pairs}

    @cached_property
    def mean_pairs(self) -> dict[int, list[tuple[int, int]]]:
        """The same as plain numbers."""
        found: dict[int, list[tuple[int, int]]] = {}
        for i, (column, slot) in enumerate(self.features):
            if slot > VALUE:
                found.setdefault(column, []).append((i, slot))
        return found

    @cached_property
    def categories(self) -> dict[int, dict[int, int]]:
        """The features of categories by their places, by column."""
        found: dict[int, dict[int, int]] = {}
        for i, (column, slot) in enumerate(self.features):
            if slot < VALUE:
                found.setdefault(column, {})[place_of_slot(slot)] = i
        return found

    @cached_property
    def features_at(self) -> dict[int, NDArray[np.int64]]:
        """The feature of each place, or -1; the last one is of places that have none."""
        found = {}
        for column, features in self.categories.items():
            at = np.full(max(features) + 2, -1, dtype=np.int64)
            at[list(features)] = list(features.values())
            found[column] = at
        return found


def slot_of_place(place: int) -> int:
    """Return the slot of the feature that shows the category at a place of its column."""
    return VALUE - 1 - place


def place_of_slot(slot: int) -> int:
    """Return the place of the category that a feature shows."""
    return VALUE - 1 - slot


def width_for(n_features: int, *, spare: bool = True) -> int:
    """At least one column, and room for more: each widening copies every stored row, so beyond 16
    there is a quarter to spare, and n features in all cost a few copies instead of n.
    """
    width = max(1, n_features)
    if spare and width > 16:
        width = 16
        while width < n_features:
            width += 16 * -(-width // 64)
    return width
