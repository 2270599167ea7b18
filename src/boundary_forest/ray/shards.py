"""An index that is searched as a graph, sharded by examples.

A walk along the edges of all trees needs them in one place, so trees are not spread over actors
here. Each actor has a forest of its own, with all trees, over every n-th example: example number a
is in shard a modulo n. A search asks all of them and merges what they find. That compares more
examples than one graph does and finds at least as many of the true neighbours as a rule, but it is
not the same graph, and not the same answers.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.estimators.fitted import Forest, new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import id_column, taken_ids
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.actor_group import ActorGroup, ActorLostError, Cluster, without_classes
from boundary_forest.ray.checkpoint import ForestLostError
from boundary_forest.ray.gathering import Gathered, joined_stats
from boundary_forest.ray.retrieval import RadiusNeighbors, as_tables, merged, n_found, too_few
from boundary_forest.ray.states import State


class ShardedIndex:
    """Shards of one index behind the methods of the compiled engine that retrieval calls.

    Parameters
    ----------
    settings : ForestSettings
        Of every shard.
    labels : LabelPolicy
        That of retrieval.
    cluster : Cluster
        The actors, one for each shard.
    state : dict or None, default=None
        Of an engine whose examples are to be learned.
    """

    n_classes = 0
    label_deviation = 0.0

    def __init__(
        self,
        settings: ForestSettings,
        labels: LabelPolicy,
        cluster: Cluster,
        state: State | None = None,
    ) -> None:
        self._settings, self._labels = settings, without_classes(labels)
        self._lock = threading.RLock()
        self.seen = 0
        n = cluster.count()
        self._group = ActorGroup(cluster, settings, labels, [None] * n, [None] * n)
        if state is not None:
            self.learn(state["positions"], state["labels"], 1, state["ids"])

    _is_lost = False  # shards have parted

    @contextmanager
    def _whole(self) -> Iterator[None]:
        """Return a context inside which all shards are queried: they are there, and are alike."""
        with self._lock:
            if self._is_lost:
                raise ForestLostError(
                    "a shard failed to learn a batch that the other shards learned: start a "
                    "new forest"
                )
            try:
                yield
            except ActorLostError as error:
                raise ForestLostError(
                    "an actor died, and the examples of its shard are lost: learn them again"
                ) from error

    def _run(self, method: str, *arguments: Any, **options: Any) -> list[Any]:
        with self._whole():
            return self._group.run(method, *arguments, **options)

    def learn(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int, ids: Any = None
    ) -> None:
        """Learn rows, each in its shard."""
        group, n = self._group, len(self._group)
        with Interrupts(), self._whole():
            shared = (n, group.put(rows), group.put(labels), n_jobs, ids)
            try:
                group.run_each(
                    "learn_share", [((shard - self.seen) % n, *shared) for shard in range(n)]
                )
            except ActorLostError:
                raise
            except Exception:  # others may have learned their share
                self._is_lost = True
                raise
            self.seen += len(rows)

    def learn_offline(self, *arguments: Any) -> None:
        """Refuse: no shard has all rows."""
        raise NotImplementedError("offline=True is not available with search='graph' on a cluster")

    def replace(self, *arguments: Any) -> None:
        """Refuse: a row and the one that it replaces may belong to different shards."""
        raise NotImplementedError(
            "upsert is not available on a cluster: call forget(ids), then partial_fit(X, ids=ids)"
        )

    def check_ids(self, ids: Any, may_be_known: bool = False) -> None:
        """Raise ValueError if an id occurs twice or names a stored example."""
        self._run("call", "check_ids", ids, may_be_known)

    def forget(self, ids: Any, n_jobs: int, erase: bool = False) -> list[int]:
        """Forget the examples with these ids, or return the numbers of those not known."""
        with Interrupts(), self._lock:
            known = np.array(self._run("knows", ids))
            unknown = np.flatnonzero(~known.any(axis=0))
            if len(unknown):
                return [int(i) for i in unknown]
            names = id_column(ids)
            stored = self._run("call", "stats")
            for of_shard, stats in zip(known, stored, strict=True):
                if len(set(names[of_shard].tolist())) == stats["examples_stored"] > 0:
                    raise ValueError(
                        "ids must not be those of all stored examples of a shard, because it "
                        "needs at least one: start a new forest instead"
                    )
            for shard, of_shard in enumerate(known):
                own = names[of_shard]
                if len(own):
                    own = own.tolist() if isinstance(ids, list) else own
                    unknown = self._run("call", "forget", own, n_jobs, erase, only=[shard])[0]
                    assert not unknown, "a shard must know the ids that it reported as known"
            return []

    def erase_forgotten(self, n_jobs: int) -> None:
        """Erase what was forgotten from trees and memory."""
        self._run("call", "erase_forgotten", n_jobs)

    @property
    def n_forgotten(self) -> int:
        """How many examples were forgotten that searches still go by."""
        return int(sum(self._run("get", "n_forgotten")))

    def neighbors(self, rows: NDArray[Any], n: int, n_jobs: int, **options: Any) -> Any:
        """Return distances, arrival numbers and ids of the closest that any shard finds."""
        found = self._found(rows, n, None, n_jobs, options)
        if (n_found(found) < n).any():
            is_filtered = "mask" in options or "ids" in options
            raise too_few(int(n_found(found).min()), n, is_filtered=is_filtered)
        return as_tables(found, n)

    def within(self, rows: NDArray[Any], radius: float, n_jobs: int, **options: Any) -> Any:
        """Return where each row's end, and distances, arrivals and ids within a radius."""
        return self._found(rows, None, radius, n_jobs, options)

    def _found(
        self,
        rows: NDArray[Any],
        n: int | None,
        radius: float | None,
        n_jobs: int,
        options: dict[str, Any],
    ) -> RadiusNeighbors:
        group, own = self._group, dict(options)
        with self._whole():
            arguments, pending = ("candidates", group.put(rows), n, radius, n_jobs), []
            for shard in range(len(group)):
                if options.get("mask") is not None:
                    own["mask"] = np.ascontiguousarray(options["mask"][shard :: len(group)])
                pending += group.submit("call", *arguments, only=[shard], **own)
            parts = group.results(pending)
        return merged(
            [
                (*found, self._arrivals(shard, arrivals), ids)
                for shard, (*found, arrivals, ids) in enumerate(parts)
            ],
            n,
        )

    def _arrivals(self, shard: int, arrivals: NDArray[np.uint64]) -> NDArray[np.uint64]:
        """Return arrival numbers, given those in a shard."""
        return arrivals * np.uint64(len(self._group)) + np.uint64(shard)

    def apply(self, rows: NDArray[Any], n_jobs: int) -> NDArray[np.uint64]:
        """Refuse: every shard has trees of its own."""
        raise _has_other_trees()

    def paths(self, row: NDArray[Any]) -> Any:
        """Refuse, for the same reason."""
        raise _has_other_trees()

    def snapshot(self, searched: bool = False) -> Gathered:
        """Return the state of an engine that has learned the same examples."""
        return Gathered(self)

    def state(self, with_positions: bool = True) -> State:
        """Return the state of such an engine as arrays."""
        return dict(self.gathered().snapshot().state(with_positions))

    def gathered(self) -> Forest:
        """Return an engine in this process that has learned the stored examples in order."""
        parts = self._run("stored_examples")
        arrivals = [self._arrivals(shard, part[2]) for shard, part in enumerate(parts)]
        order = np.argsort(np.concatenate(arrivals))
        engine = new_engine(self._settings, self._labels)
        engine.learn(
            np.concatenate([part[0] for part in parts])[order],
            np.concatenate([part[1] for part in parts])[order],
            1,
            taken_ids([part[3] for part in parts], order),
        )
        return engine

    def digest(self, label_keys: Any) -> Any:
        """Return hashes of all shards' trees and examples."""
        parts = self._run("call", "digest", label_keys)
        if any(part is None for part in parts):
            return None
        trees, examples, decided, _ = zip(*parts, strict=True)
        return np.concatenate(trees), np.concatenate(examples), decided[0], self.seen

    def features(self) -> Any:
        """Return the features' weights, and their variances."""
        return self.gathered().features()

    def stats(self) -> dict[str, Any]:
        """Return counts, costs and bytes, over all shards."""
        parts = self._run("call", "stats")
        stats = joined_stats(parts, sum(part["examples_stored"] for part in parts), None)
        return {**stats, "examples_seen": self.seen}

    def stop(self) -> None:
        """End all actors."""
        with self._lock:
            self._group.stop()


def _has_other_trees() -> NotImplementedError:
    return NotImplementedError(
        "apply, trees and explain are not available if a forest is sharded by examples, because "
        "each shard has its own trees"
    )


def check_shards(parameters: Mapping[str, Any]) -> None:
    """Refuse what needs all examples in one place."""
    other = "search='paper'" if "search" in parameters else "shard_by='trees'"
    refused: dict[str, Any] = {
        "checkpoint_dir": (None,),
        "offline": (False,),
        "weights": ("distance", "uniform"),
        "forgetting": (None,),
        "max_stored": (None,),
        "class_weight": (None,),
    }
    for name, allowed in refused.items():
        if name in parameters and not any(parameters[name] is one for one in allowed):
            if isinstance(parameters[name], str) and parameters[name] in allowed:
                continue
            raise ValueError(
                f"{name}={parameters[name]!r} is not available if a forest is sharded by "
                f"examples: use {other}"
            )
    if isinstance(parameters.get("feature_weights"), str):
        raise ValueError(
            "feature_weights='learned' is not available if a forest is sharded by examples, "
            f"because each shard would learn its own weights: use {other}"
        )
