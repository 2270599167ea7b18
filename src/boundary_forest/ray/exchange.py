"""What actors exchange, at the arrival counts at which something is decided by all trees.

Two things need what all actors store: trees that are rebuilt after the weights of features have
changed, which is done in steps after each doubling of the arrivals; and the bound on the number of
stored examples. Between these arrival counts actors learn without each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boundary_forest.estimators.engine_constants import GROWING_STEPS
from boundary_forest.estimators.fitted import Driver
from boundary_forest.ray.actor_group import ActorGroup


def exchange(
    group: ActorGroup, driver: Driver, n_jobs: int, max_stored: int | None, *, offline: bool = False
) -> int:
    """Do what is due now, and return how many examples are stored, if that is bounded.

    Parameters
    ----------
    group : ActorGroup
        The actors, all of which have learned as much.
    driver : Driver
        What knows what is due.
    n_jobs : int
        Threads of each actor.
    max_stored : int or None
        The most examples that may be stored.
    offline : bool, default=False
        Whether all was learned offline: no tree is to be grown, and as many are cut as it takes.
    """
    if driver.growing_step and not offline:
        _grow(group, driver.growing_step, n_jobs)
    if max_stored is None:
        return 0
    stored, n_cut = n_stored(group), 0
    while stored > max_stored if offline else driver.is_full(stored, n_cut):
        if not _cut_oldest(group, n_jobs):
            break
        stored, n_cut = n_stored(group), n_cut + 1
    return stored


def n_stored(group: ActorGroup) -> int:
    """Return how many examples are stored, each counted once."""
    return len(np.unique(np.concatenate(group.run("stored"))))


def _cut_oldest(group: ActorGroup, n_jobs: int) -> bool:
    """Cut the tree that has the oldest example; those that answer come first, by place."""
    found = [
        (oldest[0], not oldest[1], oldest[2], actor)
        for actor, oldest in enumerate(group.run("call", "oldest"))
        if oldest is not None
    ]
    if not found:
        return False
    _, growing, place, actor = min(found)
    group.run("call", "cut", place, not growing, n_jobs, only=[actor])
    return True


def _grow(group: ActorGroup, step: int, n_jobs: int) -> None:
    """Have trees rebuilt from what all actors store; rows go from actor to actor."""
    wanting = [i for i, places in enumerate(group.run("call", "places_to_grow")) if places]
    shared: list[Any] = []
    if wanting:
        known = np.empty(0, dtype=np.uint64)
        for i, stored in enumerate(group.run("stored")):
            ((_, new),) = group.submit("call", "examples", np.setdiff1d(stored, known), only=[i])
            shared.append(new)
            known = np.union1d(known, stored)
    # With the last step, all that were grown take over.
    growing = range(len(group)) if step == GROWING_STEPS else wanting
    pending = []
    for i in growing:
        others = shared[:i] + shared[i + 1 :] if i in wanting else []
        pending += group.submit("grow", n_jobs, *others, only=[i])
    group.results(pending)
