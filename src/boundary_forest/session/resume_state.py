"""What a durable folder remembers about the source of its rows, and about their answers.

A forest's folder keeps a note with every batch that it learns, in one piece with it. Ours says how
many rows of the source are used up, which ones they were, what the scores are and which answers are
on the disk, both after the batch and before it: if the process dies before the batch's answers are
delivered, the batch is taken back and answered once more, from the state before.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from boundary_forest.durable import DurableForest
from boundary_forest.session.scores import Scores

REFUSED, UNLABELLED = "!", "?"


@dataclass
class SourceChecksum:
    """Checksums of what the rows that were used mean, in order, from one row on.

    A session that is resumed reads its source from the beginning and skips what was used; by these
    it notices that the source has changed. They cover positions and targets, so a source may change
    its format, its columns that are not used and the rows that come later.

    Parameters
    ----------
    first : int
        The number of the first row that it covers. That is 1, unless the warm-up refused rows: it
        did so by what it knew of the columns then, and nobody can repeat that.
    positions, labels : int
        CRC-32 of the rows' positions, and of their targets or why they have none.
    """

    first: int = 1
    positions: int = 0
    labels: int = 0

    def add(self, X: NDArray[Any], y: NDArray[Any] | None) -> None:
        """Add rows that were answered, and learned if ``y`` is not None."""
        self.positions = zlib.crc32(X.astype(np.float64).tobytes(), self.positions)
        texts = [UNLABELLED] * len(X) if y is None else list(map(str, y.tolist()))
        self._add_texts(texts)

    def add_refused(self) -> None:
        """Add a row that cannot be used."""
        self._add_texts([REFUSED])

    def _add_texts(self, texts: list[str]) -> None:
        content = "".join(f"{text}\n" for text in texts).encode("utf-8", "surrogatepass")
        self.labels = zlib.crc32(content, self.labels)

    def to_json(self) -> dict[str, int]:
        """Return it as plain JSON."""
        return asdict(self)


class PredictionLog(Protocol):
    """What predictions are written to, such as a file."""

    def sync(self) -> dict[str, int] | None:
        """Bring all predictions to the disk; return what should be recorded about them."""


@dataclass
class ResumeState:
    """How far a source has been used, and how well its rows were answered.

    Parameters
    ----------
    consumed : int
        The number of the last row that was used up.
    scores : Scores
        Counts and errors of all rows so far.
    answers : dict of int, or None
        What the prediction log has recorded of the answers that are on the disk; None without one.
    checksum : SourceChecksum
        Of the rows that are used up.
    before : dict or None
        All of this before the last call that learned, as JSON; None before the first one.
    """

    consumed: int = 0
    scores: Scores = field(default_factory=Scores)
    answers: dict[str, int] | None = None
    checksum: SourceChecksum = field(default_factory=SourceChecksum)
    before: dict[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return all but ``before`` as plain JSON."""
        return {
            "consumed": self.consumed,
            "scores": self.scores.to_json(),
            "answers": self.answers,
            "trace": self.checksum.to_json(),
        }

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> ResumeState:
        """Return the state that ``to_json`` gave."""
        return cls(
            int(content["consumed"]),
            Scores.from_json(content["scores"]),
            content["answers"],
            SourceChecksum(**content["trace"]),
        )


def as_note(state: ResumeState, *, n: int = 0) -> str:
    """Return the note to keep now, or with the next batch of ``n`` rows, which is used up then."""
    note = state.to_json()
    note["scores"]["rows"] += n
    note["scores"]["learned"] += n
    return json.dumps({**note, "before": state.before})


def state_in(forest: DurableForest) -> ResumeState:
    """Return what the folder of a forest that was opened again remembers."""
    note = None if forest.note is None else json.loads(forest.note)
    kept = json.loads(forest.taken_back)["before"] if forest.taken_back else note
    if kept is None:
        return ResumeState()
    state = ResumeState.from_json(kept)
    state.before = None if note is None else note["before"]
    return state
