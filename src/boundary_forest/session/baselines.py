"""What one would get right without a model: by the majority class, and by the previous label.

Both answer a row from the labels before it alone, as the forest does, and are counted for the rows
that the forest answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from boundary_forest.session.class_scores import MOST_CLASSES


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
        return asdict(self)
