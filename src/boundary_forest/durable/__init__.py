"""Learning that survives a crash: what ``partial_fit`` has returned from is on the disk.

``journal.py`` is a log of operations (``operations.py``) in SQLite (``database.py``), and
``packing.py`` turns examples into bytes and back. ``durable_forest.py`` ties a forest to its
journal and its snapshots, ``durable_folder.py`` brings it back, ``locking.py`` keeps others out,
and ``interrupts.py`` puts off Ctrl-C.
"""

from boundary_forest.durable.durable_folder import open_durable
from boundary_forest.durable.durable_forest import DurableForest
from boundary_forest.durable.locking import FolderLock, reserve

__all__ = ["DurableForest", "FolderLock", "open_durable", "reserve"]
