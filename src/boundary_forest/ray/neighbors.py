"""Retrieval on a cluster."""

from __future__ import annotations

import os
from typing import Any

from boundary_forest.estimators.engine_constants import BEAM, PAPER
from boundary_forest.estimators.neighbors import BoundaryForestNeighbors as Local
from boundary_forest.ray.base import ClusterMixin


class BoundaryForestNeighbors(ClusterMixin, Local):
    """:class:`boundary_forest.BoundaryForestNeighbors` on a Ray cluster.

    Parameters
    ----------
    n_neighbors, mode, beam, n_estimators, max_children, metric, metric_params, dtype, offline, \
n_jobs, random_state
        As in one process.
    search : {"paper", "graph"}, default="paper"
        How neighbours are searched for. "paper" is the paper's rule, and gives the same answers as
        in one process. "graph" is sharded by examples: each actor has an index of its own over
        every n-th of them, and answers differ from those of one process. ``checkpoint_dir``,
        ``offline`` and ``upsert`` are not available then; ``save`` learns one index anew.
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

    Notes
    -----
    For the same ``random_state``, the forest and every answer are those of the estimator in one
    process. Functions as ``metric`` are refused, and ``forget`` gathers the forest.

    Examples
    --------
    >>> from boundary_forest.ray import BoundaryForestNeighbors  # doctest: +SKIP
    >>> index = BoundaryForestNeighbors(1, n_actors=2, random_state=0)  # doctest: +SKIP
    >>> index.fit([[0.0], [3.0]]).kneighbors([[2.0]])[1].tolist()  # doctest: +SKIP
    [[1]]
    """

    local = Local

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        search: str = PAPER,
        beam: int = BEAM,
        n_estimators: int = 30,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        n_actors: int | None = None,
        num_cpus: float = 1,
        resources: dict[str, float] | None = None,
        checkpoint_dir: str | os.PathLike[str] | None = None,
        checkpoint_rows: int = 100_000,
    ) -> None:
        super().__init__(
            n_neighbors=n_neighbors,
            mode=mode,
            search=search,
            beam=beam,
            n_estimators=n_estimators,
            max_children=max_children,
            metric=metric,
            metric_params=metric_params,
            dtype=dtype,
            offline=offline,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_actors = n_actors
        self.num_cpus = num_cpus
        self.resources = resources
        self.checkpoint_dir = checkpoint_dir
        self.checkpoint_rows = checkpoint_rows
