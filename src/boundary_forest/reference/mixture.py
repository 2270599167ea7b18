"""``weights="mixture"``: what several experts answer, mixed.

All but two answer from the examples that the trees end at: means of their labels, and ridge
regressions around the query; the last are a linear and a quadratic model over all rows, whose
answers may be further features of such a regression. Weights follow from the
errors of up to 250 rows before each decision, before these were learned. Probabilities of classes
are then sharpened. Sums run in the order of the trees, then of the columns; see the engine's
``vote/``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from copy import copy
from typing import Any

import numpy as np

from boundary_forest.reference.feature_map import MOST_FEATURES, FeatureMap, known_features
from boundary_forest.reference.metrics import added, in_lanes

Row = Any  # a 1-D numpy array

EXPERTS: list[tuple[str, int, float]] = [
    ("shepard", 1, 0.0),
    ("shepard", 2, 0.0),
    ("mean", 0, 0.0),
    *(("ridge", 0, penalty) for penalty in (3.0, 0.3, 0.03)),
    *(("scored_ridge", power, 0.3) for power in (1, 2, 4)),
    ("linear", 0, 0.0),
    ("quadratic", 0, 0.0),
]
N_LOCAL = len(EXPERTS) - 2
NEEDS_MODELS = [kind in ("scored_ridge", "linear", "quadratic") for kind, _, _ in EXPERTS]
SHARE_OF_SCORES = 8.0
MOST_ACTIVE = 4
LONGEST_TRIAL = 250
LOCAL_SLACK, LINEAR_SLACK = 0.25, 1.0
EQUAL_PULL = 0.001
FEWEST_JUDGED, FEWEST_CALIBRATED = 20.0, 100.0
CARRIED = 0.7
SWEEPS = 1000
ADDED_SHARE = 0.003
SHARPNESSES = (2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24)
MOST_OUTPUTS = 100
LINEAR_PENALTY, TERM_PENALTY, LEAST_DIGITS = 0.003, 0.02, 1e-9
MOST_UNIT, VANISHED = 2.0**32, 1e-200


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
        self.measure(Z[:, (Z != 0).any(axis=0)])  # others tell nothing

    def measure(self, Z: Any) -> None:
        self.Z = Z
        squares = np.array(in_lanes(self.Z * self.Z)) if Z.shape[1] else np.zeros(len(Z))
        self.squares = np.where(np.isnan(squares), math.inf, squares)
        self.least = float(self.squares.min())

    def with_scores(self, relative: Any) -> LocalFit:
        """The same examples in a wider space; scores are less the query's."""
        with np.errstate(all="ignore"):
            of_positions = added(self.squares.tolist())
            of_scores = added(in_lanes(relative * relative))
            factor = float(np.sqrt(np.float64(SHARE_OF_SCORES * of_positions) / of_scores))
        wider = copy(self)
        if math.isfinite(factor):
            wider.measure(np.hstack([self.Z, relative * factor]))
        return wider

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
        if power == 4:
            ratios = ratios * ratios
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
    """Ridge regressions on the features, and on these and the first products of two of them.

    Every row counts ``growth`` times as much as the one before.
    """

    def __init__(
        self, penalty: float = LINEAR_PENALTY, growth: float = 1.0, has_products: bool = True
    ) -> None:
        self.penalty, self.growth, self.has_products = penalty, growth, has_products
        self.n, self.unit = 0.0, 1.0
        self.origin: Any = None  # a row, from the first on
        self.fits: list[tuple[Row, Any]] = []  # linear, quadratic: intercepts, outputs x terms

    @property
    def is_kept(self) -> bool:
        return self.origin is not None

    @property
    def is_stopped(self) -> bool:
        return self.is_kept and self.n == 0

    def begin(self, row: Row, label: Row, step: int = 1, most_products: int = 0) -> None:
        """``step``: every how many features one has products."""
        D = len(row)
        if D > MOST_FEATURES or len(label) > MOST_OUTPUTS:
            return
        # By i: features i to i + step - 1, then products of i and j <= i, as far as there is room.
        self.most_products = room = most_products if self.has_products else 0
        order: list[tuple[int, int]] = []
        for i in range(0, D, step):
            order += [(member, -1) for member in range(i, i + step)]
            products = [(i, j) for j in range(0, i + 1, step)]
            order += products[:room]
            room -= min(room, len(products))
        self.features = [t for t, (_, j) in enumerate(order) if j < 0]
        self.pairs = [
            (t, self.features[i], self.features[j]) for t, (i, j) in enumerate(order) if j >= 0
        ]
        T = len(order)
        self.origin, self.sums, self.products = row.copy(), np.zeros(T), np.zeros((T, T))
        self.label_origin = self.label_sums = np.zeros(0)
        self.cross = np.zeros((0, T))
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

    def terms(self, row: Row) -> Row:
        terms = np.zeros(len(self.sums))
        terms[self.features] = row - self.origin
        for t, i, j in self.pairs:
            terms[t] = terms[i] * terms[j]
        return terms

    def add(self, row: Row, label: Row, sign: float) -> None:
        """``label`` is relative to ``label_origin``; for a class it is 1 in one place."""
        self.pass_row()
        x, count = self.terms(row), sign * self.unit
        self.n += count
        self.sums = self.sums + count * x
        self.products = self.products + np.outer(count * x, x)
        self.label_sums = self.label_sums + count * label
        for o in np.flatnonzero(label):
            self.cross[o] = self.cross[o] + count * label[o] * x

    def pass_row(self) -> None:
        """Let the rows so far count for less, relative to those to come."""
        if not self.is_kept:
            return
        self.unit *= self.growth
        if self.unit < MOST_UNIT:
            return
        self.unit, self.n = self.unit / MOST_UNIT, self.n / MOST_UNIT

        def less(part: Any) -> Any:
            return np.where(np.abs(part) < VANISHED, 0.0, part / MOST_UNIT)

        self.sums, self.products = less(self.sums), less(self.products)
        self.label_sums, self.cross = less(self.label_sums), less(self.cross)

    @property
    def n_varied(self) -> int:
        """Features that were not the same in all rows."""
        return int((np.diag(self.products)[self.features] != 0).sum())

    def shift_terms(self, at: Any, shift: Row, constant: Any) -> None:
        """What the rows ``at``, one per term, become when the origin moves; in place."""
        for t, i, j in self.pairs:
            first = (at[t] - shift[i] * at[j]) - shift[j] * at[i]
            at[t] = first + shift[i] * shift[j] * constant
        for i in self.features:
            at[i] = at[i] - shift[i] * constant

    def recentre(self, votes: bool) -> None:
        if not self.is_kept or not self.n >= self.unit:
            return
        shift = np.zeros(len(self.sums))
        shift[self.features] = self.sums[self.features] / self.n
        self.products = np.tril(self.products) + np.tril(self.products, -1).T
        self.shift_terms(self.products, shift, self.sums.copy())
        self.shift_terms(self.sums, shift, self.n)
        self.shift_terms(self.products.T, shift, self.sums.copy())
        self.products = np.tril(self.products) + np.tril(self.products, -1).T
        self.shift_terms(self.cross.T, shift, self.label_sums)
        self.origin = self.origin + shift[self.features]
        self.sums[self.features] = 0.0
        if not votes:
            label_shift = self.label_sums / self.n
            self.cross = self.cross + np.outer(-label_shift, self.sums)
            self.label_origin = self.label_origin + label_shift
            self.label_sums = np.zeros(len(self.label_sums))
        if self.fits:
            self.shift_fits(shift)

    def shift_fits(self, shift: Row) -> None:
        """The answers stay as they are."""
        linear, slopes = self.fits[0]
        linear = linear + np.array([dot(c, shift[self.features]) for c in slopes])
        if not self.has_products:
            self.fits = [(linear, slopes)]
            return
        intercepts, coefficients = self.fits[1]
        C = coefficients.copy()
        for i in self.features:
            intercepts = intercepts + C[:, i] * shift[i]
        for t, i, j in self.pairs:
            intercepts = intercepts + C[:, t] * (shift[i] * shift[j])
            C[:, i] += C[:, t] * shift[j]
            C[:, j] += C[:, t] * shift[i]
        self.fits = [(linear, slopes), (intercepts, C)]

    def solve(self, votes: bool) -> None:
        self.fits = []
        if not self.is_kept or not self.n >= 2 * self.unit:
            return
        if self.has_products:
            self.recentre(votes)
        linear = self.fitted(self.features)
        if linear is None:
            return
        if not self.has_products:
            self.fits = [linear]
            return
        padded = np.zeros((len(linear[1]), len(self.sums)))
        padded[:, self.features] = linear[1]
        quadratic = self.fitted(list(range(len(self.sums))), TERM_PENALTY)
        self.fits = [linear, quadratic or (linear[0], padded)]

    def fitted(self, terms: list[int], term_penalty: float = 0.0) -> tuple[Row, Any] | None:
        with np.errstate(all="ignore"):
            mean = self.sums[terms] / self.n
            squares = np.diag(self.products)[terms] / self.n
            variances = squares - mean * mean
            kept = variances > LEAST_DIGITS * squares
            scale = np.where(kept, 1.0 / np.sqrt(np.where(kept, variances, 1.0)), 0.0)
            covariances = self.products[np.ix_(terms, terms)] / self.n - np.outer(mean, mean)
            system = covariances * scale[:, None] * scale[None]
            # The engine takes element (j, k <= j) times the scale of j first.
            system = np.tril(system) + np.tril(system, -1).T
            penalty = self.penalty + term_penalty * float(kept.sum()) / self.n
            U = cholesky(system + np.diag(np.full(len(mean), penalty)))
            if U is None:
                return None
            coefficients, intercepts = [], []
            for o, label_sum in enumerate(self.label_sums.tolist()):
                label_mean = label_sum / self.n
                u = solve(U, (self.cross[o, terms] / self.n - mean * label_mean) * scale) * scale
                coefficients.append(u)
                intercepts.append(float(self.label_origin[o]) + (label_mean - dot(u, mean)))
        if np.isfinite(coefficients).all() and np.isfinite(intercepts).all():
            return np.array(intercepts), np.array(coefficients)
        return None

    def answers(self, row: Row) -> list[Row]:
        """The linear model's and the quadratic one's; none if they were not solved."""
        if not self.fits:
            return [np.zeros(0), np.zeros(0)]
        x = self.terms(row)
        return [
            intercepts + np.array([dot(c, z) for c in coefficients])
            for (intercepts, coefficients), z in zip(self.fits, (x[self.features], x), strict=False)
        ]


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


