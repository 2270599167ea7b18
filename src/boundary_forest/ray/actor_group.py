"""Ray actors, each with an engine that holds a part of the trees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import ray
from numpy.typing import NDArray

from boundary_forest.estimators.fitted import new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import id_column, taken_ids
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.checkpoint import check_shared
from boundary_forest.ray.states import State, TreeRange, ranges, read_part, write_part

LONGEST_START = 300  # seconds that actors may wait for a place
LARGEST_WEIGHT = 1e250  # of an answer; sums of them are finite


class ActorLostError(RuntimeError):
    """Actors have died, or results of theirs are lost.

    Attributes
    ----------
    actors : list of int
        Which of them had to do with it.
    """

    def __init__(self, actors: list[int]) -> None:
        super().__init__(f"actors {actors} died")
        self.actors = actors


@dataclass(frozen=True)
class Cluster:
    """What is requested of Ray for the actors of a forest.

    Parameters
    ----------
    n_actors : int or None
        How many actors; None is one for each processor that the cluster has for them.
    num_cpus : float
        Processors that each of them reserves.
    resources : dict or None
        Further resources that each of them reserves.
    """

    n_actors: int | None = None
    num_cpus: float = 1
    resources: dict[str, float] | None = None

    def count(self) -> int:
        """Return how many actors there are to be."""
        if self.n_actors is not None:
            return self.n_actors
        processors = ray.cluster_resources().get("CPU", 1)
        return max(1, int(processors / max(self.num_cpus, 0.01)))

    def ranges(self, n_trees: int) -> list[TreeRange]:
        """Return which trees each actor holds."""
        n = self.count() if self.n_actors is not None else min(n_trees, self.count())
        if n > n_trees:
            raise ValueError(
                f"n_actors must be at most n_estimators={n_trees}, because each actor holds at "
                f"least one tree, got {n}"
            )
        return ranges(n_trees, n)

    def start(self, *arguments: Any) -> Any:
        """Return the handle of a new actor."""
        return _Actor.options(num_cpus=self.num_cpus, resources=self.resources).remote(*arguments)


class PartialForest:
    """An engine that holds a part of the trees, in a process of its own.

    Parameters
    ----------
    settings : ForestSettings
        Of the whole forest.
    labels : LabelPolicy
        What its labels mean.
    trees : (int, int) or None
        Which trees it holds; None is all.
    state : dict, str or None, default=None
        What to begin with, or the file that has it.
    """

    def __init__(
        self,
        settings: ForestSettings,
        labels: LabelPolicy,
        trees: TreeRange | None,
        state: State | str | None = None,
    ) -> None:
        self._settings = settings
        self._engine = new_engine(settings, labels, trees)
        self._last: tuple[Any, Any] | None = None  # the call that was made, and its result
        if state is not None:
            self._engine.restore(read_part(state) if isinstance(state, str) else state)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return what a method of the engine returns."""
        return getattr(self._engine, method)(*arguments, **options)

    def learn(
        self, call: Any, first: int, with_leaves: bool, rows: NDArray[Any], *arguments: Any
    ) -> Any:
        """Learn rows that come after ``first`` others; return their leaves if they are wanted.

        A call that is repeated, because another actor has died meanwhile, is answered as before:
        it has the same name.
        """
        seen = self._engine.seen
        if self._last and self._last[0] == call and seen == first + len(rows):
            return self._last[1]
        if seen != first:
            raise RuntimeError(f"this actor has learned {seen} rows instead of {first}")
        method = self._engine.ends_then_learn if with_leaves else self._engine.learn
        result = method(rows, *arguments)
        self._last = (call, result)
        return result

    def save(self, path: str, identity: str) -> None:
        """Write the engine's state to a file, in the checkpoint's folder with this journal."""
        check_shared(Path(path).parent, identity)
        write_part(path, self.state())

    def state(self, with_positions: bool = True) -> State:
        """Return the engine's state."""
        return dict(self._engine.snapshot().state(with_positions))

    def stored(self) -> Any:
        """Return the arrival numbers of the stored examples."""
        snapshot = self._engine.snapshot()
        return snapshot.arrivals(0, snapshot.size)

    # Of a shard that has all trees, and every n-th example.

    def learn_share(
        self,
        first: int,
        step: int,
        rows: NDArray[Any],
        labels: NDArray[Any],
        n_jobs: int,
        ids: Any,
    ) -> None:
        """Learn every ``step``-th of these rows, from number ``first`` on."""
        own = slice(first, None, step)
        names = None if ids is None else ids[own]
        if len(rows[own]):
            self._engine.learn(
                np.ascontiguousarray(rows[own]), np.ascontiguousarray(labels[own]), n_jobs, names
            )

    def sums(self, rows: NDArray[Any], n_jobs: int, n_classes: int, uniform: bool) -> Any:
        """Return the sums of the trees' leaves; None before there is an example."""
        if self._engine.seen == 0:
            return None
        _, labels, distances = self._engine.ends(rows, n_jobs)
        return weighed(labels, distances, n_classes, uniform=uniform)

    def knows(self, ids: Any) -> list[bool]:
        """Return of each id whether an example is stored here that has it."""
        there = set(id_column(self.stored_examples()[3]).tolist()) if self._engine.seen else set()
        return [name in there for name in id_column(ids).tolist()]

    def stored_examples(self) -> Any:
        """Return positions, labels, arrivals and ids of all stored examples."""
        return self._engine.examples(self.stored())

    def get(self, name: str) -> Any:
        """Return an attribute of the engine."""
        return getattr(self._engine, name)

    def known(self, ids: Any) -> Any:
        """Return the arrival numbers of the stored examples that have one of these ids."""
        if self._engine.seen == 0:
            return np.empty(0, np.uint64)
        wanted = set(id_column(ids).tolist())
        _, _, arrivals, names = self.stored_examples()
        return arrivals[[name in wanted for name in id_column(names).tolist()]]

    def grow(self, n_jobs: int, *shared: tuple[Any, ...]) -> None:
        """Rebuild trees from what is stored here, and from what other actors share.

        Parameters
        ----------
        n_jobs : int
            Threads.
        *shared : (positions, labels, arrivals, ids)
            Of the others; what is stored here too is left out.
        """
        width, length = self._settings.n_features, self._settings.label_length
        none = (
            np.empty((0, width), self._settings.element_type),
            np.empty((0, length)),
            np.empty(0, np.uint64),
            None,
        )
        positions, labels, arrivals = (
            np.concatenate([part[j] for part in (none, *shared)]) for j in range(3)
        )
        order = np.argsort(arrivals)
        order = order[~np.isin(arrivals[order], self.stored())]
        ids = taken_ids([part[3] for part in shared], order)
        self._engine.grow(positions[order], labels[order], arrivals[order], n_jobs, ids)


