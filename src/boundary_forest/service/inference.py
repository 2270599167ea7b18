"""The Open Inference Protocol, version 2, over REST: what clients of model servers speak.

Health is in ``endpoints.py``. Errors have the protocol's own shape, ``{"error": "..."}``.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from fastapi import FastAPI, Request, Response
from numpy.typing import NDArray

from boundary_forest import __version__
from boundary_forest.service.errors import ServiceError, unprocessable
from boundary_forest.service.guard import whole_body
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.model import ServiceModel
from boundary_forest.service.reader import Reader, fitted_format, neighbors
from boundary_forest.service.row_values import checked_rows
from boundary_forest.service.rows import Rows, VectorFormat
from boundary_forest.service.settings import REGRESSION, RETRIEVAL, Limits
from boundary_forest.service.targets import BOOLEAN, INTEGER
from boundary_forest.service.tensors import BYTES, InferRequest, read_request, response
from boundary_forest.service.tokens import READ, Tokens

VERSION = "1"  # of the model: there is one, which changes with every row it learns
_PLATFORM = "boundary-forest"
_CONTENT_TYPES = ("", "application/json", "application/octet-stream")
_COLUMN_TYPES = {"number": "FP64", "boolean": "BOOL"}  # all others are BYTES
_CLASSES: dict[str | None, Any] = {INTEGER: np.int64, BOOLEAN: np.bool_}
_Handler = Callable[[Request], Awaitable[Response]]


class InferenceProtocol:
    """Server and model metadata, and inference.

    Parameters
    ----------
    name : str
        The model's.
    model, reader, tokens, limits
        The parts of the service.
    """

    def __init__(
        self, name: str, model: ServiceModel, reader: Reader, tokens: Tokens, limits: Limits
    ) -> None:
        self._name = name
        self._model = model
        self._reader = reader
        self._tokens = tokens
        self._limits = limits

    def add_to(self, app: FastAPI, metrics: Metrics) -> None:
        """Add the paths to an application."""
        app.router.add_route("/v2", _in_its_shape(self.server), methods=["GET"])
        for base in ("/v2/models/{name}", "/v2/models/{name}/versions/{version}"):
            app.router.add_route(base, _in_its_shape(self.metadata), methods=["GET"])
            app.router.add_route(f"{base}/ready", _in_its_shape(self.ready), methods=["GET"])
            app.router.add_route(f"{base}/infer", _in_its_shape(self.infer), methods=["POST"])
        metrics.know(f"/v2/models/{self._name}/infer")

    async def server(self, request: Request) -> Response:
        """Describe the server."""
        about = {"name": _PLATFORM, "version": __version__, "extensions": ["binary_tensor_data"]}
        return _json(about)

    async def ready(self, request: Request) -> Response:
        """Answer 200 if the model can infer."""
        self._check_name(request)
        if self._model.format is None or self._model.forest.examples_seen == 0:
            raise ServiceError(503, "unavailable", "nothing has been learned yet")
        return _json({"name": self._name, "ready": True})

    async def metadata(self, request: Request) -> Response:
        """Describe the model: its columns as inputs, or one input for rows of numbers."""
        self._check(request)
        format, task = self._model.format, self._model.task
        inputs: list[dict[str, Any]] = []
        if isinstance(format, VectorFormat):
            inputs.append({"name": "rows", "datatype": "FP32", "shape": [-1, format.width]})
        elif format is not None:
            kinds = self._model.column_kinds
            for name in format.names:
                kind = _COLUMN_TYPES.get(kinds.get(name) or "", BYTES)
                inputs.append({"name": name, "datatype": kind, "shape": [-1, 1]})
        if task == RETRIEVAL:
            outputs = [("ids", BYTES, [-1, -1]), ("distances", "FP64", [-1, -1])]
        elif task == REGRESSION:
            outputs = [("predictions", "FP64", [-1])]
        else:
            kind = {INTEGER: "INT64", BOOLEAN: "BOOL"}.get(self._model.target_kind or "", BYTES)
            outputs = [("predictions", kind, [-1]), ("probabilities", "FP64", [-1, -1])]
            outputs.append(("classes", BYTES, [-1]))
        described = [dict(zip(("name", "datatype", "shape"), one, strict=True)) for one in outputs]
        return _json(
            {
                "name": self._name,
                "versions": [VERSION],
                "platform": f"{_PLATFORM}_{task}",
                "inputs": inputs,
                "outputs": described,
            }
        )

    async def infer(self, request: Request) -> Response:
        """Predict rows, or find their neighbours."""
        self._check(request)
        headers = request.headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind not in _CONTENT_TYPES or headers.get("content-encoding", "identity") != "identity":
            raise ServiceError(415, "unsupported_type", "send JSON, or JSON and tensors as bytes")
        content = await whole_body(headers, request.receive, self._limits)
        wanted = read_request(content, headers.get("inference-header-content-length"))
        rows = self._rows(wanted.inputs)
        if not 1 <= len(rows) <= self._limits.rows:
            raise unprocessable(f"a request must have 1 to {self._limits.rows:,} rows", "inputs")
        rows = checked_rows(rows, self._limits.columns)
        outputs = await self._outputs(rows, wanted)
        about = {"model_name": self._name, "model_version": VERSION}
        body, headers_out = response(wanted, about, outputs)
        return Response(body, headers=headers_out)

    async def _outputs(self, rows: Rows, wanted: InferRequest) -> dict[str, NDArray[Any]]:
        model = self._model
        fitted_format(model)
        if model.task == RETRIEVAL:
            n = wanted.parameters.get("n_neighbors", 5)
            if type(n) is not int or n < 1:
                raise unprocessable("'n_neighbors' must be a positive integer", "parameters")
            found = await self._reader.query(neighbors, model, rows, {"n_neighbors": n})
            ids = np.array(found["ids"], dtype=object)
            return {"ids": ids, "distances": np.array(found["distances"], dtype=np.float64)}
        answers = await self._reader.predict(rows)
        values = [answer["prediction"] for answer in answers]
        if model.task == REGRESSION:
            return {"predictions": np.array(values, dtype=np.float64)}
        names = list(answers[0]["probabilities"])
        shares = [list(answer["probabilities"].values()) for answer in answers]
        return {
            "predictions": np.array(values, dtype=_CLASSES.get(model.target_kind, object)),
            "probabilities": np.array(shares, dtype=np.float64),
            "classes": np.array(names, dtype=object),
        }

    def _rows(self, inputs: dict[str, NDArray[Any]]) -> Rows:
        """Return inputs as rows: one tensor of them, or one tensor per column."""
        format = fitted_format(self._model)
        named = not isinstance(format, VectorFormat) and inputs.keys() <= {*format.names}
        if named:
            columns = {name: values.ravel().tolist() for name, values in inputs.items()}
            lengths = {len(values) for values in columns.values()}
            if len(lengths) > 1:
                raise unprocessable("columns must have the same length", "inputs")
            names = list(columns)
            return [
                {name: _value(x) for name, x in zip(names, row, strict=True)}
                for row in zip(*columns.values(), strict=True)
            ]
        if len(inputs) != 1:
            got = ", ".join(repr(name) for name in inputs)
            raise unprocessable(f"the inputs must be those of the metadata, got {got}", "inputs")
        (values,) = inputs.values()
        if values.ndim < 2 or values.dtype == object or values.size == 0:
            raise unprocessable("rows must be numbers, with one row along the first axis", "inputs")
        return values.reshape(len(values), -1)

    def _check(self, request: Request) -> None:
        self._tokens.check(request.headers.get("authorization"), READ)
        self._check_name(request)

    def _check_name(self, request: Request) -> None:
        name, version = request.path_params["name"], request.path_params.get("version", VERSION)
        if (name, version) != (self._name, VERSION):
            what = f"model {self._name!r} with version {VERSION}"
            raise ServiceError(404, "not_found", f"this service has {what} alone")


def _value(x: Any) -> Any:
    """Return a value of a column; NaN is a missing one."""
    return None if x != x else x


def _json(value: dict[str, Any]) -> Response:
    return Response(json.dumps(value), media_type="application/json")


def _in_its_shape(handler: _Handler) -> _Handler:
    """Return a handler whose errors have the protocol's shape."""

    @functools.wraps(handler)
    async def handled(request: Request) -> Response:
        try:
            return await handler(request)
        except ServiceError as error:
            message = error.message if error.where is None else f"{error.where}: {error.message}"
            content = json.dumps({"error": message})
            return Response(content, error.status, error.headers, "application/json")

    return handled
