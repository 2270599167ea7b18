"""What each endpoint does with a request."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from fastapi import Request, Response
from fastapi.responses import FileResponse

from boundary_forest.service import jobs
from boundary_forest.service.bodies import Body, checked_ids, read_body
from boundary_forest.service.errors import ServiceError, unavailable, unprocessable
from boundary_forest.service.guard import whole_body
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.reader import Reader, explained, listed_rows, neighbors, stored_rows
from boundary_forest.service.scoring import response_of
from boundary_forest.service.settings import RETRIEVAL, Limits
from boundary_forest.service.snapshots import Snapshots
from boundary_forest.service.stats import Stats
from boundary_forest.service.tokens import READ, WRITE, Tokens
from boundary_forest.service.writer import Writer

LONGEST_KEY = 200  # characters
MOST_LISTED = 1000  # rows
MOST_NEIGHBORS = 10_000


class Endpoints:
    """The handlers of all endpoints; ``app.py`` has the paths and who may call them.

    Parameters
    ----------
    model, reader, writer, snapshots, tokens, metrics, limits
        The parts of the service.
    """

    def __init__(
        self,
        model: ServiceModel,
        reader: Reader,
        writer: Writer,
        snapshots: Snapshots,
        tokens: Tokens,
        metrics: Metrics,
        limits: Limits,
    ) -> None:
        self._model = model
        self._reader = reader
        self._writer = writer
        self._snapshots = snapshots
        self._tokens = tokens
        self._metrics = metrics
        self._limits = limits
        self._stats = Stats(model, reader, writer, limits)
        self._targets = () if model.task == RETRIEVAL else ("targets",)

    # Rows in

    async def predict(self, request: Request) -> Response:
        """Predict rows; with ids, keep them until their labels come."""
        body, headers, _ = await self._body(request, READ, ("rows",), "ids")
        if body.ids is not None:
            self._tokens.check(headers.get("authorization"), WRITE)
        assert body.rows is not None
        answers = await self._reader.predict(body.rows)
        if body.ids is None:
            return _json(response_of(self._model.task, answers))
        kept = jobs.kept_rows(body.ids, body.rows, self._model.format, answers)
        job = jobs.Job(jobs.KEEP, body, answers=answers, kept=kept)
        return _content(await self._writer.submit(job))

    async def learn(self, request: Request) -> Response:
        """Learn rows."""
        return await self._write(request, jobs.LEARN, ("rows", *self._targets), "ids")

    async def label(self, request: Request) -> Response:
        """Learn rows that were predicted with ids."""
        return await self._write(request, jobs.LABEL, ("ids", "targets"))

    async def predict_then_learn(self, request: Request) -> Response:
        """Predict each row from before it is learned, and learn it."""
        return await self._write(request, jobs.PREDICT_THEN_LEARN, ("rows", "targets"), "ids")

    async def upsert(self, request: Request) -> Response:
        """Add rows; those with a known id replace the old row."""
        return await self._write(request, jobs.UPSERT, ("rows", "ids"))

    async def forget(self, request: Request) -> Response:
        """Forget rows, wherever they are."""
        return await self._write(request, jobs.FORGET, ("ids",))

    async def _write(
        self, request: Request, kind: str, members: tuple[str, ...], *optional: str
    ) -> Response:
        body, headers, content = await self._body(request, WRITE, members, *optional)
        key, digest = headers.get("idempotency-key"), None
        name = None
        if key is not None:
            if not 1 <= len(key) <= LONGEST_KEY:
                raise unprocessable(
                    f"a key must have 1 to {LONGEST_KEY} characters", "Idempotency-Key"
                )
            name = hashlib.blake2b(key.encode(), digest_size=16).digest()
            about = f"{kind}\0{headers.get('content-type')}\0{request.url.query}\0"
            digest = hashlib.sha256(about.encode() + content).digest()
        format, X = self._model.format, None
        if format is not None and body.rows is not None:
            X = format.checked(body.rows)  # here, because the writer's time is dearer
        return _content(await self._writer.submit(jobs.Job(kind, body, name, digest, X=X)))

    # Queries

    async def neighbors(self, request: Request) -> Response:
        """Find the nearest stored rows."""
        optional = ("n_neighbors", "allowed", "beam", "exact")
        body, _, _ = await self._body(request, READ, ("rows",), *optional)
        options = {"n_neighbors": 5, **body.options}
        options = {name: value for name, value in options.items() if value is not None}
        for name in ("n_neighbors", "beam"):
            value = options.get(name, 1)
            if type(value) is not int or not 1 <= value <= MOST_NEIGHBORS:
                raise unprocessable(f"{name!r} must be an integer from 1 to 10,000", name)
        if type(options.get("exact", True)) is not bool:
            raise unprocessable("'exact' must be true or false", "exact")
        if "allowed" in options:
            allowed = options["allowed"]
            if not isinstance(allowed, list) or not allowed:
                raise unprocessable("'allowed' must be a list of ids", "allowed")
            options["allowed"] = checked_ids(allowed, "allowed")
        return _json(await self._reader.query(neighbors, self._model, body.rows, options))

    async def explain(self, request: Request) -> Response:
        """Explain the answer to one row."""
        body, _, _ = await self._body(request, READ, ("rows",))
        assert body.rows is not None
        if len(body.rows) != 1:
            raise unprocessable("'rows' must have one row", "rows")
        return _json(await self._reader.query(explained, self._model, body.rows))

    async def rows(self, request: Request) -> Response:
        """Return stored rows by id, or page by page."""
        self._allow(request, READ)
        query = request.query_params
        for name in query:
            if name not in ("id", "after", "limit"):
                raise unprocessable("there is no such query parameter", name[:100])
        ids = query.getlist("id")
        if ids:
            if len(ids) > MOST_LISTED:
                raise unprocessable(f"at most {MOST_LISTED:,} ids can be requested", "id")
            wanted = checked_ids(list(ids), "id")
            found = await self._reader.query(stored_rows, self._model, wanted)
            return _json({"rows": found, "next": None})
        after = _integer(query.get("after", "-1"), "after", -1, 2**63 - 1)
        limit = _integer(query.get("limit", "100"), "limit", 1, MOST_LISTED)
        return _json(await self._reader.query(listed_rows, self._model, after, limit))

    async def stats(self, request: Request) -> Response:
        """Return counts, the fingerprint and the running scores."""
        self._allow(request, READ)
        return _json(await self._reader.query(self._stats.found))

    # Snapshots

    async def make_snapshot(self, request: Request) -> Response:
        """Save the model to a file that can be downloaded."""
        self._allow(request, WRITE)
        return _content(await self._writer.submit(jobs.Job(jobs.SNAPSHOT, Body())))

    async def list_snapshots(self, request: Request) -> Response:
        """List the files."""
        self._allow(request, READ)
        return _json({"snapshots": self._snapshots.listed()})

    async def download_snapshot(self, request: Request) -> Response:
        """Send a file."""
        self._allow(request, READ)
        path = self._snapshots.path(request.path_params["name"])
        return FileResponse(path, media_type="application/octet-stream", filename=path.name)

    # Operation

    async def live(self, request: Request) -> Response:
        """Answer as long as the process does."""
        return _json({"live": True})

    async def ready(self, request: Request) -> Response:
        """Answer 200 if rows can be learned, else 503."""
        if not self._writer.is_alive:
            raise unavailable("the service is restarting")
        return _json({"ready": True})

    async def metrics(self, request: Request) -> Response:
        """Return the counters for Prometheus."""
        self._allow(request, READ)
        return Response(self._metrics.text(), media_type="text/plain; version=0.0.4")

    def _allow(self, request: Request, scope: str) -> None:
        self._tokens.check(request.headers.get("authorization"), scope)

    async def _body(
        self, request: Request, scope: str, members: tuple[str, ...], *optional: str
    ) -> tuple[Body, dict[str, str], bytes]:
        """Return what a request says, checked, and its headers and bytes."""
        # Starlette's own mapping searches all headers for each name.
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in request.scope["headers"]
        }
        self._tokens.check(headers.get("authorization"), scope)
        content = await whole_body(headers, request.receive, self._limits)
        encoding = headers.get("content-encoding", "identity")
        if encoding != "identity":
            raise ServiceError(415, "unsupported_type", "the body must not be compressed")
        query = dict(request.query_params) if request.scope["query_string"] else {}
        body = read_body(content, headers.get("content-type", ""), query)
        body.check(self._limits, members, *optional)
        return body, headers, content


def _integer(text: str, name: str, least: int, most: int) -> int:
    try:
        value = int(text)
    except ValueError:
        value = least - 1
    if not least <= value <= most:
        raise unprocessable(f"{name!r} must be an integer from {least:,} to {most:,}", name)
    return value


def _content(content: bytes) -> Response:
    return Response(content, media_type="application/json")


def _plain(value: Any) -> Any:
    """Return numpy's numbers as Python's, and the rest as text."""
    return value.tolist() if hasattr(value, "tolist") else str(value)


_ENCODER = json.JSONEncoder(default=_plain)


def _json(value: Any) -> Response:
    return _content(_ENCODER.encode(value).encode())
