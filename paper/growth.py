"""A forest that grows with the stream, and what a query costs on the way.

Comparisons are the paper's unit, per tree: 1 for the root plus the children of every node visited.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from boundary_forest import BoundaryForestNeighbors
from paper.streams import Stream

LEARNED_AT_ONCE = 50_000


def sizes(least: int, most: int, n: int) -> list[int]:
    """About n numbers of examples, evenly spread by their logarithms."""
    return sorted({round(size) for size in np.geomspace(least, most, n).tolist()})


def line(
    stream: Stream,
    ends: list[int],
    *,
    k: int | None,
    n_trees: int = 10,
    seed: int = 0,
    n_jobs: int = 1,
    structure: bool = True,
) -> dict[str, list[Any]]:
    """Figures at each number N of examples, as lists of equal length.

    ``query``: comparisons per query and tree. ``learn``: comparisons per tree for all N so far.
    With ``structure``, means and shares over the trees, ``root``: children of the root; ``full``:
    share of the trees whose root has k; ``widest``: the most children of any node, the median of
    the trees; ``most``: of all trees.
    """
    forest = BoundaryForestNeighbors(
        search="paper", n_estimators=n_trees, max_children=k, n_jobs=n_jobs, random_state=seed
    )
    found: dict[str, list[Any]] = {}
    for seen, end in pairwise([0, *ends]):
        for start in range(seen, end, LEARNED_AT_ONCE):
            forest.partial_fit(stream.rows(start, min(start + LEARNED_AT_ONCE, end)))
        figures = {
            "query": query_comparisons(forest, stream.queries),
            "learn": forest.stats()["comparisons"]["learn"] / n_trees,
            **(children(forest, k) if structure else {}),
        }
        for name, value in figures.items():
            found.setdefault(name, []).append(value)
    return found


def query_comparisons(forest: BoundaryForestNeighbors, queries: Any) -> float:
    """Comparisons per query and tree."""
    before = forest.stats()["comparisons"]["query"]
    forest.kneighbors(queries, 1)
    made = forest.stats()["comparisons"]["query"] - before
    return float(made / (len(queries) * forest.n_estimators))


def children(forest: BoundaryForestNeighbors, k: int | None) -> dict[str, float]:
    """How many children nodes have: the root, and the widest."""
    # The root comes first; the others' parents are arrival numbers.
    trees = [(arrivals[0], np.bincount(parents[1:])) for arrivals, parents in forest.trees()]
    widest = [int(counts.max()) for _, counts in trees]
    roots = [int(counts[root]) for root, counts in trees]
    return {
        "root": float(np.mean(roots)),
        "full": float(np.mean([k is not None and root >= k for root in roots])),
        "widest": float(np.median(widest)),
        "most": max(widest),
    }
