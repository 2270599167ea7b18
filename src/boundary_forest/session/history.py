"""What a session has to show: its state at a moment, its speed, and what a report is made from."""

from __future__ import annotations

import resource
import sys
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from boundary_forest.estimators.lifetime_stats import Turnover
from boundary_forest.session.class_measures import Bin, ClassScore
from boundary_forest.session.quality_curve import QualityPoint
from boundary_forest.session.vote_breakdown import VoteBreakdown

RECENT_SECONDS = 3.0


@dataclass
class Pace:
    """How a session is slowed down to be watched.

    Parameters
    ----------
    rows_per_s : float
        To how many rows per second.
    waited : float
        Seconds that were spent waiting so far; whoever waits adds them.
    """

    rows_per_s: float
    waited: float = 0.0


class Throughput:
    """Rows per second, since the start and recently, without the time that was spent waiting.

    Parameters
    ----------
    rows : int
        Number of rows that were counted before the start.
    pace : Pace or None
        How rows are slowed down; None: not.
    """

    def __init__(self, rows: int = 0, pace: Pace | None = None) -> None:
        self._rows_before = rows
        self._pace = pace
        self._start = time.monotonic()
        self._marks: deque[tuple[float, int]] = deque([(self._start, rows)])

    def at(self, rows: int) -> dict[str, Any]:
        """Return ``seconds`` and the fields of a snapshot for speeds after so many rows."""
        pace = self._pace
        waited = 0.0 if pace is None else pace.waited
        now = time.monotonic() - waited
        before = self._marks[0]
        self._marks.append((now, rows))
        while self._marks[0][0] < now - RECENT_SECONDS and len(self._marks) > 2:
            self._marks.popleft()
        seconds = max(1e-9, now - self._start)
        return {
            "seconds": seconds + waited,
            "pace": None if pace is None else pace.rows_per_s,
            "rows_per_s": (rows - self._rows_before) / seconds,
            "recent_rows_per_s": (rows - before[1]) / max(1e-9, now - before[0]),
        }


def peak_memory() -> int:
    """Return the peak memory of the process in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


@dataclass(frozen=True)
class SessionSnapshot:
    """The figures of a session at a moment, as a panel, a line of text or a web page shows them.

    ``error`` to ``recent_confidence`` are classification's, ``mae`` to ``recent_r2`` regression's;
    those of the other task are None, and all are before the first answer. ``majority_accuracy`` and
    ``no_change_accuracy`` are those of the majority class and of the previous label, each of the
    rows before; ``macro_f1`` is the mean of the classes' F1. Log-loss and confidence leave out the
    warm-up, in which no forest answers. "Recent" is over the latest 1,000 answers, or the latest
    seconds.
    """

    source: str
    task: str  # "classify" or "regress"
    predicting: bool  # whether rows are answered, and not only learned
    rows: int
    total_rows: int | None
    about_rows: int | None  # an estimate of them, where they are not known
    learned: int
    unlabelled: int
    bad: int
    unseen_categories: int
    seconds: float
    rows_per_s: float
    recent_rows_per_s: float
    pace: float | None  # rows per second to which it is slowed down; speeds are without the waiting
    error: float | None
    recent_error: float | None
    accuracy: float | None
    majority_accuracy: float | None
    no_change_accuracy: float | None
    kappa: float | None
    macro_f1: float | None
    log_loss: float | None
    recent_log_loss: float | None
    confidence: float | None
    recent_confidence: float | None
    mae: float | None
    recent_mae: float | None
    rmse: float | None
    r2: float | None
    recent_r2: float | None
    stored: int
    trees: int
    nodes_per_tree: float
    forest_bytes: int  # of the forest alone; 0 in the warm-up
    memory_bytes: int  # the process's peak
    choices: tuple[str, ...]  # what was inferred and decided, one line each
    turnover: Turnover | None = None  # how trees come and go, if the forest forgets


@dataclass(frozen=True)
class HardExample:
    """A row that was answered wrongly with high confidence, or with a large residual.

    All of it was recorded when the row was answered. ``shares`` are the classes' shares of the
    votes, the largest first, those of 0 left out; the answer's is ``confidence``. ``features`` are
    the columns that it was predicted from, ``stored`` those of the weightiest examples that
    decided, by arrival number, as far as they are known.
    """

    row: int
    true: str
    answered: str
    confidence: float | None
    residual: float | None
    features: dict[str, str]
    shares: tuple[tuple[str, float], ...]
    votes: VoteBreakdown
    stored: Mapping[int, Mapping[str, str]] = field(default_factory=dict)
    in_warmup: bool = False  # answered by the nearest row before it, not by the forest


@dataclass
class History:
    """What a report is made from; bounded in size, whatever the length of the stream."""

    snapshots: list[SessionSnapshot] = field(default_factory=list)  # thinned to about 500
    # (true, answered) -> count; the largest 50 classes, the rest as "other"
    confusion: dict[tuple[str, str], int] = field(default_factory=dict)
    pairs: list[tuple[float, float]] = field(default_factory=list)  # (true, predicted), a sample
    hardest: list[HardExample] = field(default_factory=list)  # at most 20
    tree_depths: list[list[int]] = field(default_factory=list)  # per tree: nodes at each depth
    # (rows learned, importance of each column), where weights were learned, and at the end
    importances: list[tuple[int, dict[str, float]]] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    summary: dict[str, Any] = field(default_factory=dict)
    curve: list[QualityPoint] = field(default_factory=list)  # how good answers were; at most 600
    by_class: list[ClassScore] = field(default_factory=list)  # at most 1,001
    reliability: list[Bin] = field(default_factory=list)  # confidence against accuracy
    run: dict[str, str] = field(default_factory=dict)  # when, by what command and release
