"""The forest that the engine can grow beyond the paper's, each extension by a parameter.

``feature_weights`` (weights.py), ``weights`` and ``class_weight`` (votes.py; it multiplies the
votes of an answer, and not those by which rules are compared), ``lifetimes`` (forgetting.py),
``max_samples``, the fraction of the arrivals that each tree learns, and ``max_stored``, the most
examples that are stored at a time; ``forget``, on request; and a limit on the depth of trees
(depth.py), which ``has_graph`` sets too: the forest is searched by graph.py. A forest of classes
that learns weights keeps a sample of all arrivals, and learns it again while they come sorted by
class (reservoir.py). By default it is the paper's forest.
"""

from __future__ import annotations

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
from boundary_forest.reference.metrics import Distances, weighted_euclidean
from boundary_forest.reference.mixture import LONGEST_TRIAL, Mixture
from boundary_forest.reference.paper import (
    BoundaryForest,
    BoundaryTree,
    Examples,
    Node,
    Row,
    variances,
)
from boundary_forest.reference.randomness import hash64, is_learned, shuffled
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
)
from boundary_forest.reference.weights import WINDOW, Logs, learned_weights, weights_of

Ballot = tuple[float, Factors]  # p of 1 / d^p, and the factors of the trees' votes


class ExtendedTree(BoundaryTree):
    """It knows how often the tree at its place was grown anew, and by which weights."""

    def __init__(
        self, forest: ExtendedForest, place: int, generation: int, root: Node, log_weights: Logs
    ) -> None:
        key = (place, generation) if generation else (place,)
        super().__init__(forest, key, root, forest.metric_of(log_weights))
        self.place, self.generation, self.log_weights = place, generation, log_weights


