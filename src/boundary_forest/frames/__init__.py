"""Forests that take raw rows: columns of numbers, text and booleans, as files and frames have them.

``values.py`` reads a column, ``columns.py`` says what columns mean and makes positions and labels
of them, ``choosing.py`` decides that by the first rows, and ``model.py`` is the forest with it. All
of it needs pyarrow, so nothing below imports it but ``boundary_forest.load``, when a file asks.
"""

from boundary_forest.frames.columns import Columns
from boundary_forest.frames.model import FrameModel

__all__ = ["Columns", "FrameModel"]