def weighed(
    labels: NDArray[np.float64], distances: NDArray[np.float64], n_classes: int, *, uniform: bool
) -> tuple[NDArray[np.float64], ...]:
    """Return sums over the trees' leaves: of those at a distance, at distance 0, and of all.

    Parameters
    ----------
    labels : ndarray of shape (n_rows, n_trees, label_length)
        Of the leaves.
    distances : ndarray of shape (n_rows, n_trees)
        Of the leaves.
    n_classes : int
        How many codes there are; 0 if labels are targets.
    uniform : bool
        Whether all leaves have the same weight.

    Returns
    -------
    sums, at_zero, equally : ndarray of shape (n_rows, n_classes + 1) or (n_rows, label_length + 1)
        Weights by class, or weights times targets; and the weights' sum. The last have the same
        weight for all, for leaves that are infinitely far.
    """
    n_rows = len(distances)
    is_zero = distances == 0
    with np.errstate(divide="ignore"):
        weights = np.minimum(1 / distances, LARGEST_WEIGHT)
    weights = np.where(is_zero, 0.0, 1.0 if uniform else weights)
    found = []
    for one in (weights, is_zero.astype(np.float64), np.ones_like(weights)):
        if n_classes:
            cells = np.arange(n_rows)[:, None] * n_classes + labels[:, :, 0].astype(np.intp)
            flat = np.bincount(cells.ravel(), one.ravel(), n_rows * n_classes)
            sums = flat.reshape(n_rows, n_classes)
        else:
            sums = np.einsum("rt,rtl->rl", one, labels)
        found.append(np.concatenate([sums, one.sum(axis=1)[:, None]], axis=1))
    return tuple(found)


