"""Plots of forests and of their predictions, drawn with matplotlib.

Each function draws into ``ax=``, or into a new figure without it, and returns the axes. Nothing
global is changed: colours and sizes follow the style in use. It needs matplotlib:
``pip install matplotlib``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = [
    "plot_calibration",
    "plot_decision_boundary",
    "plot_importances",
    "plot_path",
    "plot_stream",
    "plot_tree",
]


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
    if len(arrivals) == 0:
        raise ValueError(
            "The trees are not built yet: learn at least n_estimators examples, then plot again"
        )
    positions, depth = _levels(arrivals, parents)
    if X is not None:
        rows = np.asarray(X)
        if rows.ndim != 2 or rows.shape[1] != 2:
            raise ValueError(
                f"X must have two features to draw a tree in the plane; got {rows.shape}"
            )
        positions = _of_rows(rows, arrivals, "X")
    ax = _axes(ax)
    place = {int(a): i for i, a in enumerate(arrivals)}
    shown = depth <= (depth.max() if max_depth is None else max_depth)
    ends = [(place[int(p)], i) for i, p in enumerate(parents) if p >= 0 and shown[i]]
    segments = [np.stack([positions[a], positions[b]]) for a, b in ends]
    ax.add_collection(LineCollection(segments, colors="0.6", linewidths=0.7, zorder=1))
    size = float(np.clip(2500 / shown.sum(), 8, 60))
    points = positions[shown]
    if y is None:
        ax.scatter(points[:, 0], points[:, 1], s=size, zorder=2)
    else:
        labels = _of_rows(np.asarray(y), arrivals, "y")[shown]
        _scatter_labels(ax, points, labels, s=size, zorder=2)
    ax.scatter(
        positions[0, 0],
        positions[0, 1],
        s=max(3 * size, 60),
        marker="*",
        color="black",
        zorder=3,
        label="root",
    )
    ax.autoscale_view()
    title = f"Tree {tree % len(trees)}: {len(arrivals):,} nodes, depth {depth.max()}"
    ax.set_title(title)
    if X is None:
        ax.invert_yaxis()
        ax.set_xticks([])
        ax.set_ylabel("depth")
    return ax


def plot_decision_boundary(
    forest: Any,
    X: ArrayLike,
    y: ArrayLike | None = None,
    *,
    features: tuple[int, int] = (0, 1),
    grid_resolution: int = 150,
    ax: Axes | None = None,
) -> Axes:
    """Draw what a classifier or a regressor predicts over two features.

    Parameters
    ----------
    forest : estimator
        A fitted classifier or regressor.
    X : array-like of shape (n_samples, n_features)
        Rows that set the range of the plot. They are drawn if `y` is given.
    y : array-like of shape (n_samples,), default=None
        Their labels or targets.
    features : pair of int, default=(0, 1)
        The features on the two axes. All others are kept at their median in `X`.
    grid_resolution : int, default=150
        Number of predictions along each axis.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes
    """
    names = list(getattr(X, "columns", []))
    rows = np.asarray(X, dtype=float)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise ValueError(f"X must have at least two features; got shape {rows.shape}")
    a, b = features
    low, high = rows[:, [a, b]].min(axis=0), rows[:, [a, b]].max(axis=0)
    margin = np.where(high > low, (high - low) * 0.05, 0.5)
    sides = [
        np.linspace(low[i] - margin[i], high[i] + margin[i], grid_resolution) for i in range(2)
    ]
    across, up = np.meshgrid(*sides)
    queries = np.tile(np.median(rows, axis=0), (across.size, 1))
    queries[:, a], queries[:, b] = across.ravel(), up.ravel()
    stored = getattr(forest, "feature_names_in_", None)
    predicted = forest.predict(queries if stored is None else _framed(X, queries, stored))
    ax = _axes(ax)
    classes = getattr(forest, "classes_", None)
    if classes is None:
        picture = ax.pcolormesh(across, up, predicted.reshape(across.shape), shading="auto")
        ax.figure.colorbar(picture, ax=ax, label="prediction")
        if y is not None:
            limits = picture.get_clim()
            ax.scatter(
                rows[:, a],
                rows[:, b],
                c=np.asarray(y),
                vmin=limits[0],
                vmax=limits[1],
                edgecolors="0.3",
                s=18,
            )
    else:
        codes = np.searchsorted(classes, predicted).reshape(across.shape)
        ax.contourf(
            across,
            up,
            codes,
            levels=np.arange(len(classes) + 1) - 0.5,
            colors=[_color(i) for i in range(len(classes))],
            alpha=0.3,
        )
        if y is not None:
            _scatter_labels(
                ax,
                rows[:, [a, b]],
                np.asarray(y),
                classes,
                s=16,
                edgecolors="white",
                linewidths=0.4,
            )
    ax.set_xlabel(str(names[a]) if names else f"feature {a}")
    ax.set_ylabel(str(names[b]) if names else f"feature {b}")
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
    if not paths:
        raise ValueError(
            "No tree has a path yet: learn at least n_estimators examples, then plot again"
        )
    ax = _axes(ax)
    alpha = 1.0 if len(paths) <= 5 else 0.35
    labels = sorted({str(path.steps[-1].label) for path in paths})
    named: set[str] = set()
    for path in paths:
        label = str(path.steps[-1].label)
        color = _color(labels.index(label)) if len(labels) <= 10 else _color(0)
        text = label if len(labels) <= 10 and label not in named and label != "None" else None
        named.add(label)
        distances = [step.distance for step in path.steps]
        ax.plot(distances, marker="o", markersize=3, color=color, alpha=alpha, label=text)
        ax.plot(len(distances) - 1, distances[-1], marker="o", markersize=6, color=color)
    if ax.get_legend_handles_labels()[0]:
        ax.legend(title="label at the end")
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_xlabel("step from the root")
    ax.set_ylabel("distance to the query")
    return ax


def plot_stream(
    y: ArrayLike,
    predicted: ArrayLike,
    *,
    window: int | None = None,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the quality of a stream's predictions over a sliding window of rows.

    The accuracy is drawn for classes, and the mean absolute error for targets of floats. Call it
    again with the same `ax` to compare models.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The true labels or targets.
    predicted : array-like of shape (n_samples,)
        The predictions, as ``predict_then_learn`` returns them. The row without a prediction (None
        or NaN) is left out.
    window : int, default=None
        Number of rows that are averaged. None: a twentieth of the stream.
    label : str, default=None
        The name of the curve in the legend.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes
    """
    true, given = np.asarray(y), np.asarray(predicted)
    if true.shape != given.shape or true.ndim != 1:
        raise ValueError(
            f"y and predicted must be of one length; got shapes {true.shape} and {given.shape}"
        )
    numbers = true.dtype.kind == "f"
    if numbers:
        given = given.astype(float)
        known = np.isfinite(given)
        value = np.abs(true[known] - given[known])
    else:
        known = np.array([answer is not None and answer == answer for answer in given], dtype=bool)
        value = (true[known] == given[known]).astype(float)
    if not known.any():
        raise ValueError("predicted has no predictions: every value is None or NaN")
    window = max(1, len(true) // 20) if window is None else window
    if not 1 <= window <= len(value):
        raise ValueError(f"window must be between 1 and {len(value)}, got {window}")
    sums = np.concatenate([[0.0], np.cumsum(value)])
    means = (sums[window:] - sums[:-window]) / window
    ax = _axes(ax)
    ax.plot(np.flatnonzero(known)[window - 1 :] + 1, means, label=label)
    ax.set_xlabel("rows")
    ax.set_ylabel(f"{'mean absolute error' if numbers else 'accuracy'}, last {window:,} rows")
    if label is not None:
        ax.legend()
    return ax


def plot_importances(forest: Any, *, max_features: int = 20, ax: Axes | None = None) -> Axes:
    """Draw the importances of the features as bars, the largest first.

    Parameters
    ----------
    forest : estimator
        A fitted estimator with ``feature_importances_``.
    max_features : int, default=20
        The most bars that are drawn.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes
    """
    values = np.asarray(forest.feature_importances_)
    names = getattr(forest, "feature_names_in_", None)
    names = [f"x{i}" for i in range(len(values))] if names is None else [str(n) for n in names]
    largest = np.argsort(-values, kind="stable")[:max_features]
    ax = _axes(ax)
    ax.barh([names[i] for i in largest], values[largest])
    ax.invert_yaxis()
    ax.set_xlabel("share of the squared distance")
    return ax


def plot_calibration(
    y: ArrayLike,
    probabilities: ArrayLike,
    *,
    classes: ArrayLike | None = None,
    n_bins: int = 10,
    label: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often predictions are right, against the probability that they were given.

    On the diagonal, of the rows predicted with probability 0.8, 80 % are right. A point is the mean
    of a tenth of the rows (of ``1 / n_bins``), in order of their probability.

    Parameters
    ----------
    y : array-like of shape (n_samples,)
        The true classes.
    probabilities : array-like of shape (n_samples, n_classes)
        What ``predict_proba`` returns.
    classes : array-like of shape (n_classes,), default=None
        The classes of the columns, ``forest.classes_``. None: the sorted classes of `y`.
    n_bins : int, default=10
        Number of points.
    label : str, default=None
        The name of the curve in the legend.
    ax : matplotlib axes, default=None
        The axes to draw in. None: those of a new figure.

    Returns
    -------
    ax : matplotlib axes
    """
    true, shares = np.asarray(y), np.asarray(probabilities, dtype=float)
    columns = np.unique(true) if classes is None else np.asarray(classes)
    if shares.shape != (len(true), len(columns)):
        raise ValueError(
            f"probabilities must be of shape ({len(true)}, {len(columns)}), a row for each label "
            f"and a column for each class; got {shares.shape}"
        )
    confidence = shares.max(axis=1)
    right = columns[shares.argmax(axis=1)] == true
    parts = np.array_split(np.argsort(confidence, kind="stable"), min(n_bins, len(true)))
    ax = _axes(ax)
    low = min(float(confidence.min()), float(right.mean()))
    ax.axline((1, 1), slope=1, color="0.6", linewidth=1, linestyle="--", zorder=0)
    ax.plot(
        [confidence[part].mean() for part in parts],
        [right[part].mean() for part in parts],
        marker="o",
        label=label,
    )
    ax.set_xlim(min(ax.get_xlim()[0], low - 0.02), 1.02)
    ax.set_xlabel("probability of the predicted class")
    ax.set_ylabel("share of right predictions")
    if label is not None:
        ax.legend()
    return ax


def _axes(ax: Axes | None) -> Axes:
    """Return `ax`, or the axes of a new figure."""
    if ax is not None:
        return ax
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(
            "boundary_forest.plot requires matplotlib: pip install matplotlib", name="matplotlib"
        ) from error
    new: Axes = plt.subplots(layout="constrained")[1]
    return new


def _color(i: int) -> str:
    """Return the i-th colour of the style's cycle."""
    return f"C{i % 10}"


def _scatter_labels(
    ax: Axes, points: NDArray[Any], labels: NDArray[Any], classes: Any = None, **options: Any
) -> None:
    """Draw points in the colours of their classes, with a legend; floats by a colour map."""
    if classes is None and labels.dtype.kind == "f" and len(np.unique(labels)) > 10:
        picture = ax.scatter(points[:, 0], points[:, 1], c=labels, **options)
        ax.figure.colorbar(picture, ax=ax, label="target")
        return
    kinds = list(np.unique(labels) if classes is None else classes)
    for i, kind in enumerate(kinds):
        own = points[labels == kind]
        text = str(kind) if len(kinds) <= 10 else None
        ax.scatter(own[:, 0], own[:, 1], color=_color(i), label=text, **options)
    if len(kinds) <= 10:
        ax.legend()


def _of_rows(values: NDArray[Any], arrivals: NDArray[Any], name: str) -> NDArray[Any]:
    """Return the values of the examples of a tree, which are numbers of rows."""
    if arrivals.max() >= len(values):
        raise ValueError(
            f"{name} must have all rows that the forest has learned; it has {len(values)}, and the "
            f"tree stores row {arrivals.max()}"
        )
    chosen: NDArray[Any] = values[arrivals]
    return chosen


def _levels(arrivals: NDArray[Any], parents: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return positions in which leaves are one apart and parents above them, and all depths."""
    place = {int(a): i for i, a in enumerate(arrivals)}
    up = [place.get(int(p), -1) for p in parents]
    children: list[list[int]] = [[] for _ in up]
    depth = np.zeros(len(up), dtype=int)
    for i, parent in enumerate(up):  # in order of creation: a parent comes first
        if parent >= 0:
            children[parent].append(i)
            depth[i] = depth[parent] + 1
    across = np.zeros(len(up))
    n_leaves, stack, order = 0, [i for i, parent in enumerate(up) if parent < 0][::-1], []
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed(children[node]))
    for node in order:
        if not children[node]:
            across[node] = n_leaves
            n_leaves += 1
    for node in reversed(order):
        if children[node]:
            across[node] = (across[children[node][0]] + across[children[node][-1]]) / 2
    return np.stack([across, depth.astype(float)], axis=1), depth


def _framed(X: Any, queries: NDArray[Any], names: Any) -> Any:
    """Return queries as the kind of frame that X is."""
    if not hasattr(X, "columns"):
        return queries
    return type(X)({str(name): queries[:, i] for i, name in enumerate(names)})
