"""Learn from a stream of rows: what takes rows, answers, learns and keeps what was learned.

``session.py`` is the object that a shell, such as the command line, is built around. It starts from
a model (``opening.py``), sends the first rows through a warm-up (``warmup.py``), and then answers
and learns them in turn (``learning.py``, ``predicting.py``); ``events.py`` is what becomes of rows.
It keeps scores (``scores.py`` and its parts ``class_scores.py``, ``baselines.py`` and
``calibration.py``), figures to show (``progress.py``) and what a report needs (``recording.py``,
``curves.py``, ``hard_rows.py``, ``deciding.py``). ``sources/`` reads files and pipes, ``report/``
writes a page.
"""

from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.problems import StreamError
from boundary_forest.session.progress import History, Snapshot
from boundary_forest.session.session import Session
from boundary_forest.session.settings import Settings
from boundary_forest.session.sources.batches import Batch

__all__ = [
    "Answered",
    "Batch",
    "Decided",
    "Event",
    "History",
    "Refused",
    "Session",
    "Settings",
    "Snapshot",
    "StreamError",
]
