"""How well a stream is answered, overall and recently; constant in size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.frames.columns import CLASSIFY
from boundary_forest.session.class_measures import Baselines, Calibration, ClassScores, names_of
from boundary_forest.session.events import Answered, Answers, Refused

RECENT = 1000  # answers
MEASURES = (
    *("error", "recent_error", "accuracy", "majority_accuracy", "no_change_accuracy"),
    *("kappa", "macro_f1", "log_loss", "recent_log_loss", "confidence", "recent_confidence"),
    *("mae", "recent_mae", "rmse", "r2", "recent_r2"),
)


class Latest:
    """The latest answers, a few numbers of each."""

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

    Answers that were given while the task was inferred differently do not count. Log-loss and
    confidence are those of the forest: in the warm-up the nearest row alone decides, and is always
    sure, so that each of its mistakes would count as much as hundreds of the forest's.
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
    classes: ClassScores = field(default_factory=ClassScores)
    baselines: Baselines = field(default_factory=Baselines)
    calibration: Calibration = field(default_factory=Calibration)
    # Of each answer whether it is wrong, its loss and its confidence; NaN in the warm-up
    _latest: Latest = field(default_factory=lambda: Latest(3), repr=False)
    _pairs: Latest = field(default_factory=lambda: Latest(2), repr=False)
    _origin: float | None = None  # near the targets, from which the totals' sums of them are taken

    def refuse(self, row: Refused) -> None:
        """Count a row that was left out."""
        self.bad += 1
        if row.answered:  # it was counted as learned
            self.learned -= 1
        else:
            self.rows += 1

    def add(self, rows: Answered, *, learning: bool = True) -> NDArray[np.float64] | None:
        """Count rows that were answered, and learned if they have targets and ``learning``.

        Returns
        -------
        totals : ndarray of shape (n_rows + 1, 5), or None if none of them can be judged
            What the measures are made of, before these rows and after each of them. See
            :mod:`boundary_forest.session.quality_curve` for the columns.
        """
        self.rows += len(rows.numbers)
        self.unseen += rows.unseen
        if rows.y is None:
            self.unlabelled += len(rows.numbers)
            return None
        self.learned += len(rows.numbers) if learning else 0
        if rows.task == CLASSIFY:
            return self._classify(rows.y, rows.result, by_forest=rows.arrival is not None)
        if rows.answers is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # targets may be as large as doubles are
            return self._regress(np.asarray(rows.y, dtype=np.float64), rows.answers)

    def _classify(
        self, y: NDArray[Any], result: Answers, *, by_forest: bool
    ) -> NDArray[np.float64] | None:
        true, answers, baselines = names_of(y), result.values, self.baselines
        before = (baselines.rows, baselines.majority_right, baselines.no_change_right)
        by_majority, by_last = baselines.add(true, answered=answers is not None)
        if answers is None:
            return None
        wrong = np.asarray(answers != y)
        ones = np.ones(len(wrong))
        totals = _totals(
            (self.classified, self.wrong, *before), (ones, wrong, ones, by_majority, by_last)
        )
        self.classified += len(wrong)
        self.wrong += int(wrong.sum())
        self.classes.add(true, names_of(answers))
        losses = confidence = np.full(len(wrong), np.nan)
        if result.confidence is not None and by_forest:
            confidence = result.confidence
            losses = self.calibration.add(_shares_of(true, result), confidence, ~wrong)
        self._latest.add(np.column_stack([wrong, losses, confidence]))
        return totals

    def _regress(
        self, true: NDArray[np.float64], answers: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        self._pairs.add(np.column_stack([true, answers]))
        residuals = answers - true
        if self._origin is None:
            self._origin = self.mean if self.regressed else float(true[0])
        off = self.regressed * (self.mean - self._origin)
        spread = self.deviation + (off * off / self.regressed if self.regressed else 0.0)
        apart_each = true - self._origin
        totals = _totals(
            (self.regressed, self.absolute, self.squared, off, spread),
            (np.ones(len(true)), np.abs(residuals), residuals**2, apart_each, apart_each**2),
        )
        n, before = len(true), self.regressed
        self.regressed += n
        self.absolute += float(np.abs(residuals).sum())
        self.squared += float((residuals**2).sum())
        # The deviation of both sets from those of each (Chan, Golub and LeVeque).
        apart = float(true.mean()) - self.mean
        self.deviation += float(((true - true.mean()) ** 2).sum())
        self.deviation += apart * apart * before * n / self.regressed
        self.mean += apart * n / self.regressed
        return totals

    def measures(self, task: str) -> dict[str, float | None]:
        """Return what answers are judged by, by its names in a snapshot; None if it overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            found = self._of_classes() if task == CLASSIFY else self._of_numbers()
        finite = {n: v for n, v in found.items() if v is not None and math.isfinite(v)}
        return dict.fromkeys(MEASURES) | finite

    def _of_classes(self) -> dict[str, float | None]:
        if not self.classified:
            return {}
        wrong, losses, confidence = self._latest.values().T
        by_forest = ~np.isnan(losses)
        return {
            "error": self.wrong / self.classified,
            "recent_error": _mean(wrong),
            "accuracy": (self.classified - self.wrong) / self.classified,
            **self.baselines.accuracies(),
            "kappa": self.classes.kappa(),
            "macro_f1": self.classes.macro_f1(),
            "log_loss": self.calibration.log_loss(),
            "recent_log_loss": _mean(losses[by_forest]),
            "confidence": self.calibration.confidence(),
            "recent_confidence": _mean(confidence[by_forest]),
        }

    def _of_numbers(self) -> dict[str, float | None]:
        if not self.regressed:
            return {}
        found: dict[str, float | None] = {
            "mae": self.absolute / self.regressed,
            "rmse": math.sqrt(self.squared / self.regressed),
            "r2": 1 - self.squared / self.deviation if self.deviation else None,
        }
        true, answers = self._pairs.values().T
        if len(true):
            deviation = float(((true - true.mean()) ** 2).sum())
            squared = float(((answers - true) ** 2).sum())
            found["recent_mae"] = float(np.abs(answers - true).mean())
            found["recent_r2"] = 1 - squared / deviation if deviation else None
        return found

    def to_json(self) -> dict[str, Any]:
        """Return all but the latest answers as plain JSON."""
        parts = {name: getattr(self, name).to_json() for name in PARTS}
        return {name: getattr(self, name) for name in COUNTS} | parts

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Scores:
        """Return the scores that ``to_json`` gave."""
        return cls(
            **{name: content[name] for name in COUNTS},
            classes=ClassScores(content["classes"]),
            baselines=Baselines(**content["baselines"]),
            calibration=Calibration(**content["calibration"]),
        )

    def copied(self) -> Scores:
        """Return a copy, which changes apart from this; many times faster than deepcopy."""
        return replace(
            self,
            classes=ClassScores(self.classes.to_json()),
            baselines=Baselines(**self.baselines.to_json()),
            calibration=Calibration(**self.calibration.to_json()),
            _latest=deepcopy(self._latest),
            _pairs=deepcopy(self._pairs),
        )


PARTS = ("classes", "baselines", "calibration")
COUNTS = tuple(f.name for f in fields(Scores) if f.name not in PARTS and not f.name.startswith("_"))


def _mean(values: NDArray[np.float64]) -> float | None:
    return float(values.mean()) if len(values) else None


def _totals(before: Sequence[float], each: Sequence[Any]) -> NDArray[np.float64]:
    """Return totals: those before some rows, and with each of them."""
    return np.cumsum(np.vstack([before, np.column_stack(each)]), axis=0, dtype=np.float64)


def _shares_of(names: list[str], result: Answers) -> NDArray[np.float64]:
    """Return each row's share of the class that is named; 0 if the forest did not know it."""
    assert result.shares is not None
    assert result.classes is not None
    place = {name: i for i, name in enumerate(names_of(result.classes))}
    places = np.array([place.get(name, -1) for name in names])
    shares = result.shares[np.arange(len(places)), places]
    return np.where(places >= 0, shares, 0.0)
