"""``weights="mixture"``: what several experts answer, mixed.

All but one answer from the examples that the trees end at: means of their labels, and ridge
regressions around the query; the last is a linear model over all rows. Weights follow from the
errors of up to 500 rows before each decision, before these were learned. Probabilities of classes
are then sharpened. Sums run in the order of the trees, then of the columns; see the engine's
``vote/``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from boundary_forest.reference.metrics import added, in_lanes

Row = Any  # a 1-D numpy array

EXPERTS: list[tuple[str, int, float]] = [
    ("shepard", 1, 0.0),
    ("shepard", 2, 0.0),
    ("mean", 0, 0.0),
    *(("ridge", power, penalty) for power in (0, 1, 2) for penalty in (3.0, 0.3, 0.03)),
    ("linear", 0, 0.0),
]
LINEAR = len(EXPERTS) - 1
MOST_ACTIVE = 4
LONGEST_TRIAL = 500
LOCAL_SLACK, LINEAR_SLACK = 0.25, 1.0
EQUAL_PULL = 0.001
FEWEST_JUDGED, FEWEST_CALIBRATED = 20.0, 100.0
CARRIED = 0.5
SWEEPS = 1000
ADDED_SHARE = 0.003
SHARPNESSES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
MOST_FEATURES, MOST_OUTPUTS = 200, 100
LINEAR_PENALTY, LEAST_DIGITS = 0.003, 1e-9


# --- matrices -------------------------------------------------------------------------------------


def dot(a: Row, b: Row) -> float:
    return in_lanes((a * b)[None])[0] if len(a) else 0.0


def outer_products(rows: Any) -> Any:
    G = np.zeros((rows.shape[1], rows.shape[1]))
    for row in rows:
        G = G + np.outer(row, row)
    return G


def cholesky(A: Any) -> Any:
    """The upper triangle U with A = U' U; None if A is not positive definite."""
    A = A.copy()
    for j in range(len(A)):
        if not 0 < A[j, j] < math.inf:
            return None
        A[j, j] = math.sqrt(A[j, j])
        A[j, j + 1 :] = A[j, j + 1 :] / A[j, j]
        A[j + 1 :, j + 1 :] += np.outer(-A[j, j + 1 :], A[j, j + 1 :])
    return A


def solve(U: Any, b: Row) -> Row:
    b = b.copy()
    for j in range(len(b)):
        b[j] = b[j] / U[j, j]
        b[j + 1 :] += -b[j] * U[j, j + 1 :]
    for j in reversed(range(len(b))):
        b[j] = (b[j] - dot(U[j, j + 1 :], b[j + 1 :])) / U[j, j]
    return b


# --- the examples that the trees end at -----------------------------------------------------------


class LocalFit:
    """Coefficients of the distinct examples X, each the end of ``counts`` trees."""

    def __init__(self, query: Row, X: Any, counts: Row, scales: Row | None) -> None:
        self.counts = counts
        Z = X.astype(np.float64) - query.astype(np.float64)
        Z = Z if scales is None else Z * scales
        self.Z = Z[:, (Z != 0).any(axis=0)]  # others tell nothing
        squares = np.array(in_lanes(self.Z * self.Z))
        self.squares = np.where(np.isnan(squares), math.inf, squares)
        self.least = float(self.squares.min())

    def coefficients(self, kind: str, power: int, penalty: float) -> Row:
        if kind == "mean":
            return self.counts / added(self.counts.tolist())
        k = self.weights(power)
        if kind == "shepard" or self.least == 0:
            return k
        ridge = self.ridge(k, penalty)
        return k if ridge is None else ridge

    def weights(self, power: int) -> Row:
        same = self.squares == self.least
        ratios = np.where(same, 1.0, self.least / np.where(same, 1.0, self.squares))
        if power == 1:
            ratios = np.sqrt(ratios)
        if power == 0 and self.least > 0:
            ratios = np.ones(len(ratios))
        k = self.counts * ratios
        return k / added(k.tolist())

    def ridge(self, k: Row, penalty: float) -> Row | None:
        n, D = self.Z.shape
        roots = np.sqrt(k)
        if n < D:  # in the space of the examples
            products = outer_products(self.Z.T)
            centre = np.zeros(n)
            for k_i, row in zip(k, products, strict=True):
                centre = centre + k_i * row
            square = added((k * centre).tolist())
            S, G = (
                None,
                np.outer(roots, roots) * (((products - centre[:, None]) - centre[None]) + square),
            )
            rhs = roots * (centre - square)
        else:
            rhs = np.zeros(D)
            for k_i, z in zip(k, self.Z, strict=True):
                rhs = rhs + k_i * z
            S = roots[:, None] * (self.Z - rhs)
            G = outer_products(S)
        scale = added(np.diag(G).tolist()) / D
        if not 0 < scale < math.inf:
            return None
        U = cholesky(G + np.diag(np.full(len(G), penalty * scale)))
        if U is None:
            return None
        u = solve(U, rhs)
        c = k - roots * (u if S is None else np.array([dot(s, u) for s in S]))
        return c if math.isfinite(added(c.tolist())) else None


