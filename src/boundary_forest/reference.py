"""Algorithms 1 and 2 of the paper in plain Python: the oracle that the compiled engine is held to.

Names are the paper's: ``n_T`` trees, at most ``k`` children, ``d`` the metric, ``d_c`` the metric
on labels and ``epsilon`` its threshold, ``y`` the query, ``v`` the current node, ``E`` the
estimator. What the paper leaves open is settled here as in the engine, bit for bit: how ties are
drawn, in which order distances are summed, what happens before ``n_T`` examples have arrived.

>>> import numpy as np
>>> forest = BoundaryForest(n_T=2, k=50, d="euclidean", epsilon=0.0, seed=0)
>>> for x, c in [([0.0], [0.0]), ([1.0], [1.0]), ([9.0], [0.0])]:
...     forest.BFTrain(np.array(x), np.array(c))
>>> [v.arrival for v in forest.BFQuery(np.array([8.0]))]
[2, 2]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Row = Any  # a 1-D numpy array
Examples = Any  # (position, label) by arrival: a list or a dict
Distances = Callable[[Row, Any], list[float]]  # of y to every row of an array, in reduced form


# --- randomness: a function of what it is for -----------------------------------------------------

MASK = 2**64 - 1


def hash64(*words: int) -> int:
    h = 0
    for word in words:
        z = ((h + 0x9E3779B97F4A7C15) & MASK) ^ word
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        h = z ^ (z >> 31)
    return h


def fingerprint(y: Row) -> int:
    """Of where the row is not zero, and its values there as doubles."""
    places = np.flatnonzero(y)
    words = y[places].astype(np.float64).view(np.uint64)
    return hash64(*(int(word) for pair in zip(places, words, strict=True) for word in pair))


def shuffled(n: int, seed: int, tree: int) -> list[int]:
    order = list(range(n))
    for j in range(n, 1, -1):
        pick = hash64(seed, tree, j) % j
        order[j - 1], order[pick] = order[pick], order[j - 1]
    return order


# --- Algorithm 1: the boundary tree ---------------------------------------------------------------


class Node:
    def __init__(self, x: Row, c: Row, arrival: int, parent: Node | None = None) -> None:
        self.x, self.c, self.arrival, self.parent = x, c, arrival, parent
        self.children: list[Node] = []


class BoundaryTree:
    """``key`` begins the hash that settles ties: (tree,), or (tree, generation) if grown anew."""

    def __init__(self, forest: BoundaryForest, key: tuple[int, ...], root: Node) -> None:
        self.forest, self.key, self.nodes = forest, key, [root]

    def BTQuery(self, y: Row, seen: int) -> Node:
        v = self.nodes[0]
        self.forest.comparisons += 1
        while True:
            A_v = v.children + ([v] if len(v.children) < self.forest.k else [])
            self.forest.comparisons += len(v.children)
            v_min = self.forest.argmin(A_v, y, self.key, seen)
            if v_min is v:
                return v
            v = v_min

    def BTTrain(self, y: Row, c: Row, arrival: int, seen: int, epsilon: float) -> None:
        v_min = self.BTQuery(y, seen)
        if self.forest.d_c(c, v_min.c) > epsilon:
            v_new = Node(y, c, arrival, v_min)
            self.nodes.append(v_new)
            v_min.children.append(v_new)


# --- Algorithm 2: the boundary forest -------------------------------------------------------------


class BoundaryForest:
    """``epsilon`` is a number, or None for a tenth of the spread of the labels before."""

    def __init__(
        self,
        *,
        n_T: int = 50,
        k: float = 50,
        d: str | Callable[[Row, Row], float] = "euclidean",
        d_c: Callable[[Row, Row], float] | None = None,
        epsilon: float | None = 0.0,
        seed: int = 0,
        p: float = 2.0,
    ) -> None:
        self.n_T, self.k, self.seed, self.epsilon = n_T, k, seed, epsilon
        self.d, self.distance = metric(d, p)
        self.d_c = d_c or euclidean_label_distance
        self.trees: list[BoundaryTree] = []
        self.buffer: list[Node] = []
        self.labels: list[Row] = []
        self.comparisons = 0

    @property
    def seen(self) -> int:
        return len(self.labels)

    def argmin(self, A: list[Node], y: Row, tree: tuple[int, ...], seen: int) -> Node:
        """The node of A closest to y; ties by a priority that is random, but not by chance."""
        reduced = self.d(y, np.stack([w.x for w in A]))
        least = min(reduced)
        ties = [w for w, r in zip(A, reduced, strict=True) if r == least]
        if len(ties) == 1:
            return ties[0]
        key = seen if least == 0 else fingerprint(y)
        return min(ties, key=lambda w: hash64(self.seed, *tree, key, w.arrival))

    def BFQuery(self, y: Row) -> list[Node]:
        """The locally closest node of each tree, on which E works."""
        if not self.trees:
            self.comparisons += len(self.buffer)
            return [self.argmin(self.buffer, y, (0,), self.seen)] * self.n_T
        return [tree.BTQuery(y, self.seen) for tree in self.trees]

    def BFTrain(self, y: Row, c: Row) -> None:
        self.labels.append(c)
        if self.trees:
            for tree in self.trees:
                tree.BTTrain(y, c, self.seen - 1, self.seen - 1, self.threshold(self.seen - 1))
        else:
            self.buffer.append(Node(y, c, self.seen - 1))
            if self.seen == self.n_T:
                self.BFInitialization()

    def BFInitialization(self) -> None:
        """Tree i takes example i as its root and the others in its own random order."""
        for i in range(self.n_T):
            order = [i] + [j for j in shuffled(self.n_T, self.seed, i) if j != i]
            self.trees.append(self.grow((i,), order, [(w.x, w.c) for w in self.buffer]))

    def train_offline(self, X: Row, C: Row) -> None:
        """OBF: each tree is shown its own shuffle of everything."""
        self.labels = list(C)
        examples = list(zip(X, C, strict=True))
        for i in range(self.n_T):
            self.trees.append(self.grow((i,), shuffled(len(X), self.seed, i), examples))

    def grow(self, key: tuple[int, ...], order: list[int], examples: Examples) -> BoundaryTree:
        x, c = examples[order[0]]
        tree = BoundaryTree(self, key, Node(x, c, order[0]))
        for seen, j in enumerate(order[1:], start=1):
            x, c = examples[j]
            tree.BTTrain(x, c, j, seen, self.threshold(len(self.labels)))
        return tree

    def regrow(self, i: int, order: list[int], generation: int) -> None:
        """Tree i anew, from stored examples in this order; what no tree has is stored no more."""
        stored = {v.arrival: (v.x, v.c) for tree in self.trees for v in tree.nodes}
        self.trees[i] = self.grow((i, generation), order, stored)

    def threshold(self, n: int) -> float:
        """Epsilon, or a tenth of the standard deviation of the first n labels (Welford)."""
        if self.epsilon is not None:
            return self.epsilon
        C = np.array(self.labels[:n])
        large = abs(C).max(axis=0, initial=0) > 2.0**480  # their squares might overflow
        mean, squares = np.zeros(C.shape[1]), np.zeros(C.shape[1])
        for count, c in enumerate(np.where(large, C * 2.0**-600, C), start=1):
            before = c - mean
            mean = mean + before / count
            squares = squares + before * (c - mean)
        if not large.any():
            return 0.1 * math.sqrt(sum(float(s) / n for s in squares))
        parts = 0.1 * np.sqrt(squares / n) * np.where(large, 2.0**600, 1.0)
        return euclidean_label_distance(parts, np.zeros(len(parts)))

    # E, the three estimators

    def shepard_weights(self, y: Row, v: list[Node]) -> list[float]:
        d = [self.distance(self.d(y, v_i.x[None])[0], len(y)) for v_i in v]
        if min(d) == 0:
            return [float(d_i == 0) for d_i in d]
        return [1.0 if d_i == min(d) else min(d) / d_i for d_i in d]

    def shepard_vote(self, y: Row, n_classes: int) -> Row:
        v = self.BFQuery(y)
        weights, votes = self.shepard_weights(y, v), np.zeros(n_classes)
        for v_i, w in zip(v, weights, strict=True):
            votes[int(v_i.c[0])] += w
        return votes / sum(weights)

    def shepard_mean(self, y: Row) -> Row:
        v = self.BFQuery(y)
        weights = self.shepard_weights(y, v)
        mean = self.weighted_sum(v, weights, 1.0) / sum(weights)
        if np.isfinite(mean).all():
            return mean
        C = [v_i.c for v_i in v]
        large = self.weighted_sum(v, weights, 2.0**-64) / sum(weights) * 2.0**64
        return np.where(np.isfinite(mean), mean, np.clip(large, np.min(C, 0), np.max(C, 0)))

    def weighted_sum(self, v: list[Node], weights: list[float], unit: float) -> Row:
        total = np.zeros(len(v[0].c))
        for v_i, w in zip(v, weights, strict=True):
            total = total + w * (v_i.c * unit)
        return total

    def nearest(self, y: Row) -> tuple[float, int]:
        found = ((self.d(y, v.x[None])[0], v.arrival) for v in self.BFQuery(y))
        reduced, arrival = min(found)
        return self.distance(reduced, len(y)), arrival


# --- d_c and d ------------------------------------------------------------------------------------


def euclidean_label_distance(a: Row, b: Row) -> float:
    largest = max(abs(float(x) - float(y)) for x, y in zip(a, b, strict=True))
    if largest == 0 or math.isinf(largest):
        return largest
    parts = [(float(x) - float(y)) / largest for x, y in zip(a, b, strict=True)]
    return largest * math.sqrt(sum(part * part for part in parts))


def always(a: Row, b: Row) -> float:
    """Retrieval: every example is kept."""
    return math.inf


def in_lanes(terms: Any, fold: Any = np.add) -> list[float]:
    """Folds the features: lane l takes those with i mod 16 = l in order, then 16, 8, 4, 2, 1."""
    n, features = terms.shape
    padded = np.zeros((n, -(-features // 16) * 16), dtype=terms.dtype)
    padded[:, :features] = terms
    lanes = np.zeros((n, 16), dtype=terms.dtype)
    for block in range(0, padded.shape[1], 16):
        lanes = fold(lanes, padded[:, block : block + 16])
    for half in (8, 4, 2, 1):
        lanes = fold(lanes[:, :half], lanes[:, half : 2 * half])
    return [float(value) for value in lanes[:, 0]]


def cosine(y: Row, X: Any) -> list[float]:
    qq = in_lanes((y * y)[None])[0]

    def to(x: Row, qr: float, rr: float) -> float:
        if not (0 < qq < math.inf and 0 < rr < math.inf):
            return 0.0 if (y == x).all() else 1.0 if qq == 0 or rr == 0 else math.inf
        if qr == qq == rr:
            return 0.0
        norms = math.sqrt(qq * rr)
        if not 0 < norms < math.inf:
            norms = math.sqrt(qq) * math.sqrt(rr)
        distance = 1 - qr / norms
        return 0.0 if distance < 0 else distance

    return [to(*args) for args in zip(X, in_lanes(y * X), in_lanes(X * X), strict=True)]


def canberra(y: Row, X: Any) -> list[float]:
    y, X = y.astype(np.float64), X.astype(np.float64)
    size = abs(y) + abs(X)
    return in_lanes(np.where(size == 0, 0.0, abs(y - X) / np.where(size == 0, 1.0, size)))


def power(x: float, p: float) -> float:
    """X ** p; if p is an integer or half of one, by multiplications and a square root alone."""
    if p > 64 or 2 * p != int(2 * p):
        try:
            return math.pow(x, p)
        except OverflowError:
            return math.inf
    exponent, base = int(p), x
    result = math.sqrt(x) if 2 * p % 2 == 1 else 1.0
    while exponent > 0:
        if exponent % 2 == 1:
            result *= base
        exponent, base = exponent // 2, base * base
    return result


def root(r: float, p: float) -> float:
    """The largest number whose power is at most r; the bits of numbers are ordered as they are."""
    if p > 64 or 2 * p != int(2 * p):
        return math.pow(r, 1 / p)
    if r in (0, math.inf):  # powers of small numbers underflow, but d(x, x) is 0
        return r
    below, above = 0, int(np.float64(math.inf).view(np.uint64))
    while above - below > 1:
        middle = (below + above) // 2
        if power(float(np.uint64(middle).view(np.float64)), p) <= r:
            below = middle
        else:
            above = middle
    return float(np.uint64(below).view(np.float64))


def metric(
    d: str | Callable[[Row, Row], float], p: float
) -> tuple[Distances, Callable[[float, int], float]]:
    """The reduced distances of y to rows, and what turns one into a distance."""

    def minkowski(y: Row, X: Any) -> list[float]:
        differences = abs(y.astype(np.float64) - X.astype(np.float64))
        return in_lanes(np.array([[power(float(x), p) for x in row] for row in differences]))

    formulas: dict[str, tuple[Distances, Callable[[float, int], float]]] = {
        "euclidean": (lambda y, X: in_lanes((y - X) * (y - X)), lambda r, n: math.sqrt(r)),
        "manhattan": (lambda y, X: in_lanes(abs(y - X)), lambda r, n: r),
        "chebyshev": (lambda y, X: in_lanes(abs(y - X), np.maximum), lambda r, n: r),
        "minkowski": (minkowski, lambda r, n: root(r, p)),
        "cosine": (cosine, lambda r, n: r),
        "hamming": (lambda y, X: in_lanes((y != X).astype(np.int64)), lambda r, n: r / n),
        "canberra": (canberra, lambda r, n: r),
        "inner_product": (lambda y, X: [-r for r in in_lanes(y * X)], lambda r, n: 1 + r),
    }
    if callable(d):
        f = d
        return lambda y, X: [f(y.astype(float), x.astype(float)) for x in X], lambda r, n: r
    if d == "minkowski" and p in (1, 2):
        d = "manhattan" if p == 1 else "euclidean"
    reduced, distance = formulas[d]

    def compared(y: Row, X: Any) -> list[float]:
        """Bytes as integers; a query that the rows' type does not hold in float64; NaN is far."""
        if y.dtype != X.dtype:
            y, X = y.astype(np.float64), X.astype(np.float64)
        elif y.dtype == np.uint8:
            y, X = y.astype(np.int64), X.astype(np.int64)
        return [math.inf if math.isnan(r) else r for r in reduced(y, X)]

    return compared, distance