def without_classes(labels: LabelPolicy) -> LabelPolicy:
    """Return a policy with the same rules, which are all that engines need."""
    return type(labels).from_parameters(labels.parameters)


_Actor: Any = ray.remote(PartialForest)


class ActorGroup:
    """The actors of one forest, in the order of their trees.

    Parameters
    ----------
    cluster : Cluster
        What each of them needs.
    settings, labels
        As for :class:`PartialForest`.
    trees : list of (int, int) or None
        Which trees each holds; None is all of its own.
    states : sequence of dict, str or None
        What each begins with, or the file that has it; None: nothing.

    Attributes
    ----------
    trees : list of (int, int)
        Which trees each holds.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: ForestSettings,
        labels: LabelPolicy,
        trees: Sequence[TreeRange | None],
        states: Sequence[State | str | None],
    ) -> None:
        self.trees: list[Any] = list(trees)
        self._cluster = cluster
        self._made_of = (settings, without_classes(labels))
        self._actors: list[Any] = [None] * len(trees)
        for i, state in enumerate(states):
            self.start(i, state)
        self.check_started()

    def check_started(self) -> None:
        """Wait for actors; RuntimeError if the cluster has no room for them."""
        waiting = [actor.get.remote("seen") for actor in self._actors]
        _, left = ray.wait(waiting, num_returns=len(waiting), timeout=LONGEST_START)
        if left:
            self.stop()
            raise RuntimeError(
                f"{len(left)} of {len(self)} actors did not start within {LONGEST_START} s: the "
                f"cluster has no room for n_actors={len(self)} with "
                f"num_cpus={self._cluster.num_cpus:g} and resources={self._cluster.resources}: "
                "request less, or close() other forests"
            )

    def __len__(self) -> int:
        return len(self._actors)

    def start(self, i: int, state: State | str | None) -> None:
        """Start an actor in place of the one that was there."""
        self._actors[i] = self._cluster.start(*self._made_of, self.trees[i], state)

    def stop(self) -> None:
        """End all actors."""
        for actor in self._actors:
            ray.kill(actor)

    def put(self, value: Any) -> Any:
        """Return a reference to a value that all actors can read: it is kept once for all."""
        return ray.put(value)

    def submit(
        self, method: str, *arguments: Any, only: Sequence[int] | None = None, **options: Any
    ) -> list[Any]:
        """Have all actors, or only some, call a method; return what stands for the results."""
        chosen = range(len(self)) if only is None else only
        return [(i, getattr(self._actors[i], method).remote(*arguments, **options)) for i in chosen]

    def results(self, pending: list[Any]) -> list[Any]:
        """Return results; what an actor raised is raised as it was there.

        All are waited for, so that none of the actors is still at work. If some have died,
        ActorLostError says which.
        """
        results, lost, failed = [], [], None
        for i, reference in pending:
            try:
                results.append(ray.get(reference))
            except _LOST as error:
                lost.append(i)
                failed = error
            except ray.exceptions.RayTaskError as error:
                cause = error.cause
                if isinstance(cause, _LOST):  # of an actor whose results this one was to use
                    lost.append(i)
                    failed = error
                elif not lost:
                    failed = cause if isinstance(cause, Exception) else error
        if lost:
            raise ActorLostError(lost) from failed
        if failed is not None:
            raise failed
        return results

    def run(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Have all actors, or only some, call a method; return the results."""
        return self.results(self.submit(method, *arguments, **options))

    def run_each(self, method: str, arguments: Iterable[tuple[Any, ...]]) -> list[Any]:
        """Have every actor call a method with arguments of its own; return the results."""
        pending = [self.submit(method, *own, only=[i]) for i, own in enumerate(arguments)]
        return self.results([one for of_actor in pending for one in of_actor])


_LOST = (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError)