# --- a linear model over all rows -----------------------------------------------------------------


class LinearModel:
    def __init__(self) -> None:
        self.n = 0.0
        self.origin: Any = None  # a row, from the first on
        self.coefficients: Row | None = None  # outputs x D
        self.intercepts: Row | None = None

    @property
    def is_kept(self) -> bool:
        return self.origin is not None

    @property
    def is_stopped(self) -> bool:
        return self.is_kept and self.n == 0

    def begin(self, row: Row, label: Row) -> None:
        D = len(row)
        if D > MOST_FEATURES or len(label) > MOST_OUTPUTS:
            return
        self.origin, self.sums, self.products = row.copy(), np.zeros(D), np.zeros((D, D))
        self.label_origin = self.label_sums = np.zeros(0)
        self.cross = np.zeros((0, D))
        self.add_outputs(len(label))
        self.label_origin = label.copy()

    def add_outputs(self, n: int) -> None:
        more = n - len(self.label_sums)
        if more <= 0:
            return
        if n > MOST_OUTPUTS:
            self.n = 0.0
            return
        self.label_origin = np.append(self.label_origin, np.zeros(more))
        self.label_sums = np.append(self.label_sums, np.zeros(more))
        self.cross = np.vstack([self.cross, np.zeros((more, self.cross.shape[1]))])

    def add(self, row: Row, label: Row, sign: float) -> None:
        """``label`` is relative to ``label_origin``; for a class it is 1 in one place."""
        x = row - self.origin
        self.n += sign
        self.sums = self.sums + sign * x
        self.products = self.products + np.outer(sign * x, x)
        self.label_sums = self.label_sums + sign * label
        self.cross = self.cross + np.outer(sign * label, x)

    def recentre(self, votes: bool) -> None:
        if not self.is_kept or not self.n >= 1:
            return
        shift = self.sums / self.n
        self.products = self.products - np.outer(shift, self.sums)
        self.products = np.tril(self.products) + np.tril(self.products, -1).T
        self.cross = self.cross - np.outer(self.label_sums, shift)
        if not votes:
            self.label_origin = self.label_origin + self.label_sums / self.n
            self.label_sums = np.zeros(len(self.label_sums))
        if self.intercepts is not None:
            assert self.coefficients is not None
            self.intercepts = self.intercepts + [dot(c, shift) for c in self.coefficients]
        self.origin = self.origin + shift
        self.sums = np.zeros(len(shift))

    def solve(self, penalty: float = LINEAR_PENALTY) -> None:
        self.coefficients = self.intercepts = None
        if not self.is_kept or not self.n >= 2:
            return
        mean = self.sums / self.n
        squares = np.diag(self.products) / self.n
        variances = squares - mean * mean
        kept = variances > LEAST_DIGITS * squares
        scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, variances, 1.0)), 0.0)
        covariances = self.products / self.n - np.outer(mean, mean)
        system = covariances * scale[:, None] * scale[None]
        # The engine takes element (j, k <= j) times the scale of j first.
        system = np.tril(system) + np.tril(system, -1).T
        U = cholesky(system + np.diag(np.full(len(mean), penalty)))
        if U is None:
            return
        coefficients, intercepts = [], []
        for o, label_sum in enumerate(self.label_sums.tolist()):
            label_mean = label_sum / self.n
            u = solve(U, (self.cross[o] / self.n - mean * label_mean) * scale) * scale
            coefficients.append(u)
            intercepts.append(float(self.label_origin[o]) + (label_mean - dot(u, mean)))
        if np.isfinite(coefficients).all() and np.isfinite(intercepts).all():
            self.coefficients, self.intercepts = np.array(coefficients), np.array(intercepts)

    def answer(self, row: Row) -> Row:
        if self.intercepts is None or self.coefficients is None:
            return np.zeros(0)
        x = row - self.origin
        return self.intercepts + np.array([dot(c, x) for c in self.coefficients])


