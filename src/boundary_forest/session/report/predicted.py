"""Predicted beside true: points where they are few, their density where they are many."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from boundary_forest.session.report.axes import Axis, axis
from boundary_forest.session.report.markup import Html, element, figure, joined
from boundary_forest.session.wording import count, number, percent, short

SIDE = 1000  # of the square that the plot is drawn in
FEW = 400  # pairs that are drawn as points
HEXAGONS = 32  # across the plot
LEVELS = 6  # of density; classes q1 to q6 of page.css
FAR = 0.005  # of the pairs at either end may be left out, if that makes the range much smaller
BARS = 41  # of the histogram; odd, so that one is around zero

Pair = tuple[float, float]


def predicted_versus_true(pairs: Sequence[Pair]) -> Html:
    """The plot of both, and the histogram of their differences."""
    finite = [p for p in pairs if math.isfinite(p[0]) and math.isfinite(p[1])]
    if not finite:
        return figure("Predicted and true", element("p", "No answers yet.", class_="quiet"))
    return joined(_both(finite), _differences(finite))


def _both(pairs: list[Pair]) -> Html:
    scale = _range([v for pair in pairs for v in pair])
    inside = [(t, p) for t, p in pairs if 0 <= scale.at(t) <= 1 and 0 <= scale.at(p) <= 1]
    ticks = scale.ticks()
    grid = "".join(
        f"M0 {SIDE * (1 - scale.at(t)):.5g}H{SIDE}M{SIDE * scale.at(t):.5g} 0V{SIDE}" for t in ticks
    )
    marks = _points(inside, scale) if len(inside) <= FEW else _hexagons(inside, scale)
    svg = element(
        "svg",
        element("path", d=grid, class_="grid"),
        *marks,
        element("path", d=f"M0 {SIDE}L{SIDE} 0", class_="line grey dashed"),
        viewBox=f"0 0 {SIDE} {SIDE}",
        role="img",
        aria_label=f"Predicted against true values of {count(len(inside))} rows",
    )
    left_out = len(pairs) - len(inside)
    note = "On the dashed line an answer is right; above it, too large. " + (
        f"A sample of {count(len(pairs))} rows"
        + (f", {count(left_out)} of them outside the plot." if left_out else ".")
    )
    down = element("div", *[_mark(short(t), "bottom", scale.at(t)) for t in ticks], class_="ys")
    along = element("div", *[_mark(short(t), "left", scale.at(t)) for t in ticks], class_="xs")
    plot = element(
        "div", down, element("div", svg, class_="area-of-plot"), along, class_="plot square"
    )
    names = element("p", "true, across; predicted, upwards", class_="x-name")
    return figure("Predicted and true", plot, names, note=note, class_="square-card")


def _points(pairs: list[Pair], scale: Axis) -> list[Html]:
    return [
        element(
            "circle",
            element("title", f"true {number(t)}, predicted {number(p)}"),
            cx=f"{SIDE * scale.at(t):.5g}",
            cy=f"{SIDE * (1 - scale.at(p)):.5g}",
            r="9",
            class_="point",
        )
        for t, p in pairs
    ]


def _hexagons(pairs: list[Pair], scale: Axis) -> list[Html]:
    """Cells of equal area, coloured by the logarithm of how many pairs fall into them."""
    radius = SIDE / HEXAGONS / math.sqrt(3)
    cells = Counter(_cell(SIDE * scale.at(t), SIDE * (1 - scale.at(p)), radius) for t, p in pairs)
    most = math.log1p(max(cells.values()))
    shapes = []
    for (x, y), n in sorted(cells.items()):
        level = min(LEVELS, 1 + int(LEVELS * math.log1p(n) / most * 0.999))
        true = scale.low + x / SIDE * (scale.high - scale.low)
        answer = scale.low + (1 - y / SIDE) * (scale.high - scale.low)
        said = f"true {number(true, 3)}, predicted {number(answer, 3)}: {count(n)}"
        shapes.append(
            element("path", element("title", said), d=_outline(x, y, radius), class_=f"q{level}")
        )
    return shapes


def _cell(x: float, y: float, radius: float) -> tuple[float, float]:
    """The centre of the hexagon around the point: the nearer one of two staggered grids'."""
    wide, high = radius * math.sqrt(3), radius * 3
    first = (round(x / wide) * wide, round(y / high) * high)
    second = ((math.floor(x / wide) + 0.5) * wide, (math.floor(y / high) + 0.5) * high)
    nearest = min(first, second, key=lambda c: (c[0] - x) ** 2 + (c[1] - y) ** 2)
    return round(nearest[0], 1), round(nearest[1], 1)


