"""The hardest examples: what was answered, and the stored examples that decided.

All of it was recorded when the row was answered; nothing is recomputed here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from boundary_forest.report.charts import axis
from boundary_forest.report.formatting import ABSENT, count, counted, number, percent
from boundary_forest.session.class_measures import as_text
from boundary_forest.session.history import HardExample, SessionSnapshot
from boundary_forest.session.vote_breakdown import VotingExample

LARGEST = 64  # pixels along a side
SMALLEST = 4
ENDS = 8  # stored examples shown of each
VOTES = 5  # classes shown of each
FEATURES = 200  # columns shown of each
DRAWN = 5  # stored examples drawn beside each, where rows are pictures


@dataclass(frozen=True)
class Shade:
    """The pixels of one shade, as one path."""

    d: str
    opacity: str


@dataclass(frozen=True)
class Picture:
    """A grey picture."""

    width: int
    height: int
    shades: list[Shade]

    @property
    def label(self) -> str:
        """The text for those who cannot see it."""
        return f"The row as a picture of {self.width} by {self.height} pixels"


def picture(features: Mapping[str, str]) -> Picture | None:
    """Return the row as a grey picture, or None if it is not one.

    Its columns are named as those of well-known sets of images are: ``pixel_2_7`` is row 2, column
    7 (scikit-learn's digits); ``pixel37`` counts from the upper left, from 1 as OpenML's MNIST
    does, or from 0, and the picture is a square.
    """
    cells = _cells(list(features))
    if cells is None:
        return None
    try:
        values = [float(value) for value in features.values()]
    except ValueError:
        return None
    low, high = min(values), max(values)
    if not (math.isfinite(low) and math.isfinite(high) and high > low):
        return None
    height, width = (max(c[i] for c in cells) + 1 for i in (0, 1))
    shades: dict[int, list[str]] = {}
    for (y, x), value in zip(cells, values, strict=True):
        shade = round(15 * (value - low) / (high - low))
        if shade:
            shades.setdefault(shade, []).append(f"M{x} {y}h1v1h-1z")
    paths = [Shade("".join(squares), f"{n / 15:.2f}") for n, squares in sorted(shades.items())]
    return Picture(width, height, paths)


def _cells(names: list[str]) -> list[tuple[int, int]] | None:
    """Return line and column of each pixel."""
    found = [re.fullmatch(r"pixel_?(\d{1,5})(?:_(\d{1,5}))?", name) for name in names]
    matches = [m for m in found if m is not None]
    if len(matches) != len(names) or len(names) < SMALLEST**2:
        return None
    if all(m[2] is not None for m in matches):
        cells = [(int(m[1]), int(m[2])) for m in matches]
    elif all(m[2] is None for m in matches):
        side = math.isqrt(len(names))
        first = min(int(m[1]) for m in matches)
        cells = [divmod(int(m[1]) - first, max(1, side)) for m in matches]
        if side * side != len(names) or max(c[0] for c in cells) >= side:
            return None
    else:
        return None
    return cells if max(max(c) for c in cells) < LARGEST else None


@dataclass(frozen=True)
class Vote:
    """A class and its share."""

    label: str
    share: str
    kind: str
    style: str


@dataclass(frozen=True)
class Drawn:
    """A stored example as a picture, with its label and its share of the answer."""

    picture: Picture
    label: str
    kind: str
    weight: str


@dataclass(frozen=True)
class Pin:
    """A value along the strip."""

    style: str
    kind: str = ""
    title: str = ""


@dataclass(frozen=True)
class LabelStrip:
    """The labels that the trees found along a line, with the truth and the answer."""

    ends: list[Pin]
    pins: list[Pin]
    low: str
    high: str


@dataclass(frozen=True)
class DecidingExample:
    """A stored example in the table of those that decided."""

    label: str
    distance: str
    weight: str
    trees: str
    arrival: int


@dataclass(frozen=True)
class Card:
    """A hard example, as hardest.html writes it."""

    title: str
    true: str
    answered: str
    remark: str
    picture: Picture | None
    drawn: list[Drawn]
    votes: list[Vote]
    more_votes: str
    strip: LabelStrip | None
    decided: str
    ends: list[DecidingExample]
    more_ends: str
    columns: str
    features: dict[str, str]
    more_features: str


def note(examples: Sequence[HardExample], last: SessionSnapshot) -> str:
    """Return how to read the cards, or why there are none."""
    if not examples:
        wrong = last.error if last.task == "classify" else last.mae
        return "None since the stream was resumed." if wrong else "None: no prediction was wrong."
    if examples[0].residual is not None:
        how = (
            "Blue is the true value, orange the prediction; the ticks are the values that the "
            "trees found."
        )
    else:
        how = "The bar shows the probability of each class."
    if any(_is_mixed(example.votes.examples) for example in examples):
        how += (
            " A mixture of experts predicted: a weight is what the label of a stored example is "
            "multiplied by, which may be negative, and models over all rows may have the rest."
        )
    if examples[-1].in_warmup:
        how += " Rows of the warm-up come last: each was predicted by its nearest neighbour alone."
    return how


def _is_mixed(ends: Sequence[VotingExample]) -> bool:
    """Return whether weights are no shares, which are positive and sum to 1."""
    total = sum(end.weight for end in ends)
    return any(end.weight < 0 for end in ends) or (bool(ends) and abs(total - 1) > 1e-6)


def card(example: HardExample) -> Card:
    """Return the card of a hard example."""
    is_number = example.residual is not None
    ends, features = example.votes.examples, example.features
    if is_number:
        remark = f"off by {_value(example.residual)}"
    else:
        remark = f"confidence {percent(example.confidence)}"
    drawing = picture(features)
    return Card(
        title=f"Row {count(example.row)}",
        true=_value(example.true, is_number),
        answered=_value(example.answered, is_number),
        remark=remark + (", in the warm-up" if example.in_warmup else ""),
        picture=drawing,
        drawn=[] if drawing is None else _drawn(example),
        votes=_votes(example),
        more_votes=_more(len(example.shares) - VOTES),
        strip=_strip(example) if is_number else None,
        decided=f"{counted(len(ends), 'stored example')} decided",
        ends=[_found(end, is_number) for end in ends[:ENDS]],
        more_ends=_more_ends(ends[ENDS:]),
        columns=counted(len(features), "column"),
        features=dict(list(features.items())[:FEATURES]),
        more_features=_more(len(features) - FEATURES),
    )


def _drawn(example: HardExample) -> list[Drawn]:
    """Return those of the examples that decided which count most, as far as they are known."""
    found, stored = [], example.stored
    for end in example.votes.examples[:DRAWN]:
        drawing = picture(stored[end.arrival]) if end.arrival in stored else None
        if drawing is not None:
            label = as_text(end.label)
            found.append(Drawn(drawing, label, _kind(label, example), percent(end.weight)))
    return found


def _votes(example: HardExample) -> list[Vote]:
    """Return the classes' shares of the vote as they were recorded, the largest first."""
    votes = []
    for label, share in example.shares[:VOTES]:
        style = f"width:{100 * share:.2f}%"
        votes.append(Vote(label, percent(share), _kind(label, example), style))
    return votes


def _kind(label: str, example: HardExample) -> str:
    """Return page.css's class of a label: that of the truth, of the answer, or of neither."""
    return "true" if label == example.true else "false" if label == example.answered else "else"


def _strip(example: HardExample) -> LabelStrip | None:
    found = [(v, e.weight) for e in example.votes.examples if (v := _float(e.label)) is not None]
    true, answered = _float(example.true), _float(example.answered)
    if not found or true is None or answered is None:
        return None
    scale = axis([v for v, _ in found] + [true, answered], tight=True)
    heaviest = max(abs(w) for _, w in found) or 1.0
    ends = [
        Pin(
            style=f"{_left(scale.at(v))};opacity:{0.25 + 0.75 * abs(w) / heaviest:.2f}",
            title=f"{number(v)}, weight {percent(w)}",
        )
        for v, w in found
    ]
    pins = [Pin(_left(scale.at(true)), "true"), Pin(_left(scale.at(answered)), "false")]
    return LabelStrip(ends, pins, number(scale.low), number(scale.high))


def _left(share: float) -> str:
    return f"left:{100 * share:.2f}%"


def _found(end: VotingExample, is_number: bool) -> DecidingExample:
    return DecidingExample(
        label=_value(end.label, is_number),
        distance=_value(end.distance),
        weight=percent(end.weight),
        trees=count(end.trees) if end.trees else ABSENT,
        arrival=end.arrival,
    )


def _more_ends(ends: Sequence[VotingExample]) -> str:
    if not ends:
        return ""
    return f"{_more(len(ends))}, with a total weight of {percent(sum(end.weight for end in ends))}"


def _more(n: int) -> str:
    return f"and {count(n)} more" if n > 0 else ""


def _float(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _value(value: Any, is_number: bool = True) -> str:
    """Return a number to a few digits; a class, and what is no number, as it is."""
    found = _float(value) if is_number else None
    return str(value) if found is None else number(found)
