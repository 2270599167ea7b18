"""What the service has recorded since it started: a moment per second, and a session's history.

The writer records; anyone may read, from any thread. ``since`` gives what is new to a reader that
remembers the number of the last moment it has seen; ``history`` gives what a report is made from.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.estimators.lifetime_stats import turnover_in
from boundary_forest.frames.columns import CLASSIFY, REGRESS
from boundary_forest.service.metrics import Latency, Metrics
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.settings import REGRESSION, RETRIEVAL
from boundary_forest.session.events import Answered
from boundary_forest.session.history import History, SessionSnapshot, Throughput, peak_memory
from boundary_forest.session.history_recorder import HistoryRecorder

INTERVAL = 1.0  # seconds between two moments, at least
MOST_MOMENTS = 3600  # the latest that are kept
NAME = "service"  # the source of its snapshots

Scored = list[tuple[Answered, "NDArray[np.float64] | None"]]


@dataclass(frozen=True)
class Moment:
    """The figures of the service at a time.

    Attributes
    ----------
    number : int
        Consecutive, from 1 on.
    at : float
        When, in seconds since 1970.
    seen : int
        Rows learned, in this and all earlier processes.
    waiting : int
        Rows that wait for labels.
    write_queue : int
        Requests that wait to be written.
    figures : SessionSnapshot
        Running scores, rows per second, stored examples and memory. Of retrieval, only the latter.
    latencies : dict of str to Latency
        Of the latest requests, by path.
    """

    number: int
    at: float
    seen: int
    waiting: int
    write_queue: int
    figures: SessionSnapshot
    latencies: dict[str, Latency]


class Recorder:
    """Records moments and the history of a service.

    Parameters
    ----------
    model : ServiceModel
        What is served.
    metrics : Metrics
        Where latencies come from.
    """

    def __init__(self, model: ServiceModel, metrics: Metrics) -> None:
        self._model = model
        self._metrics = metrics
        self._task = REGRESS if model.task == REGRESSION else CLASSIFY
        self._lock = threading.Lock()
        self._moments: deque[Moment] = deque(maxlen=MOST_MOMENTS)
        self._number = 0
        self._next = 0.0
        self._history = HistoryRecorder()
        self._throughput = Throughput(model.forest.examples_seen)
        self._importances_at = -1

    # Reading

    def since(self, number: int) -> list[Moment]:
        """Return the moments after one, the oldest first; 0 gives all that are kept."""
        with self._lock:
            found = []
            for moment in reversed(self._moments):
                if moment.number <= number:
                    break
                found.append(moment)
        return found[::-1]

    @property
    def latest(self) -> Moment | None:
        """The last moment."""
        with self._lock:
            return self._moments[-1] if self._moments else None

    def importances(self) -> list[tuple[int, dict[str, float]]]:
        """Return the importances of columns that were recorded, after how many rows each."""
        with self._lock:
            return self._history.kept_importances()

    def history(self) -> History:
        """Return what a report is made from, since the process started; not for retrieval."""
        model = self._model
        forest = model.forest.model
        last = self._figures()
        with self._lock:
            history = self._history.history(forest if model.forest.examples_seen else None, last)
            history.importances = self._history.kept_importances()
        if self._task == CLASSIFY:
            history.by_class = model.scores.classes.by_class()
            history.reliability = model.scores.calibration.reliability()
        parameters = sorted(forest.get_params().items())
        history.parameters = {name: value for name, value in parameters if value is not None}
        return history

    # Recording, by the writer

    def learned(self, scored: Scored) -> None:
        """Record rows that were learned, with the answers that were given and their totals."""
        with self._lock:
            for rows, totals in scored:
                self._history.add_quality(rows.task, totals, self._model.scores.rows)
                self._history.add_answers(rows)

    def tick(self, write_queue: int) -> None:
        """Record a moment if one is due."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + INTERVAL
        figures, seen = self._figures(), self._model.forest.examples_seen
        importances = self._importances(seen)
        latencies = self._metrics.latencies()
        with self._lock:
            self._number += 1
            self._moments.append(
                Moment(
                    self._number,
                    time.time(),
                    seen,
                    len(self._model.tables.waiting),
                    write_queue,
                    figures,
                    latencies,
                )
            )
            if self._history.snapshot_due(figures.rows):
                self._history.add_snapshot(figures)
            if importances is not None:
                self._history.keep_importances(*importances)

    def _importances(self, seen: int) -> tuple[int, dict[str, float]] | None:
        """Return the importances of columns if weights were decided since the last time."""
        model = self._model
        fitted = model.forest.model.fitted
        if fitted is None or model.task == RETRIEVAL:
            return None
        adaptive = fitted.settings.adaptive
        if not adaptive["feature_weights"]:
            return None
        decided = last_decision(seen, forgets=adaptive["forgetting"] is not None)
        if decided == self._importances_at or not decided:
            return None
        self._importances_at = decided
        shares = model.forest.model.feature_importances_.tolist()
        names = fitted.feature_names
        named = [f"x{i}" for i in range(len(shares))] if names is None else names.tolist()
        return decided, dict(zip(named, shares, strict=True))

    def _figures(self) -> SessionSnapshot:
        model, scores = self._model, self._model.scores
        stored, nodes, size, turnover = 0, [], 0, None
        seen, fitted = model.forest.examples_seen, model.forest.model.fitted
        if fitted is not None and seen:
            stats = model.forest.model.stats()
            stored, nodes = stats["examples_stored"], stats["nodes_per_tree"]
            size = stats["bytes"]["total"]
            turnover = turnover_in(fitted)
        planted = any(nodes)
        measures: dict[str, Any] = scores.measures(self._task)
        return SessionSnapshot(
            source=NAME,
            task=self._task,
            predicting=True,
            rows=seen if model.task == RETRIEVAL else scores.rows,
            total_rows=None,
            about_rows=None,
            learned=seen,
            unlabelled=0,
            bad=0,
            unseen_categories=0,
            **self._throughput.at(seen),
            **measures,
            stored=stored,
            trees=len(nodes) if planted else 0,
            nodes_per_tree=sum(nodes) / len(nodes) if planted else 0.0,
            forest_bytes=size,
            memory_bytes=peak_memory(),
            choices=(),
            turnover=turnover,
        )
