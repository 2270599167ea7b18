"""How far the shares of the votes can be believed: log-loss, and confidence against accuracy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

BINS = 10  # of confidence, equally wide
# A share of 0 counts as this, as in scikit-learn: its logarithm would be infinite.
LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class Bin:
    """Answers of similar confidence: their number, its mean, and the share that is right."""

    rows: int
    confidence: float
    accuracy: float


@dataclass
class Calibration:
    """Sums over answers: their number, their log-loss, and for each bin what a Bin is made of.

    Parameters
    ----------
    rows : int
        Number of answers.
    loss : float
        The sum of minus the logarithm of the true class's share.
    bins : list of [int, float, int]
        Number of answers, the sum of their confidence, and how many are right.
    """

    rows: int = 0
    loss: float = 0.0
    bins: list[list[Any]] = field(default_factory=lambda: [[0, 0.0, 0] for _ in range(BINS)])

    def add(
        self,
        true_share: NDArray[np.float64],
        confidence: NDArray[np.float64],
        right: NDArray[np.bool_],
    ) -> None:
        """Add answers: the share of the true class, that of the answer, and whether it is right."""
        self.rows += len(true_share)
        self.loss -= float(np.log(np.clip(true_share, LEAST, 1.0)).sum())
        place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        sums = (np.bincount(place, weights, BINS) for weights in (None, confidence, right))
        for kept, n, total, n_right in zip(self.bins, *(s.tolist() for s in sums), strict=True):
            kept[0] += int(n)
            kept[1] += total
            kept[2] += int(n_right)

    def log_loss(self) -> float | None:
        """Return the mean log-loss in nats: 0 is perfect."""
        return self.loss / self.rows if self.rows else None

    def reliability(self) -> list[Bin]:
        """Return the bins that have answers, by confidence."""
        return [Bin(n, total / n, right / n) for n, total, right in self.bins if n]

    def to_json(self) -> dict[str, Any]:
        """Return a copy as plain JSON."""
        return {"rows": self.rows, "loss": self.loss, "bins": [list(kept) for kept in self.bins]}
