"""The whole page: what each section shows, given to the templates."""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from boundary_forest.report import hardest, over_time
from boundary_forest.report.by_class import class_table
from boundary_forest.report.confusion import confusion_matrix
from boundary_forest.report.formatting import count, number
from boundary_forest.report.header import header
from boundary_forest.report.importances import column_importances
from boundary_forest.report.predicted import predicted_versus_true
from boundary_forest.report.reliability import reliability
from boundary_forest.report.tree_lifetimes import lifetimes
from boundary_forest.report.trees import tree_shapes
from boundary_forest.session.history import History


def write_report(path: str | os.PathLike[str], history: History) -> None:
    """Write the page of a history to ``path``."""
    # What UTF-8 cannot encode, such as half a surrogate pair from a damaged file, becomes "?".
    Path(path).write_bytes(page(history).encode("utf-8", "replace"))


def page(history: History) -> str:
    """Return the page of a history as text."""
    script = template("charts.js") + template("page.js")
    # Our own style and script are the only text that is not escaped.
    return (
        environment(template)
        .get_template("page.html")
        .render(
            title=history.snapshots[-1].source if history.snapshots else "A stream",
            policy=_policy(script),
            style=Markup(template("page.css")),
            script=Markup(script),
            history=history,
            **(_sections(history) if history.snapshots else {}),
        )
    )


def environment(load: Callable[[str], str | None]) -> Environment:
    """Return where templates are rendered: everything is escaped, and a missing value is an error.

    Parameters
    ----------
    load : callable
        Takes a template's name, and returns its text.
    """
    return Environment(
        loader=FunctionLoader(load),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def template(name: str) -> str:
    """Return a template, a style sheet or a script of the report."""
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """Return a policy of no request, and no script but ours: a second wall behind the escaping."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _sections(history: History) -> dict[str, Any]:
    """Return what the templates of the sections need."""
    snapshots = history.snapshots
    last = snapshots[-1]
    is_classification = last.task == "classify"
    both = None if is_classification else predicted_versus_true(history.pairs)
    scatter, differences = both or (None, None)
    titles = {"Run": history.run, "Summary": history.summary, "Parameters": history.parameters}
    return {
        "is_classification": is_classification,
        "header": header(last),
        "quality": over_time.quality(history),
        "by_class": class_table(history.by_class),
        "reliability": reliability(history.reliability),
        "matrix": confusion_matrix(history.confusion, resumed=_is_resumed(history))
        if is_classification
        else None,
        "scatter": scatter,
        "differences": differences,
        "importances": column_importances(history.importances),
        "forgetting": lifetimes(snapshots),
        "growth": [over_time.speed(snapshots), *over_time.storage(snapshots)],
        "trees": tree_shapes(history.tree_depths),
        "hardest_title": "Hardest rows: confident but wrong"
        if is_classification
        else "Hardest rows: largest errors",
        "hardest_note": hardest.note(history.hardest, last),
        "cards": [hardest.card(example) for example in history.hardest],
        "choices": last.choices,
        "settings": {
            title: {name: _written(value) for name, value in pairs.items()}
            for title, pairs in titles.items()
            if pairs
        },
    }


def _is_resumed(history: History) -> bool:
    """Return whether earlier runs gave answers, which only the scores have counted."""
    return sum(scored.rows for scored in history.by_class) > sum(history.confusion.values())


def _written(value: Any) -> str:
    """Return a value of the settings as text."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(_written(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_written(v)}" for k, v in value.items())
    return str(value)