def fitted_weights(products: Any, n: float, has_models: bool, n_outputs: int) -> list[float] | None:
    if n < FEWEST_JUDGED:
        return None
    with np.errstate(invalid="ignore", over="ignore"):
        Q = products / (n * n_outputs)
    if not np.isfinite(Q).all():
        return None
    active = [has_models or not needs for needs in NEEDS_MODELS]
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
        self.weights = [1.0] + [0.0] * (len(EXPERTS) - 1)
        self.sharpness = 4
        self.classes: list[int] = []  # codes, in order of their first example
        self.linear = LinearModel()
        self.map: FeatureMap | None = None
        self.first_row = 0  # that the models over all rows have
        self.units = np.zeros(n_outputs)
        self.n_judged = 0.0
        self.products = np.zeros((len(EXPERTS), len(EXPERTS)))
        self.losses = [0.0] * len(SHARPNESSES)
        self.is_calibrating = False

    def add_row(self, x: Row, c: Row, sign: float = 1.0) -> None:
        row = x.astype(np.float64)
        if self.votes and int(c[0]) not in self.classes:
            self.classes.append(int(c[0]))
        if self.map is None or self.linear.is_stopped:
            return
        row = self.map.apply(row)
        if not self.linear.is_kept:
            label = np.zeros(0) if self.votes else c
            self.linear.begin(row, label, self.map.step, self.map.most_products)
        if not self.votes:
            self.linear.add(row, c - self.linear.label_origin, sign)
            return
        self.linear.add_outputs(len(self.classes))
        indicator = np.zeros(len(self.linear.label_sums))
        place = self.classes.index(int(c[0]))
        if place < len(indicator):
            indicator[place] = 1.0
            self.linear.add(row, indicator, sign)

    def begin_models(self, window: list[tuple[int, Row, Row]]) -> None:
        """The models over all rows begin with those of the window."""
        if self.linear.is_kept or not window:
            return
        rows = np.stack([x.astype(np.float64) for _, x, _ in window])
        if known_features(rows) > MOST_FEATURES or len(window[0][2]) > MOST_OUTPUTS:
            return
        self.map, self.first_row = FeatureMap(rows), window[0][0]
        for _, x, c in window:
            self.add_row(x, c)

    def begin_trial(self, variances: Row) -> None:
        was_solved = bool(self.linear.fits)
        self.linear.solve(self.votes)
        self.drop_lost_model()
        if not self.votes:
            self.units = np.array(
                [1.0 / math.sqrt(v) if 0 < v < math.inf else 0.0 for v in variances.tolist()]
            )
        self.is_calibrating = False
        if was_solved != bool(self.linear.fits):
            self.n_judged, self.products = 0.0, np.zeros((len(EXPERTS), len(EXPERTS)))

    def fit_weights(self) -> bool:
        n_outputs = 1 if self.votes else self.n_outputs
        has_models = bool(self.linear.fits)
        fitted = fitted_weights(self.products, self.n_judged, has_models, n_outputs)
        self.weights = fitted or self.weights
        return fitted is not None

    def look_ahead(self) -> None:
        self.is_calibrating = self.fit_weights() and self.votes

    def decide(self) -> None:
        if self.is_calibrating and self.n_judged >= FEWEST_CALIBRATED:
            self.sharpness = SHARPNESSES[self.losses.index(min(self.losses))]
        self.is_calibrating = False
        self.fit_weights()
        self.linear.solve(self.votes)
        self.drop_lost_model()
        self.n_judged *= CARRIED
        self.products = self.products * CARRIED
        self.losses = [x * CARRIED for x in self.losses]

    def solve_again(self) -> None:
        if self.linear.fits:
            self.linear.solve(self.votes)
            self.drop_lost_model()

    def drop_lost_model(self) -> None:
        weighed = any(w > 0 for w, needs in zip(self.weights, NEEDS_MODELS, strict=True) if needs)
        if weighed and not self.linear.fits:
            self.weights = [1.0] + [0.0] * (len(EXPERTS) - 1)

    def answers(
        self, query: Row, ends: list[Any], scales: Row | None
    ) -> tuple[list[int], list[Row | None], list[Row]]:
        """The classes of the ends, or none; each local expert's answers; the models'."""
        nodes, counts = distinct(ends)
        X = np.stack([v.x for v in nodes])
        fit = LocalFit(query, X, counts, scales)
        labels = np.stack([v.c for v in nodes])
        classes = list(dict.fromkeys(labels[:, 0].astype(int).tolist())) if self.votes else []
        scored = None
        if self.linear.fits:
            scores = np.stack([self.scores(x.astype(np.float64), classes) for x in [*X, query]])
            scored = fit.with_scores(scores[:-1] - scores[-1])
        if self.votes:
            labels = np.array([[float(code == c) for c in classes] for code in labels[:, 0]])
        lowest, highest = labels.min(axis=0), labels.max(axis=0)
        mean = clipped_mean(labels, counts)
        local: list[Row | None] = []
        for kind, power, penalty in EXPERTS[:N_LOCAL]:
            of_kind = scored if kind == "scored_ridge" else fit
            if of_kind is None:
                local.append(None)
                continue
            answer = np.zeros(labels.shape[1])
            coefficients = of_kind.coefficients(kind, power, penalty)
            for c, label in zip(coefficients, labels, strict=True):
                answer = answer + c * label
            answer = np.where(np.isfinite(answer), answer, mean)
            slack = LOCAL_SLACK * (highest - lowest)
            local.append(np.minimum(np.maximum(answer, lowest - slack), highest + slack))
        models = []
        mapped = query.astype(np.float64) if self.map is None else self.map.apply(query)
        for answer in self.linear.answers(mapped):
            if self.votes:
                clipped = np.minimum(np.maximum(answer, 0 - LOCAL_SLACK), 1 + LOCAL_SLACK)
                models.append(np.where(np.isfinite(answer), clipped, 0.0))
            elif len(answer):
                slack = LINEAR_SLACK * (highest - lowest)
                clipped = np.minimum(np.maximum(answer, lowest - slack), highest + slack)
                models.append(np.where(np.isfinite(answer), clipped, lowest))
            else:
                models.append(answer)
        return classes, local, models

    def scores(self, row: Row, classes: list[int]) -> Row:
        """The quadratic model's answers for these classes, or in units of the labels."""
        assert self.map is not None
        answer = self.linear.answers(self.map.apply(row))[1]
        if not self.votes:
            return answer * self.units
        places = [self.classes.index(code) for code in classes]
        known = np.array([answer[p] if p < len(answer) else 0.0 for p in places])
        return np.minimum(np.maximum(known, 0 - LOCAL_SLACK), 1 + LOCAL_SLACK)

    def label(self, query: Row, ends: list[Any], scales: Row | None) -> Row:
        _, local, models = self.answers(query, ends, scales)
        total = np.zeros(self.n_outputs)
        for w, answer in zip(self.weights, [*local, *models], strict=True):
            if w > 0 and answer is not None:
                total = total + w * answer
        nodes, counts = distinct(ends)
        mean = clipped_mean(np.stack([v.c for v in nodes]), counts)
        return np.where(np.isfinite(total), total, mean)

    def shares(
        self, weights: list[float], classes: list[int], local: Any, models: list[Row]
    ) -> dict[int, float]:
        """By code, in the order in which sums run."""
        shares: dict[int, float] = {}
        for column, code in enumerate(classes):
            share = 0.0
            for w, answer in zip(weights[:N_LOCAL], local, strict=True):
                if w > 0:
                    share += w * float(answer[column])
            shares[code] = share
        for w, of_model in zip(weights[N_LOCAL:], models, strict=True):
            for place, answer in enumerate(of_model.tolist()):
                if w > 0:
                    code = self.classes[place]
                    shares[code] = shares.get(code, 0.0) + w * answer
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
        classes, local, models = self.answers(query, ends, scales)
        self.n_judged += 1
        if not self.votes:
            for j in range(self.n_outputs):
                errors = [
                    (float(a[j]) - float(c[j])) * float(self.units[j])
                    if a is not None and len(a)
                    else 0.0
                    for a in [*local, *models]
                ]
                self.add_errors(errors)
            return
        code = int(c[0])
        if self.is_calibrating and code in self.classes:
            self.judge_sharpness(code, self.shares(self.weights, classes, local, models))

        def of_models(code: int, truth: float) -> list[float]:
            place = self.classes.index(code) if code in self.classes else MOST_OUTPUTS
            return [
                (float(m[place]) if place < len(m) else 0.0) - truth if self.linear.fits else 0.0
                for m in models
            ]

        for column, named in enumerate(classes):
            truth = float(named == code)
            errors = [0.0 if a is None else float(a[column]) - truth for a in local]
            self.add_errors([*errors, *of_models(named, truth)])
        if code not in classes:
            errors = [0.0 if a is None else -1.0 for a in local]
            self.add_errors([*errors, *of_models(code, 1.0)])
        for named in self.classes[: len(models[0])]:
            if named != code and named not in classes:
                self.add_errors([0.0] * N_LOCAL + of_models(named, 0.0))

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
