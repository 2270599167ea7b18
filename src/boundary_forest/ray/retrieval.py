"""Neighbours from trees that are held by several actors.

Each actor names candidates: of the examples that its trees compared, or that it stores, those that
may be among the closest of all. The closest of the union are then those of a forest in one place,
by reduced distance and arrival number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.ray.actors import Crew
from boundary_forest.ray.states import chosen_ids, joined_ids

_FILTERS = ("exact", "mask", "ids")


def merged_neighbors(
    crew: Crew,
    asked: Sequence[int] | None,
    rows: NDArray[Any],
    n: int,
    n_jobs: int,
    options: dict[str, Any],
) -> tuple[NDArray[np.float64], NDArray[np.uint64], Any]:
    """Return what the engine's ``neighbors`` returns, of all trees.

    Parameters
    ----------
    crew : Crew
        The actors.
    asked : list of int or None
        Those to ask; None is all.
    rows : ndarray of shape (n_samples, n_features)
        The queries.
    n : int
        How many neighbours.
    n_jobs : int
        Threads of each actor.
    options : dict
        Those of the engine's ``neighbors``.
    """
    how = {name: options[name] for name in _FILTERS if name in options}
    queries = crew.put(rows)

    def closest(**how: Any) -> Found:
        parts = crew.ask("call", "candidates", queries, n, None, n_jobs, only=asked, **how)
        return Found.of(parts, len(rows)).first(n)

    found = closest(**how)
    if (found.counts < n).any():
        _check_enough(crew, asked, n, how)
        # Where too few were compared, all that is stored is: for these rows alone.
        few = np.flatnonzero(found.counts < n)
        everything = closest(**{**how, "exact": True})
        found = found.replaced(everything, few)
    shape = (len(rows), n)
    ids = found.ids if isinstance(found.ids, list | None) else found.ids.reshape(shape)
    return found.distances.reshape(shape), found.arrivals.reshape(shape), ids


def merged_within(
    crew: Crew,
    asked: Sequence[int] | None,
    rows: NDArray[Any],
    radius: float,
    n_jobs: int,
    options: dict[str, Any],
) -> tuple[Any, ...]:
    """Return what the engine's ``within`` returns, of all trees; parameters as above."""
    how = {name: options[name] for name in _FILTERS if name in options}
    parts = crew.ask("call", "candidates", crew.put(rows), None, radius, n_jobs, only=asked, **how)
    found = Found.of(parts, len(rows))
    return np.cumsum(found.counts).astype(np.uint64), found.distances, found.arrivals, found.ids


def _check_enough(crew: Crew, asked: Sequence[int] | None, n: int, how: dict[str, Any]) -> None:
    """Raise the engine's error if there are fewer than n examples to choose from."""
    is_filtered = how.get("mask") is not None or how.get("ids") is not None
    stored = np.unique(np.concatenate(crew.ask("stored", only=asked)))
    if how.get("mask") is not None:
        mask = how["mask"]
        stored = stored[stored < len(mask)]  # more may have arrived since it was made
        stored = stored[mask[stored] != 0]
    if how.get("ids") is not None:
        named = crew.ask("known", how["ids"], only=asked)
        stored = np.unique(np.concatenate(named))
    if n > len(stored):
        raise too_few(len(stored), n, is_filtered=is_filtered)


def too_few(n_there: int, n: int, *, is_filtered: bool) -> ValueError:
    """Return the engine's error if there are fewer than n examples to choose from."""
    kind, then = (
        ("allowed", "allow more examples")
        if is_filtered
        else ("stored", "learn more examples first")
    )
    return ValueError(
        f"n_neighbors must be between 1 and {n_there} (the examples {kind}), got {n}: use a "
        f"smaller n_neighbors, or {then}"
    )


class Found:
    """Examples that were found for each of some rows, nearest first, row after row."""

    def __init__(
        self,
        counts: NDArray[np.int64],
        distances: NDArray[np.float64],
        arrivals: NDArray[np.uint64],
        ids: Any,
    ) -> None:
        self.counts = counts
        self.distances = distances
        self.arrivals = arrivals
        self.ids = ids

    @classmethod
    def of(cls, parts: Sequence[Any], n_rows: int) -> Found:
        """Return the union of what actors have found, each example once for a row."""
        of_rows = [
            np.repeat(np.arange(n_rows), np.diff(part[0].astype(np.int64), prepend=0))
            for part in parts
        ]
        row = np.concatenate(of_rows)
        reduced, distances, arrivals = (
            np.concatenate([part[j] for part in parts]) for j in (1, 2, 3)
        )
        order = np.lexsort((arrivals, reduced, row))
        row, arrivals = row[order], arrivals[order]
        again = np.zeros(len(row), dtype=bool)
        again[1:] = (row[1:] == row[:-1]) & (arrivals[1:] == arrivals[:-1])
        order = order[~again]
        ids = chosen_ids(joined_ids([part[4] for part in parts]), order)
        counts = np.bincount(row[~again], minlength=n_rows)
        return cls(counts, distances[order], arrivals[~again], ids)

    def first(self, n: int) -> Found:
        """Return the n nearest of each row, or all if there are fewer."""
        ends = np.cumsum(self.counts)
        rank = np.arange(len(self.arrivals)) - np.repeat(ends - self.counts, self.counts)
        return self._chosen(np.flatnonzero(rank < n), np.minimum(self.counts, n))

    def replaced(self, other: Found, rows: NDArray[np.int64]) -> Found:
        """Return the same with these rows as they are in another."""
        counts = self.counts.copy()
        counts[rows] = other.counts[rows]
        starts = np.cumsum(self.counts) - self.counts
        others = np.cumsum(other.counts) - other.counts + len(self.arrivals)
        starts[rows] = others[rows]
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        both = Found(
            counts,
            np.concatenate([self.distances, other.distances]),
            np.concatenate([self.arrivals, other.arrivals]),
            joined_ids([self.ids, other.ids]),
        )
        return both._chosen(np.repeat(starts, counts) + within, counts)

    def _chosen(self, which: NDArray[np.int64], counts: NDArray[np.int64]) -> Found:
        ids = chosen_ids(self.ids, which)
        return Found(counts, self.distances[which], self.arrivals[which], ids)
