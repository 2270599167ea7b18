"""The rows that a resumed session skips: whether they are those that were used."""

from __future__ import annotations

from dataclasses import replace

from boundary_forest.session.resume_state import ResumeState, SourceChecksum
from boundary_forest.session.stream_learner import StreamLearner
from boundary_forest.sources.row_batch import RowBatch, StreamError

WHAT_TO_DO = "resume with the original source, or use another --durable folder"


class ResumeCheck:
    """Rows that are skipped, up to the last one that was used.

    Parameters
    ----------
    state : ResumeState
        How far the source was used when the session was resumed.
    """

    def __init__(self, state: ResumeState) -> None:
        self._last = state.consumed
        self._expected = replace(state.checksum)
        self._found = SourceChecksum(state.checksum.first)
        self._reached = 0

    def take(self, learner: StreamLearner, batch: RowBatch, name: str) -> None:
        """Take rows that are skipped; StreamError if, all in all, they are not the same."""
        first, _ = batch.span
        batch = batch.up_to_row(self._last)
        if self._reached == self._last:
            return
        if self._reached == 0 and first > self._last:  # not a source that starts from its first row
            self._reached = self._last
            return
        self._reached = max(self._reached, batch.span[1])
        learner.add_to_checksum(batch, self._found)
        if self._reached == self._last and self._found != self._expected:
            raise StreamError(
                f"{name}: the first {self._last:,} rows differ from those that were learned: "
                f"{WHAT_TO_DO}"
            )

    def finish(self, name: str) -> None:
        """Raise StreamError if the source ends before the last row that was used."""
        if 0 < self._reached < self._last:
            raise StreamError(
                f"{name} has {self._reached:,} rows, but {self._last:,} of its rows were learned: "
                f"{WHAT_TO_DO}"
            )