class ExtendedForest(BoundaryForest):
    """``E`` is what is made of the trees' nodes. It matters to learning only where the forest looks
    at its own mistakes: weights or votes that are learned.
    """

    trees: list[ExtendedTree]

    def __init__(
        self,
        *,
        E: str = "shepard_vote",
        feature_weights: Any = None,
        max_samples: float = 1.0,
        weights: str = "distance",
        lifetimes: Sequence[int] = (),
        max_stored: int = 0,
        class_weight: Any = None,
        has_graph: bool = False,
        **of_paper: Any,
    ) -> None:
        super().__init__(**of_paper)
        n_T = self.n_T
        self.E, self.trees = E, []
        self.learns_weights = isinstance(feature_weights, str)
        if feature_weights is not None and not self.learns_weights:
            self.d = weighted_euclidean(np.asarray(feature_weights, dtype=np.float64))
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
        self.successors: dict[int, ExtendedTree] = {}  # which grow, and do not answer yet
        # The last arrivals, if weights are learned from them: numbers, positions and labels.
        self.window: list[tuple[int, Row, Row]] = []
        has_reservoir = self.learns_weights and E == "shepard_vote"
        self.reservoir = (
            Reservoir(self.seed, max_stored, forgets=self.forgets) if has_reservoir else None
        )
        self.n_regrown = 0  # parts of trees that had become too deep

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
                self.stream.judge(a, c, self.stream_query(y, v), spread)
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

    def replay(self, tree: ExtendedTree, example: Example | None, epsilon: float) -> None:
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
                root = Node(y, c, a)
                self.successors[i] = ExtendedTree(
                    self, i, tree.generation + 1, root, self.log_weights
                )
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
        if self.learns_weights or self.mixes or self.mixes_streams:
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
        """If example i was forgotten, the root of tree i is the first of that order."""
        known = {w.arrival: (w.x, w.c) for w in self.buffer}
        for i in range(self.n_T):
            order = [j for j in shuffled(self.n_T, self.seed, i) if j in known]
            root = i if i in known else order[0]
            order = [root, *(j for j in order if j != root and self.learns(i, j))]
            self.trees.append(self.grow(i, order, known))

    def train_offline(self, X: Row, C: Row) -> None:
        for x, c in zip(X, C, strict=True):
            if self.reservoir:
                self.reservoir.add(self.seen, x, c)
            self.take_note_of(x, c)
        self.learn_weights(WINDOW, self.log_weights)
        examples = list(zip(X, C, strict=True))
        for i in range(self.n_T):
            order = shuffled(len(X), self.seed, i)
            sample = [j for j in order if self.learns(i, j)]
            self.trees.append(self.grow(i, sample or order[:1], examples))

    def grow(
        self,
        i: int,
        order: list[int],
        examples: Examples,
        generation: int = 0,
        log_weights: Logs | None = None,
    ) -> ExtendedTree:
        x, c = examples[order[0]]
        log_weights = self.log_weights if log_weights is None else log_weights
        tree = ExtendedTree(self, i, generation, Node(x, c, order[0]), log_weights)
        self.show(tree, order, examples, 1)
        return tree

    @property
    def stored(self) -> dict[int, tuple[Row, Row]]:
        """By arrival: what some tree or the reservoir has."""
        members = self.reservoir.members if self.reservoir else []
        return super().stored | {a: (x, c) for a, x, c in members}

    @property
    def all_trees(self) -> list[ExtendedTree]:
        """Those that answer, then those that only grow."""
        return [*self.trees, *(self.successors[i] for i in sorted(self.successors))]

    def regrow(self, i: int, order: list[int], generation: int) -> None:
        """Tree i anew, from stored examples in this order; what no tree has is stored no more."""
        self.trees[i] = self.grow(i, order, self.stored, generation)

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
            if a >= self.mixture.first_row:
                self.mixture.add_row(*known[a], -1.0)
        self.mixture.linear.recentre(self.mixture.votes)

    def split(self, tree: ExtendedTree, lost: Collection[Node]) -> list[Node]:
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
        if self.mixture is not None and choice_after(self.seen - 1, self.n_T) == self.seen:
            self.mixture.decide()
        if self.mixture is not None and self.seen == middle_of_trial(self.seen, self.n_T):
            self.mixture.look_ahead()
        if self.mixture is not None and self.seen == beginning_of_trial(self.seen, self.n_T):
            self.mixture.begin_models(self.window)
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

    @property
    def new_d(self) -> Distances:
        return self.metric_of(self.log_weights)

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
                self.successors[i] = self.grow(i, order, stored, g)
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
        anew = self.grow(i, order, newer, generation, old.log_weights)
        if self.successors.get(i) is old:
            self.successors[i] = anew
        else:
            self.trees[i] = anew

    # How answers are weighed and mixed

    @property
    def ballot(self) -> Ballot:
        """How votes are weighed now."""
        return self.recent.ballot(self.recent.rule) if self.judges else (self.votes.p, None)

    def weights(self, y: Row, v: list[Node], ballot: Ballot | None = None) -> list[float]:
        """Of the trees' answers, in proportion to 1 / d^p, times the trees' factors."""
        distances = [self.distance(r, len(y)) for r in self.reduced(y, v)]
        return shepard_weights(distances, *(ballot or self.ballot))

    def answer(self, y: Row, v: list[Node], ballot: Ballot) -> Row:
        """The share of each class that the trees name, by code; or a label."""
        if self.mixture is not None or self.stream is not None:
            return self.mixed(y, v, None)
        return self.answer_of_trees(y, v, ballot)

    def answer_of_trees(self, y: Row, v: list[Node], ballot: Ballot) -> Row:
        if self.E == "nearest":
            reduced = self.reduced(y, v)
            return min(zip(reduced, v, strict=True), key=lambda at: (at[0], at[1].arrival))[1].c
        if self.E == "shepard_mean":
            return self.mean(v, self.weights(y, v, ballot))
        return self.shares(v, self.weights(y, v, ballot), 1 + max(int(v_i.c[0]) for v_i in v))

    def mixed(self, y: Row, v: list[Node], weight_of: Callable[[int], float] | None) -> Row:
        if self.stream is not None:
            query = self.stream_query(y, v)
            if not self.stream.votes:
                return self.stream.label(query)
            shares = self.stream.probabilities(query, weight_of)
            return np.array([shares.get(code, 0.0) for code in range(1 + max(shares))])
        assert self.mixture is not None
        if not self.mixture.votes:
            return self.mixture.label(y, v, self.scales())
        found = self.mixture.probabilities(y, v, self.scales(), weight_of or (lambda code: 1.0))
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
            return self.mixed(y, v, weight_of if self.class_weight else None)
        weights = [
            w * weight_of(int(v_i.c[0])) for v_i, w in zip(v, self.weights(y, v), strict=True)
        ]
        return self.shares(v, weights, n_classes)


# --- which rows a mixture is judged by ------------------------------------------------------------


def half_way_to(decision: int, n_T: int) -> int:
    """Where a mixture is decided between this decision and the one before; 0 if nowhere."""
    before = decision // 2
    return 0 if before < max(FIRST_DECISION, n_T) else before + decision // 8 * 2


def choice_after(seen: int, n_T: int) -> int:
    decision = decision_after(seen, n_T)
    half_way = half_way_to(decision, n_T)
    return half_way if seen < half_way else decision


def beginning_of_trial(seen: int, n_T: int) -> int:
    decision = decision_after(seen, n_T)
    half_way = half_way_to(decision, n_T)
    if half_way == 0:
        return decision - min(decision // 2, LONGEST_TRIAL)
    if seen < half_way:
        return half_way - min(half_way - decision // 2, LONGEST_TRIAL)
    return decision - min(decision - half_way, LONGEST_TRIAL)


def middle_of_trial(seen: int, n_T: int) -> int:
    choice = choice_after(seen, n_T)
    return choice - (choice - beginning_of_trial(seen, n_T)) // 2


def quarter_after(seen: int, n_T: int) -> int:
    """Where models over all rows are solved between two decisions, or the next decision."""
    decision = decision_after(seen, n_T)
    quarters = [decision // 2 + decision // 8 * k for k in range(4)]
    return next((q for q in quarters if q > seen), decision)
