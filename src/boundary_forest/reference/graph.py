"""Search over the forest as a graph, in plain Python: the union of all trees' edges.

An example is linked to its parents at birth, each once, in the order of the trees, and then to
its children in order of arrival. A search descends the first tree as far as children are closer,
and then goes on best first, with a beam of the closest that it has met: those that are not much
farther than the n-th nearest. Rows are compared as bytes where that keeps the order of distances,
and what is in the beam at the end by their own distances. Ties go to the earlier arrival.

>>> import numpy as np
>>> from boundary_forest.reference.metrics import always
>>> from boundary_forest.reference.extended import ExtendedForest
>>> forest = ExtendedForest(n_T=2, d_c=always, E="nearest", has_graph=True)
>>> for x in (0.0, 9.0, 5.0, 6.0):
...     forest.BFTrain(np.array([x]), np.zeros(0))
>>> Graph(forest, "euclidean").search(np.array([5.2]), n=2, beam=2)
[2, 3]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from boundary_forest.reference.metrics import metric
from boundary_forest.reference.paper import BoundaryForest, Node

Row = Any  # a 1-D numpy array

CODED = ("euclidean", "manhattan", "chebyshev", "minkowski", "cosine")


N_ASKED, MOST_OTHERS = 32, 256  # what typical distances are measured by


def everyone(arrival: int) -> bool:
    return True


class Width(NamedTuple):
    """A beam keeps ``least``, and up to ``most`` of those within factor times the n-th."""

    n: int
    least: int
    most: int
    factor: float = math.inf


class Walk:
    """What a walk has met, and what of it is in the beam; it goes on best first."""

    def __init__(self, d: Any, rows: dict[int, Row], y: Row) -> None:
        self.d, self.rows, self.y = d, rows, y
        self.met: dict[int, float] = {}

    def meet(self, arrivals: list[int]) -> list[tuple[float, int]]:
        new = [a for a in arrivals if a not in self.met and a in self.rows]
        if not new:
            return []
        reduced = self.d(self.y, np.stack([self.rows[a] for a in new]))
        self.met.update(zip(new, reduced, strict=True))
        return sorted(zip(reduced, new, strict=True))

    def run(
        self,
        links: dict[int, list[int]],
        width: Width,
        is_returned: Callable[[int], bool] = everyone,
    ) -> list[tuple[float, int]]:
        """What is in the beam in the end, in order."""
        expanded: set[int] = set()
        while True:
            in_order = sorted((reduced, a) for a, reduced in self.met.items())
            in_beam, last = beam_of([x for x in in_order if is_returned(x[1])], width)
            left = [a for reduced, a in in_order if a not in expanded and (reduced, a) <= last]
            if not left:
                return in_beam
            expanded.add(left[0])
            self.meet(links[left[0]])


def beam_of(
    returned: list[tuple[float, int]], width: Width
) -> tuple[list[tuple[float, int]], tuple[float, float]]:
    """The part of those that may be returned which is kept, and where what is walked by ends."""
    bound = width.factor * returned[width.n - 1][0] if 0 < width.n <= len(returned) else math.inf
    within = sum(reduced <= bound for reduced, _ in returned)
    n = min(max(within, width.least), width.most)
    kept = returned[:n]
    if len(returned) < width.least:
        return kept, (math.inf, math.inf)
    last: tuple[float, float] = kept[-1]
    return kept, last if n == width.most else max(last, (bound, math.inf))


class Graph:
    """The graph of a forest whose trees have every example; ``d`` and ``p`` are its metric."""

    def __init__(self, forest: BoundaryForest, d: Any, p: float = 2.0) -> None:
        self.forest = forest
        self.rows = {arrival: x for arrival, (x, _) in sorted(forest.stored.items())}
        self.links = links(forest)
        self.d, _ = metric(d, p)
        rows = list(self.rows.values())
        has_codes = d in CODED and rows[0].dtype != np.uint8
        whole = of_length_1 if d == "cosine" else (lambda x: x)
        self.code = coding(rows[: count_for(len(rows))], whole) if has_codes else None
        code = self.code or (lambda x: x)
        self.d_of_codes = metric("euclidean" if d == "cosine" else d, p)[0]
        self.walked = {arrival: code(x) for arrival, x in self.rows.items()}
        has_ratios = not callable(d) and d != "inner_product"
        self.compared_per_example = 16.0  # distances of a typical search per example of its beam
        self.sums = self.typical(count_for(len(rows))) if has_ratios else []
        self.cost_ratio = 1.0 if callable(d) else 1.0 + 1024.0 / (rows[0].nbytes + 256.0)
        self.evaluations = 0  # of searches

    def cheapest(
        self, y: Row, n: int, beam: int, is_returned: Callable[[int], bool] = everyone
    ) -> list[int]:
        """As ``search``; or, if that is estimated to cost more, the n closest of all."""
        returned = [a for a in self.rows if is_returned(a)]
        per_example = self.cost_ratio * (16.0 + self.compared_per_example)
        widest = float(len(returned)) * len(returned) / (per_example * len(self.rows))
        if max(min(beam, len(self.rows)), n) <= widest:
            return self.search(y, n, beam, is_returned)
        reduced = self.d(y, np.stack([self.rows[a] for a in returned]))
        self.evaluations += len(returned)
        return [a for _, a in sorted(zip(reduced, returned, strict=True))][:n]

    def search(
        self, y: Row, n: int, beam: int, is_returned: Callable[[int], bool] = everyone
    ) -> list[int]:
        """The arrival numbers of the n closest that the search finds."""
        width = self.width(min(beam, len(self.rows)), n, sum(is_returned(a) for a in self.rows))
        if self.code:
            in_beam = self.walk(self.d_of_codes, self.code(y), self.walked, width, is_returned)
            zeros = np.zeros(len(y), np.uint8)
            if in_beam[:n][-1][0] > self.d_of_codes(zeros, (zeros + 1)[None])[0]:
                closest = [a for _, a in in_beam]
                exactly = self.d(y, np.stack([self.rows[a] for a in closest]))
                self.evaluations += len(closest)
                return [a for _, a in sorted(zip(exactly, closest, strict=True))][:n]
        return [a for _, a in self.walk(self.d, y, self.rows, width, is_returned)][:n]

    def walk(
        self,
        d: Any,
        y: Row,
        rows: dict[int, Row],
        width: Width,
        is_returned: Callable[[int], bool],
    ) -> list[tuple[float, int]]:
        walk = Walk(d, rows, y)
        self.descend(walk.meet)
        in_beam = walk.run(self.links, width, is_returned)
        self.evaluations += len(walk.met)
        return in_beam

    def apply(self, y: Row, is_returned: Callable[[int], bool] = everyone) -> list[int]:
        """Where the trees end, or else the closest that they compared and may return, or of all."""
        found: list[int] = []
        for tree in self.forest.trees:
            v = tree.BTQuery(y, self.forest.seen)
            compared: list[Node] = [tree.nodes[0]]
            w: Node | None = v
            while w is not None:
                compared += w.children
                w = w.parent
            closest = [
                self.closest(y, [a for a in some if is_returned(a)])
                for some in ([v.arrival], [u.arrival for u in compared], list(self.rows))
            ]
            found.append(next(a for a in closest if a is not None))
        return found

    def closest(self, y: Row, arrivals: list[int]) -> int | None:
        reduced = self.d(y, np.stack([self.rows[a] for a in arrivals])) if arrivals else []
        return min(zip(reduced, arrivals, strict=True), default=(0.0, None))[1]

    def typical(self, count: int) -> list[float]:
        """Sums of how far the nearest, second, fourth, ... others of some examples are."""
        sums = [0.0] * min(MOST_OTHERS, count // 4).bit_length()
        rows = {a: self.walked[a] for a in list(self.rows)[:count]}
        n_compared = n_expanded = 0
        for i in range(N_ASKED if sums else 0):
            asked = list(rows)[(2 * i + 1) * count // (2 * N_ASKED)]
            walk = Walk(self.d_of_codes if self.code else self.d, rows, rows[asked])
            walk.meet([asked])
            n = (1 << (len(sums) - 1)) + 1
            found = walk.run(self.links, Width(n, n, n))
            if len(found) == n:  # among the first alone, it may be linked to fewer
                sums = [total + float(found[1 << j][0]) for j, total in enumerate(sums)]
                n_compared, n_expanded = n_compared + len(walk.met), n_expanded + n
        if n_expanded:
            self.compared_per_example = n_compared / n_expanded
        return sums

    def width(self, beam: int, n: int, n_allowed: int) -> Width:
        """The typical search goes on from ``beam`` examples."""

        def at_most(m: int) -> int:
            return min(max(m, n), n_allowed)

        if len(self.sums) > 1:
            near, far = sum_at(self.sums, n), sum_at(self.sums, max(beam, n))
            if near > 0.0 and math.isfinite(far):
                return Width(n, at_most(beam // 4), at_most(4 * beam), far / near)
        return Width(n, at_most(beam), at_most(beam))

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


def sum_at(sums: list[float], rank: int) -> float:
    """In between, on a straight line; beyond the last, as from the last but one to the last."""
    last, i = len(sums) - 1, rank.bit_length() - 1
    past = rank / float(1 << i) - 1.0
    if i < last:
        return sums[i] + (sums[i + 1] - sums[i]) * past
    if sums[last - 1] == 0.0:
        return math.nan
    growth = sums[last] / sums[last - 1]
    total = sums[last]
    for _ in range(last, i):
        total *= growth
    return total + total * (growth - 1.0) * past


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


def of_length_1(x: Row) -> Row:
    """The direction of a row, if it has one."""
    x = x.astype(np.float64)
    square = 0.0
    for value in x.tolist():
        square += value * value
    return x / math.sqrt(square) if 0.0 < square < math.inf else x


def coding(rows: list[Row], whole: Callable[[Row], Row]) -> Callable[[Row], Row] | None:
    """What makes bytes of ``whole`` rows: with each feature's mean and one step for all."""
    rows = [whole(x) for x in rows]
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
        y = np.clip(whole(x).astype(np.float64) * scale - lows, 0.0, 255.0)
        return (y + 0.5).astype(np.uint8)

    return code
