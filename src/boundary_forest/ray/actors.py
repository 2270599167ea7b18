"""Ray actors, each with an engine that holds a part of the trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import ray

from boundary_forest.estimators.fitted import Settings, new_engine
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.errors import ForestLostError
from boundary_forest.ray.states import State, Trees, chosen_ids, joined_ids, ranges


@dataclass(frozen=True)
class Cluster:
    """What is asked of Ray for the actors of a forest.

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

    def ranges(self, n_trees: int) -> list[Trees]:
        """Return which trees each actor holds."""
        n = self.n_actors
        if n is None:
            processors = ray.cluster_resources().get("CPU", 1)
            n = max(1, min(n_trees, int(processors / max(self.num_cpus, 0.01))))
        if n > n_trees:
            raise ValueError(
                f"n_actors={n} is more than n_estimators={n_trees}, and an actor holds at least "
                "one tree"
            )
        return ranges(n_trees, n)

    def start(self, *arguments: Any) -> Any:
        """Return the handle of a new actor."""
        return _Actor.options(num_cpus=self.num_cpus, resources=self.resources).remote(*arguments)


class Part:
    """An engine that holds a part of the trees, in a process of its own.

    Parameters
    ----------
    settings : Settings
        Of the whole forest.
    labels : LabelPolicy
        What its labels mean.
    trees : (int, int)
        Which trees it holds.
    state : dict or None, default=None
        What to begin with.
    """

    def __init__(
        self, settings: Settings, labels: LabelPolicy, trees: Trees, state: State | None = None
    ) -> None:
        self._settings = settings
        self._engine = new_engine(settings, labels, trees)
        if state is not None:
            self._engine.restore(state)

    def call(self, method: str, *arguments: Any, **options: Any) -> Any:
        """Return what a method of the engine returns."""
        return getattr(self._engine, method)(*arguments, **options)

    def learn(self, first: int, ends: bool, *arguments: Any) -> Any:
        """Learn rows that come after ``first`` others; return the ends if they are asked for."""
        if self._engine.seen != first:
            raise RuntimeError(f"{self._engine.seen} rows were learned here, and not {first}")
        method = self._engine.ends_then_learn if ends else self._engine.learn
        return method(*arguments)

    def state(self, with_positions: bool = True) -> State:
        """Return the engine's state."""
        return dict(self._engine.snapshot().state(with_positions))

    def stored(self) -> Any:
        """Return the arrival numbers of the stored examples."""
        snapshot = self._engine.snapshot()
        return snapshot.arrivals(0, snapshot.size)

    def known(self, ids: Any) -> Any:
        """Return the arrival numbers of the stored examples that have one of these ids."""
        state = self.state(with_positions=False)
        wanted = set(ids if isinstance(ids, list) else ids.tolist())
        names = state["ids"] if isinstance(state["ids"], list) else state["ids"].tolist()
        return state["arrivals"][[name in wanted for name in names]]

    def grow(self, n_jobs: int, *shared: tuple[Any, ...]) -> None:
        """Grow trees anew from what is stored here, and from what other actors share.

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
        ids = chosen_ids(joined_ids([part[3] for part in shared]), order) if shared else None
        self._engine.grow(positions[order], labels[order], arrivals[order], n_jobs, ids)


_Actor: Any = ray.remote(Part)


class Crew:
    """The actors of one forest, in the order of their trees.

    Parameters
    ----------
    cluster : Cluster
        What each of them needs.
    settings, labels
        As for :class:`Part`.
    states : sequence of dict or None, default=None
        What they begin with.

    Attributes
    ----------
    trees : list of (int, int)
        Which trees each holds.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        labels: LabelPolicy,
        trees: list[Trees],
        states: Sequence[State | None] | None = None,
    ) -> None:
        self.trees = trees
        self._cluster = cluster
        self._made_of = (settings, labels)
        states = [None] * len(trees) if states is None else states
        self._actors = [
            cluster.start(settings, labels, held, state)
            for held, state in zip(trees, states, strict=True)
        ]

    def __len__(self) -> int:
        return len(self._actors)

    def put(self, value: Any) -> Any:
        """Return a reference to a value that all actors can read: it is kept once for all."""
        return ray.put(value)

    def submit(
        self, method: str, *arguments: Any, only: Sequence[int] | None = None, **options: Any
    ) -> list[Any]:
        """Have all actors, or only some, call a method; return references to the results."""
        chosen = range(len(self)) if only is None else only
        return [getattr(self._actors[i], method).remote(*arguments, **options) for i in chosen]

    def results(self, references: list[Any]) -> list[Any]:
        """Return what references stand for; what an actor raised is raised as it was there."""
        try:
            return list(ray.get(references))
        except ray.exceptions.RayActorError as error:
            raise ForestLostError(
                "an actor has died, and with it the trees that it held: give checkpoint_dir, and "
                "they survive it"
            ) from error
        except ray.exceptions.RayTaskError as error:
            cause = error.cause
            raise cause if isinstance(cause, Exception) else error from None

    def ask(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        """Have all actors, or only some, call a method; return the results."""
        return self.results(self.submit(method, *arguments, **options))
