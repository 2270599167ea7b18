"""How good answers were over the rows: curves of a few hundred points, whatever their number.

They are made of totals, which :class:`~boundary_forest.session.scores.Scores` returns for each row.
Their columns are

- of a classification: the answers, the wrong ones, the answers of the baselines, and those that the
  majority class and "no change" got right;
- of a regression: the answers, the sums of the residuals' amounts and of their squares, and the
  sums of the targets and of their squares.

Targets are taken from a number near them, so that their squares do not drown the differences.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.session.scores import RECENT

MOST_POINTS = 600

Totals = NDArray[np.float64]


@dataclass(frozen=True)
class QualityPoint:
    """The measures after a row, by their names in a snapshot; those of the other task are None.

    ``recent`` ones are over the latest 1,000 answers, or those since the last point if more.
    """

    rows: int
    error: float | None = None
    recent_error: float | None = None
    majority_accuracy: float | None = None
    no_change_accuracy: float | None = None
    mae: float | None = None
    recent_mae: float | None = None
    r2: float | None = None
    recent_r2: float | None = None


class QualityCurve:
    """Totals at evenly spaced answers, half as dense whenever there are too many of them."""

    def __init__(self) -> None:
        self._rows: list[int] = [0]
        self._totals: list[Totals] = []  # the first is from before the first answer
        self._every = 1

    def add(self, totals: Totals, rows: int) -> None:
        """Add the totals before some answers and after each, the last of which is row ``rows``."""
        first = rows - len(totals) + 2
        if not self._totals:
            self._totals.append(totals[0])
        for i in np.flatnonzero(totals[1:, 0] % self._every == 0).tolist():
            self._rows.append(first + i)
            self._totals.append(totals[i + 1])
        while len(self._rows) > MOST_POINTS:
            self._every *= 2
            kept = [
                i for i, total in enumerate(self._totals) if i == 0 or total[0] % self._every == 0
            ]
            self._rows = [self._rows[i] for i in kept]
            self._totals = [self._totals[i] for i in kept]

    def points(self, task: str) -> list[QualityPoint]:
        """Return the measures at each of them."""
        counts = [float(total[0]) for total in self._totals]
        measure = _of_classes if task == CLASSIFY else _of_numbers
        found = []
        for i, total in enumerate(self._totals[1:], 1):
            start = max(0, min(i - 1, bisect_right(counts, counts[i] - RECENT) - 1))
            with np.errstate(invalid="ignore"):
                part = total - self._totals[start]
            found.append(_point(self._rows[i], total, part, measure))
        return found


def _point(
    row: int, whole: Totals, part: Totals, measure: Callable[[Totals], dict[str, float | None]]
) -> QualityPoint:
    recent = {f"recent_{name}": value for name, value in measure(part).items()}
    names = QualityPoint.__dataclass_fields__.keys()
    return QualityPoint(row, **measure(whole), **{n: v for n, v in recent.items() if n in names})


def _of_classes(totals: Totals) -> dict[str, float | None]:
    n, wrong, compared, majority, no_change = totals.tolist()
    return {
        "error": wrong / n if n else None,
        "majority_accuracy": majority / compared if compared else None,
        "no_change_accuracy": no_change / compared if compared else None,
    }


def _of_numbers(totals: Totals) -> dict[str, float | None]:
    n, absolute, squared, off, spread = totals.tolist()
    deviation = spread - off * off / n if n else 0.0
    return {
        "mae": absolute / n if n else None,
        "r2": 1 - squared / deviation if deviation > 0 else None,
    }
