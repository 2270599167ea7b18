"""Sources of rows: files and pipes of CSV, NDJSON and LIBSVM text, Parquet, Arrow and npz files.

``formats.py`` detects the format and opens the source, ``text_blocks.py`` decodes text and cuts it
into blocks of lines, ``text_formats.py`` and ``binary_formats.py`` read rows, and ``row_batch.py``
is what all of them give.
"""

from boundary_forest.sources.formats import FORMATS, default_target, open_source
from boundary_forest.sources.row_batch import RowBatch, Source

__all__ = ["FORMATS", "RowBatch", "Source", "default_target", "open_source"]
