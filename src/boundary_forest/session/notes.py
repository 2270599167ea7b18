"""What a durable folder remembers about the source of its rows.

A forest's folder keeps a note with every batch that it learns, in one piece with it. Ours says how
many rows of the source are used up and what the scores are, both after the batch and before it: if
the process dies before the batch's answers are delivered, the batch is taken back and answered once
more, from the state before.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from boundary_forest.durable import DurableForest
from boundary_forest.session.scores import Scores


@dataclass
class Progress:
    """How far a source has been used, and how well its rows were answered.

    Parameters
    ----------
    consumed : int
        The number of the last row that was used up.
    scores : Scores
        Counts and errors of all rows so far.
    """

    consumed: int = 0
    scores: Scores = field(default_factory=Scores)


def note_of(progress: Progress, *, n: int = 0, before: int = 0) -> str:
    """Return the note to keep with the next batch of ``n`` rows, which ends at ``consumed``.

    ``before`` is the number of the last row that was used up before the batch.
    """
    scores = progress.scores.to_json()
    after = {**scores, "rows": scores["rows"] + n, "learned": scores["learned"] + n}
    was = {"consumed": before, "scores": scores}
    return json.dumps({"consumed": progress.consumed, "scores": after, "before": was})


def progress_in(forest: DurableForest) -> Progress:
    """Return what the folder of a forest that was opened again remembers."""
    kept = None
    if forest.taken_back:
        kept = json.loads(forest.taken_back)["before"]
    elif forest.note is not None:
        kept = json.loads(forest.note)
    if kept is None:
        return Progress()
    return Progress(int(kept["consumed"]), Scores.from_json(kept["scores"]))
