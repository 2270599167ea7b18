"""Tree shapes: each tree as a silhouette from its root down, and the mean of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from boundary_forest.report.charts import Chart, Curve, line_chart
from boundary_forest.report.formatting import count, number, short

SHOWN = 100  # silhouettes at most
WIDE, HIGH = 100, 120  # the box of one


@dataclass(frozen=True)
class Silhouette:
    """A tree: its outline, and what it says."""

    outline: str
    title: str


@dataclass(frozen=True)
class Shapes:
    """The forest, and nodes by depth, as trees.html writes them."""

    note: str
    style: str
    silhouettes: list[Silhouette]
    by_depth: Chart
    width: int = WIDE
    height: int = HIGH


def tree_shapes(depths: Sequence[Sequence[int]]) -> Shapes | None:
    """Return the shapes of the trees; None if none has been planted."""
    trees = [tree for tree in depths if sum(tree)]
    if not trees:
        return None
    widest = max(max(tree) for tree in trees)
    deepest = max(len(tree) for tree in trees)
    shapes = [_silhouette(i, tree, widest, deepest) for i, tree in enumerate(trees[:SHOWN])]
    shown = f"The first {SHOWN} of {count(len(trees))} trees. " if len(trees) > SHOWN else ""
    return Shapes(
        note=shown
        + "Each shape is a tree, root on top; its width is the number of nodes at each depth.",
        style=f"--trees:{min(20, max(4, len(shapes)))}",
        silhouettes=shapes,
        by_depth=_by_depth(trees),
    )


def _silhouette(i: int, tree: Sequence[int], widest: int, deepest: int) -> Silhouette:
    step = HIGH / max(1, deepest)
    half = [max(1.2, n / widest * WIDE / 2) for n in tree]
    right = [(WIDE / 2 + w, (d + 0.5) * step) for d, w in enumerate(half)]
    left = [(WIDE - x, y) for x, y in reversed(right)]
    tip, foot = (WIDE / 2, 0.0), (WIDE / 2, min(HIGH, len(tree) * step + step / 2))
    peak = max(range(len(tree)), key=tree.__getitem__)
    title = (
        f"tree {i}: {count(sum(tree))} nodes, depth {len(tree) - 1}; "
        f"most at depth {peak}, {count(tree[peak])}"
    )
    return Silhouette(_smooth([tip, *right, foot, *left]), title)


def _smooth(points: Sequence[tuple[float, float]]) -> str:
    """Return a closed curve: through the middles of the sides, bent by the corners."""
    middles = [
        ((a[0] + b[0]) / 2, (a[1] + b[1]) / 2)
        for a, b in zip(points, [*points[1:], points[0]], strict=True)
    ]
    start = middles[-1]
    curves = "".join(
        f"Q{x:.4g} {y:.4g} {u:.4g} {v:.4g}" for (x, y), (u, v) in zip(points, middles, strict=True)
    )
    return f"M{start[0]:.4g} {start[1]:.4g}{curves}Z"


def _by_depth(trees: Sequence[Sequence[int]]) -> Chart:
    deepest = max(len(tree) for tree in trees)
    at = [[tree[d] if d < len(tree) else 0 for tree in trees] for d in range(deepest)]
    nodes = [sum(tree) for tree in trees]
    means = [sum(row) / len(row) for row in at]
    note = (
        f"{number(sum(nodes) / len(nodes), 3)} nodes per tree on average, from "
        f"{count(min(nodes))} to {count(max(nodes))}; largest depth {deepest - 1}."
    )
    return line_chart(
        "Nodes at each depth",
        list(range(deepest)),
        [
            Curve("most", [max(row) for row in at], "grey", dashed=True),
            Curve("mean", means, "green", area=True),
            Curve("fewest", [min(row) for row in at], "grey", dashed=True),
        ],
        write=lambda v: number(v, 3) if v % 1 else count(round(v)),
        tick=short,
        x_name="depth",
        x_tick=lambda x: short(x) if x % 1 == 0 else "",
        x_write=lambda x: f"depth {x:.0f}",
        group="depth",
        rest=means.index(max(means)),
        note=note,
        class_="half",
    )
