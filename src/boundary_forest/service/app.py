"""The FastAPI application: which paths a task has, and how errors leave."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any

from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException

from boundary_forest import __version__
from boundary_forest.service.endpoints import Endpoints
from boundary_forest.service.errors import ServiceError
from boundary_forest.service.guard import Receive, Send
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.openapi import ERROR, KEY_HEADER, ROWS_PARAMETERS, Shapes
from boundary_forest.service.settings import CLASSIFICATION, REGRESSION, RETRIEVAL, TASKS

Handler = Callable[[Request], Awaitable[Response]]
_PREDICTING = (CLASSIFICATION, REGRESSION)
_ANY = (400, 401, 403)
_BODY = (*_ANY, 408, 413, 415, 422, 429, 503)
_CODES = {404: "not_found", 405: "method_not_allowed"}


@dataclass(frozen=True)
class _Route:
    """A path, its method, and what the document says of it."""

    path: str
    method: str
    name: str
    handler: str
    errors: tuple[int, ...]
    tasks: tuple[str, ...] = TASKS
    with_key: bool = False


_ROUTES = (
    _Route("/v1/predict", "POST", "predict", "predict", (*_BODY, 409), _PREDICTING),
    _Route("/v1/learn", "POST", "learn", "learn", (*_BODY, 409, 410), with_key=True),
    _Route(
        "/v1/label", "POST", "label", "label", (*_BODY, 404, 409, 410), _PREDICTING, with_key=True
    ),
    _Route(
        "/v1/predict-then-learn",
        "POST",
        "predict-then-learn",
        "predict_then_learn",
        (*_BODY, 409, 410),
        _PREDICTING,
        with_key=True,
    ),
    _Route("/v1/neighbors", "POST", "neighbors", "neighbors", (*_BODY, 409), (RETRIEVAL,)),
    _Route(
        "/v1/upsert", "POST", "upsert", "upsert", (*_BODY, 409, 410), (RETRIEVAL,), with_key=True
    ),
    _Route("/v1/rows", "GET", "rows", "rows", (*_ANY, 404, 409, 422), (RETRIEVAL,)),
    _Route("/v1/explain", "POST", "explain", "explain", (*_BODY, 409)),
    _Route("/v1/forget", "POST", "forget", "forget", (*_BODY, 404, 409, 410), with_key=True),
    _Route("/v1/stats", "GET", "stats", "stats", _ANY),
    _Route("/v1/snapshot", "POST", "snapshot", "make_snapshot", (*_ANY, 409, 429, 503)),
    _Route("/v1/snapshot", "GET", "snapshots", "list_snapshots", _ANY),
    _Route("/v1/snapshot/{name}", "GET", "download", "download_snapshot", (*_ANY, 404)),
    _Route("/v2/health/live", "GET", "live", "live", (400, 403)),
    _Route("/v2/health/ready", "GET", "ready", "ready", (400, 403, 503)),
    _Route("/metrics", "GET", "metrics", "metrics", _ANY),
)


class ShortCut:
    """An ASGI application that calls handlers of known paths, and leaves the rest to another.

    The layers of FastAPI's application take as long as a small request itself; its router answers
    what has no handler here, such as other methods and unknown paths.

    Parameters
    ----------
    app : FastAPI
        The other one.
    handlers : dict of (str, str) to callable
        By method and path.
    """

    def __init__(self, app: FastAPI, handlers: dict[tuple[str, str], Handler]) -> None:
        self.app = app
        self._handlers = handlers

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request."""
        handler = self._handlers.get((scope["method"], scope["path"]))
        if handler is None:
            await self.app(scope, receive, send)
        else:
            response = await handler(Request(scope, receive))
            await response(scope, receive, send)


def make_app(task: str, endpoints: Endpoints, metrics: Metrics) -> ShortCut:
    """Return the application of a task; the endpoints of other tasks are not there.

    Handlers read requests themselves, because bodies may be npy or Arrow. So they are plain routes,
    and the document is made here.

    Parameters
    ----------
    task : str
        One of TASKS.
    endpoints : Endpoints
        What answers.
    metrics : Metrics
        Where requests are counted by path.
    """
    app = FastAPI(
        title="Boundary Forest",
        version=__version__,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
    )
    shapes = Shapes(task)
    paths: dict[str, dict[str, Any]] = {}
    handlers: dict[tuple[str, str], Handler] = {}
    for route in _ROUTES:
        if task in route.tasks:
            handler = getattr(endpoints, route.handler)
            app.router.add_route(route.path, handler, methods=[route.method])
            metrics.know(route.path)
            handlers[route.method, route.path] = handler
            operation = _operation(route, handler.__doc__, shapes)
            paths.setdefault(route.path, {})[route.method.lower()] = operation
    document = {
        "openapi": "3.1.0",
        "info": {"title": app.title, "version": app.version},
        "paths": paths,
        "components": {
            "schemas": {"Error": ERROR},
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
        },
    }
    app.openapi = lambda: document  # type: ignore[method-assign]
    app.add_exception_handler(ServiceError, _refused)
    app.add_exception_handler(HTTPException, _refused_by_router)
    return ShortCut(app, handlers)


def _operation(route: _Route, summary: str, shapes: Shapes) -> dict[str, Any]:
    """Return what the document says of a route."""
    found: dict[str, Any] = {
        "summary": summary,
        "operationId": f"{route.method.lower()}_{route.handler}",
        "responses": shapes.responded(route.name, route.errors),
    }
    if route.name in shapes.requests:
        found["requestBody"] = shapes.request(route.name)
    if route.with_key:
        found["parameters"] = [KEY_HEADER]
    if route.name == "rows":
        found["parameters"] = ROWS_PARAMETERS
    if route.name == "download":
        name = {"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}
        found["parameters"] = [name]
    if 401 in route.errors:
        found["security"] = [{"bearer": []}, {}]
    return found


def _response(error: ServiceError) -> Response:
    return Response(error.body(), error.status, error.headers, "application/json")


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, ServiceError)
    return _response(error)


async def _refused_by_router(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code = _CODES.get(error.status_code, "refused")
    message = "there is no such endpoint" if error.status_code == 404 else str(error.detail)
    headers = dict(error.headers or {})
    return _response(ServiceError(error.status_code, code, message, headers=headers))
