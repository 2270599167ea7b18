"""The inspector: rows to pick from, and the explanation of one row, as the page draws it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.explanation import Example, Explanation, TreePath
from boundary_forest.estimators.pictures import image_shape_of
from boundary_forest.report.formatting import ABSENT, count, counted, number, percent
from boundary_forest.report.hardest import picture
from boundary_forest.service.errors import unprocessable
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.reader import fitted_format
from boundary_forest.service.rows import FrameFormat, NamedFormat, Rows, VectorFormat, unpacked_rows
from boundary_forest.service.settings import CLASSIFICATION, RETRIEVAL
from boundary_forest.session.class_measures import as_text

MOST_PICKED = 12  # rows to pick from
MOST_SHARES = 6  # classes
MOST_EXAMPLES = 10
MOST_COLUMNS = 40
COMPARED = 4  # stored rows beside the query
MOST_STEPS = 40  # of a path
LONGEST = 60  # characters of a value


def pickable(model: ServiceModel) -> list[dict[str, Any]]:
    """Return rows to pick from: the latest that wait for labels, then the latest stored ones."""
    format, fitted = model.format, model.forest.model.fitted
    if format is None or fitted is None or model.forest.examples_seen == 0:
        return []
    waiting = list(model.tables.waiting)[: -MOST_PICKED - 1 : -1]
    kept = model.tables.kept(waiting)
    found = [
        _picked(f"waiting: {id}", _plain(unpacked_rows([kept[id].row])[0][0]))
        for id in waiting
        if id in kept
    ]
    snapshot = fitted.engine.snapshot()
    begin = max(0, snapshot.size - MOST_PICKED + len(found))
    arrivals = snapshot.arrivals(begin, snapshot.size)
    stored = zip(arrivals.tolist(), snapshot.positions(begin, snapshot.size), strict=True)
    for arrival, position in [*stored][::-1]:
        row = position if isinstance(format, VectorFormat) else format.row(position)
        if isinstance(format, NamedFormat):
            if fitted.encoder is None or fitted.feature_names is None:
                break
            values = fitted.encoder.decoded(position)
            row = dict(zip(fitted.feature_names.tolist(), values, strict=True))
        found.append(_picked(f"stored: #{arrival}", _plain(row)))
    return found


def _picked(name: str, row: Any) -> dict[str, Any]:
    text = json.dumps(row)
    return {"name": name, "row": text, "short": _cut(text), "picture": _drawn(_features(row))}


def _plain(row: Any) -> Any:
    """Return a row as JSON has it; NaN is a missing value."""
    if isinstance(row, dict):
        return {str(name): _plain_value(value) for name, value in row.items()}
    return [_plain_value(value) for value in row]


def _plain_value(value: Any) -> Any:
    if isinstance(value, np.float32):
        value = float(str(value))  # the shortest that means the same
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float):
        return None if value != value else int(value) if value.is_integer() else value
    return value if isinstance(value, int | str | None) else str(value)


def inspected(model: ServiceModel, rows: Rows) -> dict[str, Any]:
    """Return the explanation of one row, as text and as what is drawn."""
    format = fitted_format(model)
    try:
        explanation: Explanation = model.forest.explain(format.checked(rows)[0])
    except (TypeError, ValueError) as error:
        raise unprocessable(" ".join(str(error).split())) from error
    answer = explanation.answer
    examples = explanation.examples[:MOST_EXAMPLES]

    def features(values: Any) -> dict[str, str]:
        if isinstance(format, FrameFormat):
            return _features(format.row(np.asarray(values)))
        if isinstance(format, NamedFormat):
            return _features(dict(zip(explanation.feature_names, values, strict=True)))
        return _features(list(values))

    query, stored = features(explanation.query), [features(one.values) for one in examples]
    drawing = _drawn(query)
    shares = [
        {
            "label": _value(share.label),
            "share": percent(share.share),
            "style": f"width:{100 * max(0.0, share.share):.2f}%",
            "kind": _kind(share.label, answer),
        }
        for share in explanation.shares[:MOST_SHARES]
    ]
    title = "nearest stored row" if model.task == RETRIEVAL else "prediction"
    agreeing = percent(explanation.confidence) if model.task == CLASSIFICATION else ""
    return {
        "title": title,
        "answer": _value(answer),
        "note": f"{agreeing} of the votes agree" if agreeing else "",
        "shares": shares,
        "picture": drawing,
        "examples": [
            _example(one, answer, None if drawing is None else _drawn(features))
            for one, features in zip(examples, stored, strict=True)
        ],
        "more": _more(len(explanation.examples) - len(examples), "stored row"),
        "columns": None if drawing is not None else _compared(query, stored[:COMPARED]),
        "trees": [_path(tree, answer) for tree in explanation.trees],
    }


def _example(one: Example, answer: Any, drawing: Any) -> dict[str, Any]:
    return {
        "name": f"#{one.arrival}" if one.id is None else str(one.id),
        "label": ABSENT if one.label is None else _value(one.label),
        "kind": _kind(one.label, answer),
        "distance": number(one.distance),
        "weight": percent(one.share),
        "trees": count(one.trees),
        "picture": drawing,
    }


def _path(tree: TreePath, answer: Any) -> dict[str, Any]:
    steps, last = tree.steps[-MOST_STEPS:], tree.steps[-1]
    return {
        "lifetime": "unlimited" if tree.lifetime is None else count(tree.lifetime),
        "steps": [
            {
                "kind": _kind(step.label, answer),
                "text": f"#{step.arrival}, label {_value(step.label)}, "
                f"distance {number(step.distance)}",
            }
            for step in steps
        ],
        "n": counted(len(tree.steps), "step"),
        "label": ABSENT if last.label is None else _value(last.label),
        "kind": _kind(last.label, answer),
        "distance": number(last.distance),
        "weight": percent(tree.weight),
    }


def _compared(query: Mapping[str, str], stored: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """Return columns of the query beside those of stored rows; those that differ are marked."""
    names = list(query)[:MOST_COLUMNS]
    rows = [
        {
            "name": name,
            "values": [query[name], *(one[name] for one in stored)],
            "same": [True, *(one[name] == query[name] for one in stored)],
        }
        for name in names
    ]
    return {"rows": rows, "more": _more(len(query) - len(names), "column")}


def _features(row: Any) -> dict[str, str]:
    """Return a row as text by the names of its columns; those of images are called pixels."""
    if isinstance(row, dict):
        return {str(name): _value(value) for name, value in row.items()}
    names = [f"x{i}" for i in range(len(row))]
    values: NDArray[Any] = np.array(row, dtype=np.float64)
    if image_shape_of(names, [values], named=False) is not None:
        return {f"pixel{i}": str(value) for i, value in enumerate(values.tolist())}
    return {name: _value(value) for name, value in zip(names, values.tolist(), strict=True)}


def _drawn(features: Mapping[str, str]) -> dict[str, Any] | None:
    drawing = picture(features)
    return None if drawing is None else {**asdict(drawing), "label": drawing.label}


def _kind(label: Any, answer: Any) -> str:
    """Return page.css's class of a label: whether it is that of the answer."""
    return "true" if label is not None and label == answer else "else"


def _value(value: Any) -> str:
    if value is None:
        return ABSENT
    value = value.item() if isinstance(value, np.generic) else value
    text = f"{value:.5g}" if isinstance(value, float) else as_text(value)
    return _cut(text)


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def _more(n: int, noun: str) -> str:
    return f"and {counted(n, f'more {noun}')}" if n > 0 else ""
