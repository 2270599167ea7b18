"""How well a stream is answered: over all of it, and lately. Constant in size."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.session.events import Answered, Refused

LATELY = 1000  # answers


class Latest:
    """The latest answers: one number of each, or two."""

    def __init__(self, width: int) -> None:
        self._values = np.zeros((LATELY, width))
        self._n = 0

    def add(self, values: NDArray[np.float64]) -> None:
        """More of them, the latest last."""
        values = values[-LATELY:]
        places = (self._n + np.arange(len(values))) % LATELY
        self._values[places] = values
        self._n += len(values)

    def values(self) -> NDArray[np.float64]:
        """Those that there are, in no order."""
        return self._values[: min(self._n, LATELY)]


@dataclass
class Scores:
    """Counts and errors so far; ``to_json`` is what a restarted stream goes on from.

    Answers that were given while the task was thought to be another one do not count.
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
        """A row that was left out."""
        self.bad += 1
        if row.answered:  # it was counted as learned
            self.learned -= 1
        else:
            self.rows += 1

    def add(self, rows: Answered) -> None:
        """Rows that were answered."""
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
        # Two sets' deviations make that of both (Chan, Golub and LeVeque).
        apart = float(true.mean()) - self.mean
        self.deviation += float(((true - true.mean()) ** 2).sum())
        self.deviation += apart**2 * before * n / self.regressed
        self.mean += apart * n / self.regressed

    def errors(self, task: str) -> dict[str, float | None]:
        """As a snapshot has them."""
        names = ("error", "recent_error", "mae", "recent_mae", "r2", "recent_r2")
        told: dict[str, float | None] = dict.fromkeys(names)
        if task == CLASSIFY:
            lately = self._hits.values()
            told["error"] = self.wrong / self.classified if self.classified else None
            told["recent_error"] = float(lately.mean()) if len(lately) else None
        elif self.regressed:
            told["mae"] = self.absolute / self.regressed
            told["r2"] = 1 - self.squared / self.deviation if self.deviation else None
            true, answers = self._pairs.values().T
            if len(true):
                deviation = float(((true - true.mean()) ** 2).sum())
                squared = float(((answers - true) ** 2).sum())
                told["recent_mae"] = float(np.abs(answers - true).mean())
                told["recent_r2"] = 1 - squared / deviation if deviation else None
        return told

    def to_json(self) -> dict[str, Any]:
        """All but the latest answers."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}

    @classmethod
    def from_json(cls, told: dict[str, Any]) -> Scores:
        """Back from JSON."""
        names = cls().to_json().keys()
        return cls(**{name: told[name] for name in names})
