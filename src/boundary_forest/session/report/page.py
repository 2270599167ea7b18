"""The whole page: the sections in order, with style and script in the page itself."""

from __future__ import annotations

import base64
import hashlib
import os
from importlib.resources import files
from pathlib import Path
from typing import Any

from boundary_forest.session.progress import History, Snapshot
from boundary_forest.session.report import over_time
from boundary_forest.session.report.confusion import confusion_matrix
from boundary_forest.session.report.hardest import hardest_examples
from boundary_forest.session.report.markup import Html, definitions, element, figure, joined
from boundary_forest.session.report.predicted import predicted_versus_true
from boundary_forest.session.report.trees import tree_shapes
from boundary_forest.session.wording import (
    count,
    counted,
    duration,
    number,
    percent,
    r2,
    rate,
    size,
)


def write_report(path: str | os.PathLike[str], history: History) -> None:
    """Write the page of this history to ``path``."""
    # What UTF-8 cannot hold, such as half a surrogate pair from a damaged file, becomes "?".
    Path(path).write_bytes(page(history).encode("utf-8", "replace"))


def page(history: History) -> str:
    """The page's text."""
    snapshots = history.snapshots
    title = snapshots[-1].source if snapshots else "A stream"
    style, script = _own("page.css"), _own("page.js")
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title}: report of a stream"),
        element("link", rel="icon", href="data:,"),
        element("style", Html(style)),
    )
    body = element(
        "body",
        _sections(history) if snapshots else _nothing(),
        element("footer", "Made by boundary-forest stream. This page needs no network."),
        element("script", Html(script)),
    )
    return "<!doctype html>\n" + element("html", head, body, lang="en")


def _own(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    """No request, and no script but ours: a second wall behind the escaping."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def _nothing() -> Html:
    said = element("p", "The stream ended before a row was answered.", class_="quiet")
    return element("main", element("header", element("h1", "A stream"), said))


def _sections(history: History) -> Html:
    snapshots = history.snapshots
    last = snapshots[-1]
    if last.task == "classify":
        answers = (
            confusion_matrix(history.confusion)
            if history.confusion
            else figure("Confusion", element("p", "No answers yet.", class_="quiet"))
        )
    else:
        answers = predicted_versus_true(history.pairs)
    return element(
        "main",
        _header(last),
        _section("quality", "How good the answers were", over_time.quality(snapshots)),
        _section("answers", "What was answered for what", answers),
        _section(
            "growth",
            "How fast, and how large",
            joined(over_time.speed(snapshots), over_time.storage(snapshots)),
            class_="thirds",
        ),
        _section("trees", "The trees", tree_shapes(history.tree_depths)),
        _section("hardest", _hardest_title(last), hardest_examples(history.hardest)),
        _section("settings", "How it was run", _settings(history)),
    )


def _section(name: str, title: str, content: Html, class_: str = "") -> Html:
    heading = element("h2", title, id=name)
    grid = element("div", content, class_=f"grid {class_}".strip())
    return element("section", heading, grid, aria_labelledby=name)


def _hardest_title(last: Snapshot) -> str:
    if last.task == "classify":
        return "The hardest: sure, and wrong"
    return "The hardest: the largest differences"


def _header(last: Snapshot) -> Html:
    task = "Classification" if last.task == "classify" else "Regression"
    each = "each answered before it was learned"
    told = f"{task} of a stream: {counted(last.rows, 'row')} in {duration(last.seconds)}, {each}."
    if last.task == "classify":
        tiles = [("error", percent(last.error), f"{percent(last.recent_error)} lately")]
    else:
        tiles = [
            ("mean absolute error", number(last.mae), f"{number(last.recent_mae)} lately"),
            ("R²", r2(last.r2), f"{r2(last.recent_r2)} lately"),
        ]
    share = f"{percent(last.stored / last.learned)} kept" if last.learned else ""
    nodes = f"{count(round(last.nodes_per_tree))} nodes each" if last.trees else "none planted yet"
    tiles += [
        ("rows a second", rate(last.rows_per_s), f"{rate(last.recent_rows_per_s)} lately"),
        ("examples stored", count(last.stored), share),
        ("memory", size(last.memory_bytes), "at most, of the process"),
        ("trees", count(last.trees), nodes),
    ]
    return element(
        "header",
        element("h1", last.source),
        element("p", told),
        element("div", *[_tile(*tile) for tile in tiles], class_="tiles"),
        _exceptions(last),
    )


def _tile(name: str, value: str, beside: str) -> Html:
    return element(
        "div", element("span", name), element("b", value), element("small", beside), class_="tile"
    )


def _exceptions(last: Snapshot) -> Html | None:
    """What was not as it should be, if anything."""
    told = [
        f"{count(n)} {kind}"
        for n, kind in (
            (last.unlabelled, "rows without a label, answered but not learned"),
            (last.bad, "bad rows, passed over"),
            (last.unseen_categories, "values of categories that the warm-up had not"),
        )
        if n
    ]
    kind = "exceptions warning" if last.bad else "exceptions"
    return element("p", "; ".join(told) + ".", class_=kind) if told else None


def _settings(history: History) -> Html:
    choices = history.snapshots[-1].choices
    cards = []
    if choices:
        listed = element("ul", *[element("li", choice) for choice in choices], class_="plain")
        cards.append(figure("What was inferred and decided", listed))
    for title, pairs in (("Parameters", history.parameters), ("Summary", history.summary)):
        if pairs:
            cards.append(
                figure(title, definitions({k: _said(v) for k, v in pairs.items()}, "table"))
            )
    return joined(*cards) if cards else element("p", "By its defaults.", class_="quiet")


def _said(value: Any) -> str:
    """A value of the settings, for reading."""
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return count(value)
    if isinstance(value, float):
        return number(value)
    if isinstance(value, list | tuple):
        return ", ".join(_said(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(f"{k}: {_said(v)}" for k, v in value.items())
    return str(value)
