"""Draw docs/images/boundary.svg: examples, those that one tree keeps, and what it predicts.

The examples and the forest are those of ``python -m paper run near-boundaries --scale full``, read
from docs/paper. Run it as ``.venv/bin/python -m docs.draw_boundary``; it needs matplotlib.
"""

import json
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import ListedColormap

from boundary_forest import BoundaryForestClassifier
from paper.items.near_boundaries import heights
from paper.plots import COLORS, FIT, STYLE, panels

DOCS = Path(__file__).parent
STEPS = 500  # of the square, along each side
PALE = ("#c3dcea", "#f4dacb", "#cae4da")  # COLORS, mixed with three parts of white


def drawing(X: Any, y: Any) -> Any:
    """Return the figure; the first tree of the forest is the one that is drawn."""
    forest = BoundaryForestClassifier(shuffle=False, random_state=0).fit(X, y)
    nodes, parents = forest.trees()[0]
    side = np.linspace(-1, 1, STEPS)
    grid = np.stack(np.meshgrid(side, side), axis=2)
    answers = y[forest.apply(grid.reshape(-1, 2))[:, 0]].reshape(STEPS, STEPS)
    titles = (
        f"{len(X):,} examples of three classes",
        f"One tree keeps {len(nodes)} of them ...",
        "... and predicts these regions",
    )
    figure, axes = panels(titles, width=3.3, height=3.55)
    seen, kept, answered = axes
    for c, color in enumerate(COLORS[:3]):
        dots: Any = {"color": color, "markeredgewidth": 0, "rasterized": True}
        seen.plot(*X[y == c].T, "o", markersize=1.9, alpha=0.75, **dots)
        own = nodes[y[nodes] == c]
        kept.plot(*X[own].T, "o", color=color, markersize=4, markeredgecolor="white", mew=0.5)
    edges = np.stack([X[nodes[1:]], X[parents[1:]]], axis=1)
    lines = LineCollection(list(edges), colors=COLORS[5], linewidths=0.5, alpha=0.6, zorder=1)
    kept.add_collection(lines)
    kept.plot(*X[nodes[0]], "*", color=FIT, markersize=12, markeredgecolor="white", zorder=5)
    answered.imshow(
        answers,
        extent=(-1, 1, -1, 1),
        origin="lower",
        cmap=ListedColormap(PALE),
        interpolation="nearest",
    )
    for ax in axes:
        levels: Any = {"colors": FIT, "linewidths": 1, "linestyles": "solid"}
        ax.contour(side, side, heights(grid), [-1, 1], **levels)
        ax.set(xlim=(-1.01, 1.01), ylim=(-1.01, 1.01), aspect="equal", xticks=[], yticks=[])
        ax.grid(visible=False)
        ax.spines[:].set(visible=True, color="#d0d4d8")
    return figure


def main() -> None:
    """Read the examples, and write the picture."""
    plane = json.loads((DOCS / "paper" / "near-boundaries.json").read_text())["figures"]["plane"]
    with matplotlib.rc_context(STYLE):
        figure = drawing(np.array(plane["X"]), np.array(plane["y"]))
        figure.savefig(DOCS / "images" / "boundary.svg", dpi=220, metadata={"Date": None})


if __name__ == "__main__":
    main()
