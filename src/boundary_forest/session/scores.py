"""How well a stream is answered, overall and recently; constant in size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.session.events import Answered, Refused

RECENT = 1000  # answers


class Latest:
    """The latest answers, one number or two of each."""

    def __init__(self, width: int) -> None:
        self._values = np.zeros((RECENT, width))
        self._n = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """Add more, the latest last."""
        values = values[-RECENT:]
        places = (self._n + np.arange(len(values))) % RECENT
        self._values[places] = values
        self._n += len(values)

    def values(self) -> NDArray[np.float64]:
        """Return the latest, in no particular order."""
        return self._values[: min(self._n, RECENT)]


@dataclass
class Scores:
    """Counts and errors so far; ``to_json`` is what a resumed session continues from.

    Answers that were given while the task was inferred differently do not count.
    """

    rows: int = 0
    learned: int = 0
    unlabelled: int = 0
    bad: int = 0
    unseen: int = 0
    classified: int = 0
    wrong: int = 0
    regressed: int = 0
    absolute: float = 0.0  # sum of |residual|
    squared: float = 0.0  # sum of residuals' squares
    mean: float = 0.0  # of true targets, and the sum of their squared deviations
    deviation: float = 0.0
    _hits: Latest = field(default_factory=lambda: Latest(1), repr=False)
    _pairs: Latest = field(default_factory=lambda: Latest(2), repr=False)

    def refuse(self, row: Refused) -> None:
        """Count a row that was left out."""
        self.bad += 1
        if row.answered:  # it was counted as learned
            self.learned -= 1
        else:
            self.rows += 1

    def add(self, rows: Answered) -> None:
        """Count rows that were answered."""
        self.rows += len(rows.numbers)
        self.unseen += rows.unseen
        if rows.y is None:
            self.unlabelled += len(rows.numbers)
            return
        self.learned += len(rows.numbers)
        if rows.answers is None:
            return
        if rows.task == CLASSIFY:
            wrong = np.asarray(rows.answers != rows.y)
            self.classified += len(wrong)
            self.wrong += int(wrong.sum())
            self._hits.add(wrong[:, None].astype(np.float64))
        else:
            self._regress(np.asarray(rows.y, dtype=np.float64), rows.answers)

    def _regress(self, true: NDArray[np.float64], answers: NDArray[np.float64]) -> None:
        self._pairs.add(np.column_stack([true, answers]))
        residuals = answers - true
        n, before = len(true), self.regressed
        self.regressed += n
        self.absolute += float(np.abs(residuals).sum())
        self.squared += float((residuals**2).sum())
        # The deviation of both sets from those of each (Chan, Golub and LeVeque).
        apart = float(true.mean()) - self.mean
        self.deviation += float(((true - true.mean()) ** 2).sum())
        self.deviation += apart**2 * before * n / self.regressed
        self.mean += apart * n / self.regressed

    def errors(self, task: str) -> dict[str, float | None]:
        """Return the errors by their names in a snapshot."""
        names = ("error", "recent_error", "mae", "recent_mae", "r2", "recent_r2")
        errors: dict[str, float | None] = dict.fromkeys(names)
        if task == CLASSIFY:
            latest = self._hits.values()
            errors["error"] = self.wrong / self.classified if self.classified else None
            errors["recent_error"] = float(latest.mean()) if len(latest) else None
        elif self.regressed:
            errors["mae"] = self.absolute / self.regressed
            errors["r2"] = 1 - self.squared / self.deviation if self.deviation else None
            true, answers = self._pairs.values().T
            if len(true):
                deviation = float(((true - true.mean()) ** 2).sum())
                squared = float(((answers - true) ** 2).sum())
                errors["recent_mae"] = float(np.abs(answers - true).mean())
                errors["recent_r2"] = 1 - squared / deviation if deviation else None
        return errors

    def to_json(self) -> dict[str, Any]:
        """Return all but the latest answers as plain JSON."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Scores:
        """Return the scores that ``to_json`` gave."""
        names = cls().to_json().keys()
        return cls(**{name: content[name] for name in names})
