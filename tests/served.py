"""A service to test: in this process without a socket, or as a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import queue
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the serve extra is not installed")
pytest.importorskip("uvicorn", reason="the serve extra is not installed")
pytest.importorskip("prometheus_client", reason="the serve extra is not installed")

from boundary_forest.service.model import ServiceModel, open_model
from boundary_forest.service.recorder import Recorder
from boundary_forest.service.server import Service
from boundary_forest.service.settings import ServiceSettings
from boundary_forest.service.tokens import Tokens

SECONDS = 30  # a request may take on a busy machine


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def code(self) -> str:
        return self.json["error"]["code"]


class InProcess:
    """A service without a socket: requests go to its ASGI application."""

    def __init__(self, settings: ServiceSettings) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self.failures: queue.Queue[Exception] = queue.Queue()
        self.model: ServiceModel = open_model(settings)
        self._service = self._await(self._made(settings))

    async def _made(self, settings: ServiceSettings) -> Service:
        tokens = Tokens(settings.token_file)
        return Service(settings, self.model, tokens, self.failures.put)

    @property
    def recorder(self) -> Recorder:
        return self._service.recorder

    def _await(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(SECONDS)

    def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        content_type: str | None = None,
        **headers: str,
    ) -> Answer:
        return self.requests([(method, path, body, content_type, headers)])[0]

    def requests(self, wanted: list[Any]) -> list[Answer]:
        """Send requests at the same time."""

        async def all_of_them() -> list[Answer]:
            return await asyncio.gather(*(self._send(*one) for one in wanted))

        return self._await(all_of_them())

    async def _send(
        self, method: str, path: str, body: Any, content_type: str | None, headers: dict[str, str]
    ) -> Answer:
        path, _, query = path.partition("?")
        content = (
            body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        )
        sent = {"host": "127.0.0.1:8000", "content-length": str(len(content))}
        if body is not None:
            sent["content-type"] = content_type or "application/json"
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items()],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8000),
            "scheme": "http",
            "root_path": "",
        }
        received = [{"type": "http.request", "body": content, "more_body": False}]
        messages: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if received:
                return received.pop()
            await asyncio.sleep(SECONDS)
            return {"type": "http.disconnect"}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)

        await self._service.app(scope, receive, send)
        start = messages[0]
        content = b"".join(message.get("body", b"") for message in messages[1:])
        got = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], got, content)

    def post(self, path: str, body: Any, **more: Any) -> Answer:
        return self.request("POST", path, body, **more)

    def get(self, path: str, **headers: str) -> Answer:
        return self.request("GET", path, **headers)

    def close(self) -> None:
        self._service.stop()
        self.model.forest.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


@contextlib.contextmanager
def in_process(folder: Path, **settings: Any) -> Iterator[InProcess]:
    service = InProcess(ServiceSettings(folder, **{"seed": 0, **settings}))
    try:
        yield service
    finally:
        service.close()


class Process:
    """A service as a process of its own, on a free port of 127.0.0.1."""

    def __init__(self, folder: Path, *options: str, code: str | None = None) -> None:
        command = [sys.executable, "-m", "boundary_forest", "serve", str(folder)]
        if code is not None:
            command = [sys.executable, "-c", code, str(folder)]
        self.process = subprocess.Popen(
            [*command, "--port", "0", "--seed", "0", *options],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )
        self.lines: list[str] = []
        self._listening = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._listening.wait(60), self.lines
        assert any('"listening"' in line for line in self.lines), self.lines
        events = [json.loads(line) for line in self.lines if line.startswith("{")]
        address = next(e["address"] for e in events if e["event"] == "listening")
        self.host, self.port = "127.0.0.1", int(address.rpartition(":")[2])

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            if '"listening"' in line:
                self._listening.set()
        self._listening.set()

    def connect(self) -> HTTPConnection:
        return HTTPConnection(self.host, self.port, timeout=SECONDS)

    def socket(self) -> socket.socket:
        return socket.create_connection((self.host, self.port), timeout=SECONDS)

    def post(self, path: str, body: Any, **headers: str) -> Answer:
        return send(self.connect(), "POST", path, body, **headers)

    def get(self, path: str, **headers: str) -> Answer:
        return send(self.connect(), "GET", path, **headers)

    def stop(self, signal: int) -> int:
        self.process.send_signal(signal)
        code = self.process.wait(60)
        self._reader.join(10)
        return code

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(60)


def send(
    connection: HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> Answer:
    content = None if body is None else json.dumps(body).encode()
    sent = {"content-type": "application/json"} if body is not None else {}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, content, sent)
    response = connection.getresponse()
    return Answer(response.status, dict(response.headers), response.read())
