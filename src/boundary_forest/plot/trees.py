"""Plots of one tree, and of the paths of a query."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundary_forest.plot.axes import color, new_axes, scatter_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_tree(
    forest: Any,
    tree: int = 0,
    *,
    X: ArrayLike | None = None,
    y: ArrayLike | None = None,
    max_depth: int | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw one tree: level by level, or in the plane if `X` has two features.

    Parameters
    ----------
    forest : estimator
        A fitted estimator of this package.
    tree : int, default=0
        Which tree.
    X : array-like of shape (n_samples, 2), default=None
        The rows that were learned, in the order in which they were passed. With it, each node
        stands at the position of its example.
    y : array-like of shape (n_samples,), default=None
        Their labels, which colour the nodes.
    max_depth : int, default=None
        The deepest level that is drawn; the root is at 0. None: all.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from boundary_forest import BoundaryForestClassifier
    >>> from boundary_forest.plot import plot_tree
    >>> X, y = load_iris(return_X_y=True)
    >>> ax = plot_tree(BoundaryForestClassifier(random_state=0).fit(X, y), y=y)
    """
    from matplotlib.collections import LineCollection

    trees = forest.trees()
    if not -len(trees) <= tree < len(trees):
        raise ValueError(f"tree must be less than the number of trees, {len(trees)}; got {tree}")
    arrivals, parents = trees[tree]
    _check_built(len(arrivals))
    place = {int(arrival): i for i, arrival in enumerate(arrivals)}
    above = [place.get(int(parent), -1) for parent in parents]
    positions, depth = _levels(above)
    if X is not None:
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(
                f"X must have two features to draw a tree in the plane; got {rows.shape}"
            )
        positions = _of_rows(rows, arrivals, "X")
    ax = new_axes(ax)
    shown = depth <= (depth.max() if max_depth is None else max_depth)
    edges = [(positions[p], positions[i]) for i, p in enumerate(above) if p >= 0 and shown[i]]
    ax.add_collection(LineCollection(edges, colors="0.6", linewidths=0.7, zorder=1))
    size = float(np.clip(2500 / shown.sum(), 8, 60))
    points = positions[shown]
    if y is None:
        ax.scatter(points[:, 0], points[:, 1], s=size, zorder=2)
    else:
        labels = _of_rows(np.asarray(y), arrivals, "y")[shown]
        scatter_labels(ax, points, labels, s=size, zorder=2)
    root = positions[0]
    ax.scatter(root[0], root[1], s=max(3 * size, 60), marker="*", color="black", zorder=3)
    ax.autoscale_view()
    ax.set_title(f"Tree {tree % len(trees)}: {len(arrivals):,} nodes, depth {depth.max()}")
    if X is None:
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.set_ylabel("depth")
    return ax


def plot_path(
    forest: Any, x: ArrayLike, *, trees: Sequence[int] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw how the distance to a query falls along the descents of trees.

    Parameters
    ----------
    forest : estimator
        A fitted estimator.
    x : array-like of shape (n_features,)
        The query.
    trees : sequence of int, default=None
        The trees that are drawn. None: all.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes
    """
    from matplotlib.ticker import MaxNLocator

    paths = list(forest.explain(x).trees)
    chosen = range(len(paths)) if trees is None else trees
    paths = [paths[tree] for tree in chosen]
    _check_built(len(paths))
    ax = new_axes(ax)
    alpha = 1.0 if len(paths) <= 5 else 0.35
    labels = sorted({str(path.steps[-1].label) for path in paths})
    few = len(labels) <= 10
    named = set() if few else set(labels)  # the labels that are in the legend, or cannot be
    for path in paths:
        label = str(path.steps[-1].label)
        own = color(labels.index(label) if few else 0)
        text = None if label in named or label == "None" else label
        named.add(label)
        distances = [step.distance for step in path.steps]
        ax.plot(distances, marker="o", markersize=3, color=own, alpha=alpha, label=text)
        ax.plot(len(distances) - 1, distances[-1], marker="o", markersize=6, color=own)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title="label at the end")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("step from the root")
    ax.set_ylabel("distance to the query")
    return ax


def _check_built(n: int) -> None:
    """Raise if there are no nodes or paths, because the trees are not built."""
    if n == 0:
        raise ValueError(
            "The trees are not built yet: learn at least n_estimators examples, then plot again"
        )


def _of_rows(values: NDArray[Any], arrivals: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the values of the examples of a tree, which are numbers of rows."""
    if arrivals.max() >= len(values):
        raise ValueError(
            f"{name} must have all rows that the forest has learned; it has {len(values)}, and the "
            f"tree stores row {arrivals.max()}"
        )
    chosen: NDArray[Any] = values[arrivals]
    return chosen


def _levels(above: list[int]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return positions in which leaves are one apart and parents above them, and all depths.

    `above` has the parent of each node, -1 for the root; a parent comes before its children.
    """
    children: list[list[int]] = [[] for _ in above]
    depth = np.zeros(len(above), dtype=int)
    for i, parent in enumerate(above):
        if parent >= 0:
            children[parent].append(i)
            depth[i] = depth[parent] + 1
    order, stack = [], [0]  # a node, then all below its first child, and so on
    while stack:
        order.append(stack.pop())
        stack.extend(reversed(children[order[-1]]))
    across = np.zeros(len(above))
    leaves = [node for node in order if not children[node]]
    across[leaves] = np.arange(len(leaves))
    for node in reversed(order):
        if children[node]:
            across[node] = (across[children[node][0]] + across[children[node][-1]]) / 2
    return np.stack([across, depth.astype(float)], axis=1), depth
