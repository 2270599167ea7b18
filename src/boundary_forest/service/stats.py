"""What ``/v1/stats`` shows."""

from __future__ import annotations

import time
from typing import Any

from boundary_forest.frames.columns import CLASSIFY, REGRESS
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.reader import Reader
from boundary_forest.service.settings import CLASSIFICATION, RETRIEVAL, Limits
from boundary_forest.service.writer import Writer


class Stats:
    """Counts of the model and of the service.

    Parameters
    ----------
    model, reader, writer, limits
        The parts of the service.
    """

    def __init__(self, model: ServiceModel, reader: Reader, writer: Writer, limits: Limits) -> None:
        self._model = model
        self._reader = reader
        self._writer = writer
        self._limits = limits

    def found(self) -> dict[str, Any]:
        """Return everything; the fingerprint takes a while for a large model."""
        model, tables = self._model, self._model.tables
        forest, oldest = model.forest.model, tables.oldest_waiting
        learned = forest.examples_seen > 0
        described: dict[str, Any] = {
            "task": model.task,
            "examples_seen": forest.examples_seen,
            "fingerprint": forest.fingerprint() if learned else None,
            "forest": forest.stats() if learned else None,
            "waiting": {
                "rows": len(tables.waiting),
                "most_rows": self._limits.waiting,
                "oldest_seconds": None if oldest is None else max(0.0, time.time() - oldest),
                "most_seconds": self._limits.waiting_seconds,
            },
            "queues": {"write": len(self._writer), "predict": len(self._reader)},
            "journal_bytes": model.forest.journal_bytes,
        }
        if model.task != RETRIEVAL:
            described["scores"] = self._scores()
        return described

    def _scores(self) -> dict[str, Any]:
        scores = self._model.scores
        task = CLASSIFY if self._model.task == CLASSIFICATION else REGRESS
        measures = {name: x for name, x in scores.measures(task).items() if x is not None}
        judged = scores.classified if task == CLASSIFY else scores.regressed
        return {"answers": judged, "learned": scores.learned, **measures}
