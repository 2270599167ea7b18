"""Plots of what a forest predicts, and of what decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from boundary_forest.plot.axes import color, new_axes, scatter_labels

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    points = rows[:, [a, b]]
    low, high = points.min(axis=0), points.max(axis=0)
    margin = np.where(high > low, (high - low) * 0.05, 0.5)
    across, up = np.meshgrid(*np.linspace(low - margin, high + margin, grid_resolution).T)
    queries = np.tile(np.median(rows, axis=0), (across.size, 1))
    queries[:, a], queries[:, b] = across.ravel(), up.ravel()
    stored = getattr(forest, "feature_names_in_", None)
    predicted = forest.predict(queries if stored is None else _framed(X, queries, stored))
    ax = new_axes(ax)
    classes = getattr(forest, "classes_", None)
    if classes is None:
        picture = ax.pcolormesh(across, up, predicted.reshape(across.shape), shading="auto")
        ax.figure.colorbar(picture, ax=ax, label="prediction")
        if y is not None:
            drawn = ax.scatter(points[:, 0], points[:, 1], s=18, c=np.asarray(y), edgecolors="0.3")
            drawn.set_clim(*picture.get_clim())
    else:
        codes = np.searchsorted(classes, predicted).reshape(across.shape)
        colors = [color(i) for i in range(len(classes))]
        ax.contourf(
            across, up, codes, levels=np.arange(len(classes) + 1) - 0.5, colors=colors, alpha=0.3
        )
        if y is not None:
            edge: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.4}
            scatter_labels(ax, points, np.asarray(y), classes, s=16, **edge)
    ax.set_xlabel(str(names[a]) if names else f"feature {a}")
    ax.set_ylabel(str(names[b]) if names else f"feature {b}")
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
    ax = new_axes(ax)
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
    ax = new_axes(ax)
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
    ax = new_axes(ax)
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


def _framed(X: Any, queries: NDArray[Any], names: Any) -> Any:
    """Return queries as the kind of frame that X is."""
    if not hasattr(X, "columns"):
        return queries
    return type(X)({str(name): queries[:, i] for i, name in enumerate(names)})