# --- weights and sharpness ------------------------------------------------------------------------


def least_squares(Q: Any, active: list[bool]) -> list[float]:
    """The w >= 0 with sum 1 and the least w' Q w + pull, one coordinate after the other."""
    K = len(EXPERTS)
    v = [0.0] * K
    for _ in range(SWEEPS):
        before = list(v)
        for k in range(K):
            if active[k]:
                gradient = 1.0
                for other in range(K):
                    if other != k:
                        gradient -= Q[k][other] * v[other]
                v[k] = max(0.0, gradient / (Q[k][k] + EQUAL_PULL))
        if v == before:
            break
    total = added(v)
    return [x / total for x in v]


def fitted_weights(products: Any, n: float, has_linear: bool, n_outputs: int) -> list[float] | None:
    if n < FEWEST_JUDGED:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        Q = products / (n * n_outputs)
    if not np.isfinite(Q).all():
        return None
    active = [True] * LINEAR + [has_linear]
    while True:
        weights = least_squares(Q.tolist(), active)
        active = [w > 0 for w in weights]
        if sum(active) <= MOST_ACTIVE:
            return weights
        least = min(w for w in weights if w > 0)
        active[weights.index(least)] = False


def sharpened(x: float, quarters: int) -> float:
    root, power = math.sqrt(math.sqrt(x)), 1.0
    for _ in range(quarters):
        power *= root
    return power


def log2(x: float) -> float:
    mantissa, exponent = math.frexp(x)
    if mantissa < 0.70710678118654752:
        mantissa, exponent = mantissa * 2, exponent - 1
    z = (mantissa - 1) / (mantissa + 1)
    series = 1.0 / 11.0
    for odd in (9.0, 7.0, 5.0, 3.0, 1.0):
        series = series * (z * z) + 1.0 / odd
    return float(exponent) + 2.8853900817779268 * (z * series)


# --- the mixture ----------------------------------------------------------------------------------


