"""A classifier or regressor that is sharded by examples.

Each actor has a forest of its own, with all trees, over every n-th example. It learns as many times
as fast, and each actor stores its part alone; but it is another forest than that of one process,
and on the same data it is less accurate, because every shard knows a part of the examples only.

Answers are made of the leaves of all shards' trees, as a forest makes them of its trees' (Shepard).
Weights 1 / distance add up, so a shard sends their sums over its own trees: by class, or times the
targets. Examples at distance 0 decide alone, so theirs are sent apart; if all are infinitely far,
they decide equally.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import NO_RANK
from boundary_forest.estimators.fitted import Forest, new_driver
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.ray.actor_group import Cluster
from boundary_forest.ray.shards import ShardedIndex


class ShardedForest(ShardedIndex):
    """Shards of a forest that predicts, behind the methods of the compiled engine.

    Parameters
    ----------
    settings : ForestSettings
        Of every shard.
    labels : LabelPolicy
        What labels mean.
    cluster : Cluster
        The actors, one for each shard.
    """

    def __init__(self, settings: ForestSettings, labels: LabelPolicy, cluster: Cluster) -> None:
        self._driver = new_driver(settings, labels)
        self._are_classes = labels.rules["estimator"] == "shepard_vote"
        self._is_uniform = settings.adaptive.get("weights") == "uniform"
        super().__init__(settings, labels, cluster)

    @property
    def n_classes(self) -> int:  # type: ignore[override]
        """1 + the largest class code that was learned."""
        return self._driver.n_classes

    @property
    def label_deviation(self) -> float:  # type: ignore[override]
        """The standard deviation of the labels seen."""
        return self._driver.label_deviation

    def learn(
        self, rows: NDArray[Any], labels: NDArray[np.float64], n_jobs: int, ids: Any = None
    ) -> None:
        """Learn rows, each in its shard."""
        with self._lock:
            super().learn(rows, labels, n_jobs, ids)
            self._driver.learn(np.ascontiguousarray(labels))

    def classes_without(self, ids: Any) -> NDArray[np.uint32]:
        """Return the codes of classes that examples other than these have."""
        return np.unique(np.concatenate(self._run("call", "classes_without", ids)))

    def predict_then_learn(self, *arguments: Any, **options: Any) -> None:
        """Refuse: each answer would have to wait until all shards have learned the rows before."""
        raise NotImplementedError(
            "predict_then_learn is not available with shard_by='examples': call predict, then "
            "partial_fit, for each batch"
        )

    estimate_then_learn = predict_then_learn

    def predict(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the label vector that all shards' trees make up; None if a class has no rank."""
        answers = self.estimate(rows, n_jobs, ranks)
        if answers is None or not self._are_classes:
            return answers
        codes = _codes(ranks)  # the first of equals wins
        return codes[answers.argmax(axis=1)].astype(np.float64)[:, None]

    def estimate(self, rows: NDArray[Any], n_jobs: int, ranks: Any = None) -> Any:
        """Return the same, but in a vote each class's share, by rank."""
        with self._lock:
            n_classes = self._driver.n_classes
            if ranks is not None and len(ranks) < n_classes:
                return None
            width = len(ranks) if self._are_classes else 0
            queries = self._group.put(rows)
            parts = self._run("sums", queries, n_jobs, width, self._is_uniform)
        known = [part for part in parts if part is not None]
        sums, at_zero, equally = (sum(part[j] for part in known) for j in range(3))
        chosen = np.where(at_zero[:, -1:] > 0, at_zero, sums)
        chosen = np.where(chosen[:, -1:] > 0, chosen, equally)
        shares: NDArray[np.float64] = chosen[:, :-1] / chosen[:, -1:]
        if not self._are_classes:
            return shares
        return shares[:, _codes(ranks)]

    def gathered(self) -> Forest:
        """Refuse: no forest of one process is the same."""
        raise NotImplementedError(
            "a forest that is sharded by examples cannot be gathered into one: use shard_by='trees'"
        )


def _codes(ranks: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the codes of classes by rank, without those that have none."""
    return np.argsort(ranks)[: np.count_nonzero(ranks != NO_RANK)]
