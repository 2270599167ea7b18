"""What a classification is measured by; bounded in size.

- How well each class is predicted, and how far that is beyond chance.
- Baselines: what one would get right without a model, by the majority class and by the previous
  label. Both predict a row from the labels before it alone, as the forest does, and are counted for
  the rows that the forest predicted.
- Calibration: how far the shares of the votes can be believed, by log-loss and by confidence
  against accuracy.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

MOST_CLASSES = 1000  # counted by name; the others together, so that what is kept stays small
OTHER = "other"
TRUE, ANSWERED, RIGHT = range(3)  # places in the counts of a class
BINS = 10  # of confidence, equally wide
# A share of 0 counts as this, as in scikit-learn: its logarithm would be infinite.
LEAST = float(np.finfo(np.float64).eps)


@dataclass(frozen=True)
class ClassScore:
    """The scores of a class.

    Parameters
    ----------
    name : str
        The class.
    rows, answered : int
        Number of rows that are of this class, and of those that it was the answer to.
    precision, recall : float or None
        The share of ``answered``, and of ``rows``, that is right; None of no rows.
    f1 : float
        Their harmonic mean.
    """

    name: str
    rows: int
    answered: int
    precision: float | None
    recall: float | None
    f1: float


@dataclass
class ClassScores:
    """For each class the number of rows that are of it, were answered with it, and both."""

    counts: dict[str, list[int]] = field(default_factory=dict)

    def add(self, true: Iterable[str], answered: Iterable[str]) -> None:
        """Count answers."""
        for (one, other), n in Counter(zip(true, answered, strict=True)).items():
            self._of(one)[TRUE] += n
            self._of(other)[ANSWERED] += n
            if one == other:
                self._of(one)[RIGHT] += n

    def _of(self, name: str) -> list[int]:
        if name not in self.counts and len(self.counts) >= MOST_CLASSES:
            name = OTHER
        return self.counts.setdefault(name, [0, 0, 0])

    def by_class(self) -> list[ClassScore]:
        """Return the scores of every class, in order of first appearance."""
        return [
            ClassScore(
                name,
                true,
                answered,
                precision=right / answered if answered else None,
                recall=right / true if true else None,
                f1=2 * right / (true + answered),
            )
            for name, (true, answered, right) in self.counts.items()
        ]

    def kappa(self) -> float | None:
        """Return Cohen's kappa: 0 is chance, 1 is perfect; None where chance is always right."""
        rows = sum(counts[TRUE] for counts in self.counts.values())
        right = sum(counts[RIGHT] for counts in self.counts.values())
        by_chance = sum(counts[TRUE] * counts[ANSWERED] for counts in self.counts.values())
        if rows * rows == by_chance:
            return None
        return (rows * right - by_chance) / (rows * rows - by_chance)

    def macro_f1(self) -> float | None:
        """Return the mean of the classes' F1, each class counting alike."""
        scores = [score.f1 for score in self.by_class()]
        return sum(scores) / len(scores) if scores else None

    def to_json(self) -> dict[str, list[int]]:
        """Return a copy as plain JSON."""
        return {name: list(counts) for name, counts in self.counts.items()}


def as_text(label: Any) -> str:
    """Return a class or a number as text."""
    value = label.item() if isinstance(label, np.generic) else label
    return str(value).lower() if isinstance(value, bool) else str(value)


def names_of(labels: Any) -> list[str]:
    """Return an array of classes as text; each distinct one is written once."""
    values = labels.tolist()
    names = {value: as_text(value) for value in set(values)}
    return [names[value] for value in values]


@dataclass
class Baselines:
    """The right answers of both, and the labels that they answer from.

    Parameters
    ----------
    rows : int
        Number of rows that they answered.
    majority_right, no_change_right : int
        How many of these each answered rightly.
    majority, last : str or None
        The most frequent class so far, the first that was so among equals; and the last label.
    seen : dict of int
        The number of labels of each class; of the first 1,000 classes, so that it stays small.
    """

    rows: int = 0
    majority_right: int = 0
    no_change_right: int = 0
    majority: str | None = None
    last: str | None = None
    seen: dict[str, int] = field(default_factory=dict)

    def add(self, labels: Sequence[str], *, answered: bool) -> tuple[list[bool], list[bool]]:
        """Take labels in turn: compare each with both answers, then see it.

        Returns
        -------
        by_majority, by_last : list of bool
            Whether each was right; counted if the labels' rows were ``answered``.
        """
        by_last = [a == b for a, b in zip(labels, [self.last, *labels], strict=False)]
        by_majority = []
        seen, majority = self.seen, self.majority
        most = 0 if majority is None else seen[majority]
        for label in labels:
            by_majority.append(label == majority)
            if label in seen or len(seen) < MOST_CLASSES:
                n = seen[label] = seen.get(label, 0) + 1
                if n > most:
                    majority, most = label, n
        self.majority, self.last = majority, labels[-1] if labels else self.last
        if answered:
            self.rows += len(labels)
            self.majority_right += sum(by_majority)
            self.no_change_right += sum(by_last)
        return by_majority, by_last

    def accuracies(self) -> dict[str, float | None]:
        """Return both accuracies by their names in a snapshot."""
        right = {
            "majority_accuracy": self.majority_right,
            "no_change_accuracy": self.no_change_right,
        }
        return {name: n / self.rows if self.rows else None for name, n in right.items()}

    def to_json(self) -> dict[str, Any]:
        """Return a copy as plain JSON."""
        return {**vars(self), "seen": dict(self.seen)}


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
    ) -> NDArray[np.float64]:
        """Add answers: the share of the true class, that of the answer, and whether it is right.

        Returns the log-loss of each.
        """
        losses: NDArray[np.float64] = -np.log(np.clip(true_share, LEAST, 1.0))
        self.rows += len(losses)
        self.loss += float(losses.sum())
        place = np.minimum((confidence * BINS).astype(np.int64), BINS - 1)
        sums = (np.bincount(place, weights, BINS) for weights in (None, confidence, right))
        for kept, n, total, n_right in zip(self.bins, *(s.tolist() for s in sums), strict=True):
            kept[0] += int(n)
            kept[1] += total
            kept[2] += int(n_right)
        return losses

    def log_loss(self) -> float | None:
        """Return the mean log-loss in nats: 0 is perfect."""
        return self.loss / self.rows if self.rows else None

    def confidence(self) -> float | None:
        """Return the mean confidence."""
        return sum(total for _, total, _ in self.bins) / self.rows if self.rows else None

    def reliability(self) -> list[Bin]:
        """Return the bins that have answers, by confidence."""
        return [Bin(n, total / n, right / n) for n, total, right in self.bins if n]

    def to_json(self) -> dict[str, Any]:
        """Return a copy as plain JSON."""
        return {"rows": self.rows, "loss": self.loss, "bins": [list(kept) for kept in self.bins]}
