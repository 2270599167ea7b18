"""``weights="mixture"`` of a forest that forgets: weights that follow after every arrival.

Experts look back over different spans: the trees by the rule in use, the nearest of the last rows,
linear models whose rows count for less with time, and a ridge regression around the query. An
expert's weight falls exponentially with its decayed loss, at three rates of decay; the mixture of
the rate that lost least lately answers. See the engine's ``adapt/stream_mixture.hpp``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import Distances, added
from boundary_forest.reference.mixture import (
    ADDED_SHARE,
    LINEAR_SLACK,
    LOCAL_SLACK,
    MOST_ACTIVE,
    SHARPNESSES,
    LinearModel,
    LocalFit,
    distinct,
    log2,
    sharpened,
)
from boundary_forest.reference.weights import weight_of

Row = Any  # a 1-D numpy array
Known = tuple[int, Row, Row]  # arrival, position, label

EXPERTS = [
    "trees",
    "nearest(5 of 64 rows)",
    "nearest(15 of 1000 rows)",
    "linear(decay=0.99)",
    "linear(decay=0.999)",
    "linear(decay=0.9999)",
    "ridge(power=1, penalty=0.3)",
]
NEAREST = {1: (64, 5), 2: (1000, 15)}  # rows and neighbours
LINEAR = {3: 0, 4: 1, 5: 2}  # which model
RIDGE = 6
MODELS = ((0.03, 0.99, 4), (0.003, 0.999, 32), (0.003, 0.9999, 256))  # penalty, decay, period
SHORTEST_PERIOD = 4
LOSS_DECAYS = (0.9, 0.99, 0.998)
CORRECTIONS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4)
RATE_DECAY, CORRECTION_DECAY, SHARPNESS_DECAY = 0.995, 0.998, 0.998
ROWS_TO_CALIBRATE = 90.0
CLASS_PRIOR, LABEL_PRIOR = 0.1, 0.01
LARGEST_LOSS, LARGEST_SHARE = 1e6, 1e6
SIXTEENTHS_PER_NAT = 23.083120654223414
LEAST_LOG = 16 * 64
RECENTRE_PERIOD = 1000
UNUSED_PERIOD, ROWS_TO_REST = 4, 9.0


def new_models() -> list[LinearModel]:
    return [LinearModel(penalty, 1.0 / decay, False) for penalty, decay, _ in MODELS]


class StreamMixture:
    """``votes``: labels are classes, each a code; otherwise vectors of ``n_outputs`` numbers."""

    def __init__(self, votes: bool, n_outputs: int) -> None:
        self.votes, self.n_outputs = votes, n_outputs
        self.is_sorted = False  # rows come sorted by class
        self.classes: list[int] = []  # codes, in order of their first example
        self.models = new_models()
        self.n_judged = [0.0] * len(LOSS_DECAYS)
        self.rate_losses = [0.0] * len(LOSS_DECAYS)
        self.losses = [[0.0] * len(EXPERTS) for _ in LOSS_DECAYS]
        self.correction_losses = [0.0] * len(CORRECTIONS)
        self.last_error = np.zeros(0)  # by place of the class or output; 0 beyond the end
        self.sharpness_losses = [0.0] * len(SHARPNESSES) if votes else []

    @property
    def rate(self) -> int:
        return self.rate_losses.index(min(self.rate_losses))

    @property
    def correction(self) -> float:
        if self.is_sorted or self.n_judged[-1] < ROWS_TO_CALIBRATE:
            return 0.0
        return CORRECTIONS[self.correction_losses.index(min(self.correction_losses))]

    @property
    def sharpness(self) -> int:
        if not self.votes or self.n_judged[-1] < ROWS_TO_CALIBRATE:
            return 4
        return SHARPNESSES[self.sharpness_losses.index(min(self.sharpness_losses))]

    def has(self, expert: int) -> bool:
        return expert not in LINEAR or bool(self.models[LINEAR[expert]].fits)

    def weights(self, rate: int) -> list[float]:
        n, losses, K = self.n_judged[rate], self.losses[rate], len(EXPERTS)
        if n == 0 or self.is_sorted:
            return [1.0] + [0.0] * (K - 1)
        least = min(loss for k, loss in enumerate(losses) if self.has(k))
        unit = least + (CLASS_PRIOR if self.votes else LABEL_PRIOR) * (n + 1.0)
        weights = [0.0] * K
        for k in range(K):
            log = SIXTEENTHS_PER_NAT * (0.5 * n * ((losses[k] - least) / unit))
            if self.has(k) and log < LEAST_LOG:
                weights[k] = weight_of(-int(log))
        while sum(w > 0 for w in weights) > MOST_ACTIVE:
            last = min(w for w in weights if w > 0)
            weights[max(k for k in range(K) if weights[k] == last)] = 0.0
        total = added(weights)
        return [w / total for w in weights]

    # Linear models

    def add_row(self, x: Row, c: Row) -> None:
        row = x.astype(np.float64)
        if self.votes and int(c[0]) not in self.classes:
            self.classes.append(int(c[0]))
        for model in self.models:
            if model.is_stopped:
                continue
            if not model.is_kept:
                model.begin(row, np.zeros(0) if self.votes else c)
            if not model.is_kept:
                continue
            if not self.votes:
                model.add(row, c - model.label_origin, 1.0)
                continue
            model.add_outputs(len(self.classes))
            indicator = np.zeros(len(model.label_sums))
            place = self.classes.index(int(c[0]))
            if place < len(indicator):
                indicator[place] = 1.0
                model.add(row, indicator, 1.0)

    def learn(self, a: int, x: Row, c: Row) -> None:
        """Arrival a, which is judged already."""
        self.add_row(x, c)
        seen, first = a + 1, self.models[0]
        if seen % RECENTRE_PERIOD == 0:
            for model in self.models:
                model.recentre(self.votes)
        if seen % SHORTEST_PERIOD != 0 or not first.is_kept:
            return
        D = first.n_varied
        cheap = D * (D + len(first.label_sums)) // 256
        for model, (_, _, longest) in zip(self.models, MODELS, strict=True):
            period = min(max(1 << (seen // 32).bit_length() >> 1, SHORTEST_PERIOD), longest)
            if seen % max(period, cheap) == 0:
                model.solve(self.votes)

    def learn_again(self, window: list[Known], first: int, end: int) -> None:
        """After rows of the window, arrivals first to end, were erased."""
        self.models = new_models()
        self.last_error = np.zeros(0)
        known = {a: (x, c) for a, x, c in window}
        for a in range(first, end):
            if a in known:
                self.add_row(*known[a])
            else:
                for model in self.models:
                    model.pass_row()
        for model in self.models:
            model.solve(self.votes)

    # Answers

    def answers(self, query: StreamQuery) -> list[Row]:
        """What each expert answers: shares by place of the class, or a label."""
        nodes, counts = distinct(query.ends)
        fit = LocalFit(query.y, np.stack([v.x for v in nodes]), counts, query.scales)
        labels = np.stack([v.c for v in nodes])
        answers = [query.of_trees] * len(EXPERTS)
        for k, (n_rows, n_neighbours) in NEAREST.items():
            recent = [known for known in query.window if known[0] >= query.seen - n_rows]
            near = nearest(query.y, recent, query.plain if k == 1 else query.learned, n_neighbours)
            if near:
                total = self.indicated([c for _, _, c in near])
                mean = total / float(len(near))
                answers[k] = np.where(np.isfinite(total), mean, query.of_trees)
        for k, m in LINEAR.items():
            if self.models[m].fits:
                found = self.models[m].answers(query.y.astype(np.float64))[0]
                if self.votes:  # least squares on 0 and 1 are too cautious
                    found = np.where(found > 0, np.minimum(found, LARGEST_SHARE), 0.0)
                    found = found * found
                    found = found * found
                answers[k] = self.bounded(found, labels, LINEAR_SLACK, query.of_trees)
        coefficients = fit.coefficients("ridge", 1, 0.3)
        sums = self.indicated(list(labels), coefficients.tolist())
        answers[RIDGE] = self.bounded(sums, labels, LOCAL_SLACK, query.of_trees)
        return answers

    def indicated(self, labels: list[Row], weights: list[float] | None = None) -> Row:
        """The weighted sum of labels, those of classes with 1 at their place."""
        total = np.zeros(len(self.classes) if self.votes else self.n_outputs)
        for c, w in zip(labels, weights or [1.0] * len(labels), strict=True):
            if self.votes:
                total[self.classes.index(int(c[0]))] += w
            else:
                with np.errstate(over="ignore", invalid="ignore"):
                    total = total + w * c
        return total

    def bounded(self, sums: Row, labels: Any, slack: float, otherwise: Row) -> Row:
        if self.votes:
            sums = np.append(sums, np.zeros(len(self.classes) - len(sums)))
            good = (sums > 0) & np.isfinite(sums)
            shares = np.where(good, np.minimum(np.where(good, sums, 0.0), LARGEST_SHARE), 0.0)
            total = added(shares.tolist())
            return shares / total if total > 0 else otherwise
        lowest, highest = labels.min(axis=0), labels.max(axis=0)
        beyond = slack * (highest - lowest)
        clipped = np.minimum(np.maximum(sums, lowest - beyond), highest + beyond)
        return np.where(np.isfinite(sums), clipped, otherwise)

    def mixed(self, rate: int, answers: list[Row]) -> Row:
        total = np.zeros(len(answers[0]))
        for w, answer in zip(self.weights(rate), answers, strict=True):
            if w > 0:
                total = total + w * answer
        return np.where(np.isfinite(total), total, answers[0])

    def corrected(self, mixed: Row, part: float) -> Row:
        """The answer and a part of the last error; shares sum to 1 again."""
        if not part > 0:
            return mixed
        error = np.append(self.last_error, np.zeros(len(mixed) - len(self.last_error)))
        moved = mixed + part * error
        if self.votes:
            moved = np.where(moved > 0, moved, 0.0)
        moved = np.where(np.isfinite(moved), moved, mixed)
        total = added(moved.tolist())
        return moved / total if self.votes and total > 0 else moved

    def label(self, query: StreamQuery) -> Row:
        return self.corrected(self.mixed(self.rate, self.answers(query)), self.correction)

    def probabilities(
        self, query: StreamQuery, weight_of_class: Callable[[int], float] | None
    ) -> dict[int, float]:
        mixed = self.label(query).tolist()
        total, n_zeros = added(mixed), 0
        sharp, terms = {}, []
        for code, x in zip(self.classes, mixed, strict=True):
            share = x / total if total > 0 else 1.0 / len(mixed)
            sharp[code] = sharpened(share + ADDED_SHARE, self.sharpness)
            if weight_of_class is not None:
                sharp[code] *= weight_of_class(code)
            if weight_of_class is None and not share > 0:
                n_zeros += 1
            else:
                terms.append(sharp[code])
        total = added(terms) + n_zeros * sharpened(ADDED_SHARE, self.sharpness)
        return {code: x / total for code, x in sharp.items()}

    # Losses

    def judge(self, a: int, c: Row, query: StreamQuery, variances: Row) -> None:
        """Judge the experts by arrival a; ``variances`` are those of the labels before."""
        answers = self.answers(query)
        truth = np.zeros(len(answers[0]))
        place = None
        units = np.ones(len(truth))
        if not self.votes:
            truth = c
            units = np.array([1.0 / v if 0 < v < math.inf else 0.0 for v in variances.tolist()])
        elif int(c[0]) in self.classes:
            place = self.classes.index(int(c[0]))
            truth[place] = 1.0

        def loss(answer: Row) -> float:
            with np.errstate(over="ignore", invalid="ignore"):
                squares = (answer - truth) * (answer - truth) * units
            total = float(self.votes and place is None)
            for square in squares.tolist():
                total += square
            total = total if self.votes else total / len(truth)
            return total if total < LARGEST_LOSS else LARGEST_LOSS

        in_use, rate_losses = self.rate, []
        for r in range(len(LOSS_DECAYS)):
            mixed = self.mixed(r, answers)
            rate_losses.append(loss(mixed))
            if r != in_use:
                continue
            part = self.correction
            for i, other in enumerate(CORRECTIONS):
                lost = CORRECTION_DECAY * self.correction_losses[i]
                self.correction_losses[i] = lost + loss(self.corrected(mixed, other))
            if self.votes and place is not None:
                self.judge_sharpness(place, self.corrected(mixed, part).tolist())
            error = truth - mixed
            error = np.where(np.isfinite(error), error, 0.0)
            next_error = np.zeros(0) if self.votes and place is None else error
        is_due = a % UNUSED_PERIOD == 0 or self.n_judged[0] < ROWS_TO_REST
        self.last_error = next_error
        used = [any(w) for w in zip(*map(self.weights, range(len(LOSS_DECAYS))), strict=True)]
        losses = [
            loss(answer) if k == 0 or is_due or used[k] else None
            for k, answer in enumerate(answers)
        ]
        for r, factor in enumerate(LOSS_DECAYS):
            self.rate_losses[r] = RATE_DECAY * self.rate_losses[r] + rate_losses[r]
            before, n = self.losses[r], self.n_judged[r]
            # Without weight, an expert's loss differs from the trees' as it did on average.
            now = [
                max(0.0, loss(answers[0]) + (before[k] - before[0]) / n) if lost is None else lost
                for k, lost in enumerate(losses)
            ]
            self.losses[r] = [factor * b + x for b, x in zip(before, now, strict=True)]
            self.n_judged[r] = factor * n + 1.0

    def judge_sharpness(self, place: int, shares: list[float]) -> None:
        log = log2(shares[place] + ADDED_SHARE)
        n_zeros = sum(not share > 0 for share in shares)
        for s, quarters in enumerate(SHARPNESSES):
            total = added(sharpened(x + ADDED_SHARE, quarters) for x in shares if x > 0)
            if n_zeros:
                total += n_zeros * sharpened(ADDED_SHARE, quarters)
            lost = log2(total) - 0.25 * quarters * log
            self.sharpness_losses[s] = SHARPNESS_DECAY * self.sharpness_losses[s] + lost


class StreamQuery:
    """A query, what its trees end at and answer, and what else experts answer from."""

    def __init__(
        self,
        y: Row,
        ends: list[Any],
        of_trees: Row,
        window: list[Known],
        seen: int,
        plain: Distances,
        learned: Distances,
        scales: Row | None,
    ) -> None:
        self.y, self.ends, self.of_trees = y, ends, of_trees
        self.window, self.seen = window, seen
        self.plain, self.learned, self.scales = plain, learned, scales


def nearest(y: Row, known: list[Known], d: Distances, k: int) -> list[Known]:
    """The k nearest; of equals, the latest."""
    if not known:
        return []
    reduced = d(y, np.stack([x for _, x, _ in known]))
    order = sorted(range(len(known)), key=lambda i: (reduced[i], -known[i][0]))
    return [known[i] for i in order[:k]]
