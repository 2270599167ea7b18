"""What a durable folder remembers about the source of its rows, and about their answers.

A forest's folder keeps a note with every batch that it learns, in one piece with it. Ours says how
many rows of the source are used up, which ones they were, what the scores are and which answers are
on the disk, both after the batch and before it: if the process dies before the batch's answers are
delivered, the batch is taken back and answered once more, from the state before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from boundary_forest.durable import DurableForest
from boundary_forest.session.scores import Scores
from boundary_forest.session.tracing import Trace


@dataclass
class Progress:
    """How far a source has been used, and how well its rows were answered.

    Parameters
    ----------
    consumed : int
        The number of the last row that was used up.
    scores : Scores
        Counts and errors of all rows so far.
    answers : dict of int, or None
        What whoever delivers the answers has recorded of those that are on the disk; None if there
        are none.
    trace : Trace
        Of the rows that are used up.
    before : dict or None
        All of this before the last call that learned, as JSON; None before the first one.
    """

    consumed: int = 0
    scores: Scores = field(default_factory=Scores)
    answers: dict[str, int] | None = None
    trace: Trace = field(default_factory=Trace)
    before: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all but ``before`` as plain JSON."""
        return {
            "consumed": self.consumed,
            "scores": self.scores.to_json(),
            "answers": self.answers,
            "trace": self.trace.to_json(),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Progress:
        """Return the progress that ``to_json`` gave."""
        return cls(
            int(content["consumed"]),
            Scores.from_json(content["scores"]),
            content["answers"],
            Trace(**content["trace"]),
        )


def note_of(progress: Progress, *, n: int = 0) -> str:
    """Return the note to keep now, or with the next batch of ``n`` rows, which is used up then."""
    note = progress.to_json()
    note["scores"]["rows"] += n
    note["scores"]["learned"] += n
    return json.dumps({**note, "before": progress.before})


def progress_in(forest: DurableForest) -> Progress:
    """Return what the folder of a forest that was opened again remembers."""
    note = None if forest.note is None else json.loads(forest.note)
    kept = json.loads(forest.taken_back)["before"] if forest.taken_back else note
    if kept is None:
        return Progress()
    progress = Progress.from_json(kept)
    progress.before = None if note is None else note["before"]
    return progress
