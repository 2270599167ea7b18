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
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import (
    Distances,
    added,
    euclidean_label_distance,
    metric,
)
from boundary_forest.reference.randomness import fingerprint, hash64, shuffled
from boundary_forest.reference.votes import shepard_weights, weighted_sum

Row = Any  # a 1-D numpy array
Examples = Any  # (position, label) by arrival: a list or a dict


# --- Algorithm 1: the boundary tree ---------------------------------------------------------------


class Node:
    def __init__(self, x: Row, c: Row, arrival: int, parent: Node | None = None) -> None:
        self.x, self.c, self.arrival, self.parent = x, c, arrival, parent
        self.children: list[Node] = []


class BoundaryTree:
    """``key`` begins the hash that settles ties; ``d`` is the metric."""

    def __init__(
        self, forest: BoundaryForest, key: tuple[int, ...], root: Node, d: Distances
    ) -> None:
        self.forest, self.key, self.nodes, self.d = forest, key, [root], d

    def BTQuery(self, y: Row, seen: int, start: Node | None = None) -> Node:
        v = start or self.nodes[0]
        self.forest.comparisons += 1
        while True:
            A_v = v.children + ([v] if len(v.children) < self.forest.k else [])
            self.forest.comparisons += len(v.children)
            v_min = self.forest.argmin(A_v, y, self.d, self.key, seen)
            if v_min is v:
                return v
            v = v_min

    def BTTrain(
        self, y: Row, c: Row, arrival: int, seen: int, epsilon: float, start: Node | None = None
    ) -> Node:
        v_min = self.BTQuery(y, seen, start)
        if self.forest.d_c(c, v_min.c) > epsilon:
            self.add(Node(y, c, arrival, v_min))
        return v_min

    def add(self, v_new: Node) -> None:
        self.nodes.append(v_new)
        if v_new.parent:
            v_new.parent.children.append(v_new)


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
        self.trees: Sequence[BoundaryTree] = []
        self.buffer: list[Node] = []  # until there are trees
        self.labels: list[Row] = []
        self.comparisons = 0

    @property
    def seen(self) -> int:
        return len(self.labels)

    def argmin(self, A: list[Node], y: Row, d: Distances, tree: tuple[int, ...], seen: int) -> Node:
        """The node of A closest to y; ties by a priority that is random, but not by chance."""
        reduced = d(y, np.stack([w.x for w in A]))
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
            return [self.argmin(self.buffer, y, self.new_d, (0,), self.seen)] * self.n_T
        return [tree.BTQuery(y, self.seen) for tree in self.trees]

    def BFTrain(self, y: Row, c: Row) -> None:
        a, epsilon = self.seen, self.threshold(self.seen) if self.trees else 0.0
        for tree in self.trees:
            tree.BTTrain(y, c, a, a, epsilon)
        if not self.trees:
            self.buffer.append(Node(y, c, a))
        self.labels.append(c)
        if self.seen == self.n_T:
            self.BFInitialization()

    def BFInitialization(self) -> None:
        """Tree i takes example i as its root and the others in its own random order."""
        known = [(w.x, w.c) for w in self.buffer]
        orders = [shuffled(self.n_T, self.seed, i) for i in range(self.n_T)]
        self.trees = [
            self.grow(i, [i, *(j for j in order if j != i)], known)
            for i, order in enumerate(orders)
        ]

    def train_offline(self, X: Row, C: Row) -> None:
        """OBF: each tree is shown its own shuffle of everything."""
        self.labels.extend(C)
        examples = list(zip(X, C, strict=True))
        self.trees = [
            self.grow(i, shuffled(len(X), self.seed, i), examples) for i in range(self.n_T)
        ]

    def grow(self, i: int, order: list[int], examples: Examples) -> BoundaryTree:
        """Tree i from these examples; the first is its root."""
        x, c = examples[order[0]]
        tree = BoundaryTree(self, (i,), Node(x, c, order[0]), self.d)
        self.show(tree, order, examples, 1)
        return tree

    def show(
        self,
        tree: BoundaryTree,
        order: list[int],
        examples: Examples,
        n_known: int = 0,
        start: Node | None = None,
    ) -> None:
        """Let a tree learn these examples, but for the first n_known; they descend from `start`."""
        epsilon = self.threshold(self.seen)
        for seen, j in enumerate(order[n_known:], start=n_known):
            x, c = examples[j]
            tree.BTTrain(x, c, j, seen, epsilon, start)

    def threshold(self, n: int) -> float:
        """Epsilon, or a tenth of the standard deviation of the first n labels (Welford)."""
        if self.epsilon is not None:
            return self.epsilon
        squares, large = sums_of_squares(self.labels[:n])
        if not large.any():
            return 0.1 * math.sqrt(added(float(s) / n for s in squares))
        parts = 0.1 * np.sqrt(squares / n) * np.where(large, 2.0**600, 1.0)
        return euclidean_label_distance(parts, np.zeros(len(parts)))

    @property
    def all_trees(self) -> Sequence[BoundaryTree]:
        return self.trees

    @property
    def stored(self) -> dict[int, tuple[Row, Row]]:
        """The examples that some tree has, by arrival."""
        return {v.arrival: (v.x, v.c) for tree in self.all_trees for v in tree.nodes}

    # E, the three estimators

    @property
    def new_d(self) -> Distances:
        """The metric of trees that begin now."""
        return self.d

    def reduced(self, y: Row, v: list[Node]) -> list[float]:
        """The reduced distances of the trees' answers, each by its tree's metric."""
        metrics = [tree.d for tree in self.trees] or [self.new_d] * self.n_T
        return [d(y, v_i.x[None])[0] for d, v_i in zip(metrics, v, strict=True)]

    def weights(self, y: Row, v: list[Node]) -> list[float]:
        """Of the trees' answers, in proportion to 1 / d."""
        return shepard_weights([self.distance(r, len(y)) for r in self.reduced(y, v)], 1.0)

    def shepard_vote(self, y: Row, n_classes: int) -> Row:
        v = self.BFQuery(y)
        return self.shares(v, self.weights(y, v), n_classes)

    def shares(self, v: list[Node], weights: list[float], n_classes: int) -> Row:
        votes = np.zeros(n_classes)
        for v_i, w in zip(v, weights, strict=True):
            votes[int(v_i.c[0])] += w
        return votes / added(weights)

    def shepard_mean(self, y: Row) -> Row:
        v = self.BFQuery(y)
        return self.mean(v, self.weights(y, v))

    def mean(self, v: list[Node], weights: list[float]) -> Row:
        C, total = [v_i.c for v_i in v], added(weights)
        mean = weighted_sum(C, weights, 1.0) / total
        if np.isfinite(mean).all():
            return mean
        large = weighted_sum(C, weights, 2.0**-64) / total * 2.0**64
        return np.where(np.isfinite(mean), mean, np.clip(large, np.min(C, 0), np.max(C, 0)))

    def nearest(self, y: Row) -> tuple[float, int]:
        v = self.BFQuery(y)
        arrivals = [v_i.arrival for v_i in v]
        reduced, arrival = min(zip(self.reduced(y, v), arrivals, strict=True))
        return self.distance(reduced, len(y)), arrival


# --- the spread of labels -------------------------------------------------------------------------


def sums_of_squares(labels: list[Row]) -> tuple[Row, Row]:
    """Of the labels' distances from their mean (Welford), and which are in units of 2^1200."""
    C = np.array(labels)
    large = abs(C).max(axis=0, initial=0) > 2.0**480  # their squares might overflow
    mean, squares = np.zeros(C.shape[1]), np.zeros(C.shape[1])
    for count, c in enumerate(np.where(large, C * 2.0**-600, C), start=1):
        before = c - mean
        mean = mean + before / count
        squares = squares + before * (c - mean)
    return squares, large


def variances(labels: list[Row]) -> Row:
    """Infinite where a double cannot hold one."""
    squares, large = sums_of_squares(labels)
    with np.errstate(over="ignore"):
        return (
            squares / len(labels) * np.where(large, 2.0**600, 1.0) * np.where(large, 2.0**600, 1.0)
        )
