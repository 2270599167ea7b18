"""HTTP/1.1 with limits: uvicorn's protocol waits without limit for a head, and for a reader.

uvicorn limits how long an idle connection is kept after a response, and nothing else. A client that
opens a connection and sends nothing, or a byte now and then, would keep it without limit, as would
one that never reads its response; and a head could have any length. How long a body may be is
checked where it is read, in ``guard.py``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from boundary_forest.service.errors import ServiceError
from boundary_forest.service.settings import Limits

LONGEST_HEAD = 1 << 15  # bytes
_REASONS = {400: "Bad Request", 408: "Request Timeout", 503: "Service Unavailable"}


class TimedProtocol(HttpToolsProtocol):
    """A connection whose client must send short heads, bodies and accept responses, all in time.

    Attributes
    ----------
    limits : Limits
        Of all connections; a subclass of each server sets them.
    """

    limits = Limits()

    def connection_made(self, transport: Any) -> None:
        """Take a connection, or refuse one too many."""
        super().connection_made(transport)
        self._head_timer, self._body_timer, self._write_timer = _Timer(), _Timer(), _Timer()
        self._in_head = False  # whether some of a head has arrived, and not all of it
        self._head_bytes = 0  # that have arrived of it
        self._field_bytes = 0  # of its fields that have arrived whole
        self._gathered = _Gathered(transport)
        if len(self.connections) > self.limits.connections:
            self._refuse(ServiceError(503, "too_many_connections", "too many connections"))
        else:
            self._await_head()

    def data_received(self, data: bytes) -> None:
        """Take bytes; those of a head or a body that is not complete start its time."""
        if self.transport.is_closing():
            return
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if self._in_head:
            # The parser keeps a field until all of it is there, and only then gives it away.
            self._head_bytes += len(data)
            if self._head_bytes > LONGEST_HEAD:
                self.send_400_response("")
            elif not (self._is_busy() or self._head_timer.runs):
                self._await_head()
        self._await_body()

    def _parse(self, data: bytes) -> None:
        """Parse bytes; a request for another protocol is answered as if it did not ask for one.

        The parser would take the body of such a request for the other protocol. Clients that prefer
        HTTP/2, such as Java's, ask for it with every first request of a connection.
        """
        while True:
            try:
                self.parser.feed_data(data)
                return
            except httptools.HttpParserUpgrade as upgrade:
                version = self.parser.get_http_version().encode()
                head = [b"%s %s HTTP/%s" % (self.parser.get_method(), self.url, version)]
                head += [b"%s: %s" % field for field in self.headers if field[0] != b"upgrade"]
                data = b"\r\n".join([*head, b"", data[upgrade.args[0] :]])
                self.parser = httptools.HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    # Called by the parser; what they raise is answered as a bad request.

    def on_message_begin(self) -> None:
        """Begin a request."""
        super().on_message_begin()
        self._in_head, self._head_bytes, self._field_bytes = True, 0, 0

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field of the head, or one that follows a chunked body."""
        self._field_bytes += len(name) + len(value)
        if self._field_bytes > LONGEST_HEAD:
            raise ValueError("the head is too long")
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Answer the request, or let it wait for the one before."""
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("this is no proxy")
            return  # it is parsed again
        self._in_head = False
        self._head_timer.cancel()
        super().on_headers_complete()
        self.cycle.transport = self._gathered  # type: ignore[assignment]

    def on_message_complete(self) -> None:
        """End the body of a request."""
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def on_response_complete(self) -> None:
        """Send the response, and go on with the next request, which may have arrived in part."""
        self._gathered.flush()
        super().on_response_complete()
        if self._in_head and not self._head_timer.runs:
            self._await_head()
        self._await_body()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the timers."""
        for timer in (self._head_timer, self._body_timer, self._write_timer):
            timer.cancel()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that does not read, up to the limit."""
        super().pause_writing()
        self._write_timer.start(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on writing."""
        self._write_timer.cancel()
        super().resume_writing()

    def shutdown(self) -> None:
        """End the connection after what was answered."""
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

    def _await_body(self) -> None:
        """Give the body of the request that is worked on its time, unless it is there."""
        cycle = self.cycle
        if cycle is None or self.pipeline or cycle.response_complete or not cycle.more_body:
            self._body_timer.cancel()
        elif not self._body_timer.runs:
            self._body_timer.start(self.limits.body_seconds, self._late_body)

    def _late_body(self) -> None:
        self._refuse(ServiceError(408, "timeout", "the body of the request took too long"))

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
    """A transport that sends head and body of a response at once, if the body comes soon.

    uvicorn writes them one by one. Each would be a system call, and wake the client.
    """

    def __init__(self, transport: asyncio.Transport) -> None:
        self._transport = transport
        self._parts: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Send bytes, at the latest in the next turn of the event loop."""
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
