"""Search over the forest as a graph, in plain Python: the union of all trees' edges.

An example is linked to its parents at birth, each once, in the order of the trees, and then to
its children in order of arrival. A search descends the first tree as far as children are closer,
and then goes on best first, with a beam of the closest that it has met. Rows are compared as bytes
where that keeps the order of distances, and what is in the beam at the end by their own distances.
Ties go to the earlier arrival.

>>> import numpy as np
>>> from boundary_forest.reference.metrics import always
>>> from boundary_forest.reference.paper import BoundaryForest
>>> forest = BoundaryForest(n_T=2, d_c=always, E="nearest")
>>> for x in (0.0, 9.0, 5.0, 6.0):
...     forest.BFTrain(np.array([x]), np.zeros(0))
>>> Graph(forest, "euclidean").search(np.array([5.2]), n=2, beam=2)
[2, 3]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import metric
from boundary_forest.reference.paper import BoundaryForest, Node

Row = Any  # a 1-D numpy array

CODED = ("euclidean", "manhattan", "chebyshev", "minkowski")


def everyone(arrival: int) -> bool:
    return True


class Graph:
    """The graph of a forest whose trees have every example; ``d`` and ``p`` are its metric."""

    def __init__(self, forest: BoundaryForest, d: Any, p: float = 2.0) -> None:
        self.forest = forest
        self.rows = {arrival: x for arrival, (x, _) in sorted(forest.stored.items())}
        self.links = links(forest)
        self.d, _ = metric(d, p)
        rows = list(self.rows.values())
        has_codes = d in CODED and rows[0].dtype != np.uint8
        self.code = coding(rows[: count_for(len(rows))]) if has_codes else None
        code = self.code or (lambda x: x)
        self.walked = {arrival: code(x) for arrival, x in self.rows.items()}

    def search(
        self, y: Row, n: int, beam: int, is_returned: Callable[[int], bool] = everyone
    ) -> list[int]:
        """The arrival numbers of the n closest that the search finds."""
        width = max(beam, n)
        y_walked = self.code(y) if self.code else y
        found: dict[int, float] = {}  # all that were met, and how far they are as walked

        def meet(arrivals: list[int]) -> list[tuple[float, int]]:
            new = [a for a in arrivals if a not in found]
            if not new:
                return []
            reduced = self.d(y_walked, np.stack([self.walked[a] for a in new]))
            found.update(zip(new, reduced, strict=True))
            return sorted(zip(reduced, new, strict=True))

        self.descend(meet)
        expanded: set[int] = set()
        while True:
            in_order = sorted((reduced, a) for a, reduced in found.items())
            in_beam = [entry for entry in in_order if is_returned(entry[1])][:width]
            last = in_beam[-1] if len(in_beam) == width else (math.inf, math.inf)
            left = [a for reduced, a in in_order if a not in expanded and (reduced, a) <= last]
            if not left:
                break
            expanded.add(left[0])
            meet(self.links[left[0]])
        closest = [a for _, a in in_beam]
        if not closest:
            return []
        exactly = self.d(y, np.stack([self.rows[a] for a in closest]))
        return [a for _, a in sorted(zip(exactly, closest, strict=True))][:n]

    def descend(self, meet: Callable[[list[int]], list[tuple[float, int]]]) -> None:
        """Meet the children of the first tree's nodes, as far as some are closer."""
        v: Node = self.forest.trees[0].nodes[0]
        [at_v] = meet([v.arrival])
        while v.children:
            closest = meet([child.arrival for child in v.children])[0]
            if closest > at_v:
                return
            at_v = closest
            v = next(child for child in v.children if child.arrival == closest[1])


def links(forest: BoundaryForest) -> dict[int, list[int]]:
    """Each example's links, by arrival number."""
    parents: dict[int, list[int]] = {arrival: [] for arrival in sorted(forest.stored)}
    for tree in forest.trees:
        for v in tree.nodes[1:]:
            assert v.parent is not None
            parents[v.arrival].append(v.parent.arrival)
    linked: dict[int, list[int]] = {arrival: [] for arrival in parents}
    for arrival, its_parents in parents.items():
        for parent in its_parents:
            if (
                parent not in linked[arrival]
            ):  # it may be there as a child, too, if planted together
                linked[arrival].append(parent)
                linked[parent].append(arrival)
    return linked


def count_for(n: int) -> int:
    """The largest of 4, 5, 6, 7 times a power of two that is at most n; n itself below 4."""
    unit = max(n.bit_length() - 3, 0)
    return n >> unit << unit


def coding(rows: list[Row]) -> Callable[[Row], Row] | None:
    """What makes bytes of rows: with each feature's mean and one step for all."""
    means = np.zeros(len(rows[0]))
    for x in rows:
        means += x.astype(np.float64)
    means /= len(rows)
    squares = np.zeros(len(means))
    for x in rows:
        squares += (x.astype(np.float64) - means) * (x.astype(np.float64) - means)
    step = 8.0 * math.sqrt(squares.max() / len(rows)) / 255.0
    if not 0.0 < step < math.inf:
        return None
    scale = 1.0 / step
    lows = means * scale - 127.5
    if not math.isfinite(scale) or not np.isfinite(lows).all():
        return None

    def code(x: Row) -> Row:
        y = np.clip(x.astype(np.float64) * scale - lows, 0.0, 255.0)
        return (y + 0.5).astype(np.uint8)

    return code
