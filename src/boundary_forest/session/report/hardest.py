"""The hardest examples: what was answered, and the stored examples that said so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from boundary_forest.session.progress import HardExample
from boundary_forest.session.report.axes import axis
from boundary_forest.session.report.markup import Html, definitions, element, joined
from boundary_forest.session.report.pictures import picture
from boundary_forest.session.wording import count, counted, number, percent

ENDS = 8  # stored examples told of each
VOTES = 5  # classes told of each
FEATURES = 200  # columns told of each


@dataclass(frozen=True)
class End:
    """A stored example that trees ended at: how many, and what it weighed for all of them."""

    arrival: Any
    label: Any
    distance: Any
    weight: float
    trees: int


def hardest_examples(examples: Sequence[HardExample]) -> Html:
    """A card for each."""
    if not examples:
        return element("p", "None: no answer was wrong.", class_="quiet")
    if examples[0].residual is None:
        said = "The bar is the vote: each class's share of the trees' weight."
    else:
        said = "Blue is the truth, orange the answer; the ticks are what the trees found."
    cards = [_card(example) for example in examples]
    return joined(element("p", said, class_="quiet"), element("div", *cards, class_="examples"))


def _card(example: HardExample) -> Html:
    ends = _merged(example.explanation)
    shown = _strip(example, ends) if example.residual is not None else _votes(example, ends)
    return element(
        "article",
        element("header", _heading(example), picture(example.features)),
        shown,
        _found(ends, example.residual is not None),
        _features(example.features),
        class_="card example",
    )


def _heading(example: HardExample) -> Html:
    is_number = example.residual is not None
    true, answered = _value(example.true, is_number), _value(example.answered, is_number)
    if is_number:
        said = f"off by {_value(example.residual)}"
    elif example.confidence is not None:
        said = f"confidence {percent(example.confidence)}"
    else:
        said = ""
    return element(
        "div",
        element("h3", f"Row {count(example.row)}"),
        element(
            "p",
            element("span", "true ", element("b", true, class_="true")),
            element("span", "answered ", element("b", answered, class_="false")),
        ),
        element("p", said, class_="quiet"),
    )


def _merged(explanation: Sequence[dict[str, Any]]) -> list[End]:
    """Trees that ended at the same example count together; the weightiest first."""
    together: dict[Any, End] = {}
    for i, end in enumerate(explanation):
        arrival = end.get("arrival")
        key = ("tree", i) if arrival is None else arrival
        weight = float(end.get("weight") or 0.0)
        old = together.get(key)
        together[key] = End(
            arrival,
            end.get("label"),
            end.get("distance"),
            weight + (old.weight if old else 0.0),
            1 + (old.trees if old else 0),
        )
    return sorted(together.values(), key=lambda e: (-e.weight, str(e.arrival)))


def _votes(example: HardExample, ends: list[End]) -> Html | None:
    """The classes' shares of the vote, as one bar."""
    weights: dict[str, float] = {}
    for end in ends:
        weights[str(end.label)] = weights.get(str(end.label), 0.0) + end.weight
    total = sum(weights.values())
    if total <= 0:
        return None
    ranked = sorted(weights.items(), key=lambda item: -item[1])
    bars, names = [], []
    for label, weight in ranked[:VOTES]:
        kind = "true" if label == example.true else "false" if label == example.answered else "else"
        share = weight / total
        bars.append(element("span", class_=kind, style=f"width:{100 * share:.2f}%"))
        names.append(
            element(
                "li",
                element("i", class_=f"key fill {kind}"),
                f"{label} ",
                element("b", percent(share)),
            )
        )
    if len(ranked) > VOTES:
        names.append(element("li", f"and {count(len(ranked) - VOTES)} more", class_="quiet"))
    bar = element("div", *bars, class_="votes", aria_hidden="true")
    return joined(bar, element("ul", *names, class_="legend"))


def _strip(example: HardExample, ends: list[End]) -> Html | None:
    """The labels of the trees' ends along a line, with the truth and the answer."""
    told = [(v, e.weight) for e in ends if (v := _float(e.label)) is not None]
    true, answered = _float(example.true), _float(example.answered)
    if not told or true is None or answered is None:
        return None
    scale = axis([v for v, _ in told] + [true, answered], tight=True)
    heaviest = max(w for _, w in told) or 1.0
    marks = [
        element(
            "i",
            class_="end",
            style=f"left:{100 * scale.at(v):.2f}%;opacity:{0.25 + 0.75 * w / heaviest:.2f}",
            title=f"{number(v)}, weight {percent(w)}",
        )
        for v, w in told
    ]
    for value, kind in ((true, "true"), (answered, "false")):
        marks.append(element("i", class_=f"pin {kind}", style=f"left:{100 * scale.at(value):.2f}%"))
    low, high = element("span", number(scale.low)), element("span", number(scale.high))
    return joined(
        element("div", *marks, class_="strip", aria_hidden="true"),
        element("p", low, high, class_="ends quiet"),
    )


def _found(ends: list[End], is_number: bool) -> Html | None:
    if not ends:
        return None
    head = element(
        "tr",
        *[
            element("th", t, scope="col", class_=None if t == "label" else "number")
            for t in ("label", "distance", "weight", "trees", "arrival")
        ],
    )
    rows = [
        element(
            "tr",
            element("td", _value(e.label, is_number)),
            element("td", _value(e.distance), class_="number"),
            element("td", percent(e.weight), class_="number"),
            element("td", count(e.trees), class_="number"),
            element("td", "" if e.arrival is None else f"#{e.arrival}", class_="number"),
        )
        for e in ends[:ENDS]
    ]
    rest = ends[ENDS:]
    more = f"and {count(len(rest))} more, with {percent(sum(e.weight for e in rest))} of the weight"
    return element(
        "details",
        element("summary", f"{counted(len(ends), 'stored example')} decided"),
        element("table", element("thead", head), element("tbody", *rows), class_="list"),
        element("p", more, class_="quiet") if rest else None,
    )


def _features(features: dict[str, str]) -> Html | None:
    if not features:
        return None
    some = dict(list(features.items())[:FEATURES])
    left = len(features) - len(some)
    return element(
        "details",
        element("summary", counted(len(features), "column")),
        definitions(some, "features"),
        element("p", f"and {count(left)} more", class_="quiet") if left else None,
    )


def _float(value: Any) -> float | None:
    try:
        found = float(value)
    except (TypeError, ValueError):
        return None
    return found if math.isfinite(found) else None


def _value(value: Any, is_number: bool = True) -> str:
    """A number to a few digits; a class, and what is no number, as it is."""
    found = _float(value) if is_number else None
    return str(value) if found is None else number(found)
