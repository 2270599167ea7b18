"""Neighbours from trees that are held by several actors.

Each actor names candidates: of the examples that its trees compared, or that it stores, those that
may be among the closest of all. The engine ranks the union as it ranks what one forest has found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.fitted import closest
from boundary_forest.estimators.ids import taken_ids
from boundary_forest.ray.actor_group import ActorGroup

# As the engine's ``within`` returns it: where each row's end, distances, arrivals and ids.
RadiusNeighbors = tuple[NDArray[np.uint64], NDArray[np.float64], NDArray[np.uint64], Any]


def merged(parts: Sequence[Any], n: int | None) -> RadiusNeighbors:
    """Return the n closest of the candidates of several engines, or all, each once for a row."""
    ends, reduced, distances, arrivals, ids = zip(*parts, strict=True)
    numbers = np.concatenate(arrivals)
    ends_of_all, which = closest(ends, np.concatenate(reduced), numbers, n)
    return ends_of_all, np.concatenate(distances)[which], numbers[which], taken_ids(ids, which)


def n_found(found: RadiusNeighbors) -> NDArray[np.int64]:
    """Return how many examples were found for each row."""
    return np.asarray(np.diff(found[0], prepend=np.uint64(0)), dtype=np.int64)


def as_tables(
    found: RadiusNeighbors, n: int
) -> tuple[NDArray[np.float64], NDArray[np.uint64], Any]:
    """Return n neighbours of each row, as the engine's ``neighbors`` does."""
    ends, distances, arrivals, ids = found
    shape = (len(ends), n)
    names = ids if isinstance(ids, list | None) else ids.reshape(shape)
    return distances.reshape(shape), arrivals.reshape(shape), names


def merged_neighbors(
    group: ActorGroup,
    actors: Sequence[int] | None,
    rows: NDArray[Any],
    n: int,
    n_jobs: int,
    options: dict[str, Any],
) -> tuple[NDArray[np.float64], NDArray[np.uint64], Any]:
    """Return what the engine's ``neighbors`` returns, of all trees.

    Parameters
    ----------
    group : ActorGroup
        The actors.
    actors : list of int or None
        Those to query; None is all.
    rows : ndarray of shape (n_samples, n_features)
        The queries.
    n : int
        How many neighbours.
    n_jobs : int
        Threads of each actor.
    options : dict
        Those of the engine's ``neighbors``.
    """

    def candidates(rows: NDArray[Any], **options: Any) -> list[Any]:
        queries = group.put(rows)
        return group.run("call", "candidates", queries, n, None, n_jobs, only=actors, **options)

    parts = candidates(rows, **options)
    found = merged(parts, n)
    few = np.flatnonzero(n_found(found) < n)
    if len(few):
        _check_enough(group, actors, n, options)
        # Where too few were compared, all that is stored is: for these rows alone.
        for part in candidates(rows[few], **{**options, "exact": True}):
            counts = np.zeros(len(rows), dtype=np.uint64)
            counts[few] = n_found(part)
            parts.append((np.cumsum(counts), *part[1:]))
        found = merged(parts, n)
    return as_tables(found, n)


def merged_within(
    group: ActorGroup,
    actors: Sequence[int] | None,
    rows: NDArray[Any],
    radius: float,
    n_jobs: int,
    options: dict[str, Any],
) -> RadiusNeighbors:
    """Return what the engine's ``within`` returns, of all trees; parameters as above."""
    queries = group.put(rows)
    parts = group.run("call", "candidates", queries, None, radius, n_jobs, only=actors, **options)
    return merged(parts, None)


def _check_enough(
    group: ActorGroup, actors: Sequence[int] | None, n: int, options: dict[str, Any]
) -> None:
    """Raise the engine's error if there are fewer than n examples to choose from."""
    is_filtered = options.get("mask") is not None or options.get("ids") is not None
    stored = np.unique(np.concatenate(group.run("stored", only=actors)))
    if options.get("mask") is not None:
        mask = options["mask"]
        stored = stored[stored < len(mask)]  # more may have arrived since it was made
        stored = stored[mask[stored] != 0]
    if options.get("ids") is not None:
        named = group.run("known", options["ids"], only=actors)
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
