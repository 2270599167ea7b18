"""The paths of the page: its files, login and logout, events, and the inspector.

The files have no data and are open to anyone who reaches the service; all else needs a session or
a token. The policy allows no script, style or request but those of the service itself.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import StreamingResponse

from boundary_forest.report.charts import Chart
from boundary_forest.report.page import environment
from boundary_forest.report.page import template as report_template
from boundary_forest.service.bodies import JSON, read_body, read_object
from boundary_forest.service.errors import ServiceError, unprocessable
from boundary_forest.service.guard import whole_body
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.page.events import Events
from boundary_forest.service.page.inspector import inspected, pickable
from boundary_forest.service.page.sessions import Sessions
from boundary_forest.service.page.view import View
from boundary_forest.service.reader import Reader
from boundary_forest.service.recorder import Recorder
from boundary_forest.service.settings import Limits
from boundary_forest.service.tokens import Tokens

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "content-security-policy": POLICY,
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
_FILES = {"page.css": "text/css", "charts.js": "text/javascript"}  # of the report
_OWN_FILES = {
    "live.css": "text/css",
    "live.js": "text/javascript",
    "inspector.js": "text/javascript",
}
_MOST_LOGIN_BYTES = 10_000
_Handler = Callable[[Request], Awaitable[Response]]


class LivePage:
    """The page of a service.

    Parameters
    ----------
    folder : Path
        Of the model; its name is the page's title.
    model, reader, recorder, tokens, limits
        The parts of the service.

    Attributes
    ----------
    events : Events
        What open pages are sent.
    """

    def __init__(
        self,
        folder: Path,
        model: ServiceModel,
        reader: Reader,
        recorder: Recorder,
        tokens: Tokens,
        limits: Limits,
    ) -> None:
        self._model = model
        self._reader = reader
        self._limits = limits
        self._sessions = Sessions(tokens, folder)
        self.events = Events(View(model, recorder), reader)
        html = environment(_template).get_template("live.html")
        title = folder.resolve().name or "model"
        empty = Chart("", "-", "", "", "", "", "", "", [], [], [], [])
        self._html = html.render(title=title, task=model.task, empty_chart=empty).encode()
        self._files = {
            name: (_template(name).encode(), kind)
            for name, kind in {**_FILES, **_OWN_FILES}.items()
        }

    def add_to(self, app: FastAPI, metrics: Metrics) -> None:
        """Add the paths to an application."""
        routes: tuple[tuple[str, str, _Handler], ...] = (
            ("/", "GET", self.page),
            ("/page/session", "GET", self.session),
            ("/page/login", "POST", self.login),
            ("/page/logout", "POST", self.logout),
            ("/page/events", "GET", self.stream),
            ("/page/rows", "GET", self.rows),
            ("/page/explain", "POST", self.explain),
        )
        for path, method, handler in routes:
            app.router.add_route(path, handler, methods=[method])
            metrics.know(path)
        for name in self._files:
            handler = functools.partial(self.file, name=name)
            app.router.add_route(f"/page/{name}", handler, methods=["GET"])

    async def page(self, request: Request) -> Response:
        """Return the page, which has no data."""
        return Response(self._html, headers=_HEADERS, media_type="text/html")

    async def file(self, request: Request, name: str) -> Response:
        """Return a style sheet or a script."""
        content, kind = self._files[name]
        return Response(content, headers=_HEADERS, media_type=kind)

    async def session(self, request: Request) -> Response:
        """Return whether one must log in, and whether one has."""
        required = self._sessions.are_required
        logged_in = required and self._sessions.is_valid(request.headers.get("cookie"))
        return _json({"required": required, "logged_in": logged_in})

    async def login(self, request: Request) -> Response:
        """Begin a session by a token."""
        members = read_object(await self._body(request, _MOST_LOGIN_BYTES))
        token = members.get("token")
        if not isinstance(token, str):
            raise unprocessable("the request needs a 'token'", "token")
        over_tls = request.headers.get("origin", "").lower().startswith("https://")
        cookie = self._sessions.begin(token, over_tls=over_tls)
        return _json({"logged_in": True}, {"set-cookie": cookie})

    async def logout(self, request: Request) -> Response:
        """End a session."""
        cookie = self._sessions.end(request.headers.get("cookie"))
        return _json({"logged_in": False}, {"set-cookie": cookie})

    async def stream(self, request: Request) -> Response:
        """Send events for as long as the page is open."""
        self._check(request)
        self.events.check_room()
        headers = {"x-accel-buffering": "no"}  # a proxy must not hold events back
        stream = self.events.stream(functools.partial(self._may_read, request))
        return StreamingResponse(stream, headers=headers, media_type="text/event-stream")

    async def rows(self, request: Request) -> Response:
        """Return rows to pick from."""
        self._check(request)
        return _json({"rows": await self._reader.query(pickable, self._model)})

    async def explain(self, request: Request) -> Response:
        """Explain the answer to one row."""
        self._check(request)
        body = read_body(await self._body(request, self._limits.body_bytes), JSON, {})
        body.check(self._limits, ("rows",))
        assert body.rows is not None
        if len(body.rows) != 1:
            raise unprocessable("'rows' must have one row", "rows")
        return _json(await self._reader.query(inspected, self._model, body.rows))

    async def _body(self, request: Request, most_bytes: int) -> bytes:
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != JSON:
            raise ServiceError(415, "unsupported_type", f"the content type must be {JSON}")
        content = await whole_body(request.headers, request.receive, self._limits)
        if len(content) > most_bytes:
            raise ServiceError(413, "too_large", f"the body may have {most_bytes:,} bytes")
        return content

    def _check(self, request: Request) -> None:
        headers = request.headers
        self._sessions.check(headers.get("authorization"), headers.get("cookie"))

    def _may_read(self, request: Request) -> bool:
        try:
            self._check(request)
        except ServiceError:
            return False
        return True


def _template(name: str) -> str:
    """Return a file of the page, or one of the report."""
    own = files(__package__).joinpath("templates", name)
    return own.read_text(encoding="utf-8") if own.is_file() else report_template(name)


def _json(value: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(json.dumps(value), headers=_HEADERS | (headers or {}), media_type=JSON)
