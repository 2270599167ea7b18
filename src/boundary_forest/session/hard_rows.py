"""A row that was hard to answer: what was answered, and the stored examples that decided."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from boundary_forest.frames.column_kinds import NUMBER
from boundary_forest.frames.model import FrameModel
from boundary_forest.session.class_measures import as_text
from boundary_forest.session.events import Answered
from boundary_forest.session.history import HardExample
from boundary_forest.session.vote_breakdown import VoteBreakdown

KEPT_ENDS = 8  # examples of a decision whose columns are kept, the weightiest


class Examples(Protocol):
    """Examples that a decision may name."""

    def of(self, arrivals: Collection[int]) -> dict[int, dict[str, str]]:
        """Return the columns of those that are there, by arrival number."""


class WaitingExamples:
    """The rows of a warm-up that are to be learned, which answer those that follow."""

    def __init__(self) -> None:
        self._tables: list[Any] = []

    def add(self, table: Any) -> None:
        """Add rows."""
        self._tables.append(table)

    def clear(self) -> None:
        """Remove all rows: they are learned."""
        self._tables.clear()

    def of(self, arrivals: Collection[int]) -> dict[int, dict[str, str]]:
        """Return the columns of those that are there, by their number in the warm-up."""
        found, first = {}, 0
        for table in self._tables:
            for arrival in arrivals:
                if first <= arrival < first + len(table):
                    found[arrival] = _texts(table.slice(arrival - first, 1).to_pylist()[0])
            first += len(table)
        return found


class StoredExamples:
    """The stored examples of a model; none if it has columns of other kinds than numbers."""

    def __init__(self, model: FrameModel) -> None:
        self._model = model

    def of(self, arrivals: Collection[int]) -> dict[int, dict[str, str]]:
        """Return the columns of those that are stored, by arrival number."""
        features = self._model.columns.features
        if any(feature.kind != NUMBER for feature in features):
            return {}
        snapshot = self._model.forest.fitted.engine.snapshot()
        kept = snapshot.arrivals(0, snapshot.size).astype(np.int64)
        found = {}
        for place in np.flatnonzero(np.isin(kept, list(arrivals))).tolist():
            position = snapshot.positions(place, place + 1)[0].tolist()
            found[int(kept[place])] = {
                feature.name: str(value * feature.scale + feature.shift)
                for feature, value in zip(features, position, strict=True)
            }
        return found


def hard_example(
    rows: Answered, i: int, model: FrameModel | None, columns: Sequence[str], examples: Examples
) -> HardExample:
    """Return what is shown of a row, right after the call that answered it.

    Parameters
    ----------
    rows : Answered
        The rows of the call.
    i : int
        Which of them.
    model : FrameModel or None
        What answered it; None in the warm-up.
    columns : sequence of str
        The columns that it was predicted from.
    examples : Examples
        Where the examples are that may have decided.
    """
    assert rows.y is not None
    assert rows.answers is not None
    row = rows.table.slice(i, 1).to_pylist()[0]
    answer, votes = rows.answers[i], _votes_for(rows, i, model)
    return HardExample(
        row=int(rows.numbers[i]),
        true=as_text(rows.y[i]),
        answered=as_text(answer),
        confidence=None if rows.confidence is None else float(rows.confidence[i]),
        residual=float(answer - rows.y[i]) if rows.confidence is None else None,
        features=_texts({name: row[name] for name in columns if name in row}),
        shares=_shares(rows, i),
        votes=votes,
        stored=examples.of([end.arrival for end in votes.examples[:KEPT_ENDS]]),
        in_warmup=rows.arrival is None,
    )


def _shares(rows: Answered, i: int) -> tuple[tuple[str, float], ...]:
    """Return the classes' shares of the vote, the largest first, without those of 0."""
    if rows.result.shares is None or rows.result.classes is None:
        return ()
    every = zip(rows.result.classes.tolist(), rows.result.shares[i].tolist(), strict=True)
    ranked = sorted(((label, n) for label, n in every if n > 0), key=lambda item: -item[1])
    return tuple((as_text(label), share) for label, share in ranked)


def _votes_for(rows: Answered, i: int, model: FrameModel | None) -> VoteBreakdown:
    """Return what decided the answer to a row."""
    ends = rows.result.ends
    if model is None or rows.arrival is None:  # there are no trees yet
        return VoteBreakdown(()) if ends is None else VoteBreakdown.of_row(ends, i).without_trees()
    if ends is None:  # nothing is learned, so that the forest is still what answered
        return VoteBreakdown.of_explanation(model.forest.explain(rows.X[i]))
    return VoteBreakdown.of_row(ends, i)


def _texts(row: Mapping[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in row.items()}