class Mixture:
    """``votes``: labels are classes, each a code; otherwise vectors of ``n_outputs`` numbers."""

    def __init__(self, votes: bool, n_outputs: int) -> None:
        self.votes, self.n_outputs = votes, n_outputs
        self.weights = [1.0] + [0.0] * LINEAR
        self.sharpness = 4
        self.classes: list[int] = []  # codes, in order of their first example
        self.linear = LinearModel()
        self.units = np.zeros(n_outputs)
        self.n_judged = 0.0
        self.products = np.zeros((len(EXPERTS), len(EXPERTS)))
        self.losses = [0.0] * len(SHARPNESSES)
        self.is_calibrating = False

    def add_row(self, x: Row, c: Row, sign: float = 1.0) -> None:
        row = x.astype(np.float64)
        if self.votes and int(c[0]) not in self.classes:
            self.classes.append(int(c[0]))
        if self.linear.is_stopped:
            return
        if not self.linear.is_kept:
            self.linear.begin(row, np.zeros(0) if self.votes else c)
        if not self.linear.is_kept:
            return
        if not self.votes:
            self.linear.add(row, c - self.linear.label_origin, sign)
            return
        self.linear.add_outputs(len(self.classes))
        indicator = np.zeros(len(self.linear.label_sums))
        place = self.classes.index(int(c[0]))
        if place < len(indicator):
            indicator[place] = 1.0
            self.linear.add(row, indicator, sign)

    def begin_trial(self, variances: Row) -> None:
        was_solved = self.linear.intercepts is not None
        self.linear.solve()
        self.drop_lost_model()
        if not self.votes:
            self.units = np.array(
                [1.0 / math.sqrt(v) if 0 < v < math.inf else 0.0 for v in variances.tolist()]
            )
        self.is_calibrating = False
        if was_solved != (self.linear.intercepts is not None):
            self.n_judged, self.products = 0.0, np.zeros((len(EXPERTS), len(EXPERTS)))

    def fit_weights(self) -> bool:
        n_outputs = 1 if self.votes else self.n_outputs
        has_linear = self.linear.intercepts is not None
        fitted = fitted_weights(self.products, self.n_judged, has_linear, n_outputs)
        self.weights = fitted or self.weights
        return fitted is not None

    def look_ahead(self) -> None:
        self.is_calibrating = self.fit_weights() and self.votes

    def decide(self) -> None:
        if self.is_calibrating and self.n_judged >= FEWEST_CALIBRATED:
            self.sharpness = SHARPNESSES[self.losses.index(min(self.losses))]
        self.is_calibrating = False
        self.fit_weights()
        self.linear.solve()
        self.drop_lost_model()
        self.n_judged *= CARRIED
        self.products = self.products * CARRIED
        self.losses = [x * CARRIED for x in self.losses]

    def drop_lost_model(self) -> None:
        if self.linear.intercepts is None and self.weights[LINEAR] > 0:
            self.weights = [1.0] + [0.0] * LINEAR

    def answers(self, query: Row, ends: list[Any], scales: Row | None) -> tuple[Any, Any, Row]:
        """The classes of the ends, or none; each local expert's answers; the linear model's."""
        nodes, counts = distinct(ends)
        fit = LocalFit(query, np.stack([v.x for v in nodes]), counts, scales)
        labels = np.stack([v.c for v in nodes])
        classes = list(dict.fromkeys(labels[:, 0].astype(int).tolist())) if self.votes else []
        if self.votes:
            labels = np.array([[float(code == c) for c in classes] for code in labels[:, 0]])
        lowest, highest = labels.min(axis=0), labels.max(axis=0)
        mean = clipped_mean(labels, counts)
        local = []
        for expert in EXPERTS[:LINEAR]:
            answer = np.zeros(labels.shape[1])
            for c, label in zip(fit.coefficients(*expert), labels, strict=True):
                answer = answer + c * label
            answer = np.where(np.isfinite(answer), answer, mean)
            slack = LOCAL_SLACK * (highest - lowest)
            local.append(np.minimum(np.maximum(answer, lowest - slack), highest + slack))
        linear = self.linear.answer(query.astype(np.float64))
        if self.votes:
            clipped = np.minimum(np.maximum(linear, 0 - LOCAL_SLACK), 1 + LOCAL_SLACK)
            linear = np.where(np.isfinite(linear), clipped, 0.0)
        elif len(linear):
            slack = LINEAR_SLACK * (highest - lowest)
            clipped = np.minimum(np.maximum(linear, lowest - slack), highest + slack)
            linear = np.where(np.isfinite(linear), clipped, lowest)
        return classes, local, linear

    def label(self, query: Row, ends: list[Any], scales: Row | None) -> Row:
        _, local, linear = self.answers(query, ends, scales)
        total = np.zeros(self.n_outputs)
        for w, answer in zip(self.weights, [*local, linear], strict=True):
            if w > 0:
                total = total + w * answer
        nodes, counts = distinct(ends)
        mean = clipped_mean(np.stack([v.c for v in nodes]), counts)
        return np.where(np.isfinite(total), total, mean)

    def shares(
        self, weights: list[float], classes: Any, local: Any, linear: Row
    ) -> dict[int, float]:
        """By code, in the order in which sums run."""
        shares: dict[int, float] = {}
        for column, code in enumerate(classes):
            share = 0.0
            for w, answer in zip(weights[:LINEAR], local, strict=True):
                if w > 0:
                    share += w * float(answer[column])
            shares[code] = share
        if weights[LINEAR] > 0:
            for place, answer in enumerate(linear.tolist()):
                code = self.classes[place]
                shares[code] = shares.get(code, 0.0) + weights[LINEAR] * answer
        shares = {code: max(share, 0.0) for code, share in shares.items()}
        total = added(shares.values())
        return {code: s / total if total > 0 else 1.0 / len(shares) for code, s in shares.items()}

    def probabilities(
        self, query: Row, ends: list[Any], scales: Row | None, weight_of: Callable[[int], float]
    ) -> dict[int, float]:
        shares = self.shares(self.weights, *self.answers(query, ends, scales))
        everything = [*shares, *(code for code in self.classes if code not in shares)]
        sharp = {
            code: sharpened(shares.get(code, 0.0) + ADDED_SHARE, self.sharpness) * weight_of(code)
            for code in everything
        }
        total = added(sharp.values())
        return {code: x / total for code, x in sharp.items()}

    def judge(self, c: Row, query: Row, ends: list[Any], scales: Row | None) -> None:
        classes, local, linear = self.answers(query, ends, scales)
        if not self.votes:
            for j in range(self.n_outputs):
                errors = [(float(a[j]) - float(c[j])) * float(self.units[j]) for a in local]
                last = (float(linear[j]) - float(c[j])) * float(self.units[j]) if len(linear) else 0
                self.add_errors([*errors, last])
            self.n_judged += 1
            return
        code = int(c[0])
        if self.is_calibrating and code in self.classes:
            self.judge_sharpness(code, self.shares(self.weights, classes, local, linear))

        def linear_of(code: int) -> float:
            known = code in self.classes and self.classes.index(code) < len(linear)
            return float(linear[self.classes.index(code)]) if known else 0.0

        has_linear = float(len(linear) > 0)
        for column, named in enumerate(classes):
            truth = float(named == code)
            errors = [float(a[column]) - truth for a in local]
            self.add_errors([*errors, has_linear * (linear_of(named) - truth)])
        if code not in classes:
            self.add_errors([-1.0] * LINEAR + [has_linear * (linear_of(code) - 1.0)])
        for place, answer in enumerate(linear.tolist()):
            if self.classes[place] != code and self.classes[place] not in classes:
                self.products[LINEAR, LINEAR] += answer * answer
        self.n_judged += 1

    def add_errors(self, errors: list[float]) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            self.products = self.products + np.outer(errors, errors)

    def judge_sharpness(self, code: int, shares: dict[int, float]) -> None:
        n_others = len(self.classes) - len(shares)
        log = log2(shares.get(code, 0.0) + ADDED_SHARE)
        for s, quarters in enumerate(SHARPNESSES):
            total = added(sharpened(x + ADDED_SHARE, quarters) for x in shares.values())
            total += n_others * sharpened(ADDED_SHARE, quarters)
            self.losses[s] += log2(total) - 0.25 * quarters * log


def distinct(ends: list[Any]) -> tuple[list[Any], Row]:
    """The examples in order of the first tree that ends at each, and how many trees do."""
    nodes = {v.arrival: v for v in ends}
    arrivals = [v.arrival for v in ends]
    return list(nodes.values()), np.array([float(arrivals.count(a)) for a in nodes])


def clipped_mean(labels: Any, counts: Row) -> Row:
    """The mean label of the trees, where sums might overflow."""
    total = np.zeros(labels.shape[1])
    for count, label in zip(counts, labels, strict=True):
        total = total + count * (label * 2.0**-64)
    mean = total / added(counts.tolist()) * 2.0**64
    return np.minimum(np.maximum(mean, labels.min(axis=0)), labels.max(axis=0))
