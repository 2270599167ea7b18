"""Classification on a cluster."""

from __future__ import annotations

import os
from typing import Any

from boundary_forest.estimators.classifier import BoundaryForestClassifier as Local
from boundary_forest.ray.base import ClusterMixin


class BoundaryForestClassifier(ClusterMixin, Local):
    """:class:`boundary_forest.BoundaryForestClassifier` on a Ray cluster.

    Parameters
    ----------
    n_estimators, max_children, metric, metric_params, dtype, offline, n_jobs, random_state, \
feature_weights, max_samples, weights, forgetting, max_stored
        As in one process.
    n_actors : int or None, default=None
        How many actors hold the trees; None is one for each processor of the cluster, as far as
        there are trees.
    num_cpus : float, default=1
        Processors that each actor reserves; ``n_jobs`` is how many threads it uses.
    resources : dict or None, default=None
        Further resources that each actor reserves, by Ray's names.
    checkpoint_dir : str, path-like or None, default=None
        A folder that all nodes see. What was learned is there when a call returns: actors that die
        are brought back from it, and if this process dies, :meth:`from_checkpoint` goes on.
    checkpoint_rows : int, default=100_000
        After how many examples actors write snapshots there.
    shard_by : {"trees", "examples"}, default="trees"
        What actors divide among themselves. "trees" is the forest of one process. "examples" is
        another forest: each actor has all trees over every n-th example, which learns several times
        as fast and needs less memory, and is less accurate. What needs all examples in one place is
        refused then: ``checkpoint_dir``, ``offline``, ``feature_weights="learned"``,
        ``weights="auto"``, ``forgetting``, ``max_stored``, ``predict_then_learn``, ``apply``,
        ``explain`` and ``save``.

    Notes
    -----
    For the same ``random_state``, the forest and every answer are those of the estimator in one
    process. Functions as ``metric`` are refused, and ``forget`` gathers the forest.

    Examples
    --------
    >>> from boundary_forest.ray import BoundaryForestClassifier  # doctest: +SKIP
    >>> forest = BoundaryForestClassifier(n_actors=2, random_state=0)  # doctest: +SKIP
    >>> forest.partial_fit([[0], [9]], ["a", "b"]).predict([[8]]).tolist()  # doctest: +SKIP
    ['b']
    """

    local = Local

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        feature_weights: Any = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: Any = None,
        max_stored: int | None = None,
        n_actors: int | None = None,
        num_cpus: float = 1,
        resources: dict[str, float] | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_rows: int = 100_000,
        shard_by: str = "trees",
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_children=max_children,
            metric=metric,
            metric_params=metric_params,
            dtype=dtype,
            offline=offline,
            n_jobs=n_jobs,
            random_state=random_state,
            feature_weights=feature_weights,
            max_samples=max_samples,
            weights=weights,
            forgetting=forgetting,
            max_stored=max_stored,
        )
        self.n_actors = n_actors
        self.num_cpus = num_cpus
        self.resources = resources
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_rows = checkpoint_rows
        self.shard_by = shard_by
