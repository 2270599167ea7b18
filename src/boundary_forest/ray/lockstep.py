"""Actors and their driver, kept at the same number of examples, whatever dies."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.fitted import new_driver
from boundary_forest.estimators.forest_settings import ForestSettings, lifetimes_of
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.actor_group import ActorGroup, ActorLostError, Cluster, without_classes
from boundary_forest.ray.checkpoint import Checkpoint, ForestLostError
from boundary_forest.ray.exchange import exchange, n_stored
from boundary_forest.ray.states import State, TreeRange, is_planted, merged, read_part, split

MOST_ROWS = 8192  # learned between two moments at which a call can be interrupted
MOST_TRIES = 10  # of one call whose actors die

T = TypeVar("T")
Leaves = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # arrivals, labels and distances


class Lockstep:
    """The trees of one forest, on the actors of a Ray cluster.

    Parameters
    ----------
    settings : ForestSettings
        What its trees are grown with.
    labels : LabelPolicy
        What its labels mean.
    cluster : Cluster
        The actors.
    state : dict or None, default=None
        Of an engine that has all trees, to begin with.
    checkpoint : Checkpoint or None, default=None
        What actors that die are brought back from. Without ``state``, its snapshot is begun with.
    """

    def __init__(
        self,
        settings: ForestSettings,
        labels: LabelPolicy,
        cluster: Cluster,
        state: State | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        _check_lasting(settings, cluster)
        self._settings = settings
        # With a folder also the classes of its journal; whoever forgets some replaces this.
        self.labels = without_classes(labels) if checkpoint is None else labels
        self._checkpoint = checkpoint
        self._lock = threading.RLock()
        self._n_calls = 0
        self.class_weights: NDArray[np.float64] | None = None  # by code, of all classes by now
        self._is_lost = False  # actors have parted, and there is nothing to bring them back from
        self.is_ahead = False  # of the checkpoint, which does not know what was forgotten
        self._max_stored = settings.adaptive.get("max_stored")
        # Whether actors need one another: then they are brought back together.
        self._exchanges = (
            isinstance(settings.adaptive.get("feature_weights"), str)
            or self._max_stored is not None
        )
        self._driver = new_driver(settings, labels)
        trees = cluster.ranges(settings.n_estimators)
        latest = None if checkpoint is None else checkpoint.latest
        if state is None and latest is not None and trees != latest.trees:
            state = merged([read_part(path) for path in latest.parts], latest.driver)
        states: Sequence[State | str | None] = [None] * len(trees)
        self._had_state = state is not None
        self._stored = 0
        if state is not None:
            states = split(state, trees, int(self._driver.state()["vote_power"]))
            self._driver.restore({**state, "planted": is_planted(state)})
            self._stored = len(state["arrivals"])
        elif latest is not None:
            states = latest.parts
            self._driver.restore(latest.driver)
        self._group = ActorGroup(cluster, settings, labels, trees, states)
        if self._max_stored and self._driver.seen:
            self._stored = n_stored(self._group)

    @property
    def trees(self) -> list[TreeRange]:
        """Which trees each actor holds."""
        return self._group.trees

    # Actors that die

    def _safely(self, call: Callable[[], T]) -> T:
        """Return what a call returns, after actors that died were brought back.

        A call may be repeated: none changes the driver before all actors have done their part,
        unless actors are brought back together, and the driver with them.
        """
        with self._lock:
            if self._is_lost:
                raise ForestLostError(
                    "the actors are no longer consistent after an earlier failure: start a new "
                    "forest"
                )
            seen, lost = self._driver.seen, set[int]()
            for _ in range(MOST_TRIES):
                try:
                    if lost:
                        self._bring_back(sorted(lost), seen)
                        lost.clear()
                    return call()
                except ActorLostError as error:
                    lost.update(error.actors)
                    last = error
            raise ForestLostError(f"actors died {MOST_TRIES} times within one call") from last

    def _bring_back(self, actors: list[int], seen: int) -> None:
        """Bring the forest to where it was when it had seen so many examples."""
        checkpoint = self._checkpoint
        if checkpoint is None:
            raise ForestLostError(
                "an actor died, and its trees are lost: set checkpoint_dir to survive this"
            )
        if self.is_ahead:
            raise ForestLostError(
                f"an actor died before forget() was recorded in {checkpoint.folder}: continue "
                "with from_checkpoint(), and forget again"
            )
        latest = checkpoint.latest
        begins_as_now = not self._had_state if latest is None else latest.trees == self.trees
        if not begins_as_now:
            raise ForestLostError(
                f"an actor died before its trees were written to {checkpoint.folder}: start again"
            )
        files: Sequence[str | None] = [None] * len(self._group) if latest is None else latest.parts
        if self._exchanges:
            self._group.stop()
            actors = list(range(len(self._group)))
            self._driver = new_driver(self._settings, self.labels)
            if latest is not None:
                self._driver.restore(latest.driver)
            if self.class_weights is not None:
                self._driver.weigh_classes(self.class_weights)
        for i in actors:
            self._group.start(i, files[i])
        if self._exchanges and self._max_stored:
            self._stored = n_stored(self._group)
        for rows in checkpoint.operations(self._settings, self.labels):
            n = min(len(rows.X), seen - rows.first)
            if n <= 0:
                break
            ids = None if rows.ids is None else rows.ids[:n]
            if self._exchanges:
                for begin, end in self._cuts(n):
                    self._try_cut(rows.X, rows.labels, 1, ids, begin, end)
            else:
                arguments = (self._group.put(rows.X[:n]), rows.labels[:n], 1, ids)
                self._group.run("learn", rows.first, rows.first, False, *arguments, only=actors)

    def _learn_safely(self, call: Callable[[], T]) -> T:
        """Return what a learning call returns; if it fails, nothing of it was learned.

        Some actors may have learned what others failed at.
        """
        with self._lock:
            self._n_calls += 1
            seen = self._driver.seen
            try:
                return self._safely(call)
            except ForestLostError:
                raise
            except Exception:
                if self._checkpoint is None:
                    self._is_lost = True
                else:
                    everyone = list(range(len(self._group)))
                    self._group.stop()
                    self._bring_back(everyone, seen)
                raise

    def _spread(self, state: State) -> None:
        """Put a state of the whole forest in the place of what the actors have."""
        driver = new_driver(self._settings, self.labels)
        states = split(state, self.trees, int(driver.state()["vote_power"]))
        driver.restore({**state, "planted": is_planted(state)})
        self.is_ahead = True
        self._group.stop()
        self._driver, self._had_state, self._stored = driver, True, len(state["arrivals"])
        for i, part in enumerate(states):
            self._group.start(i, part)
        try:
            self._group.run("get", "seen")
        except ActorLostError as error:
            raise ForestLostError(
                "an actor died before it received its trees: start again, or continue with "
                "from_checkpoint()"
            ) from error

    def save_parts(self, paths: list[str], identity: str) -> None:
        """Have each actor write the state of its trees to a file, in the folder of this journal."""
        each = [(path, identity) for path in paths]
        self._safely(lambda: self._group.run_each("save", each))

    def driver_state(self) -> State:
        """Return what the driver knows."""
        with self._lock:
            return self._driver.state()

    def stop(self) -> None:
        """End all actors."""
        with self._lock:
            self._group.stop()

    # Learning

    def _cuts(self, n: int) -> Iterator[tuple[int, int]]:
        """Go through n rows in parts, none of which goes beyond an exchange."""
        begin = 0
        while begin < n:
            with self._lock:
                most = min(MOST_ROWS, self._driver.block_end(self._stored) - self._driver.seen)
            end = min(n, begin + most)
            yield begin, end
            begin = end

    def _try_cut(
        self,
        rows: NDArray[Any],
        labels: NDArray[np.float64],
        n_jobs: int,
        ids: Any,
        begin: int,
        end: int,
        *,
        with_answers: bool = False,
        shares: bool = False,
        ranks: Any = None,
    ) -> Any:
        driver, group = self._driver, self._group
        wants = with_answers or driver.wants_ends
        batch, targets = rows[begin:end], np.ascontiguousarray(labels[begin:end])
        names = None if ids is None else ids[begin:end]
        answers = leaves = weights = None
        arguments = (group.put(np.ascontiguousarray(batch)), group.put(targets), n_jobs, names)
        replies = group.run("learn", (self._n_calls, begin), driver.seen, wants, *arguments)
        if wants:
            leaves = side_by_side(replies)
            answers, weights = driver.hear(targets, *leaves[1:], with_answers, shares, ranks)
        else:
            driver.learn(targets)
        self._stored = exchange(group, driver, n_jobs, self._max_stored)
        return answers, leaves, weights

    def _run(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Have all actors, or only some, call a method; return the results."""
        return self._safely(lambda: self._group.run(method, *arguments, **options))


def side_by_side(parts: list[Leaves]) -> Leaves:
    """Return the leaves of all trees, given those of each actor's."""
    arrivals, labels, distances = (
        np.concatenate(of_all, axis=1) for of_all in zip(*parts, strict=True)
    )
    return arrivals, labels, distances


def _check_lasting(settings: ForestSettings, cluster: Cluster) -> None:
    """Refuse actors none of whose trees lives for ever, where weights are learned for such trees.

    Weights are learned beginning with those that these trees have.
    """
    if not isinstance(settings.adaptive.get("feature_weights"), str):
        return
    lifetimes = lifetimes_of(settings.adaptive.get("forgetting"), settings.n_estimators)
    for first, end in cluster.ranges(settings.n_estimators) if 0 in lifetimes else ():
        if 0 not in lifetimes[first:end]:
            raise ValueError(
                "with feature_weights='learned', every actor needs a tree of unlimited lifetime, "
                f"but trees {first} to {end - 1} have none: use a smaller n_actors"
            )
