"""A forest on a cluster behind the interface of the compiled engine.

Estimators talk to it as to an engine of their own process. Each actor learns the whole stream for
its own trees; a batch is put into the object store once. What needs all trees (answers, votes) is
computed here by the compiled ``Driver``, and what needs all stored examples is exchanged between
the actors at the arrival counts that it names (``exchange.py``).

Calls take turns, a learning call with every part of its batch, so that a query sees one prefix of
the stream in all actors. Actors that die are brought back from a checkpoint (``checkpoint.py``),
and the call that met with it goes on.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.estimators.blocks import joined
from boundary_forest.estimators.fitted import Forest, new_engine
from boundary_forest.ray.exchange import exchange, n_stored
from boundary_forest.ray.gathering import Gathered, composed_digest, joined_paths, joined_stats
from boundary_forest.ray.lockstep import Leaves, Lockstep, side_by_side
from boundary_forest.ray.retrieval import merged_neighbors, merged_within
from boundary_forest.ray.states import State, merged


class SpreadForest(Lockstep):
    """The engine's methods that estimators call, for the trees of all actors."""

    # Learning

    @property
    def seen(self) -> int:
        """Examples that have arrived."""
        return self._driver.seen

    @property
    def n_classes(self) -> int:
        """1 + the largest class code that was learned."""
        return self._driver.n_classes

    @property
    def label_deviation(self) -> float:
        """The standard deviation of the labels seen."""
        return self._driver.label_deviation

    def learn(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int, ids: Any = None
    ) -> None:
        """Learn rows in order."""
        for begin, end in self._cuts(len(rows)):
            self._learn_cut(rows, labels, n_jobs, ids, begin, end)

    def predict_then_learn(self, *arguments: Any, **options: Any) -> Any:
        """Learn rows in order, and return the prediction for each from just before."""
        return self._answer_then_learn(*arguments, **options, shares=False)

    def estimate_then_learn(self, *arguments: Any, **options: Any) -> Any:
        """Learn rows in order, and return the estimate of each from just before."""
        return self._answer_then_learn(*arguments, **options, shares=True)

    def _answer_then_learn(
        self,
        rows: NDArray[Any],
        labels: NDArray[np.float64],
        n_jobs: int,
        ids: Any = None,
        *,
        ranks: Any = None,
        with_ends: bool = False,
        shares: bool,
    ) -> Any:
        replies = []
        for begin, end in self._cuts(len(rows)):
            answers, leaves, weights = self._learn_cut(
                rows, labels, n_jobs, ids, begin, end, with_answers=True, shares=shares, ranks=ranks
            )
            arrivals, leaf_labels, distances = leaves
            replies.append((answers, arrivals, leaf_labels, distances, weights))
        if not replies:  # of the only row there is no answer
            width = 0 if ranks is None else len(ranks)
            return np.empty((0, width if shares else self._settings.label_length))
        answers, *found = joined(replies)
        return (answers, tuple(found)) if with_ends else answers

    def _learn_cut(self, *arguments: Any, **options: Any) -> Any:
        with Interrupts():
            return self._learn_safely(lambda: self._try_cut(*arguments, **options))

    def learn_offline(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int, ids: Any = None
    ) -> None:
        """Learn all rows at once, each tree in an order of its own."""

        def learn() -> None:
            group, driver = self._group, self._driver
            group.run("call", "learn_offline", group.put(rows), group.put(labels), n_jobs, ids)
            driver.learn_offline(labels)
            self._stored = exchange(group, driver, n_jobs, self._max_stored, offline=True)

        with Interrupts():
            self._learn_safely(learn)

    def weigh_classes(self, weights: NDArray[np.float64]) -> None:
        """Multiply the votes for each class by its weight, by code."""
        with self._lock:
            self.class_weights = weights
            self._driver.weigh_classes(weights)

    def check_ids(self, ids: Any, may_be_known: bool = False) -> None:
        """Raise ValueError if an id occurs twice or names a stored example."""
        self._run("call", "check_ids", ids, may_be_known)

    def classes_without(self, ids: Any) -> NDArray[np.uint32]:
        """Return the codes of classes that examples other than these have."""
        return np.unique(np.concatenate(self._run("call", "classes_without", ids)))

    def forget(self, ids: Any, n_jobs: int, erase: bool = False) -> list[int]:
        """Forget examples; return the numbers of unknown ids, and then nothing is forgotten.

        What a tree learns again may need examples that other actors have. So the forest is
        gathered, forgets here, and is spread out again.
        """
        with Interrupts(), self._lock:
            engine = self._safely(self.gathered)
            unknown = list(engine.forget(ids, n_jobs))
            if not unknown:
                self._spread(dict(engine.snapshot().state()))
            return unknown

    def erase_forgotten(self, n_jobs: int) -> None:
        """Do nothing: without a graph, what is forgotten is gone."""

    n_forgotten = 0

    # Answering

    def predict(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the label vector that E makes of all leaves; None if a class has no rank."""
        return self._answers(rows, n_jobs, ranks, shares=False)

    def estimate(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the same, but in a vote each class's share, by rank."""
        return self._answers(rows, n_jobs, ranks, shares=True)

    def _answers(self, rows: NDArray[Any], n_jobs: int, ranks: Any, *, shares: bool) -> Any:
        with self._lock:
            if ranks is not None and len(ranks) < self._driver.n_classes:
                return None
            leaves = self._leaves(rows, n_jobs)
            return self._driver.answer(*leaves[1:], shares, ranks)[0]

    def apply(self, rows: NDArray[Any], n_jobs: int) -> NDArray[np.uint64]:
        """Return the arrival number of the example that each tree ends at."""
        return self._leaves(rows, n_jobs)[0]

    def _leaves(self, rows: NDArray[Any], n_jobs: int) -> Leaves:
        """Return the leaves of all trees, by place."""
        with self._lock:
            queries = self._group.put(rows)
            replies: list[Leaves] = self._run(
                "call", "ends", queries, n_jobs, only=self._queried_actors()
            )
            if self._driver.is_planted:
                return side_by_side(replies)
        n = self._settings.n_estimators
        arrivals, labels, distances = (np.repeat(part[:, :1], n, axis=1) for part in replies[0])
        return arrivals, labels, distances

    def _queried_actors(self) -> list[int] | None:
        """Which actors to query: before there are trees, all actors have the same examples."""
        return None if self._driver.is_planted else [0]

    def neighbors(self, rows: NDArray[Any], n: int, n_jobs: int, **options: Any) -> Any:
        """Return distances, arrival numbers and ids of the closest that the trees compared."""
        return self._safely(
            lambda: merged_neighbors(self._group, self._queried_actors(), rows, n, n_jobs, options)
        )

    def within(self, rows: NDArray[Any], radius: float, n_jobs: int, **options: Any) -> Any:
        """Return where each row's end, and distances, arrivals and ids within a radius."""
        return self._safely(
            lambda: merged_within(
                self._group, self._queried_actors(), rows, radius, n_jobs, options
            )
        )

    def paths(self, row: NDArray[Any]) -> Any:
        """Return each tree's path, the trees' weights, the estimate, and the examples met."""
        if self.labels.rules["estimator"] == "nearest":
            return self.gathered().paths(row)
        with self._lock:
            return joined_paths(self._run("call", "paths", row), self._driver)

    # What it is

    def snapshot(self, searched: bool = False) -> Gathered:
        """Return the state of all trees, as an engine has it that holds them all."""
        return Gathered(self)

    def state(self, with_positions: bool = True) -> State:
        """Return the state of all trees as arrays."""
        with self._lock:
            return merged(self._run("state", with_positions), self._driver.state())

    def gathered(self) -> Forest:
        """Return an engine in this process that has all trees."""
        engine = new_engine(self._settings, self.labels)
        engine.restore(self.state(), "kept")
        return engine

    def digest(self, label_keys: Any) -> Any:
        """Return a hash for each tree, one of the examples, and one of what was decided."""
        with self._lock:
            votes = self._driver.state()
            parts = self._run("call", "digest", label_keys, votes)
            return composed_digest(parts, self._group.trees, planted=self._driver.is_planted)

    def features(self) -> Any:
        """Return the features' weights, and their variances over what is stored."""
        if isinstance(self._settings.adaptive.get("feature_weights"), str):
            # Over the last arrivals, which all actors know.
            return self._run("call", "features", only=[0])[0]
        return self.gathered().features()

    def stats(self) -> dict[str, Any]:
        """Return counts, costs and bytes, over all actors."""
        with self._lock:
            reports = self._run("call", "stats")
            stored = self._safely(lambda: n_stored(self._group))
            return joined_stats(reports, stored, self._driver)
