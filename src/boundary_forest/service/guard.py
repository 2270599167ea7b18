"""What every request passes: who may call, from where, how much and how long; counts and logs."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from boundary_forest.service.errors import ServiceError
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.settings import Limits, ServiceSettings, is_loopback

_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
_ANY = ("0.0.0.0", "::")
_logger = logging.getLogger("boundary_forest.service")

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


class Guard:
    """An ASGI application around the service's own.

    Parameters
    ----------
    app : ASGI application
        What answers requests that pass.
    settings : ServiceSettings
        Addresses and limits.
    metrics : Metrics
        Where requests are counted.
    """

    def __init__(self, app: App, settings: ServiceSettings, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._log_all = settings.log_requests
        hosts = {host.lower() for host in settings.allowed_hosts}
        if is_loopback(settings.host):
            hosts.update(_LOOPBACK)
        # A wildcard has every address of the machine, so names are checked if some are allowed.
        self._any_host = settings.host in _ANY and not hosts
        host = settings.host.lower()
        self._hosts = {*hosts, f"[{host}]" if ":" in host else host}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        began = time.perf_counter()
        status, received_all, started = 500, False, False

        async def received() -> Message:
            nonlocal received_all
            message = await receive()
            received_all = received_all or not message.get("more_body", False)
            return message

        async def sent(message: Message) -> None:
            nonlocal status, started
            if message["type"] == "http.response.start":
                status, started = message["status"], True
                headers = [*message.get("headers", ()), (b"cache-control", b"no-store")]
                headers.append((b"x-content-type-options", b"nosniff"))
                if not received_all and _has_body(scope):  # nobody will read the rest of it
                    headers.append((b"connection", b"close"))
                message = {**message, "headers": headers}
            await send(message)

        try:
            self._check_origin(scope)
            await self._app(scope, received, sent)
        except ServiceError as error:
            await send_error(error, sent)
        except Exception as error:  # its traceback may have values of rows
            _logger.error("request failed", extra={"data": {"error": type(error).__name__}})
            if not started:
                failed = ServiceError(500, "internal", "the service has failed to answer")
                await send_error(failed, sent)
        finally:
            seconds = time.perf_counter() - began
            path = self._metrics.count(scope["path"], status, seconds)
            if self._log_all or status >= 400:
                _logger.info("request", extra={"data": _described(scope, path, status, seconds)})

    def _check_origin(self, scope: MutableMapping[str, Any]) -> None:
        """Refuse other names and other sites, which a browser would send for a page it shows."""
        headers = scope["headers"]
        hosts = [value for name, value in headers if name == b"host"]
        if len(hosts) != 1:
            raise ServiceError(400, "bad_request", "the request must have one Host header")
        host = hosts[0].decode("latin-1").lower()
        if not self._any_host and _without_port(host) not in self._hosts:
            raise ServiceError(
                403, "forbidden_host", "the Host header names another host: see --allowed-host"
            )
        for name, value in headers:
            if name == b"origin" and value.decode("latin-1").lower() not in (
                f"http://{host}",
                f"https://{host}",
            ):
                raise ServiceError(403, "forbidden_origin", "requests of other sites are refused")


def _without_port(host: str) -> str:
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _has_body(scope: MutableMapping[str, Any]) -> bool:
    names = {name for name, _ in scope["headers"]}
    return b"content-length" in names or b"transfer-encoding" in names


def _described(
    scope: MutableMapping[str, Any], path: str, status: int, seconds: float
) -> dict[str, Any]:
    client = scope.get("client")
    return {
        "method": scope["method"][:16],
        "path": path,
        "status": status,
        "milliseconds": round(1000 * seconds, 3),
        "client": client[0] if client else None,
    }


async def send_error(error: ServiceError, send: Send) -> None:
    """Send an error as a response."""
    body = error.body()
    headers = [(name.encode(), value.encode()) for name, value in error.headers.items()]
    headers += [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def whole_body(headers: Any, receive: Receive, limits: Limits) -> bytes:
    """Return the body of a request; ServiceError if it is too long.

    Parameters
    ----------
    headers : mapping of str
        Those of the request.
    receive : callable
        ASGI's.
    limits : Limits
        Its size.
    """
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > limits.body_bytes:
        raise _too_large(limits)
    parts, n = [], 0
    while True:
        message = await receive()
        if message["type"] != "http.request":  # its time may be over: see protocol.py
            raise ServiceError(400, "disconnected", "the client has gone")
        part = message.get("body", b"")
        n += len(part)
        if n > limits.body_bytes:
            raise _too_large(limits)
        parts.append(part)
        if not message.get("more_body", False):
            return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_large(limits: Limits) -> ServiceError:
    most = f"{limits.body_bytes:,} bytes"
    return ServiceError(413, "too_large", f"a request may have at most {most}: send fewer rows")
