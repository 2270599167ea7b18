"""Precision, recall and F1 of each class."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boundary_forest.report.confusion import Name, by_value
from boundary_forest.report.formatting import count, percent, score
from boundary_forest.session.class_measures import ClassScore

MOST = 50  # classes, the largest


@dataclass(frozen=True)
class ClassRow:
    """A class: its name, the number of its rows and its scores; ``style`` is the bar's, of F1."""

    name: Name
    rows: str
    precision: str
    recall: str
    f1: str
    style: str


@dataclass(frozen=True)
class ScoreTable:
    """The table, as by_class.html writes it."""

    note: str
    lines: list[ClassRow]


def class_table(scores: Sequence[ClassScore]) -> ScoreTable | None:
    """Return the scores of the largest classes; None if nothing was answered."""
    if not scores:
        return None
    largest = sorted(scores, key=lambda scored: (-scored.rows, scored.name))[:MOST]
    note = "Precision: the share of a class's predictions that are right. Recall: the share of its "
    note += "rows that are predicted right. F1: their harmonic mean."
    if len(scores) > MOST:
        note += f" The largest {MOST} of {count(len(scores))} classes."
    return ScoreTable(note, [_line(scored) for scored in by_value(largest, lambda s: s.name)])


def _line(scored: ClassScore) -> ClassRow:
    return ClassRow(
        Name(scored.name),
        count(scored.rows),
        percent(scored.precision),
        percent(scored.recall),
        score(scored.f1),
        f"width:{100 * scored.f1:.4g}%",
    )
