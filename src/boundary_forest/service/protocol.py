"""HTTP/1.1 with time limits: uvicorn's protocol waits without limit for a head, and for a reader.

uvicorn limits how long an idle connection is kept after a response, and nothing else. A client that
opens a connection and sends nothing, or a byte now and then, would keep it without limit, as would
one that never reads its response. Bodies have a limit of their own, in ``guard.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from boundary_forest.service.errors import ServiceError
from boundary_forest.service.settings import Limits

_REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class TimedProtocol(H11Protocol):
    """A connection whose client must send heads and accept responses in time.

    Attributes
    ----------
    limits : Limits
        Of all connections; a subclass of each server sets them.
    """

    limits = Limits()

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or refuse one too many."""
        super().connection_made(transport)
        self._head_timer, self._write_timer = _Timer(), _Timer()
        self._gathered: _Gathered | None = None
        if len(self.connections) > self.limits.connections:
            self._refuse(ServiceError(503, "too_many_connections", "too many connections"))
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head that is not complete start its time."""
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._is_busy():
            self._head_timer.cancel()
        elif not self._head_timer.runs:
            self._await_head()

    def on_response_complete(self) -> None:
        """Go on with the next request, which may have arrived, whole or in part."""
        super().on_response_complete()
        if not self._is_busy() and self.conn.trailing_data[0] and not self._head_timer.runs:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        self._head_timer.cancel()
        self._write_timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read, up to the limit."""
        super().pause_writing()
        self._write_timer.start(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._write_timer.cancel()
        super().resume_writing()

    def handle_events(self) -> None:
        """Handle what was received; responses go out in one piece each."""
        super().handle_events()
        cycle = self.cycle
        if cycle is not None and cycle.transport is self.transport:
            self._gathered = _Gathered(self.transport)
            cycle.transport = self._gathered  # type: ignore[assignment]

    def shutdown(self) -> None:
        """End the connection after what was answered."""
        if self._gathered is not None:
            self._gathered.flush()
        super().shutdown()

    def send_400_response(self, msg: str) -> None:
        """Answer what is not HTTP in the shape of all errors."""
        self._refuse(ServiceError(400, "bad_request", "the request is not valid HTTP"))

    def _is_busy(self) -> bool:
        """Whether a request is being read, worked on or answered."""
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_timer.start(self.limits.head_seconds, self._late)

    def _late(self) -> None:
        if not self._is_busy():
            self._refuse(ServiceError(408, "timeout", "the head of a request took too long"))

    def _refuse(self, error: ServiceError) -> None:
        if self.transport.is_closing():
            return
        body = error.body()
        head = (
            f"HTTP/1.1 {error.status} {_REASONS[error.status]}\r\n"
            f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
            "connection: close\r\n\r\n"
        )
        self.transport.write(head.encode() + body)
        self.transport.close()


class _Gathered:
    """A transport that sends what is written in one turn of the event loop at once.

    uvicorn writes head, body and end one by one. Each would be a system call, and at each the
    event loop would have to wait for the other threads of Python to take their turns.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send bytes, soon."""
        if not self._parts:
            asyncio.get_running_loop().call_soon(self.flush)
        self._parts.append(data)

    def close(self) -> None:
        """Send what is left, and close."""
        self.flush()
        self._transport.close()

    def is_closing(self) -> bool:
        """Whether nothing more can be sent."""
        return self._transport.is_closing()

    def flush(self) -> None:
        """Send now."""
        parts, self._parts = self._parts, []
        if parts and not self._transport.is_closing():
            self._transport.write(b"".join(parts))


class _Timer:
    """A call that comes after some seconds, unless it is cancelled."""

    def __init__(self) -> None:
        self._handle: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> bool:
        """Whether the call is still to come."""
        return self._handle is not None

    def start(self, seconds: float, call: Callable[[], object]) -> None:
        """Call after some seconds, in place of any call that is to come."""
        self.cancel()
        self._handle = asyncio.get_running_loop().call_later(seconds, self._fire, call)

    def cancel(self) -> None:
        """Do not call."""
        if self._handle is not None:
            self._handle.cancel()
            self._handle = None

    def _fire(self, call: Callable[[], object]) -> None:
        self._handle = None
        call()
