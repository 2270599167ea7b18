"""HTML in which everything is escaped that is not known to be markup."""

from __future__ import annotations

import html
from typing import Any

EMPTY = frozenset({"br", "link", "meta"})  # elements that have no end


class Html(str):
    """Markup: all other text is escaped when it becomes part of an element."""

    __slots__ = ()


def escaped(child: Any) -> str:
    """A child of an element: markup as it is, anything else as text; None is nothing."""
    if child is None:
        return ""
    return child if isinstance(child, Html) else html.escape(str(child))


def element(name: str, /, *children: Any, **attributes: Any) -> Html:
    """``<name attributes>children</name>``; ``class_`` is class, ``aria_label`` is aria-label.

    An attribute that is None or False is left out.
    """
    parts = [f"<{name}"]
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        key = key.rstrip("_").replace("_", "-")
        parts.append(f" {key}" if value is True else f' {key}="{html.escape(str(value))}"')
    parts.append(">")
    parts += [escaped(child) for child in children]
    if name not in EMPTY:
        parts.append(f"</{name}>")
    return Html("".join(parts))


def joined(*children: Any) -> Html:
    """Several children as one."""
    return Html("".join(escaped(child) for child in children))


def figure(
    title: str, *content: Any, note: Any = None, at: str | None = None, class_: str = ""
) -> Html:
    """A card with a heading, what it shows, and a sentence on how to read it.

    ``at`` stands opposite the heading; the script says there what is pointed at.
    """
    caption = element(
        "figcaption",
        element("h3", title),
        None if at is None else element("span", at, class_="at"),
        element("p", note) if note else None,
    )
    return element("figure", caption, *content, class_=f"card {class_}".strip())


def definitions(pairs: dict[str, Any], class_: str | None = None) -> Html:
    """Names and values, side by side."""
    rows = [element("div", element("dt", k), element("dd", v)) for k, v in pairs.items()]
    return element("dl", *rows, class_=class_)
