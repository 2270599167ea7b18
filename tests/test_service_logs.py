"""What the service logs: JSON lines, or plain ones for people."""

from __future__ import annotations

import json
import logging

import pytest

pytest.importorskip("fastapi", reason="the serve extra is not installed")

from boundary_forest.service.logs import JsonLines, PlainLines


def _record(level, event, **data):
    record = logging.LogRecord("service", level, "file.py", 1, event, None, None)
    record.data = data
    return record


def test_json_lines():
    line = JsonLines().format(_record(logging.INFO, "listening", address="http://127.0.0.1:8000"))
    found = json.loads(line)
    assert found.pop("time").endswith("Z")
    assert found == {"level": "info", "event": "listening", "address": "http://127.0.0.1:8000"}


def test_plain_lines_escape_what_a_terminal_might_obey():
    line = PlainLines().format(_record(logging.INFO, "request", path="/\x1b[2J", status=404))
    assert line.split("  ")[1:] == ["request", "path=/\\u001b[2J", "status=404"]
    line = PlainLines().format(_record(logging.ERROR, "snapshot failed"))
    assert line.split("  ")[1:] == ["error: snapshot failed"]
