"""How the trees' answers are weighed: by 1 / d^p.

The paper's p is 1. A better one is chosen by mistakes on rows before they are learned. Decisions
come at 125 * 2^j arrivals, once the forest is planted; a decision looks at the last 1,000 rows
before it, but not at more than half of all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import added

Row = Any  # a 1-D numpy array
POWERS = (1.0, 0.0, 0.5, 2.0)  # in the order in which they are compared
FIRST_DECISION = 125  # arrivals
LONGEST_TRIAL = 1000  # arrivals
PERIOD = 1000  # arrivals, after which a forest that forgets learns weights anew
GROWING_STEPS = 16


def is_decision(seen: int, n_T: int) -> bool:
    times, rest = divmod(seen, FIRST_DECISION)
    return seen >= n_T and rest == 0 and times.bit_count() == 1


def decision_after(seen: int, n_T: int) -> int:
    decision = FIRST_DECISION
    while decision <= seen or decision < n_T:
        decision *= 2
    return decision


def growing_step(seen: int, n_T: int) -> int:
    """Which step after the last decision this number of arrivals is, from 1 on; 0 for none."""
    last = decision_after(seen, n_T) // 2
    gap = min(max(last // 256, 1), (PERIOD - 1) // GROWING_STEPS)
    step, rest = divmod(seen - last, gap)
    return step if is_decision(last, n_T) and rest == 0 and step <= GROWING_STEPS else 0


def shepard_weights(d: list[float], p: float, factors: list[float] | None = None) -> list[float]:
    """1 / d^p, where 1 is the largest, times factors; examples at distance 0 decide alone."""
    f = factors or [1.0] * len(d)
    least = min(d_i for d_i, f_i in zip(d, f, strict=True) if f_i > 0)
    if least == 0:
        return [float(d_i == 0 and f_i > 0) for d_i, f_i in zip(d, f, strict=True)]
    ratios = [1.0 if d_i == least else least / d_i if d_i > 0 else 0.0 for d_i in d]
    powers = [{0.0: 1.0, 0.5: math.sqrt(r), 1.0: r, 2.0: r * r}[p] for r in ratios]
    return [f_i * w if f_i > 0 else 0.0 for f_i, w in zip(f, powers, strict=True)]


def class_weights(class_weight: Any, labels: list[Row]) -> Callable[[int], float]:
    """What votes for a class are multiplied by: None, "balanced" or a dict, by code.

    "balanced" is 1 / the number of its examples, to which scikit-learn's weights are proportional.
    """
    if class_weight != "balanced":
        given = class_weight or {}
        return lambda code: float(given.get(code, 1.0))
    counts = Counter(int(c[0]) for c in labels)
    return lambda code: 1.0 / max(counts[code], 1)


def weighted_sum(C: list[Row], weights: list[float], unit: float) -> Row:
    total = np.zeros(len(C[0]))
    for c, w in zip(C, weights, strict=True):
        total = total + w * (c * unit)
    return total


class Votes:
    """``weights`` is "distance", "uniform" or "auto"."""

    def __init__(self, weights: str, n_T: int, E: str) -> None:
        self.n_T, self.E, self.is_auto = n_T, E, weights == "auto"
        self.p = 0.0 if weights == "uniform" else 1.0
        self.errors: dict[float, Row] = dict.fromkeys(POWERS, np.zeros(1))  # of this trial

    def is_trial(self, seen: int) -> bool:
        decision = decision_after(seen, self.n_T)
        return self.is_auto and seen >= decision - min(decision // 2, LONGEST_TRIAL)

    def hold_against(self, c: Row, answer: Callable[[float], Row]) -> None:
        """Add the error of what each power answers about an example whose label is c."""
        for p in POWERS:
            self.errors[p] = self.errors[p] + self.error(answer(p), c)

    def error(self, answer: Row, c: Row) -> Row:
        """Squared errors by output; a class is right if no other has as large a share."""
        if self.E != "shepard_vote":
            return (answer - c) * (answer - c)
        right = answer[int(c[0]) : int(c[0]) + 1].sum()  # 0 if no tree names its class
        wrong = max((share for code, share in enumerate(answer) if code != c[0]), default=0.0)
        return np.array([float(not right > wrong)])

    def choose(self, variances: Row) -> None:
        """The power with the least error; outputs are added in units of their variances."""

        def total(p: float) -> float:
            pairs = zip(self.errors[p], variances, strict=False)
            error = added(float(e) / float(v) for e, v in pairs if v > 0)
            return math.inf if math.isnan(error) else error

        for p in POWERS:
            if total(p) < total(self.p):
                self.p = p
        self.errors = dict.fromkeys(POWERS, np.zeros(1))
