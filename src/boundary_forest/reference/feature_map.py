"""What the models over all rows of a mixture know of a row; see the engine's ``vote/feature_map``.

Numbers of a feature are fixed before the first decision, from the rows of the window, and rounded.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Row = Any  # a 1-D numpy array

MOST_FEATURES, MOST_TERMS, MOST_KNOTS, MOST_Z = 200, 300, 2, 1e100


class FeatureMap:
    """What the models know of a row: features squashed, and their distances from knots."""

    def __init__(self, rows: Any) -> None:
        columns = [sorted(column) for column in (rows + 0.0).T.tolist()]
        D = known_features(rows)
        self.choose_knots(D, sum(column[0] != column[-1] for column in columns))
        n_features = MOST_FEATURES // (1 + self.n_knots)  # of which the models know
        self.numbers = [self.numbers_of(column) for column in columns[:n_features]]
        self.most_products = MOST_TERMS - (1 + self.n_knots) * D

    def choose_knots(self, D: int, n_varied: int) -> None:
        """As many as leave room for all products; else for half of the terms, but no products."""
        for n in (MOST_KNOTS, MOST_KNOTS - 1):
            terms = (1 + n) * n_varied
            room = terms + terms * (terms + 1) // 2 <= MOST_TERMS
            if room and (1 + n) * D <= MOST_TERMS // 2:
                self.n_knots, self.step = n, 1
                return
        kept = [n for n in range(MOST_KNOTS + 1) if (1 + n) * D <= MOST_TERMS // 2]
        self.n_knots = max(kept, default=0)
        self.step = 1 + self.n_knots

    def numbers_of(self, column: list[float]) -> list[float]:
        """The centre, the unit and the knots."""

        def quantile(part: int) -> float:
            return column[(len(column) - 1) * part // 20]

        least, unit = 1e-12 * abs(quantile(10)), 1.0
        for width in (quantile(15) - quantile(5), column[-1] - column[0]):
            if max(least, 1e-100) < width < MOST_Z:
                unit = math.ldexp(1.0, math.frexp(width)[1] - 1)
                break
        centre = eighths(quantile(10) / unit) * unit
        parts = [10] if self.n_knots == 1 else [6, 14][: self.n_knots]
        return [centre, unit, *(eighths(squashed(quantile(p), centre, unit)) for p in parts)]

    def apply(self, row: Row) -> Row:
        out = []
        for x, (centre, unit, *knots) in zip(row.tolist(), self.numbers, strict=False):
            u = squashed(x, centre, unit)
            out += [u, *(abs(u - knot) for knot in knots)]
        return np.array(out)


def known_features(rows: Any) -> int:
    """Features up to the last one that is not 0 in all rows; at least one."""
    return 1 + int(np.append(0, np.flatnonzero(rows.any(axis=0)))[-1])


def squashed(x: float, centre: float, unit: float) -> float:
    z = min(max((x - centre) / unit, -MOST_Z), MOST_Z)
    return z / math.sqrt(1.0 + abs(z))


def eighths(x: float) -> float:
    return math.floor(x * 8.0 + 0.5) / 8.0 if abs(x) < 2.0**49 else x
