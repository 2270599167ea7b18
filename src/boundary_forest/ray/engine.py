"""A forest on a cluster behind the interface of the compiled engine.

Estimators talk to it as to an engine of their own process. Each actor learns the whole stream for
its own trees; a batch is put into the object store once. What needs all trees (answers, votes) is
computed here by the compiled ``Driver``, and what needs all stored examples is exchanged between
the actors at the arrival counts that it names (``exchange.py``).

Learning calls hold the lock while a part of a batch is learned, and queries while they are
submitted. Actors work in the order of submission, so that a query sees one prefix of the stream in
all of them.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable.interrupts import Interrupts
from boundary_forest.estimators.blocks import joined
from boundary_forest.estimators.fitted import Driver, Forest, Settings, new_driver, new_engine
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.actors import Cluster, Crew
from boundary_forest.ray.exchange import exchange, n_stored
from boundary_forest.ray.gathering import (
    Gathered,
    composed_digest,
    joined_paths,
    joined_stats,
)
from boundary_forest.ray.retrieval import merged_neighbors, merged_within
from boundary_forest.ray.states import State, driver_state, merged, split

MOST_ROWS = 8192  # learned between two moments at which a call can be interrupted

Ends = tuple[NDArray[Any], NDArray[Any], NDArray[Any]]  # arrivals, labels and distances


class SpreadForest:
    """The trees of one forest, on the actors of a Ray cluster.

    Parameters
    ----------
    settings : Settings
        What its trees are grown with.
    labels : LabelPolicy
        What its labels mean.
    cluster : Cluster
        The actors.
    state : dict or None, default=None
        Of an engine that has all trees, to begin with.
    """

    def __init__(
        self,
        settings: Settings,
        labels: LabelPolicy,
        cluster: Cluster,
        state: State | None = None,
    ) -> None:
        self._settings = settings
        self._labels = labels
        self._lock = threading.RLock()
        self._driver = new_driver(settings, labels)
        trees = cluster.ranges(settings.n_estimators)
        states = None
        if state is not None:
            rule = int(self._driver.state()["vote_power"])
            states = split(state, trees, rule)
            self._driver.restore(driver_state(state))
        self._crew = Crew(cluster, settings, labels, trees, states)
        self._max_stored = settings.adaptive.get("max_stored")
        self._stored = 0 if state is None else len(state["arrivals"])

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
        said = []
        for begin, end in self._cuts(len(rows)):
            answers, ends, weights = self._learn_cut(
                rows, labels, n_jobs, ids, begin, end, asked=True, shares=shares, ranks=ranks
            )
            arrivals, of_ends, distances = ends
            said.append((answers, arrivals, of_ends, distances, weights))
        if not said:  # of the only row there is no answer
            width = 0 if ranks is None else len(ranks)
            return np.empty((0, width if shares else self._settings.label_length))
        answers, *found = joined(said)
        return (answers, tuple(found)) if with_ends else answers

    def _cuts(self, n: int) -> Any:
        """Go through n rows in parts, none of which goes beyond an exchange."""
        begin = 0
        while begin < n:
            with self._lock:
                most = min(MOST_ROWS, self._driver.block_end(self._stored) - self._driver.seen)
            end = min(n, begin + most)
            yield begin, end
            begin = end

    def _learn_cut(
        self,
        rows: NDArray[Any],
        labels: NDArray[np.float64],
        n_jobs: int,
        ids: Any,
        begin: int,
        end: int,
        *,
        asked: bool = False,
        shares: bool = False,
        ranks: Any = None,
    ) -> Any:
        with Interrupts(), self._lock:
            driver, wants = self._driver, asked or self._driver.wants_ends
            batch, targets = rows[begin:end], np.ascontiguousarray(labels[begin:end])
            names = None if ids is None else ids[begin:end]
            answers = ends = weights = None
            put = self._crew.put
            arguments = (put(np.ascontiguousarray(batch)), put(targets), n_jobs, names)
            said = self._crew.ask("learn", driver.seen, wants, *arguments)
            if wants:
                ends = _side_by_side(said)
                answers, weights = driver.hear(targets, *ends[1:], asked, shares, ranks)
            else:
                driver.learn(targets)
            self._stored = exchange(self._crew, driver, n_jobs, self._max_stored)
            return answers, ends, weights

    def learn_offline(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int, ids: Any = None
    ) -> None:
        """Learn all rows at once, each tree in an order of its own."""
        with Interrupts(), self._lock:
            put = self._crew.put
            self._crew.ask("call", "learn_offline", put(rows), put(labels), n_jobs, ids)
            self._driver.learn_offline(labels)
            self._stored = exchange(
                self._crew, self._driver, n_jobs, self._max_stored, offline=True
            )

    def check_ids(self, ids: Any, may_be_known: bool = False) -> None:
        """Raise ValueError if an id occurs twice or names a stored example."""
        with self._lock:
            self._crew.ask("call", "check_ids", ids, may_be_known)

    def renew(self) -> None:
        """Let the successors of trees that have a lifetime take over now, as far as they grow."""
        with Interrupts(), self._lock:
            self._crew.ask("call", "renew")
            self._stored = n_stored(self._crew) if self._max_stored else 0

    def forget(self, ids: Any, n_jobs: int) -> list[int]:
        """Refuse: what a tree learns again may need examples that other actors have."""
        raise NotImplementedError(
            "forget is not available on a cluster: save the forest, load it, forget there, and "
            "spread it out with from_local"
        )

    def erase_forgotten(self, n_jobs: int) -> None:
        """Do nothing: without a graph, what is forgotten is gone."""

    n_forgotten = 0

    # Answering

    def predict(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the label vector that E makes of all trees' ends; None if a class has no rank."""
        return self._answers(rows, n_jobs, ranks, shares=False)

    def estimate(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the same, but in a vote each class's share, by rank."""
        return self._answers(rows, n_jobs, ranks, shares=True)

    def _answers(self, rows: NDArray[Any], n_jobs: int, ranks: Any, *, shares: bool) -> Any:
        with self._lock:
            driver = self._current_driver()
            if ranks is not None and len(ranks) < driver.n_classes:
                return None
            ends = self._submit_ends(rows, n_jobs)
        return driver.answer(*_side_by_side(self._all_places(ends))[1:], shares, ranks)[0]

    def apply(self, rows: NDArray[Any], n_jobs: int) -> NDArray[np.uint64]:
        """Return the arrival number of the example that each tree ends at."""
        with self._lock:
            ends = self._submit_ends(rows, n_jobs)
        return _side_by_side(self._all_places(ends))[0]

    def _current_driver(self) -> Driver:
        """Return a driver that knows how votes are weighed now, whatever is learned meanwhile."""
        if self._settings.adaptive.get("weights") != "auto":
            return self._driver
        driver = new_driver(self._settings, self._labels)
        driver.restore(self._driver.state())
        return driver

    def _submit_ends(self, rows: NDArray[Any], n_jobs: int) -> list[Any]:
        return self._crew.submit("call", "ends", self._crew.put(rows), n_jobs, only=self._asked())

    def _asked(self) -> list[int] | None:
        """Whom to ask: before there are trees, all actors have the same examples."""
        return None if self._driver.is_planted else [0]

    def _all_places(self, references: list[Any]) -> list[Ends]:
        said: list[Ends] = self._crew.results(references)
        if len(said) == len(self._crew):
            return said
        n = self._settings.n_estimators
        arrivals, labels, distances = (np.repeat(part[:, :1], n, axis=1) for part in said[0])
        return [(arrivals, labels, distances)]

    def neighbors(self, rows: NDArray[Any], n: int, n_jobs: int, **options: Any) -> Any:
        """Return distances, arrival numbers and ids of the closest that the trees compared."""
        with self._lock:
            return merged_neighbors(self._crew, self._asked(), rows, n, n_jobs, options)

    def within(self, rows: NDArray[Any], radius: float, n_jobs: int, **options: Any) -> Any:
        """Return where each row's end, and distances, arrivals and ids within a radius."""
        with self._lock:
            return merged_within(self._crew, self._asked(), rows, radius, n_jobs, options)

    def paths(self, row: NDArray[Any]) -> Any:
        """Return each tree's path, the trees' weights, the estimate, and the examples met."""
        if self._labels.rules["estimator"] == "nearest":
            return self.gathered().paths(row)
        with self._lock:
            return joined_paths(self._crew.ask("call", "paths", row), self._driver)

    # What it is

    def snapshot(self, searched: bool = False) -> Gathered:
        """Return the state of all trees, as an engine has it that holds them all."""
        return Gathered(self)

    def state(self, with_positions: bool = True) -> State:
        """Return the state of all trees as arrays."""
        with self._lock:
            return merged(self._crew.ask("state", with_positions), self._driver.state())

    def gathered(self) -> Forest:
        """Return an engine in this process that has all trees."""
        engine = new_engine(self._settings, self._labels)
        engine.restore(self.state(), "kept")
        return engine

    def digest(self, label_keys: Any) -> Any:
        """Return a hash for each tree, one of the examples, and one of what was decided."""
        with self._lock:
            votes = self._driver.state()
            parts = self._crew.ask("call", "digest", label_keys, votes)
            return composed_digest(parts, self._crew.trees, planted=self._driver.is_planted)

    def features(self) -> Any:
        """Return the features' weights, and their variances over what is stored."""
        if isinstance(self._settings.adaptive.get("feature_weights"), str):
            with self._lock:  # over the last arrivals, which all actors know
                return self._crew.ask("call", "features", only=[0])[0]
        return self.gathered().features()

    def stats(self) -> dict[str, Any]:
        """Return counts, costs and bytes, over all actors."""
        with self._lock:
            return joined_stats(self._crew.ask("call", "stats"), n_stored(self._crew), self._driver)


def _side_by_side(parts: list[Ends]) -> Ends:
    arrivals, labels, distances = (
        np.concatenate(of_all, axis=1) for of_all in zip(*parts, strict=True)
    )
    return arrivals, labels, distances
