"""Forests that take raw rows: columns of numbers, text and booleans, as files and frames have them.

``values.py`` reads a column, ``columns.py`` holds what columns mean and turns rows into positions
and labels, ``choosing.py`` decides what they mean from the first rows, and ``model.py`` is the
forest that takes raw rows. All of it needs pyarrow, so the layers below do not import it, except
``boundary_forest.load`` when a file needs it.
"""

from boundary_forest.frames.columns import Columns
from boundary_forest.frames.model import FrameModel

__all__ = ["Columns", "FrameModel"]
