"""Line charts: curves that share their x, with the values under the pointer in the legend."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from boundary_forest.session.report.axes import Axis, axis
from boundary_forest.session.report.markup import Html, element, figure
from boundary_forest.session.wording import ABSENT

SIDE = 1000  # of the square that a plot is drawn in, before it is stretched
START = 0.05  # the share of a run in which a figure may be wild: it does not set the scale


@dataclass(frozen=True)
class Curve:
    """A curve: ``color`` is a class of page.css; ``area`` fills what is below it."""

    name: str
    values: Sequence[float | None]
    color: str
    area: bool = False
    dashed: bool = False


def line_chart(
    title: str,
    xs: Sequence[float],
    curves: Sequence[Curve],
    *,
    write: Callable[[float], str],
    tick: Callable[[float], str],
    x_name: str,
    x_tick: Callable[[float], str],
    x_write: Callable[[float], str],
    group: str,
    note: str | None = None,
    zero: bool = True,
    rest: int = -1,
    class_: str = "",
) -> Html:
    """The card of a chart; those of one ``group`` share xs, and are pointed at together.

    ``rest`` is the place whose values are told while none is pointed at.
    """
    across = axis(xs, zero=True, tight=True)
    up = axis(_calm([c.values for c in curves]), zero=zero)
    positions = [round(across.at(x), 4) for x in xs]
    heights = [[_height(up, v) for v in c.values] for c in curves]
    texts = [
        [ABSENT if h is None else write(v or 0.0) for h, v in zip(hs, c.values, strict=True)]
        for hs, c in zip(heights, curves, strict=True)
    ]
    rest %= len(xs)
    at = [x_write(x) for x in xs]
    hover = {"x": positions, "at": at, "y": heights, "text": texts, "rest": rest}

    grid = "".join(f"M0 {_y(up.at(t))}H{SIDE}" for t in up.ticks())
    shapes: list[Html] = [element("path", d=grid, class_="grid")]
    for curve, hs in zip(curves, heights, strict=True):
        if curve.area:
            shapes.append(element("path", d=_area(positions, hs), class_=f"area {curve.color}"))
    for curve, hs in zip(curves, heights, strict=True):
        kind = f"line {curve.color}" + (" dashed" if curve.dashed else "")
        shapes.append(element("path", d=_path(positions, hs), class_=kind))
    svg = element(
        "svg", *shapes, viewBox=f"0 0 {SIDE} {SIDE}", preserveAspectRatio="none", aria_hidden="true"
    )
    said = "; ".join(f"{c.name} {t[rest]}" for c, t in zip(curves, texts, strict=True))
    plot = element(
        "div",
        element("div", *[_mark(tick(t), "bottom", up.at(t)) for t in up.ticks()], class_="ys"),
        element("div", svg, class_="area-of-plot"),
        element("div", *_x_marks(across, x_tick), class_="xs"),
        class_="plot",
        role="img",
        tabindex="0",
        aria_label=f"{title}, by {x_name}; {at[rest]}: {said}.",
        data_group=group,
        data_hover=json.dumps(hover, separators=(",", ":")),
    )
    x_label = element("p", x_name, class_="x-name", aria_hidden="true")
    legend = _legend(curves, [t[rest] for t in texts])
    return figure(title, legend, plot, x_label, note=note, at=at[rest], class_=class_)


def _legend(curves: Sequence[Curve], texts: Sequence[str]) -> Html:
    """Names and values; the script puts those under the pointer in their place."""
    items = [
        element(
            "li",
            element("i", class_=f"key {c.color}" + (" dashed" if c.dashed else "")),
            f"{c.name} ",
            element("b", t),
        )
        for c, t in zip(curves, texts, strict=True)
    ]
    return element("ul", *items, class_="legend")


def _calm(rows: Sequence[Sequence[float | None]]) -> list[float]:
    """The values that set the scale: the first few answers of a stream are often all wrong."""
    settled = []
    for row in rows:
        some = row[int(START * len(row)) :] if len(row) >= 10 else row
        settled += [v for v in some if v is not None and math.isfinite(v)]
    return settled or [0.0]


def _height(up: Axis, value: float | None) -> float | None:
    if value is None or not math.isfinite(value):
        return None
    return round(min(3.0, max(-2.0, up.at(value))), 4)  # far outside is as good as anywhere there


def _y(height: float) -> str:
    return f"{SIDE * (1 - height):.5g}"


def _runs(xs: Sequence[float], hs: Sequence[float | None]) -> list[list[tuple[float, float]]]:
    """The points, in runs without a gap."""
    runs: list[list[tuple[float, float]]] = [[]]
    for x, h in zip(xs, hs, strict=True):
        if h is None:
            runs.append([])
        else:
            runs[-1].append((x, h))
    return [run for run in runs if run]


def _path(xs: Sequence[float], hs: Sequence[float | None]) -> str:
    parts = []
    for run in _runs(xs, hs):
        points = " ".join(f"{SIDE * x:.5g},{_y(h)}" for x, h in run)
        # A point alone is drawn by the line's round ends.
        parts.append(f"M{points}" + ("h0" if len(run) == 1 else ""))
    return "".join(parts)


def _area(xs: Sequence[float], hs: Sequence[float | None]) -> str:
    parts = []
    for run in _runs(xs, hs):
        points = " ".join(f"{SIDE * x:.5g},{_y(h)}" for x, h in run)
        parts.append(f"M{SIDE * run[0][0]:.5g},{SIDE} {points} {SIDE * run[-1][0]:.5g},{SIDE}Z")
    return "".join(parts)


def _x_marks(across: Axis, write: Callable[[float], str]) -> list[Html]:
    return [_mark(write(t), "left", across.at(t)) for t in across.ticks(6)]


def _mark(text: str, side: str, share: float) -> Html:
    return element("span", text, style=f"{side}:{100 * share:.2f}%")
