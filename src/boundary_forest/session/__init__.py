"""Learn from a stream of rows: what takes rows, predicts, learns and keeps what was learned.

``session.py`` is the object that a shell, such as the command line, is built around. It starts from
a model (``starting_point.py``), sends the first rows through a warm-up (``warmup.py``), and then
predicts and learns them in turn (``stream_learner.py``); ``events.py`` is what becomes of rows. A
durable session keeps a ``resume_state.py``, and ``resume_check.py`` compares a source with it.
It keeps scores (``scores.py`` and its parts, ``class_measures.py``), figures to show
(``history.py``) and what a report needs (``history_recorder.py``, ``quality_curve.py``,
``hard_rows.py``, ``vote_breakdown.py``). Rows come from ``boundary_forest.sources``, and
``boundary_forest.report`` writes a page.
"""

from boundary_forest.session.events import Answered, Decided, Event, Refused
from boundary_forest.session.history import History, SessionSnapshot
from boundary_forest.session.session import Session
from boundary_forest.session.settings import SessionSettings
from boundary_forest.sources.row_batch import RowBatch, StreamError

__all__ = [
    "Answered",
    "Decided",
    "Event",
    "History",
    "Refused",
    "RowBatch",
    "Session",
    "SessionSettings",
    "SessionSnapshot",
    "StreamError",
]
