"""Plots of forests and of their predictions, drawn with matplotlib.

Each function draws into ``ax=``, or into a new figure without it, and returns the axes. Nothing
global is changed: colours and sizes follow the style in use. It needs matplotlib:
``pip install matplotlib``.
"""

from boundary_forest.plot.predictions import (
    plot_calibration,
    plot_decision_boundary,
    plot_importances,
    plot_stream,
)
from boundary_forest.plot.trees import plot_path, plot_tree

__all__ = [
    "plot_calibration",
    "plot_decision_boundary",
    "plot_importances",
    "plot_path",
    "plot_stream",
    "plot_tree",
]
