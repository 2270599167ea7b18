"""The confusion matrix: the true class against the answered one, for 2 classes or 50."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from boundary_forest.report.formatting import ABSENT, count, percent
from boundary_forest.session.class_measures import OTHER

T = TypeVar("T")

WRITTEN = 16  # classes up to which each cell has its count written into it
LONGEST = 16  # characters of a class in the table's margin
MISTAKES = 10  # in the list of the most frequent; twice as many beside a large matrix


@dataclass(frozen=True)
class Name:
    """A class, whole and as short as the margin needs it."""

    whole: str

    @property
    def short(self) -> str:
        """The name, cut if it is long."""
        return _short(self.whole)

    @property
    def is_cut(self) -> bool:
        """Whether it is long."""
        return len(self.whole) > LONGEST


@dataclass(frozen=True)
class Cell:
    """A cell: empty where no row fell into it; ``kind`` and ``style`` are page.css's."""

    text: str = ""
    kind: str = ""
    style: str = ""


@dataclass(frozen=True)
class Row:
    """The row of a true class."""

    name: Name
    cells: list[Cell]
    recall: str


@dataclass(frozen=True)
class Mistake:
    """A cell off the diagonal with many rows."""

    true: str
    answered: str
    style: str
    rows: str
    share: str


@dataclass(frozen=True)
class Matrix:
    """The matrix, as confusion.html writes it."""

    title: str
    note: str
    kind: str
    style: str
    upright: bool  # whether names above the columns are so short that they are not turned
    classes: list[Name]
    rows: list[Row]
    mistakes: list[Mistake]


def confusion_matrix(
    confusion: dict[tuple[str, str], int], *, resumed: bool = False
) -> Matrix | None:
    """Return the matrix and the most frequent mistakes; None if there are no answers.

    ``resumed`` means that it has not seen the answers of earlier runs.
    """
    if not confusion:
        return None
    classes = by_value({name for pair in confusion for name in pair}, str)
    totals: Counter[str] = Counter()
    for (true, _), n in confusion.items():
        totals[true] += n
    density = "written" if len(classes) <= WRITTEN else "dense"
    upright = max(map(len, classes), default=0) <= (5 if density == "written" else 2)
    return Matrix(
        title=f"{len(classes)} classes" if len(classes) != 1 else "One class",
        note="One row per true class, one column per predicted class"
        + (", counted since the stream was resumed." if resumed else "."),
        kind=f"confusion {density}" + ("" if upright else " turned"),
        style=_measures(classes, max(confusion.values())),
        upright=upright,
        classes=[Name(c) for c in classes],
        rows=[_row(c, classes, confusion, totals[c]) for c in classes],
        mistakes=_mistakes(confusion, totals, MISTAKES * (1 if density == "written" else 2)),
    )


def _measures(classes: list[str], most: int) -> str:
    """Return for page.css the number of classes, and the room for a name, a count and a cell."""
    longest = min(LONGEST, max(map(len, classes), default=0))
    cell = max(0.7, min(1.6, 32 / max(1, len(classes))))
    room = f"--label:{longest + 2}ch;--figure:{len(count(most)) + 1}ch"
    return f"--n:{len(classes)};{room};--cell:{cell:.2f}rem"


def _row(true: str, classes: list[str], confusion: dict[tuple[str, str], int], total: int) -> Row:
    cells = []
    for answer in classes:
        n = confusion.get((true, answer), 0)
        kind = "r" if answer == true else "w"
        # Mistakes are few compared with right answers; the root makes them visible.
        share = n / total if total else 0
        strength = round(100 * (share if kind == "r" else min(1.0, 1.5 * share**0.5)))
        if n:
            cells.append(Cell(count(n), kind, f"--s:{max(8, strength)}"))
        else:
            cells.append(Cell(kind="r" if kind == "r" else ""))
    recall = percent(confusion.get((true, true), 0) / total) if total else ABSENT
    return Row(Name(true), cells, recall)


def _mistakes(
    confusion: dict[tuple[str, str], int], totals: Counter[str], n_most: int
) -> list[Mistake]:
    """Return the cells off the diagonal with most rows."""
    wrong = {pair: n for pair, n in confusion.items() if pair[0] != pair[1]}
    most = sorted(wrong.items(), key=lambda item: (-item[1], item[0]))[:n_most]
    return [
        Mistake(
            true=_short(true, 24),
            answered=_short(answer, 24),
            style=f"width:{100 * n / most[0][1]:.1f}%",
            rows=count(n),
            share=percent(n / totals[true]),
        )
        for (true, answer), n in most
    ]


def by_value(items: Iterable[T], name_of: Callable[[T], str]) -> list[T]:
    """Return numbers by value, then words by the alphabet; what is left over last."""

    def place(item: T) -> tuple[bool, bool, float, str]:
        name = name_of(item)
        try:
            value = float(name)
        except ValueError:
            return name == OTHER, True, 0.0, name
        return False, value != value, value if value == value else 0.0, name

    return sorted(items, key=place)


def _short(name: str, longest: int = LONGEST) -> str:
    return name if len(name) <= longest else name[: longest - 1] + "…"
