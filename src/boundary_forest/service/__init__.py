"""A service that learns while it answers, over HTTP: ``boundary-forest serve``.

``server.py`` is the process: uvicorn with time limits (``protocol.py``), what every request passes
(``guard.py``, ``tokens.py``), the paths (``app.py``, ``openapi.py``) and what they do
(``endpoints.py``). ``bodies.py``, ``rows.py`` and ``targets.py`` read requests. Queries go through
``reader.py``. Whatever writes is a job (``jobs.py``) for the thread of ``writer.py``, which does
them in groups (``learning.py``). ``model.py`` is the durable forest with its ``tables.py`` and
``id_log.py``; ``scoring.py``, ``recorder.py``, ``stats.py``, ``metrics.py`` and ``logs.py`` show
how it does, and ``snapshots.py`` are files for download. ``inference.py`` and ``tensors.py`` are
the Open Inference Protocol, and ``page/`` is the live page.
"""

from boundary_forest.service.server import serve
from boundary_forest.service.settings import TASKS, Limits, ServiceSettings

__all__ = ["TASKS", "Limits", "ServiceSettings", "serve"]
