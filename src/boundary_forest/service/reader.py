"""Queries: those that arrive while one is answered are answered together, off the event loop."""

from __future__ import annotations

import asyncio
import itertools
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from boundary_forest.service.errors import ServiceError, too_many, unprocessable
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.rows import Checked, RowFormat, Rows, joined
from boundary_forest.service.scoring import answers_of, no_answer
from boundary_forest.service.settings import CLASSIFICATION, Limits

MOST_ROWS = 1024  # that are answered together; a longer request is answered alone
T = TypeVar("T")
_Request = tuple[Checked, "asyncio.Future[list[dict[str, Any]]]"]


class Reader:
    """Answers queries on a thread of its own; the engine needs no lock for that.

    Parameters
    ----------
    model : ServiceModel
        The model.
    limits : Limits
        Among them the length of the queue.
    """

    def __init__(self, model: ServiceModel, limits: Limits) -> None:
        self._model = model
        self._limits = limits
        self._predicting = ThreadPoolExecutor(1, thread_name_prefix="predict")
        self._querying = ThreadPoolExecutor(1, thread_name_prefix="query")
        self._requests: deque[_Request] = deque()
        self._running = False

    def __len__(self) -> int:
        return len(self._requests)

    def predict(self, rows: Rows) -> asyncio.Future[list[dict[str, Any]]]:
        """Return, as a future, the answer to each row."""
        model, format = self._model, self._model.format
        loop = asyncio.get_running_loop()
        future: asyncio.Future[list[dict[str, Any]]] = loop.create_future()
        if format is None or model.forest.examples_seen == 0:
            future.set_result([no_answer(model.task)] * len(rows))
            return future
        if len(self._requests) >= self._limits.queue:
            raise too_many(f"{len(self._requests):,} queries wait: retry later")
        # Rows are converted on the event loop, and so are answers: threads of Python take turns,
        # and only the engine's work is worth one.
        self._requests.append((format.checked(rows), future))
        if not self._running:
            self._running = True
            loop.call_soon(self._next, loop)  # after others that have arrived by now
        return future

    async def query(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return what a function of the model returns, called off the event loop."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._querying, function, *arguments)

    def close(self) -> None:
        """End the threads."""
        self._predicting.shutdown()
        self._querying.shutdown()

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        requests: list[_Request] = []
        n = 0
        while self._requests and (not requests or n + len(self._requests[0][0]) <= MOST_ROWS):
            requests.append(self._requests.popleft())
            n += len(requests[-1][0])
        if not requests:
            self._running = False
            return
        answering = loop.run_in_executor(self._predicting, self._answer, requests)
        answering.add_done_callback(lambda done: self._settle(loop, requests, done))

    def _settle(self, loop: asyncio.AbstractEventLoop, requests: list[_Request], done: Any) -> None:
        error = done.exception()
        for some, found in [(requests, error)] if error is not None else done.result():
            refused = isinstance(found, BaseException)
            answers = iter([] if refused else answers_of(self._model.task, *found))
            for X, future in some:
                its_own = list(itertools.islice(answers, len(X)))
                if future.done():  # the client has gone
                    continue
                if refused:
                    future.set_exception(found)
                else:
                    future.set_result(its_own)
        self._next(loop)

    def _answer(self, requests: list[_Request]) -> list[tuple[list[_Request], Any]]:
        """Return, for requests that were answered together, what the engine answers or refuses."""
        try:
            return [(requests, self._answered(requests))]
        except (TypeError, ValueError) as error:  # one of them does not fit
            if len(requests) == 1:
                return [(requests, _unfit(error))]
            return [one for request in requests for one in self._answer([request])]

    def _answered(self, requests: list[_Request]) -> tuple[Any, ...]:
        """Return the arguments of ``answers_of``: what the engine answers to all rows."""
        forest, X = self._model.forest.model, joined([X for X, _ in requests])
        if self._model.task != CLASSIFICATION:
            return (forest.predict(X),)
        while True:  # until no class came or went meanwhile
            classes = forest.classes_
            shares = forest.predict_proba(X)
            if shares.shape[1] == len(classes) and np.array_equal(classes, forest.classes_):
                return None, shares, classes


def _unfit(error: Exception) -> ServiceError:
    """Return the error of rows that the forest refuses."""
    return unprocessable(" ".join(str(error).split()), "rows")


def fitted_format(model: ServiceModel) -> RowFormat:
    """Return what rows look like; ServiceError if nothing was learned."""
    if model.format is None or model.forest.examples_seen == 0:
        raise ServiceError(409, "nothing_learned", "nothing has been learned yet")
    return model.format


def neighbors(model: ServiceModel, rows: Rows, options: dict[str, Any]) -> dict[str, Any]:
    """Return the nearest stored rows to each row: their ids and distances."""
    X = joined([fitted_format(model).checked(rows)])
    try:
        distances, ids = model.forest.kneighbors(X, **options)
    except (TypeError, ValueError) as error:
        raise _unfit(error) from error
    return {"ids": [[str(one) for one in row] for row in ids], "distances": distances.tolist()}


def explained(model: ServiceModel, rows: Rows) -> dict[str, Any]:
    """Return what the answer to one row was made of."""
    X = joined([fitted_format(model).checked(rows)])
    try:
        explanation: dict[str, Any] = model.forest.explain(X[0]).to_dict()
    except (TypeError, ValueError) as error:
        raise _unfit(error) from error
    return explanation


def stored_rows(model: ServiceModel, ids: list[str]) -> list[dict[str, Any]]:
    """Return stored rows by their ids; ServiceError if some are not known."""
    format = fitted_format(model)
    for i, id in enumerate(ids):
        if not model.is_stored(id):
            raise ServiceError(404, "unknown_id", f"id {id!r} is not stored", f"id[{i}]")
    try:
        positions = model.forest.get(ids)
    except KeyError as error:  # forgotten a moment ago
        raise ServiceError(404, "unknown_id", "an id is not stored any more", "id") from error
    return [{"id": id, "row": format.row(x)} for id, x in zip(ids, positions, strict=True)]


def listed_rows(model: ServiceModel, after: int, limit: int) -> dict[str, Any]:
    """Return stored rows in order of arrival, from the one that follows an arrival number on."""
    fitted = model.forest.model.fitted
    if fitted is None or model.format is None:
        return {"rows": [], "next": None}
    snapshot = fitted.engine.snapshot()
    arrivals = snapshot.arrivals(0, snapshot.size).astype(np.int64)
    begin = int(np.searchsorted(arrivals, after, side="right"))
    end = min(begin + limit, snapshot.size)
    ids = snapshot.ids(begin, end)
    names = arrivals[begin:end].tolist() if ids is None else list(ids)
    positions = snapshot.positions(begin, end)
    rows = [
        {"id": str(name), "row": model.format.row(x)}
        for name, x in zip(names, positions, strict=True)
    ]
    return {"rows": rows, "next": int(arrivals[end - 1]) if end < snapshot.size else None}
