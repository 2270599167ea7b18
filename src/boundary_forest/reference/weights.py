"""Weights of features that are learned from the last arrivals; what is beyond the paper.

A weight is an integer u, its logarithm in sixteenths of an octave. The label of a row is estimated
from its 10 nearest others by the kernel 1 / (1 + d^2 / h)^2, h the lower median of their d^2, and
the squared error of that is descended in the logarithms. Labels are vectors: classes are one-hot,
and numbers are standardised. The older three quarters of the window are learned from; the newest
quarter chooses between the weights in use, none, 1 / variance, those learned, and half of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import Row, added, in_lanes
from boundary_forest.reference.randomness import hash64

Logs = list[int]  # logarithms of weights; an empty list is the plain metric
Neighbours = list[tuple[float, int]]  # (d^2, row), the nearest first

WINDOW = 4000  # arrivals
FEWEST_ROWS = 125
NEIGHBOURS = 10
STEPS, ROWS_PER_STEP = 30, 100  # at most, half of it where weights are learned often
FIRST_STEP = 14.0  # sixteenths of an octave: e^0.6
LOWEST = -184.0  # beside the largest: e^-8
FARTHEST = 8.0  # standard deviations
RELUCTANCE = 1 + 1 / 64  # to take what is learned rather than half of it
MOST = 190 * 16

# --- logarithms -----------------------------------------------------------------------------------

POWERS_OF_TWO = [  # 2^(j / 32)
    *(1.0, 1.0218971486541166, 1.0442737824274138, 1.0671404006768237, 1.0905077326652577),
    *(1.1143867425958924, 1.1387886347566916, 1.1637248587775775, 1.189207115002721),
    *(1.215247359980469, 1.241857812073484, 1.2690509571917332, 1.2968395546510096),
    *(1.3252366431597413, 1.3542555469368927, 1.383909881963832, 1.4142135623730951),
    *(1.4451808069770467, 1.4768261459394993, 1.5091644275934228, 1.5422108254079407),
    *(1.5759808451078865, 1.6104903319492543, 1.645755478153965, 1.681792830507429),
    *(1.718619298122478, 1.7562521603732995, 1.7947090750031072, 1.8340080864093424),
    *(1.8741676341103, 1.9152065613971474, 1.9571441241754002),
]


def weight_of(u: int) -> float:
    octave, sixteenths = divmod(u, 16)
    return math.ldexp(POWERS_OF_TWO[2 * sixteenths], octave)


def log_weight_of(x: float) -> int:
    """The logarithm nearest to that of x, by comparisons alone."""
    mantissa, exponent = math.frexp(x)
    return 16 * (exponent - 1) + sum(2 * mantissa >= middle for middle in POWERS_OF_TWO[1::2])


def weights_of(logs: Logs) -> Row:
    return np.array([weight_of(u) for u in logs])


def clamped(u: int) -> int:
    return min(max(u, -MOST), MOST)


# --- the objective --------------------------------------------------------------------------------


def in_order(terms: Any) -> Row:
    """The sum of rows, added one after the other."""
    return np.add.accumulate(terms, axis=0)[-1]


def nearest(y: Row, X: Any, leave_out: int = -1) -> Neighbours:
    reduced = in_lanes((y - X) * (y - X))
    order = np.argsort(reduced, kind="stable")
    return [(reduced[i], int(i)) for i in order[order != leave_out][:NEIGHBOURS]]


def kernel(near: Neighbours) -> tuple[list[float], list[float]]:
    """Each neighbour's share, and how steeply the kernel falls there."""
    h = near[(NEIGHBOURS - 1) // 2][0]
    if h == 0:  # those at distance 0 alone count
        shares = [float(r == 0) for r, _ in near]
        return [s / added(shares) for s in shares], [0.0] * len(near)
    q = [2.0 if r == h else 1 + r / h for r, _ in near]
    shares = [1 / (q_j * q_j) for q_j in q]
    total = added(shares)
    fall = [0.0 if math.isinf(r) else 2 / (h * q_j) for (r, _), q_j in zip(near, q, strict=True)]
    return [s / total for s in shares], fall


def one_hot(labels: list[Row], c: Row) -> tuple[list[Row], Row]:
    """By classes in order of first appearance; before them c's, if no neighbour has it."""
    codes = list(dict.fromkeys(label[0] for label in labels))
    if c[0] not in codes:
        codes.insert(0, c[0])
    return [[float(code == x[0]) for code in codes] for x in labels], [
        float(x == c[0]) for x in codes
    ]


def error_and_pulls(
    near: Neighbours, C: Any, c: Row, *, classes: bool
) -> tuple[float, list[float]]:
    """The squared error of the estimate, and how much less it is for less weight on each d^2."""
    shares, steepness = kernel(near)
    labels = [C[row] for _, row in near]
    if classes:
        labels, c = one_hot(labels, c)
    columns = list(zip(*labels, strict=True))
    estimate = [added(s * x for s, x in zip(shares, column, strict=True)) for column in columns]
    wrong = [e - x for e, x in zip(estimate, c, strict=True)]
    together = added(w * e for w, e in zip(wrong, estimate, strict=True))
    pulls = [
        (added(w * x for w, x in zip(wrong, label, strict=True)) - together) * share * steep
        for label, share, steep in zip(labels, shares, steepness, strict=True)
    ]
    return added(w * w for w in wrong), pulls


# --- descent and choice ---------------------------------------------------------------------------


class Learning:
    """X and C are the positions and labels of some of the last arrivals, of `seen` in all."""

    def __init__(
        self,
        X: Any,
        C: Any,
        arrivals: Sequence[int],
        *,
        seen: int,
        seed: int,
        classes: bool,
        forgets: bool,
    ) -> None:
        self.seed, self.seen, self.classes, self.forgets = seed, seen, classes, forgets
        self.cut = len(X) if len(X) < FEWEST_ROWS else len(X) * 3 // 4
        self.arrivals = arrivals
        rows = X[: self.cut].astype(np.float64)
        means = in_order(rows) / len(rows)
        squares = in_order((rows - means) ** 2)
        self.variances = np.where(np.isfinite(squares), squares / len(rows), np.inf)
        self.varies = self.variances > 0
        self.base = [
            clamped(-log_weight_of(min(float(v), 1e300))) if v > 0 else 0 for v in self.variances
        ]
        z = (X.astype(np.float64) - means) * np.sqrt(weights_of(self.base))
        clipped = np.where(np.isnan(z), 0.0, np.clip(z, -FARTHEST, FARTHEST))
        self.Z = clipped.astype(np.float32)  # the rows, standardised
        self.C = C.tolist() if classes else self.standardised_labels(C)

    def standardised_labels(self, C: Any) -> Any:
        with np.errstate(over="ignore"):
            C = np.ldexp(C, -np.frexp(abs(C[: self.cut]).max(axis=0))[1])  # of a moderate size
        known = C[: self.cut]
        mean = in_order(known) / len(known)
        deviations = np.sqrt(in_order((known - mean) ** 2) / len(known))
        scales = [1 / s if s > 0 else 0.0 for s in deviations]
        return ((C - mean) * np.array(scales)).tolist()

    @property
    def equal(self) -> Logs:
        return self.scaled([0] * len(self.base))

    @property
    def raw(self) -> Logs:
        """No weights; or, where trees of different weights vote, equal ones of the others' size."""
        return self.scaled([-u for u in self.base]) if self.forgets else []

    def choice(self, in_use: Logs) -> Logs:
        learned = self.descend()
        half = [-(-u // 2) for u in learned]
        best, least = in_use, self.validation_error(in_use)
        whole = self.scaled(learned)
        for candidate in (self.raw, self.equal, whole, self.scaled(half)):
            error = self.validation_error(candidate)
            if candidate is whole:
                error *= RELUCTANCE
            if candidate != in_use and error < least:
                best, least = candidate, error
        return best

    def descend(self) -> Logs:
        """Logarithms of weights on standardised features, the largest 0."""
        Z = self.Z[: self.cut]
        u = np.zeros(Z.shape[1])
        for step in range(STEPS):
            weights = weights_of(rounded(u))
            scaled = Z * np.sqrt(weights).astype(np.float32)
            terms = []
            for i in self.rows_of_step(step):
                near = nearest(scaled[i], scaled, leave_out=i)
                _, pulls = error_and_pulls(near, self.C, self.C[i], classes=self.classes)
                apart = Z[i].astype(np.float64) - Z[[j for _, j in near]]
                terms.append(np.array(pulls)[:, None] * (apart * apart))
            gradient = in_order(np.concatenate(terms)) * weights
            largest = np.fmax.reduce(abs(gradient))
            if 0 < largest < math.inf:
                u = u + FIRST_STEP * math.sqrt(1 - step / STEPS) * (gradient / largest)
                u = np.where(self.varies, np.maximum(u - u[self.varies].max(), LOWEST), u)
        return rounded(u)

    def rows_of_step(self, step: int) -> list[int]:
        def key(i: int) -> int:
            return hash64(self.seed, self.seen, step, self.arrivals[i])

        n = min(ROWS_PER_STEP // 2 if self.forgets else ROWS_PER_STEP, self.cut // 7)
        return sorted(sorted(range(self.cut), key=key)[:n])

    def scaled(self, u: Logs) -> Logs:
        """Weights of raw features, of a size at which squared distances are about 2.

        A constant feature, of which nothing is known, gets the least of the others' weights.
        """
        logs = [base + log for base, log in zip(self.base, u, strict=True)]
        importances = weights_of(logs) * self.variances
        total = added(float(x) for x in importances if math.isfinite(x))
        size = log_weight_of(min(total, 1e300)) if total > 0 else 0
        logs = [clamped(log - size) for log in logs]
        least = min((log for log, v in zip(logs, self.varies, strict=True) if v), default=0)
        logs = [log if v else least for log, v in zip(logs, self.varies, strict=True)]
        return logs if any(logs) else []

    def validation_error(self, logs: Logs) -> float:
        """Of weights of raw features; they are compared as standardised ones too."""
        raw = logs or [0] * len(self.base)
        u = [clamped(log - base) for log, base in zip(raw, self.base, strict=True)]
        Z = self.Z * np.sqrt(weights_of(u)).astype(np.float32)
        return added(
            error_and_pulls(nearest(z, Z[: self.cut]), self.C, c, classes=self.classes)[0]
            for z, c in zip(Z[self.cut :], self.C[self.cut :], strict=True)
        )


def rounded(u: Row) -> Logs:
    return [math.floor(log + 0.5) for log in u]


def learned_weights(
    X: Any,
    C: Any,
    arrivals: Sequence[int],
    in_use: Logs,
    *,
    seen: int,
    seed: int,
    classes: bool,
    forgets: bool = False,
) -> Logs:
    """The weights to use from now on; 1 / variance where a forest begins."""
    if not len(X):
        return in_use
    learning = Learning(X, C, arrivals, seen=seen, seed=seed, classes=classes, forgets=forgets)
    return learning.equal if len(X) < FEWEST_ROWS else learning.choice(in_use)
