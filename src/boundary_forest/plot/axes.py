"""What all plots share: new axes, colours of classes, legends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def new_axes(ax: Axes | None) -> Axes:
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


def color(i: int) -> str:
    """Return the i-th colour of the style's cycle."""
    return f"C{i % 10}"


def scatter_labels(
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
        ax.scatter(own[:, 0], own[:, 1], color=color(i), label=text, **options)
    if len(kinds) <= 10:
        ax.legend()
