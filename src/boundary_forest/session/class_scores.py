"""How well each class is answered, and how far that is beyond chance; bounded in size."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_CLASSES = 1000  # counted by name; the others together, so that what is kept stays small
OTHER = "other"
TRUE, ANSWERED, RIGHT = range(3)  # places in the counts of a class


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
