"""Draw the flowcharts that pages write in mermaid, as SVG, while the site is built.

A Git host draws ``mermaid`` blocks itself; the site needs no script for it. Understood is what the
pages use: ``flowchart TD`` and lines ``a --> b``, where a node may have a text, ``a[text]`` or
``a[(text)]``. Nodes are layered by their longest path, and ordered within a layer by the mean place
of the nodes that point to them.
"""

import html
import re
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive

NODE = re.compile(r"(\w+)(?:\[\(?(.*?)\)?\])?")
WIDTH, HEIGHT, GAP_X, GAP_Y, LETTER = 28, 34, 26, 46, 8.2


def read(text: str) -> tuple[dict[str, str], list[tuple[str, str]]]:
    """Return the text of each node, and the edges."""
    texts: dict[str, str] = {}
    edges = []
    for line in text.splitlines():
        left, arrow, right = line.partition("-->")
        if not arrow:
            continue
        ends = []
        for part in (left, right):
            found = NODE.fullmatch(part.strip())
            if found is None:
                raise ValueError(f"a flowchart's line is not understood: {line!r}")
            if found[2] or found[1] not in texts:
                texts[found[1]] = found[2] or found[1]
            ends.append(found[1])
        edges.append((ends[0], ends[1]))
    return texts, edges


def layered(names: list[str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Return the nodes layer by layer."""
    depth = dict.fromkeys(names, 0)
    for _ in names:
        for a, b in edges:
            depth[b] = max(depth[b], depth[a] + 1)
    for name in names:  # a source stands right above what it points to
        below = [depth[b] for a, b in edges if a == name]
        if below and not any(b == name for _, b in edges):
            depth[name] = min(below) - 1
    layers = [[n for n in names if depth[n] == level] for level in range(max(depth.values()) + 1)]
    place: dict[str, float] = {}
    for layer in layers:
        for i, name in enumerate(layer):
            above = [place[a] for a, b in edges if b == name and a in place]
            place[name] = sum(above) / len(above) if above else float(i)
        layer.sort(key=lambda name: place[name])
        place.update({name: i - (len(layer) - 1) / 2 for i, name in enumerate(layer)})
    return layers


def drawn(text: str) -> str:
    """Return the SVG of a flowchart; its colours are those of the page's text."""
    texts, edges = read(text)
    layers = layered(list(texts), edges)
    wide = {name: WIDTH + LETTER * len(shown) for name, shown in texts.items()}
    rows = [sum(wide[n] for n in layer) + GAP_X * (len(layer) - 1) for layer in layers]
    full = max(rows) + 8
    at: dict[str, tuple[float, float]] = {}
    for level, (layer, row) in enumerate(zip(layers, rows, strict=True)):
        x = (full - row) / 2
        for name in layer:
            at[name] = (x + wide[name] / 2, 4 + level * (HEIGHT + GAP_Y))
            x += wide[name] + GAP_X
    tall = len(layers) * (HEIGHT + GAP_Y) - GAP_Y + 8
    parts = []
    for a, b in edges:
        (x1, y1), (x2, y2) = at[a], at[b]
        y1 += HEIGHT
        bend = (y2 - y1) / 2
        parts.append(
            f'<path d="M{x1:.0f},{y1:.0f} C{x1:.0f},{y1 + bend:.0f} {x2:.0f},{y2 - bend:.0f} '
            f'{x2:.0f},{y2 - 5:.0f}" fill="none" stroke="currentColor" stroke-opacity=".45" '
            'marker-end="url(#arrow)"/>'
        )
    for name, (x, y) in at.items():
        parts.append(
            f'<rect x="{x - wide[name] / 2:.0f}" y="{y:.0f}" width="{wide[name]:.0f}" '
            f'height="{HEIGHT}" rx="5" class="flowchart-node"/>'
            f'<text x="{x:.0f}" y="{y + 22:.0f}" text-anchor="middle" fill="currentColor">'
            f"{html.escape(texts[name])}</text>"
        )
    arrow = (
        '<defs><marker id="arrow" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="currentColor" '
        'fill-opacity=".6"/></marker></defs>'
    )
    return (
        f'<div class="flowchart"><svg viewBox="0 0 {full:.0f} {tall}" width="{full:.0f}" '
        f'role="img" aria-label="Flowchart">{arrow}{"".join(parts)}</svg></div>'
    )


class Flowchart(Directive):
    """The directive ``mermaid``."""

    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the drawing."""
        return [nodes.raw("", drawn("\n".join(self.content)), format="html")]


def setup(app: Any) -> dict[str, bool]:
    """Register the extension."""
    app.add_directive("mermaid", Flowchart)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