def _outline(x: float, y: float, radius: float) -> str:
    half = radius * math.sqrt(3) / 2
    return (
        f"M{x:.4g} {y - radius:.4g}l{half:.1f} {radius / 2:.1f}v{radius:.1f}"
        f"l{-half:.1f} {radius / 2:.1f}l{-half:.1f} {-radius / 2:.1f}v{-radius:.1f}z"
    )


def _differences(pairs: list[Pair]) -> Html:
    """The histogram of predicted less true."""
    errors = sorted(p - t for t, p in pairs)
    reach = max(abs(_quantile(errors, 0.01)), abs(_quantile(errors, 0.99))) or 1.0
    step = 2 * reach / BARS
    bars = Counter(min(BARS - 1, max(0, math.floor((error + reach) / step))) for error in errors)
    most = max(bars.values())
    width = SIDE / BARS
    shapes = []
    for i, n in sorted(bars.items()):
        low, high = -reach + i * step, -reach + (i + 1) * step
        span = f"{number(low, 3)} to {number(high, 3)}"
        if i == 0:
            span = f"below {number(high, 3)}"
        elif i == BARS - 1:
            span = f"above {number(low, 3)}"
        said = element("title", f"{span}: {count(n)} rows, {percent(n / len(errors))}")
        height = SIDE * 0.96 * n / most
        shapes.append(
            element(
                "rect",
                said,
                x=f"{i * width + width * 0.06:.5g}",
                y=f"{SIDE - height:.5g}",
                width=f"{width * 0.88:.4g}",
                height=f"{height:.5g}",
                class_="column",
            )
        )
    scale = Axis(-reach, reach)
    svg = element(
        "svg",
        element("path", d=f"M{SIDE / 2} 0V{SIDE}", class_="line grey dashed"),
        *shapes,
        viewBox=f"0 0 {SIDE} {SIDE}",
        preserveAspectRatio="none",
        role="img",
        aria_label="Histogram of predicted less true",
    )
    along = element(
        "div", *[_mark(short(t), "left", scale.at(t)) for t in scale.ticks(4)], class_="xs"
    )
    plot = element("div", element("div", svg, class_="area-of-plot"), along, class_="plot bare")
    middle = number(_quantile(errors, 0.5), 3)
    tenth, ninetieth = number(_quantile(errors, 0.1), 3), number(_quantile(errors, 0.9), 3)
    note = f"Eight in ten lie between {tenth} and {ninetieth}; the median is {middle}."
    names = element("p", "predicted less true", class_="x-name")
    return figure("Differences", plot, names, note=note, class_="tall-card")


def _range(values: list[float]) -> Axis:
    """All values; without the outermost few where those would squash the others."""
    values = sorted(values)
    low, high = _quantile(values, FAR), _quantile(values, 1 - FAR)
    whole = axis(values, tight=True)
    if not (high > low and whole.high - whole.low > 3 * (high - low)):
        low, high = whole.low, whole.high
    margin = 0.03 * (high - low)
    return Axis(low - margin, high + margin)


def _quantile(ordered: Sequence[float], q: float) -> float:
    return ordered[round(q * (len(ordered) - 1))]


def _mark(text: str, side: str, share: float) -> Html:
    return element("span", text, style=f"{side}:{100 * share:.2f}%")
