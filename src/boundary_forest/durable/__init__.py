"""Learning that survives a crash: what ``partial_fit`` has returned from is on the disk.

``journal.py`` keeps batches in SQLite, ``batches.py`` turns them into bytes and back, and
``learner.py`` ties a forest to its journal and its snapshots.
"""

from boundary_forest.durable.learner import DurableForest, open_durable

__all__ = ["DurableForest", "open_durable"]
