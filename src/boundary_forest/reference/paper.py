"""Algorithms 1 and 2 of the paper in plain Python: the oracle that the compiled engine is held to.

Names are the paper's: ``n_T`` trees, at most ``k`` children, ``d`` the metric, ``d_c`` the metric
on labels and ``epsilon`` its threshold, ``y`` the query, ``v`` the current node, ``E`` the
estimator. What the paper leaves open is settled here as in the engine, bit for bit: how ties are
drawn, in which order distances are summed, what happens before ``n_T`` examples have arrived.

Three parameters go beyond the paper: ``feature_weights`` (weights.py), ``weights`` (votes.py), and
``max_samples``, the fraction of the arrivals that each tree learns.

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

from boundary_forest.reference.metrics import (
    Distances,
    added,
    euclidean_label_distance,
    metric,
    weighted_euclidean,
)
from boundary_forest.reference.randomness import fingerprint, hash64, is_learned, shuffled
from boundary_forest.reference.votes import (
    GROWING_STEPS,
    Votes,
    growing_step,
    is_decision,
    shepard_weights,
    weighted_sum,
)
from boundary_forest.reference.weights import WINDOW, Logs, learned_weights, weights_of

Row = Any  # a 1-D numpy array
Examples = Any  # (position, label) by arrival: a list or a dict


# --- Algorithm 1: the boundary tree ---------------------------------------------------------------


class Node:
    def __init__(self, x: Row, c: Row, arrival: int, parent: Node | None = None) -> None:
        self.x, self.c, self.arrival, self.parent = x, c, arrival, parent
        self.children: list[Node] = []


class BoundaryTree:
    def __init__(self, forest: BoundaryForest, place: int, generation: int, root: Node) -> None:
        self.forest, self.place, self.generation, self.nodes = forest, place, generation, [root]
        self.log_weights = forest.log_weights  # those in use when it was made
        self.d = forest.metric_of(self.log_weights)

    @property
    def key(self) -> tuple[int, ...]:
        """What begins the hash that settles ties."""
        return (self.place, self.generation) if self.generation else (self.place,)

    def BTQuery(self, y: Row, seen: int) -> Node:
        v = self.nodes[0]
        self.forest.comparisons += 1
        while True:
            A_v = v.children + ([v] if len(v.children) < self.forest.k else [])
            self.forest.comparisons += len(v.children)
            v_min = self.forest.argmin(A_v, y, self.d, self.key, seen)
            if v_min is v:
                return v
            v = v_min

    def BTTrain(self, y: Row, c: Row, arrival: int, seen: int, epsilon: float) -> Node:
        v_min = self.BTQuery(y, seen)
        if self.forest.d_c(c, v_min.c) > epsilon:
            v_new = Node(y, c, arrival, v_min)
            self.nodes.append(v_new)
            v_min.children.append(v_new)
        return v_min


# --- Algorithm 2: the boundary forest -------------------------------------------------------------


class BoundaryForest:
    """``epsilon`` is a number, or None for a tenth of the spread of the labels before.

    What E makes of the trees' nodes, classes or a mean, matters to learning only if that looks at
    its own mistakes: weights or votes that are learned.
    """

    def __init__(
        self,
        *,
        n_T: int = 50,
        k: float = 50,
        d: str | Callable[[Row, Row], float] = "euclidean",
        d_c: Callable[[Row, Row], float] | None = None,
        E: str = "shepard_vote",
        epsilon: float | None = 0.0,
        seed: int = 0,
        p: float = 2.0,
        feature_weights: Any = None,
        max_samples: float = 1.0,
        weights: str = "distance",
    ) -> None:
        self.n_T, self.k, self.seed, self.epsilon, self.E = n_T, k, seed, epsilon, E
        self.d, self.distance = metric(d, p)
        self.learns_weights = isinstance(feature_weights, str)
        if feature_weights is not None and not self.learns_weights:
            self.d = weighted_euclidean(np.asarray(feature_weights, dtype=np.float64))
        self.d_c = d_c or euclidean_label_distance
        self.max_samples = max_samples
        self.votes = Votes(weights, n_T, E)
        self.log_weights: Logs = []  # of new trees, if they are learned; none: the plain metric
        self.successors: dict[int, BoundaryTree] = {}  # which grow, and do not answer yet
        self.window: list[Row] = []  # the last arrivals, if weights are learned from them
        self.trees: list[BoundaryTree] = []
        self.buffer: list[Node] = []
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
            return [self.argmin(self.buffer, y, self.d, (0,), self.seen)] * self.n_T
        return [tree.BTQuery(y, self.seen) for tree in self.trees]

    def learns(self, i: int, arrival: int) -> bool:
        return is_learned(self.seed, i, arrival, self.max_samples)

    def BFTrain(self, y: Row, c: Row) -> None:
        a, epsilon = self.seen, self.threshold(self.seen) if self.trees else 0.0
        self.take_note_of(y, c)
        if self.trees:
            is_trial, v = self.votes.is_trial(a), []
            for i, tree in enumerate(self.trees):
                if self.learns(i, a):
                    v.append(tree.BTTrain(y, c, a, a, epsilon))
                elif is_trial:
                    v.append(tree.BTQuery(y, a))
            for i, tree in self.successors.items():
                if self.learns(i, a):
                    tree.BTTrain(y, c, a, a, epsilon)
            if is_trial:
                self.votes.hold_against(c, lambda p: self.answer(y, v, p))
        else:
            self.buffer.append(Node(y, c, a))
            if self.seen == self.n_T:
                self.BFInitialization()
        if is_decision(self.seen, self.n_T):
            self.decide()
        self.grow_successors(growing_step(self.seen, self.n_T))

    def take_note_of(self, y: Row, c: Row) -> None:
        self.labels.append(c)
        if self.learns_weights:
            self.window = [*self.window[-WINDOW + 1 :], y]

    def BFInitialization(self) -> None:
        """Tree i takes example i as its root and the others in its own random order."""
        for i in range(self.n_T):
            order = [j for j in shuffled(self.n_T, self.seed, i) if j != i and self.learns(i, j)]
            self.trees.append(self.grow(i, 0, [i, *order], [(w.x, w.c) for w in self.buffer]))

    def train_offline(self, X: Row, C: Row) -> None:
        """OBF: each tree is shown its own shuffle of everything."""
        for x, c in zip(X, C, strict=True):
            self.take_note_of(x, c)
        self.learn_weights()
        examples = list(zip(X, C, strict=True))
        for i in range(self.n_T):
            order = shuffled(len(X), self.seed, i)
            sample = [j for j in order if self.learns(i, j)]
            self.trees.append(self.grow(i, 0, sample or order[:1], examples))

    def grow(self, i: int, generation: int, order: list[int], examples: Examples) -> BoundaryTree:
        x, c = examples[order[0]]
        tree = BoundaryTree(self, i, generation, Node(x, c, order[0]))
        epsilon = self.threshold(self.seen)
        for seen, j in enumerate(order[1:], start=1):
            x, c = examples[j]
            tree.BTTrain(x, c, j, seen, epsilon)
        return tree

    @property
    def stored(self) -> dict[int, tuple[Row, Row]]:
        """By arrival: what some tree has."""
        return {v.arrival: (v.x, v.c) for tree in self.all_trees for v in tree.nodes}

    @property
    def all_trees(self) -> list[BoundaryTree]:
        """Those that answer, then those that only grow."""
        return [*self.trees, *self.successors.values()]

    def regrow(self, i: int, order: list[int], generation: int) -> None:
        """Tree i anew, from stored examples in this order; what no tree has is stored no more."""
        self.trees[i] = self.grow(i, generation, order, self.stored)

    # What the forest decides for itself, at 125 * 2^j arrivals

    def decide(self) -> None:
        if self.votes.is_auto:
            self.votes.choose(variances(self.labels) if len(self.labels[0]) > 1 else np.ones(1))
        self.learn_weights()

    def learn_weights(self) -> None:
        if self.learns_weights:
            X, C = np.array(self.window), np.array(self.labels[-len(self.window) :])
            classes = self.E == "shepard_vote"
            self.log_weights = learned_weights(
                X, C, self.log_weights, seen=self.seen, seed=self.seed, classes=classes
            )

    def metric_of(self, log_weights: Logs) -> Distances:
        return weighted_euclidean(weights_of(log_weights)) if log_weights else self.d

    def grow_successors(self, step: int) -> None:
        """If weights have changed: some trees anew at each step, which take over with the last.

        A tree is grown from what it may learn of all that is stored, in an order of its own.
        """
        stored, steps = self.stored if step else {}, GROWING_STEPS
        for i, tree in enumerate(self.trees):
            if i * steps // self.n_T + 1 == step and tree.log_weights != self.log_weights:
                g = tree.generation + 1
                keyed = [(hash64(self.seed, i, g, a), a) for a in stored if self.learns(i, a)]
                order = [a for _, a in sorted(keyed)] or [min(stored)]
                self.successors[i] = self.grow(i, g, order, stored)
        if step == steps:
            self.trees = [self.successors.get(i, tree) for i, tree in enumerate(self.trees)]
            self.successors = {}

    def threshold(self, n: int) -> float:
        """Epsilon, or a tenth of the standard deviation of the first n labels (Welford)."""
        if self.epsilon is not None:
            return self.epsilon
        squares, large = sums_of_squares(self.labels[:n])
        if not large.any():
            return 0.1 * math.sqrt(added(float(s) / n for s in squares))
        parts = 0.1 * np.sqrt(squares / n) * np.where(large, 2.0**600, 1.0)
        return euclidean_label_distance(parts, np.zeros(len(parts)))

    # E, the three estimators

    def reduced(self, y: Row, v: list[Node]) -> list[float]:
        """The reduced distances of the trees' answers, each by its tree's metric."""
        metrics = [tree.d for tree in self.trees] or [self.d] * self.n_T
        return [d(y, v_i.x[None])[0] for d, v_i in zip(metrics, v, strict=True)]

    def weights(self, y: Row, v: list[Node], p: float) -> list[float]:
        """Of the trees' answers, in proportion to 1 / d^p."""
        return shepard_weights([self.distance(r, len(y)) for r in self.reduced(y, v)], p)

    def answer(self, y: Row, v: list[Node], p: float) -> Row:
        """The share of each class that the trees name, by code; or a label."""
        if self.E == "nearest":
            reduced = self.reduced(y, v)
            return min(zip(reduced, v, strict=True), key=lambda at: (at[0], at[1].arrival))[1].c
        if self.E == "shepard_mean":
            return self.mean(v, self.weights(y, v, p))
        return self.shares(v, self.weights(y, v, p), 1 + max(int(v_i.c[0]) for v_i in v))

    def shepard_vote(self, y: Row, n_classes: int) -> Row:
        v = self.BFQuery(y)
        return self.shares(v, self.weights(y, v, self.votes.p), n_classes)

    def shares(self, v: list[Node], weights: list[float], n_classes: int) -> Row:
        votes = np.zeros(n_classes)
        for v_i, w in zip(v, weights, strict=True):
            votes[int(v_i.c[0])] += w
        return votes / added(weights)

    def shepard_mean(self, y: Row) -> Row:
        v = self.BFQuery(y)
        return self.mean(v, self.weights(y, v, self.votes.p))

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
