"""Structured logs on standard error: JSON lines, or plain ones in a terminal; never rows."""

from __future__ import annotations

import json
import logging
import sys
import time
from typing import Any

LOGGER = "boundary_forest.service"


class JsonLines(logging.Formatter):
    """A record as JSON: time, level, event, and the fields of its ``data``."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        found: dict[str, Any] = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        found.update(getattr(record, "data", {}))
        if record.exc_info and record.exc_info[0] is not None:  # its text may have a row's values
            found["error"] = record.exc_info[0].__name__
        return json.dumps(found)


class PlainLines(JsonLines):
    """The same for people: time, event, and the fields by name."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        found = json.loads(super().format(record))
        stamp, level, event = (found.pop(name) for name in ("time", "level", "event"))
        # JSON escapes what a terminal might obey.
        fields = [f"{name}={json.dumps(value).strip(chr(34))}" for name, value in found.items()]
        told = event if level == "info" else f"{level}: {event}"
        return "  ".join([stamp[11:19], told, *fields])


def log_to_stderr() -> None:
    """Let the service, and uvicorn's errors, be logged: as JSON lines unless a terminal reads."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(PlainLines() if sys.stderr.isatty() else JsonLines())
    for name, level in ((LOGGER, logging.INFO), ("uvicorn.error", logging.ERROR)):
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(level)
