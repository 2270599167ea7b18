"""Trees that answer for a time and are then succeeded, and votes that are judged row by row.

The tree at a place of lifetime L is succeeded every L arrivals, those at places of the same
lifetime in turn. Its successor begins empty, L / 2 arrivals before.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import added

Row = Any  # a 1-D numpy array
Factors = list[float] | None  # of the trees' votes; None: all are 1

# The power p of 1 / d^p, how much a tree's skill counts, whether only trees that last have a vote.
RULES = [(p, skill, False) for skill in (0, 1, 2) for p in (1.0, 0.0)] + [
    (1.0, 0, True),
    (0.0, 0, True),
]
RULE_MEMORY, TREE_MEMORY = 500.0, 100.0  # arrivals
LARGEST_ERROR = 1e300


class Lifetimes:
    """``lifetimes`` has one for each tree; 0 is for ever."""

    def __init__(self, lifetimes: Sequence[int], n_T: int) -> None:
        self.lifetimes = list(lifetimes) or [0] * n_T
        self.first = [
            n_T + L + L * self.lifetimes[:i].count(L) // self.lifetimes.count(L)
            for i, L in enumerate(self.lifetimes)
        ]

    def is_lasting(self, i: int) -> bool:
        return self.lifetimes[i] == 0

    def succession_after(self, i: int, seen: int) -> float:
        if self.is_lasting(i):
            return math.inf
        L, first = self.lifetimes[i], self.first[i]
        return first if seen < first else first + ((seen - first) // L + 1) * L

    def is_growing(self, i: int, seen: int) -> bool:
        """Whether a successor at place i learns the row that comes after so many arrivals."""
        return seen >= self.succession_after(i, seen) - max(self.lifetimes[i] // 2, 1)


class RecentVotes:
    """The rule in use, the recent errors of all rules, and the recent loss of each tree."""

    def __init__(self, lifetimes: Lifetimes, n_T: int, E: str) -> None:
        self.lifetimes, self.n_T, self.votes = lifetimes, n_T, E == "shepard_vote"
        self.rule, self.errors, self.losses = 0, [0.0] * len(RULES), [0.0] * n_T

    def ballot(self, rule: int) -> tuple[float, Factors]:
        p, skill, lasting = RULES[rule]
        if skill == 0 and not lasting:
            return p, None
        least = min(self.losses)
        factors = [
            self.factor(loss, least, skill) if self.lifetimes.is_lasting(i) or not lasting else 0.0
            for i, loss in enumerate(self.losses)
        ]
        return p, factors if any(factor > 0 for factor in factors) else None

    def factor(self, loss: float, least: float, skill: int) -> float:
        if skill == 0 or loss == least:
            return 1.0
        factor = (1 - loss) / (1 - least) if self.votes else least / loss
        if self.votes:  # to the power 10
            square = factor * factor
            fourth = square * square
            factor = fourth * fourth * square
        return factor if skill == 1 else factor * factor

    def judge(
        self,
        a: int,
        answer_errors: Callable[[tuple[float, Factors]], Row],
        tree_errors: list[Row],
        variances: Row,
    ) -> None:
        """Take note of the errors that each rule and each tree made on arrival a."""
        n_before = a - self.n_T

        def total(errors: Row) -> float:
            error = added(
                float(e) / float(v) for e, v in zip(errors, variances, strict=True) if v > 0
            )
            return error if error < LARGEST_ERROR else LARGEST_ERROR

        for rule in range(len(RULES)):
            error = total(answer_errors(self.ballot(rule)))
            self.errors[rule] = recent_mean(self.errors[rule], error, n_before, RULE_MEMORY)
        least = min(self.errors)
        if least < self.errors[self.rule]:
            self.rule = self.errors.index(least)
        for i, errors in enumerate(tree_errors):
            self.losses[i] = recent_mean(self.losses[i], total(errors), n_before, TREE_MEMORY)


def recent_mean(mean: float, value: float, n_before: int, memory: float) -> float:
    return mean + (value - mean) / min(n_before + 1.0, memory)


def squared(answer: Row, c: Row) -> Row:
    return (answer - c) * (answer - c)


def differs(answer: Row, c: Row) -> Row:
    return np.array([float(answer[0] != c[0])])
