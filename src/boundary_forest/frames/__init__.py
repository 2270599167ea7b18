"""Forests that take raw rows: columns of numbers, text and booleans, as files and frames have them.

``arrow_columns.py`` and ``column_kinds.py`` read a column, as far as its kind and the text's
dialect (``dialect.py``) say how. ``columns.py`` holds what columns mean and reads labels,
``positions.py`` turns rows into positions. ``column_options.py`` is what a user has specified,
``inference.py`` infers the rest from the first rows, and ``description.py`` describes it in plain
lines. ``model.py`` is the forest that takes raw rows; ``vector_columns.py`` reads the vectors of an
index. All of it needs pyarrow, so the layers below do not import it, except
``boundary_forest.load`` when a file needs it.
"""

try:
    import pyarrow as _pyarrow  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "raw rows need pyarrow: pip install pyarrow", name="pyarrow"
    ) from error

from boundary_forest.frames.columns import Columns
from boundary_forest.frames.model import FrameModel

__all__ = ["Columns", "FrameModel"]
