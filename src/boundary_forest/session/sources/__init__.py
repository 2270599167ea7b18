"""Sources of rows: files and pipes of CSV, NDJSON and LIBSVM text, Parquet, Arrow and npz files.

``opening.py`` detects the format, ``encoding.py`` decodes text, ``lines.py`` cuts it into blocks,
``arrays.py`` finds the objects of a JSON array, ``text.py`` and ``tables.py`` read rows, and
``batches.py`` is what all of them give.
"""

from boundary_forest.session.sources.batches import Batch, Source
from boundary_forest.session.sources.opening import FORMATS, default_target, open_source

__all__ = ["FORMATS", "Batch", "Source", "default_target", "open_source"]
