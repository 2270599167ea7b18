"""Algorithms 1 and 2 of the paper in plain Python: the oracle that the compiled engine is held to.

Names are the paper's: ``n_T`` trees, at most ``k`` children, ``d`` the metric, ``d_c`` the metric
on labels and ``epsilon`` its threshold, ``y`` the query, ``v`` the current node, ``E`` the
estimator. What the paper leaves open is settled here as in the engine, bit for bit: how ties are
drawn, in which order distances are summed, what happens before ``n_T`` examples have arrived.

Beyond the paper go ``feature_weights`` (weights.py), ``weights`` and ``class_weight`` (votes.py; it
multiplies the votes of an answer, and not those by which rules are compared), ``lifetimes``
(forgetting.py), ``max_samples``, the fraction of the arrivals that each tree learns, and
``max_stored``, the most examples that are stored at a time; ``forget``, on request; and a limit on
the depth of trees (depth.py), which ``has_graph`` sets too: the forest is searched by graph.py. A
forest of classes that learns weights keeps a sample of all arrivals, and learns it again while they
come sorted by class (reservoir.py).

>>> import numpy as np
>>> forest = BoundaryForest(n_T=2, k=50, d="euclidean", epsilon=0.0, seed=0)
>>> for x, c in [([0.0], [0.0]), ([1.0], [1.0]), ([9.0], [0.0])]:
...     forest.BFTrain(np.array(x), np.array(c))
>>> [v.arrival for v in forest.BFQuery(np.array([8.0]))]
[2, 2]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from boundary_forest.reference.depth import chain_below, is_due
from boundary_forest.reference.forgetting import (
    Factors,
    Lifetimes,
    RecentVotes,
    differs,
    squared,
)
from boundary_forest.reference.metrics import (
    Distances,
    added,
    euclidean_label_distance,
    metric,
    weighted_euclidean,
)
from boundary_forest.reference.mixture import LONGEST_TRIAL, Mixture
from boundary_forest.reference.randomness import fingerprint, hash64, is_learned, shuffled
from boundary_forest.reference.reservoir import Example, Reservoir
from boundary_forest.reference.stream_mixture import StreamMixture, StreamQuery
from boundary_forest.reference.votes import (
    FIRST_DECISION,
    GROWING_STEPS,
    PERIOD,
    Votes,
    class_weights,
    decision_after,
    growing_step,
    is_decision,
    shepard_weights,
    weighted_sum,
)
from boundary_forest.reference.weights import WINDOW, Logs, learned_weights, weights_of

Row = Any  # a 1-D numpy array
Examples = Any  # (position, label) by arrival: a list or a dict
Ballot = tuple[float, Factors]  # p of 1 / d^p, and the factors of the trees' votes


# --- Algorithm 1: the boundary tree ---------------------------------------------------------------


class Node:
    def __init__(self, x: Row, c: Row, arrival: int, parent: Node | None = None) -> None:
        self.x, self.c, self.arrival, self.parent = x, c, arrival, parent
        self.children: list[Node] = []


class BoundaryTree:
    def __init__(
        self,
        forest: BoundaryForest,
        place: int,
        generation: int,
        root: Node,
        log_weights: Logs | None = None,
    ) -> None:
        self.forest, self.place, self.generation, self.nodes = forest, place, generation, [root]
        self.log_weights = forest.log_weights if log_weights is None else log_weights
        self.d = forest.metric_of(self.log_weights)

    @property
    def key(self) -> tuple[int, ...]:
        """What begins the hash that settles ties."""
        return (self.place, self.generation) if self.generation else (self.place,)

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
        lifetimes: Sequence[int] = (),
        max_stored: int = 0,
        class_weight: Any = None,
        has_graph: bool = False,
    ) -> None:
        self.n_T, self.k, self.seed, self.epsilon, self.E = n_T, k, seed, epsilon, E
        self.d, self.distance = metric(d, p)
        self.learns_weights = isinstance(feature_weights, str)
        if feature_weights is not None and not self.learns_weights:
            self.d = weighted_euclidean(np.asarray(feature_weights, dtype=np.float64))
        self.d_c = d_c or euclidean_label_distance
        self.max_samples, self.max_stored = max_samples, max_stored
        self.class_weight = class_weight
        self.forgotten: set[int] = set()  # arrivals
        self.votes = Votes(weights, n_T, E)
        self.mixes = weights == "mixture" and not lifetimes
        self.mixes_streams = weights == "mixture" and len(lifetimes) > 0
        self.given_weights = None if self.learns_weights else feature_weights
        self.mixture: Mixture | None = None  # from the first row on
        self.stream: StreamMixture | None = None  # likewise, of a forest that forgets
        self.forgets, self.lifetimes = len(lifetimes) > 0, Lifetimes(lifetimes, n_T)
        self.recent = RecentVotes(self.lifetimes, n_T, E)
        self.judges = self.forgets and weights in ("auto", "mixture")
        self.limits_depth = (
            self.learns_weights or max_samples < 1.0 or self.forgets or max_stored > 0 or has_graph
        )
        self.log_weights: Logs = []  # of new trees, if they are learned; none: the plain metric
        self.successors: dict[int, BoundaryTree] = {}  # which grow, and do not answer yet
        # The last arrivals, if weights are learned from them: numbers, positions and labels.
        self.window: list[tuple[int, Row, Row]] = []
        has_reservoir = self.learns_weights and E == "shepard_vote"
        self.reservoir = (
            Reservoir(seed, max_stored, forgets=self.forgets) if has_reservoir else None
        )
        self.trees: list[BoundaryTree] = []
        self.buffer: list[Node] = []
        self.labels: list[Row] = []
        self.comparisons = 0
        self.n_regrown = 0  # parts of trees that had become too deep

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
            d = self.metric_of(self.log_weights)
            return [self.argmin(self.buffer, y, d, (0,), self.seen)] * self.n_T
        return [tree.BTQuery(y, self.seen) for tree in self.trees]

    def learns(self, i: int, arrival: int) -> bool:
        return is_learned(self.seed, i, arrival, self.max_samples)

    def BFTrain(self, y: Row, c: Row) -> None:
        a, epsilon = self.seen, self.threshold(self.seen) if self.trees else 0.0
        replayed = None
        if self.reservoir:
            self.reservoir.add(a, y, c)
            replayed = self.reservoir.replayed(a)
        if self.trees:
            is_trial, v = self.is_trial(a) and not self.forgets, []
            for i, tree in enumerate(self.trees):
                if self.learns(i, a):
                    v.append(tree.BTTrain(y, c, a, a, epsilon))
                elif is_trial or self.judges:
                    v.append(tree.BTQuery(y, a))
                self.replay(tree, replayed, epsilon)
            if is_trial and self.mixture is not None:
                self.mixture.judge(c, y, v, self.scales())
            elif is_trial:
                self.votes.hold_against(c, lambda p: self.answer(y, v, (p, None)))
            if self.stream is not None:
                spread = np.ones(1) if self.stream.votes else variances(self.labels)
                self.stream.judge(c, self.stream_query(y, v), spread)
            if self.judges:
                self.judge(y, c, v)
            self.train_successors(y, c, epsilon, replayed)
        self.take_note_of(y, c)
        if not self.trees:
            self.buffer.append(Node(y, c, a))
        self.decide()
        if self.seen == self.n_T:
            self.BFInitialization()
        if self.trees:
            self.keep_shallow()
            self.grow_successors(growing_step(self.seen, self.n_T))
            self.keep_within_bound()

    def is_trial(self, seen: int) -> bool:
        begin = beginning_of_trial(seen, self.n_T)
        return seen >= begin if self.mixes else self.votes.is_trial(seen)

    def scales(self) -> Row | None:
        """What differences of features are multiplied by."""
        weights = weights_of(self.log_weights) if self.log_weights else self.given_weights
        if weights is None:
            return None
        roots = np.sqrt(np.asarray(weights, dtype=np.float64))
        stored = self.trees[0].nodes[0].x if self.trees else self.buffer[0].x
        return roots if stored.dtype == np.float64 else roots.astype(np.float32).astype(np.float64)

    def replay(self, tree: BoundaryTree, example: Example | None, epsilon: float) -> None:
        """Let a tree learn an example again; not where it ends at the same position."""
        if example is None:
            return
        a, y, c = example
        v_min = tree.BTQuery(y, self.seen + 1)
        if self.d_c(c, v_min.c) > epsilon and tree.d(y, v_min.x[None])[0] > 0:
            tree.add(Node(y, c, a, v_min))

    def train_successors(self, y: Row, c: Row, epsilon: float, replayed: Example | None) -> None:
        """Trees that only grow learn (y, c); some begin with it, and some take over after it."""
        a = self.seen
        for i, tree in enumerate(self.trees):
            if i in self.successors:
                if self.learns(i, a):
                    self.successors[i].BTTrain(y, c, a, a, epsilon)
                self.replay(self.successors[i], replayed, epsilon)
            elif not self.learns(i, a):
                pass
            elif self.lifetimes.is_growing(i, a):
                self.successors[i] = BoundaryTree(self, i, tree.generation + 1, Node(y, c, a))
            if i in self.successors and self.lifetimes.succession_after(i, a) == a + 1:
                self.trees[i] = self.successors.pop(i)

    def judge(self, y: Row, c: Row, v: list[Node]) -> None:
        one = differs if self.E == "shepard_vote" else squared
        many = len(c) > 1
        self.recent.judge(
            self.seen,
            lambda ballot: self.votes.error(self.answer_of_trees(y, v, ballot), c),
            [one(v_i.c, c) for v_i in v],
            variances(self.labels) if many else np.ones(1),
        )

    def take_note_of(self, y: Row, c: Row) -> None:
        if self.learns_weights or self.mixes_streams:
            self.window.append((self.seen, y, c))
        self.labels.append(c)
        if self.mixes_streams:
            self.stream = self.stream or StreamMixture(self.E == "shepard_vote", len(c))
            self.stream.learn(self.seen - 1, y, c)
        if self.mixes:
            self.mixture = self.mixture or Mixture(self.E == "shepard_vote", len(c))
            self.mixture.add_row(y, c)
        while self.window and self.window[0][0] < self.seen - WINDOW:
            self.window.pop(0)

    def BFInitialization(self) -> None:
        """Tree i takes example i as its root and the others in its own random order.

        If that was forgotten, its root is the first of that order.
        """
        known = {w.arrival: (w.x, w.c) for w in self.buffer}
        for i in range(self.n_T):
            order = [j for j in shuffled(self.n_T, self.seed, i) if j in known]
            root = i if i in known else order[0]
            order = [root, *(j for j in order if j != root and self.learns(i, j))]
            self.trees.append(self.grow(i, 0, order, known))

    def train_offline(self, X: Row, C: Row) -> None:
        """OBF: each tree is shown its own shuffle of everything."""
        for x, c in zip(X, C, strict=True):
            if self.reservoir:
                self.reservoir.add(self.seen, x, c)
            self.take_note_of(x, c)
        self.learn_weights(WINDOW, self.log_weights)
        examples = list(zip(X, C, strict=True))
        for i in range(self.n_T):
            order = shuffled(len(X), self.seed, i)
            sample = [j for j in order if self.learns(i, j)]
            self.trees.append(self.grow(i, 0, sample or order[:1], examples))

    def grow(
        self,
        i: int,
        generation: int,
        order: list[int],
        examples: Examples,
        log_weights: Logs | None = None,
    ) -> BoundaryTree:
        x, c = examples[order[0]]
        tree = BoundaryTree(self, i, generation, Node(x, c, order[0]), log_weights)
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
        """Let a tree learn stored examples in this order, but for the first n_known.

        They descend from `start`.
        """
        epsilon = self.threshold(self.seen)
        for seen, j in enumerate(order[n_known:], start=n_known):
            x, c = examples[j]
            tree.BTTrain(x, c, j, seen, epsilon, start)

    @property
    def stored(self) -> dict[int, tuple[Row, Row]]:
        """By arrival: what some tree or the reservoir has."""
        held = {v.arrival: (v.x, v.c) for tree in self.all_trees for v in tree.nodes}
        members = self.reservoir.members if self.reservoir else []
        return held | {a: (x, c) for a, x, c in members}

    @property
    def all_trees(self) -> list[BoundaryTree]:
        """Those that answer, then those that only grow."""
        return [*self.trees, *(self.successors[i] for i in sorted(self.successors))]

    def regrow(self, i: int, order: list[int], generation: int) -> None:
        """Tree i anew, from stored examples in this order; what no tree has is stored no more."""
        self.trees[i] = self.grow(i, generation, order, self.stored)

    def forget(self, arrivals: Collection[int]) -> None:
        """Each tree keeps what does not stand below these, and learns the rest of its own again.

        They are shown in order of arrival. A tree of which nothing is left begins with the
        earliest that some tree has.
        """
        gone = set(arrivals)
        self.forgotten |= gone
        self.forget_sums(gone)
        self.window = [known for known in self.window if known[0] not in gone]
        if self.stream is not None:
            self.stream.learn_again(self.window, max(self.seen - WINDOW, 0), self.seen)
        if self.reservoir:
            self.reservoir.forget(gone)
        self.buffer = [w for w in self.buffer if w.arrival not in gone]
        stored = {a: example for a, example in self.stored.items() if a not in gone}
        for tree in self.all_trees:
            lost = {v for v in tree.nodes if v.arrival in gone}
            again = sorted({v.arrival for v in self.split(tree, lost) if v not in lost})
            if not tree.nodes:
                again = again or [min(stored)]
            self.show_again(tree, again, stored)

    def forget_sums(self, gone: set[int]) -> None:
        """Take rows out of the sums of the linear model, as far as they are known."""
        known = {a: (x, c) for a, x, c in self.window} | self.stored
        known |= {w.arrival: (w.x, w.c) for w in self.buffer}
        lost = sorted(gone & set(known))
        if self.mixture is None or not lost:
            return
        for a in lost:
            self.mixture.add_row(*known[a], -1.0)
        self.mixture.linear.recentre(self.mixture.votes)

    def split(self, tree: BoundaryTree, lost: Collection[Node]) -> list[Node]:
        """Take nodes out of a tree, with what stands below them; return all of these."""
        before, tree.nodes = tree.nodes, []
        kept = set()
        for v in before:
            if v not in lost and (v.parent is None or v.parent in kept):
                tree.nodes.append(v)
                kept.add(v)
        for v in tree.nodes:
            v.children = [w for w in v.children if w in kept]
        return [v for v in before if v not in kept]

    def show_again(
        self, tree: BoundaryTree, order: list[int], examples: Examples, start: Node | None = None
    ) -> None:
        """Let what is left of a tree learn these; the first is the root if nothing is."""
        n_known = 0
        if not tree.nodes:
            x, c = examples[order[0]]
            tree.nodes, n_known = [Node(x, c, order[0])], 1
        self.show(tree, order, examples, n_known, start)

    def keep_shallow(self) -> None:
        """Where a tree has become a chain, its nodes again, in an order of the tree's own.

        They descend from the node above the chain.
        """
        replays = self.reservoir is not None and self.reservoir.replays
        for tree in self.all_trees if self.limits_depth else []:
            chain = set()
            if is_due(tree.nodes, self.seen):
                chain = chain_below(tree.nodes, self.seen, self.max_samples, replays=replays)
            if chain:
                self.n_regrown += 1
                top = next(v for v in tree.nodes if v in chain)
                again = {v.arrival: (v.x, v.c) for v in self.split(tree, chain)}
                i, g = tree.place, tree.generation
                order = sorted(again, key=lambda a: (hash64(self.seed, i, g, a), a))
                self.show_again(tree, order, again, top.parent)

    # What the forest decides for itself, at 125 * 2^j arrivals

    def decide(self) -> None:
        doubling = is_decision(self.seen, self.n_T)
        if self.reservoir:
            self.reservoir.decide(self.seen, self.window)
        if self.stream is not None and self.reservoir:
            self.stream.is_sorted = self.reservoir.replays
        if self.votes.is_auto and doubling and not self.forgets:
            self.votes.choose(variances(self.labels) if len(self.labels[0]) > 1 else np.ones(1))
        if self.mixture is not None and doubling:
            self.mixture.decide()
        if self.mixture is not None and self.seen == middle_of_trial(self.seen, self.n_T):
            self.mixture.look_ahead()
        if self.mixture is not None and self.seen == beginning_of_trial(self.seen, self.n_T):
            self.mixture.begin_trial(np.zeros(0) if self.mixture.votes else variances(self.labels))
        if self.mixture is not None and self.seen == quarter_after(self.seen - 1, self.n_T):
            self.mixture.solve_again()
        if doubling:
            lasting = [t for t in self.trees if self.forgets and self.lifetimes.is_lasting(t.place)]
            self.learn_weights(WINDOW, lasting[0].log_weights if lasting else self.log_weights)
        else:
            is_first = self.seen == self.n_T or self.seen < min(self.n_T, FIRST_DECISION)
            if is_first or (self.forgets and self.trees and self.seen % PERIOD == 0):
                self.learn_weights(PERIOD, self.log_weights)

    def learn_weights(self, n_rows: int, in_use: Logs) -> None:
        if self.learns_weights:
            last = [known for known in self.window if known[0] >= self.seen - n_rows]
            if self.reservoir and self.reservoir.replays:
                half = [known for known in last if known[0] >= self.seen - n_rows // 2]
                last = self.reservoir.mixed(half, n_rows // 2)
            self.log_weights = learned_weights(
                np.array([x for _, x, _ in last]),
                np.array([c for _, _, c in last]),
                [a for a, _, _ in last],
                in_use,
                seen=self.seen,
                seed=self.seed,
                classes=self.E == "shepard_vote",
                forgets=self.forgets,
            )

    def metric_of(self, log_weights: Logs) -> Distances:
        return weighted_euclidean(weights_of(log_weights)) if log_weights else self.d

    def grow_successors(self, step: int) -> None:
        """If weights have changed: some trees anew at each step, which take over with the last.

        A tree is grown from what it may learn of all that is stored, in an order of its own.
        """
        stored, steps = self.stored if step else {}, GROWING_STEPS
        for i, tree in enumerate(self.trees):
            is_its_turn = i * steps // self.n_T + 1 == step and self.lifetimes.is_lasting(i)
            if is_its_turn and tree.log_weights != self.log_weights:
                g = tree.generation + 1
                keyed = [(hash64(self.seed, i, g, a), a) for a in stored if self.learns(i, a)]
                order = [a for _, a in sorted(keyed)] or [min(stored)]
                self.successors[i] = self.grow(i, g, order, stored)
        if step == steps:
            for i in [i for i in self.successors if self.lifetimes.is_lasting(i)]:
                self.trees[i] = self.successors.pop(i)

    def keep_within_bound(self) -> None:
        """Cut the tree that has the oldest example, once the last eighth begins to fill."""
        most, step = self.max_stored, max(self.max_stored // 128, 1)
        is_first = True
        while most and self.seen % step == 0:
            n = len(self.stored)
            if n + step <= most and not (is_first and n > most - most // 8):
                return
            is_first = False
            self.cut_oldest()

    def cut_oldest(self) -> None:
        """Of the tree with the oldest example, the newer half is grown anew."""
        old = min(
            (tree for tree in self.all_trees if len(tree.nodes) > 1),
            key=lambda tree: min(v.arrival for v in tree.nodes),
        )
        i, distinct = old.place, {v.arrival: v for v in old.nodes}  # some were replayed
        nodes = sorted(distinct.values(), key=lambda v: -v.arrival)
        newer = {v.arrival: (v.x, v.c) for v in nodes[: (len(nodes) + 1) // 2]}
        generation = 1 + max(tree.generation for tree in self.all_trees if tree.place == i)
        order = sorted(newer, key=lambda a: hash64(self.seed, i, generation, a))
        anew = self.grow(i, generation, order, newer, old.log_weights)
        if self.successors.get(i) is old:
            self.successors[i] = anew
        else:
            self.trees[i] = anew

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
        metrics = [t.d for t in self.trees] or [self.metric_of(self.log_weights)] * self.n_T
        return [d(y, v_i.x[None])[0] for d, v_i in zip(metrics, v, strict=True)]

    @property
    def ballot(self) -> Ballot:
        """How votes are weighed now."""
        return self.recent.ballot(self.recent.rule) if self.judges else (self.votes.p, None)

    def weights(self, y: Row, v: list[Node], ballot: Ballot) -> list[float]:
        """Of the trees' answers, in proportion to 1 / d^p, times the trees' factors."""
        return shepard_weights([self.distance(r, len(y)) for r in self.reduced(y, v)], *ballot)

    def answer(self, y: Row, v: list[Node], ballot: Ballot) -> Row:
        """The share of each class that the trees name, by code; or a label."""
        if self.mixture is not None or self.stream is not None:
            return self.mixed(y, v, lambda code: 1.0)
        return self.answer_of_trees(y, v, ballot)

    def answer_of_trees(self, y: Row, v: list[Node], ballot: Ballot) -> Row:
        if self.E == "nearest":
            reduced = self.reduced(y, v)
            return min(zip(reduced, v, strict=True), key=lambda at: (at[0], at[1].arrival))[1].c
        if self.E == "shepard_mean":
            return self.mean(v, self.weights(y, v, ballot))
        return self.shares(v, self.weights(y, v, ballot), 1 + max(int(v_i.c[0]) for v_i in v))

    def mixed(self, y: Row, v: list[Node], weight_of: Callable[[int], float]) -> Row:
        if self.stream is not None:
            query = self.stream_query(y, v)
            if not self.stream.votes:
                return self.stream.label(query)
            shares = self.stream.probabilities(query, weight_of)
            return np.array([shares.get(code, 0.0) for code in range(1 + max(shares))])
        assert self.mixture is not None
        if not self.mixture.votes:
            return self.mixture.label(y, v, self.scales())
        found = self.mixture.probabilities(y, v, self.scales(), weight_of)
        return np.array([found.get(code, 0.0) for code in range(1 + max(found))])

    def stream_query(self, y: Row, v: list[Node]) -> StreamQuery:
        assert self.stream is not None
        of_trees = self.answer_of_trees(y, v, self.ballot)
        if self.stream.votes:
            shares = dict(enumerate(of_trees.tolist()))
            of_trees = np.array([shares.get(code, 0.0) for code in self.stream.classes])
        learned = self.metric_of(self.log_weights)
        return StreamQuery(y, v, of_trees, self.window, self.seen, self.d, learned, self.scales())

    def shepard_vote(self, y: Row, n_classes: int) -> Row:
        v = self.BFQuery(y)
        known = [c for a, c in enumerate(self.labels) if a not in self.forgotten]
        weight_of = class_weights(self.class_weight, known)
        if self.mixture is not None or self.stream is not None:
            return self.mixed(y, v, weight_of)
        weights = self.weights(y, v, self.ballot)
        weights = [w * weight_of(int(v_i.c[0])) for v_i, w in zip(v, weights, strict=True)]
        return self.shares(v, weights, n_classes)

    def shares(self, v: list[Node], weights: list[float], n_classes: int) -> Row:
        votes = np.zeros(n_classes)
        for v_i, w in zip(v, weights, strict=True):
            votes[int(v_i.c[0])] += w
        return votes / added(weights)

    def shepard_mean(self, y: Row) -> Row:
        v = self.BFQuery(y)
        return self.mean(v, self.weights(y, v, self.ballot))

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


# --- which rows a mixture is judged by ------------------------------------------------------------


def beginning_of_trial(seen: int, n_T: int) -> int:
    decision = decision_after(seen, n_T)
    return decision - min(decision // 2, LONGEST_TRIAL)


def middle_of_trial(seen: int, n_T: int) -> int:
    decision = decision_after(seen, n_T)
    return decision - (decision - beginning_of_trial(seen, n_T)) // 2


def quarter_after(seen: int, n_T: int) -> int:
    """Where models over all rows are solved between two decisions, or the next decision."""
    decision = decision_after(seen, n_T)
    quarters = [decision // 2 + decision // 8 * k for k in range(4)]
    return next((q for q in quarters if q > seen), decision)


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
