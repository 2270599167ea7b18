"""A linear model whose rows count for less the older they are.

See the engine's ``adapt/aging_model.hpp``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from boundary_forest.reference.mixture import (
    LEAST_DIGITS,
    MOST_FEATURES,
    MOST_OUTPUTS,
    cholesky,
    dot,
    solve,
)

Row = Any  # a 1-D numpy array

VANISHED = 1e-200


class AgingModel:
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

    def solve(self, penalty: float) -> None:
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

    def decay(self, factor: float) -> None:
        """Rows so far count for less."""
        self.n *= factor
        if not self.is_kept:
            return

        def less(part: Any) -> Any:
            return np.where(np.abs(part) < VANISHED, 0.0, factor * part)

        self.sums, self.products = less(self.sums), less(self.products)
        self.label_sums, self.cross = less(self.label_sums), less(self.cross)
