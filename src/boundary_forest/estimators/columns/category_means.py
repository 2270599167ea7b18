"""A column of text: the mean label of the earlier examples of each category.

A category counts as (sum of its labels + mean of all labels) / (its number + 1), of the examples
before. So a column takes few features, however many categories it has.

As long as a column has few categories, each that comes for the second time, and the missing value,
is also a feature, 1 where the column has it: means are noisy at first, and where labels depend on
two columns together, means say nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CATEGORIES = 2**14  # of a column; further ones count as one
MISSING, OTHERS = 0, 1  # places of what is no category of its own
N_SPECIAL = 2
UNKNOWN = -1  # the place of a category that has not come yet
MOST_SHOWN = 16  # categories of a column of which each is a feature of its own
SHOWN_FROM = 2  # examples with which a category becomes a feature


@dataclass(frozen=True, eq=False)
class CategoryMeans:
    """How often each category of a column has come, and the sums of its labels.

    Parameters
    ----------
    places : dict of str to int
        The row of each category in ``sums``.
    sums : ndarray of shape (n_categories + 2, 1 + n_slots)
        Number of examples, and sums of their labels: where the value is missing, of all categories
        without a row of their own, and of the others in order of appearance.
    """

    places: Mapping[str, int]
    sums: NDArray[np.float64]

    @classmethod
    def empty(cls, n_slots: int) -> CategoryMeans:
        """Return what is known before the first example."""
        return cls({}, np.zeros((N_SPECIAL, 1 + n_slots)))

    @property
    def _place_of_new(self) -> int:
        """The place of a category that is not among them."""
        return OTHERS if len(self.places) >= MOST_CATEGORIES else UNKNOWN

    def category_at(self, place: int) -> str | None:
        """Return the category at a place; None is the missing value."""
        return None if place == MISSING else self._texts[place - N_SPECIAL]

    @cached_property
    def _texts(self) -> list[str]:
        return list(self.places)

    def place_of(self, code: float, texts: Sequence[str]) -> int:
        """Return the place of one value's category."""
        if code != code:
            return MISSING
        return self.places.get(texts[int(code)], self._place_of_new)

    def sums_at(self, place: int) -> NDArray[np.float64]:
        """Return the number and the label sums of a category, zeros if it is unknown."""
        if place == UNKNOWN:
            return np.zeros(self.sums.shape[1])
        row: NDArray[np.float64] = self.sums[place]
        return row

    def encoded(
        self, codes: NDArray[np.float64], texts: Sequence[str], priors: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return the means of the categories as they are now, of shape (n_rows, n_slots), and the
        places of the categories.

        Parameters
        ----------
        codes : ndarray of shape (n_rows,)
            Places in ``texts``, or NaN.
        texts : sequence of str
            The categories.
        priors : ndarray of shape (n_slots,)
            The mean of all labels.
        """
        unknown = self._place_of_new
        places = _placed(codes, [self.places.get(text, unknown) for text in texts])
        sums = self.sums[places]
        sums[places == UNKNOWN] = 0.0
        return label_means(sums, priors), places

    def shown(self, codes: NDArray[np.float64], texts: Sequence[str]) -> list[tuple[int, int]]:
        """Return the categories that become features with these rows: row and place, in order.

        Parameters
        ----------
        codes, texts
            As for ``encoded``.
        """
        if len(self.places) > MOST_SHOWN:
            return []
        if len(codes) == 1:  # the same of one row, in a tenth of the time
            place = self.place_of(float(codes[0]), texts)
            comes_again = place != UNKNOWN and self.sums[place, 0] == SHOWN_FROM - 1
            return [(0, place)] if comes_again else []
        known = self._joined_by(codes, texts)
        places = _placed(codes, [known.places.get(text, OTHERS) for text in texts])
        came, first = np.unique(places, return_index=True)
        first = first[came >= N_SPECIAL + len(self.places)]
        end = first[MOST_SHOWN - len(self.places) :][:1]  # the row of one category too many
        places = places[: end[0]] if len(end) else places
        found = []
        for place in came[came != OTHERS].tolist():
            nth = SHOWN_FROM - 1 - (int(self.sums[place, 0]) if place < len(self.sums) else 0)
            rows = np.flatnonzero(places == place)
            if 0 <= nth < len(rows):
                found.append((int(rows[nth]), place))
        return sorted(found)

    def learned(
        self,
        codes: NDArray[np.float64],
        texts: Sequence[str],
        labels: NDArray[np.float64],
        priors: NDArray[np.float64],
    ) -> tuple[NDArray[np.float64], NDArray[np.int64], CategoryMeans]:
        """Return the means just before each row, places, and what is known after the rows.

        The place of a category that cannot be a feature yet is UNKNOWN.

        Parameters
        ----------
        codes, texts
            As for ``encoded``.
        labels, priors : ndarray of shape (n_rows, n_slots)
            The labels of the rows, and the means of all labels before each.
        """
        known = self._joined_by(codes, texts)
        places = _placed(codes, [known.places.get(text, OTHERS) for text in texts])
        more = np.zeros((N_SPECIAL + len(known.places) - len(self.sums), self.sums.shape[1]))
        sums = np.concatenate([self.sums, more])
        before = np.empty((len(codes), sums.shape[1]))
        order = np.argsort(places, kind="stable")
        added = np.concatenate([np.ones((len(codes), 1)), labels], axis=1)[order]
        starts = np.flatnonzero(np.diff(places[order], prepend=-1)).tolist()
        for start, end in zip(starts, [*starts[1:], len(codes)], strict=True):
            place = places[order[start]]
            running = np.add.accumulate(np.concatenate([sums[place][None], added[start:end]]))
            before[order[start:end]], sums[place] = running[:-1], running[-1]
        places[before[:, 0] < SHOWN_FROM - 1] = UNKNOWN
        return label_means(before, priors), places, replace(known, sums=sums)

    def _joined_by(self, codes: NDArray[np.float64], texts: Sequence[str]) -> CategoryMeans:
        """Return the same with rows for new categories, in order of appearance."""
        new = [code for code, text in enumerate(texts) if text not in self.places]
        room = MOST_CATEGORIES - len(self.places)
        if not new or room == 0:
            return self
        met, first = np.unique(codes[~np.isnan(codes)].astype(np.int64), return_index=True)
        appearance = dict(zip(met.tolist(), first.tolist(), strict=True))
        new = sorted((code for code in new if code in appearance), key=appearance.__getitem__)
        joined = dict(self.places)
        for code in new:
            if texts[code] not in joined and len(joined) < MOST_CATEGORIES:
                joined[texts[code]] = N_SPECIAL + len(joined)
        return replace(self, places=joined)


def _placed(codes: NDArray[np.float64], places: Sequence[int]) -> NDArray[np.int64]:
    """Return the row of each value in the sums."""
    found = np.full(len(codes), MISSING, dtype=np.int64)
    there = ~np.isnan(codes)
    if len(places):
        found[there] = np.array(places, dtype=np.int64)[codes[there].astype(np.int64)]
    return found


def label_means(sums: NDArray[np.float64], priors: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return means of labels, each as if one more example had the mean of all labels."""
    means: NDArray[np.float64] = (sums[:, 1:] + priors) / (sums[:, :1] + 1.0)
    return np.where(np.isfinite(means), means, 0.0)  # sums of huge targets may not be


def saved_means(columns: Mapping[int, CategoryMeans], n_slots: int) -> dict[str, NDArray[Any]]:
    """Return the categories of all columns as arrays, which ``loaded_means`` takes."""
    columns = dict(sorted(columns.items()))
    sums = [means.sums for means in columns.values()]
    texts = np.array([text for means in columns.values() for text in means.places], dtype=object)
    return {
        "category_columns": np.array(list(columns), dtype=np.uint32),
        "category_counts": np.array([len(means.places) for means in columns.values()], np.uint32),
        "category_texts": texts,
        "category_sums": np.concatenate([np.zeros((0, 1 + n_slots)), *sums]).ravel(),
    }


def loaded_means(arrays: Mapping[str, NDArray[Any]], n_slots: int) -> dict[int, CategoryMeans]:
    """Return the categories of all columns; ValueError if arrays do not belong together."""
    texts, sums = arrays["category_texts"].tolist(), arrays["category_sums"]
    sums = sums.reshape(-1, 1 + n_slots)
    counts = arrays["category_counts"].tolist()
    if sum(counts) != len(texts) or len(texts) + N_SPECIAL * len(counts) != len(sums):
        raise ValueError("its categories and their sums do not belong together")
    if not all(type(text) is str for text in texts) or not np.isfinite(sums).all():
        raise ValueError("a category is no text, or its sums are not finite")
    found: dict[int, CategoryMeans] = {}
    start = row = 0
    for column, n in zip(arrays["category_columns"].tolist(), counts, strict=True):
        own = texts[start : start + n]
        places = {text: N_SPECIAL + i for i, text in enumerate(own)}
        if len(places) != n or n > MOST_CATEGORIES:
            raise ValueError("its categories are not unique, or too many")
        found[column] = CategoryMeans(places, sums[row : row + N_SPECIAL + n])
        start, row = start + n, row + N_SPECIAL + n
    return found
