"""An explanation as HTML, for notebooks.

It has no script, link or style sheet, only inline styles; colours are those of the page around it,
so that it can be read in dark mode. All text is escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from boundary_forest.estimators.pictures import checked_shape, image_shape_of, png_uri

if TYPE_CHECKING:
    from boundary_forest.estimators.explanation import Example, Explanation

MOST_ROWS = 10  # stored examples that are shown
MOST_FEATURES = 8  # columns that are shown
_LINE = "1px solid rgba(128,128,128,.4)"
_CELL = f"padding:.2em .6em;text-align:right;color:inherit;border-bottom:{_LINE}"
_PICTURE = "height:56px;min-width:28px;image-rendering:pixelated;vertical-align:middle"


def as_html(explanation: Explanation, image_shape: Any = None) -> str:
    """Return an explanation as HTML, with a picture of each row if rows are images.

    Parameters
    ----------
    explanation : Explanation
        The explanation.
    image_shape : tuple of int or None, default=None
        The shape of rows that are images; None guesses.
    """
    rows = explanation.deciding[:MOST_ROWS]
    pictures = _pictures(explanation, rows, image_shape)
    columns = [] if pictures else _chosen_features(explanation, rows)
    heads = ["example", "label", "distance", "weight", "trees"]
    heads += ["picture"] if pictures else [explanation.feature_names[i] for i in columns]
    query = ["<b>query</b>", "", "", "", ""]
    query += pictures[:1] or [escape(shown_value(explanation.query[i])) for i in columns]
    lines = [_line("th", [escape(head) for head in heads]), _line("td", query)]
    for number, example in enumerate(rows, 1):
        cells = [escape(text) for text in _described(example)]
        shades = [0.0] * len(cells)
        if pictures:
            cells.append(pictures[number])
        for i in columns:
            cells.append(escape(shown_value(example.values[i])))
            known = example.contributions is not None
            shades.append(float(example.contributions[i]) if known else 0.0)  # type: ignore[index]
        lines.append(_line("td", cells, shades))
    table = f'<table style="border-collapse:collapse;margin:.5em 0">{"".join(lines)}</table>'
    return f"<div>{_heading(explanation)}{table}{_remarks(explanation, rows, columns)}</div>"


def shown_value(value: Any) -> str:
    """Return a value of a row in few characters."""
    if isinstance(value, Real | np.number | np.bool_):
        return f"{float(value):.4g}"
    text = "-" if value is None else str(value)
    return text if len(text) <= 40 else text[:37] + "..."


def as_list(values: Any) -> list[Any]:
    """Return a row as a list of plain values."""
    return list(values.tolist() if isinstance(values, np.ndarray) else values)


def _heading(explanation: Explanation) -> str:
    votes = ", ".join(
        f"{escape(repr(s.label))} {s.share:.0%} ({s.trees} {'tree' if s.trees == 1 else 'trees'})"
        for s in explanation.shares
    )
    answer = f"{explanation.kind}: <b>{escape(repr(explanation.answer))}</b>"
    return f"<div>{answer}</div>" + (f"<div>votes: {votes}</div>" if votes else "")


def _remarks(explanation: Explanation, rows: Sequence[Example], columns: list[int]) -> str:
    remarks = []
    more = len(explanation.deciding) - len(rows)
    if more > 0:
        remarks.append(f"{more} more stored examples have smaller weights.")
    left_out = len(explanation.feature_names) - len(columns)
    if columns and left_out > 0:
        remarks.append(f"{left_out} more features are not shown.")
    if columns and any(example.contributions is not None for example in rows):
        remarks.append("Shaded by the share of the distance from the query.")
    if explanation.importances:
        named = ", ".join(f"{escape(name)} {share:.0%}" for name, share in explanation.importances)
        remarks.append(f"Most important features: {named}.")
    return f'<div style="opacity:.8;font-size:90%">{" ".join(remarks)}</div>'


def _described(example: Example) -> list[str]:
    name = f"#{example.arrival}" if example.id is None else repr(example.id)
    label = "" if example.label is None else repr(example.label)
    return [name, label, f"{example.distance:.4g}", f"{example.share:.2f}", str(example.trees)]


def _line(kind: str, cells: Sequence[str], shades: Sequence[float] = ()) -> str:
    shades = [*shades, *[0.0] * (len(cells) - len(shades))]
    written = (
        f'<{kind} style="{_CELL}{_shading(shade)}">{cell}</{kind}>'
        for cell, shade in zip(cells, shades, strict=True)
    )
    return f'<tr style="background:transparent">{"".join(written)}</tr>'


def _shading(share: float) -> str:
    return f";background:rgba(230,120,20,{0.6 * share:.2f})" if share >= 0.01 else ""


def _chosen_features(explanation: Explanation, rows: Sequence[Example]) -> list[int]:
    """Return the features that are shown: all if they are few, else those that contribute most."""
    n = len(explanation.feature_names)
    if n <= MOST_FEATURES:
        return list(range(n))
    totals = np.zeros(n)
    for example in rows:
        if example.contributions is not None:
            totals += example.share * example.contributions
    return sorted(np.argsort(-totals, kind="stable")[:MOST_FEATURES].tolist())


def _pictures(explanation: Explanation, examples: Sequence[Example], image_shape: Any) -> list[str]:
    """Return the query and the examples as pictures; none if they are no images."""
    names = explanation.feature_names
    rows = [explanation.query, *(example.values for example in examples)]
    if image_shape is None:
        named = names != tuple(f"x{i}" for i in range(len(names)))
        shape: tuple[int, ...] | None = image_shape_of(names, rows, named=named)
    else:
        shape = checked_shape(image_shape, len(names))
    if shape is None:
        return []
    numbers = [np.asarray(row, dtype=np.float64) for row in rows]
    low, high = min(map(np.min, numbers)), max(map(np.max, numbers))
    uris = (png_uri(row, shape, float(low), float(high)) for row in numbers)
    return [f'<img alt="the row as a picture" src="{uri}" style="{_PICTURE}">' for uri in uris]
