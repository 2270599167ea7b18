"""Draw docs/images/descent.svg and learning.svg: how a tree is queried, and how it learns.

Run it as ``.venv/bin/python -m docs.draw_steps``; it needs matplotlib. The tree is one that the
package has learned, and every step is the one that ``explain`` reports.
"""

from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

from boundary_forest import BoundaryForestClassifier
from paper.plots import COLORS, FIT, STYLE, grid, panels

IMAGES = Path(__file__).parent / "images"
TREE = 1
QUERY = np.array([-0.51, -0.39])
RING: dict[str, Any] = {"marker": "o", "s": 170, "facecolors": "none", "linewidths": 2, "zorder": 5}


def side_of(rows: Any) -> Any:
    """Return on which side of a curve each row lies."""
    return (rows[:, 1] > 0.45 * np.sin(3.2 * rows[:, 0])).astype(int)


def background(ax: Any, rows: Any, labels: Any, tree: Any) -> None:
    """Draw the boundary and the tree."""
    nodes, parents = tree
    line = np.linspace(-1, 1, 200)
    ax.plot(line, 0.45 * np.sin(3.2 * line), color="#c3c9cf", linewidth=1, zorder=0)
    for node, parent in zip(nodes, parents, strict=True):
        if parent >= 0:
            ax.plot(*rows[[parent, node]].T, color="#c3c9cf", linewidth=0.9, zorder=1)
    for label in (0, 1):
        own = nodes[labels[nodes] == label]
        ax.plot(*rows[own].T, "o", color=COLORS[label], markersize=5.5, mec="white", mew=0.6)
    ax.plot(*rows[nodes[0]], "*", color=FIT, markersize=13, markeredgecolor="white", zorder=4)
    ax.set(xlim=(-1.03, 1.03), ylim=(-1.03, 1.03), aspect="equal", xticks=[], yticks=[])
    ax.grid(visible=False)
    ax.spines[:].set(visible=True, color="#d0d4d8")


def query_at(ax: Any, query: Any) -> None:
    """Mark the query."""
    ax.plot(*query, "X", color="#b3261e", markersize=10, markeredgecolor="white", zorder=6)


def descent(rows: Any, labels: Any, forest: Any) -> Any:
    """Return the figure of a query: a panel for each node that it visits."""
    tree = forest.trees()[TREE]
    steps = [step.arrival for step in forest.explain(QUERY).trees[TREE].steps]
    figure, rows_of_axes = grid(2, len(steps) // 2, width=3.6, height=3.8)
    axes = rows_of_axes.ravel()
    for i, (ax, text) in enumerate(zip(axes, captions(len(steps)), strict=True)):
        ax.set_title(f"{i + 1}. {text}", loc="left")
    nodes, parents = tree
    for i, (ax, node) in enumerate(zip(axes, steps, strict=True)):
        background(ax, rows, labels, tree)
        for other in nodes[parents == node]:
            ax.plot(*np.stack([rows[other], QUERY]).T, "--", color=COLORS[5], linewidth=0.9)
        ax.plot(*rows[steps[: i + 1]].T, color=FIT, linewidth=2.2, zorder=3)
        ax.scatter(*rows[node], edgecolors=FIT, **RING)
        query_at(ax, QUERY)
    return figure


def captions(n: int) -> list[str]:
    """Return what happens at each node."""
    return ["Start at the root", *["Move to the closest child"] * (n - 2), "No child is closer"]


def learning(rows: Any, labels: Any, forest: Any) -> Any:
    """Return the figure of two rows that are learned: one predicted right, one wrong."""
    tree = forest.trees()[TREE]
    rng = np.random.default_rng(5)
    new = rng.uniform(-0.9, 0.9, size=(400, 2))
    ends = forest.apply(new)[:, TREE]
    wrong = labels[ends] != side_of(new)
    far = np.linalg.norm(rows[ends] - new, axis=1) > 0.16
    right_row, wrong_row = np.flatnonzero(~wrong & far)[0], np.flatnonzero(wrong & far)[0]
    titles = ["Right prediction: nothing is stored", "Wrong prediction: a new child"]
    figure, axes = panels(titles, width=4.0, height=4.25)
    for ax, i in zip(axes, (right_row, wrong_row), strict=True):
        background(ax, rows, labels, tree)
        ax.plot(*np.stack([rows[ends[i]], new[i]]).T, ":" if i == right_row else "-", color=FIT)
        ax.scatter(*rows[ends[i]], edgecolors=FIT, **RING)
        color = COLORS[int(side_of(new[[i]])[0])]
        ax.plot(*new[i], "D", color=color, markersize=9, markeredgecolor="#b3261e", mew=1.6)
    return figure


def main() -> None:
    """Learn the rows, and write the pictures."""
    rng = np.random.default_rng(3)
    rows = rng.uniform(-1, 1, size=(150, 2))
    labels = side_of(rows)
    forest = BoundaryForestClassifier(n_estimators=10, shuffle=False, random_state=0)
    forest.fit(rows, labels)
    with matplotlib.rc_context(STYLE):
        for name, draw in (("descent", descent), ("learning", learning)):
            figure = draw(rows, labels, forest)
            figure.savefig(IMAGES / f"{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
