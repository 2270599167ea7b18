"""The OpenAPI document: the shapes of requests and responses, with examples."""

from __future__ import annotations

from typing import Any

from boundary_forest.service.bodies import ARROW, JSON, LONGEST_ID, NPY
from boundary_forest.service.settings import REGRESSION, RETRIEVAL

Schema = dict[str, Any]

_NUMBER: Schema = {"type": "number", "minimum": -1e30, "maximum": 1e30}
_ID: Schema = {
    "anyOf": [
        {"type": "string", "minLength": 1, "maxLength": LONGEST_ID, "pattern": r"^[\x20-\x7e]+$"},
        {"type": "integer"},
    ]
}
_VALUE: Schema = {
    "anyOf": [_NUMBER, {"type": "string"}, {"type": "boolean"}, {"type": "null"}],
}
_ROW: Schema = {
    "anyOf": [
        {"type": "array", "items": _NUMBER, "minItems": 1},
        {"type": "object", "additionalProperties": _VALUE, "minProperties": 1},
    ],
    "description": "A list of numbers, or values by the names of their columns.",
}
_CLASS: Schema = {"anyOf": [{"type": "string"}, {"type": "integer"}, {"type": "boolean"}]}


def _many(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def _object(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {
        "type": "object",
        "required": list(required),
        "properties": properties,
        "additionalProperties": False,
    }


def _open(required: tuple[str, ...], **properties: Schema) -> Schema:
    return {"type": "object", "required": list(required), "properties": properties}


ERROR: Schema = _object(
    ("error",),
    error=_object(
        ("code", "message"),
        code={"type": "string"},
        message={"type": "string"},
        where={"type": "string", "description": "The part of the request that is wrong."},
    ),
)
ERRORS = {
    400: "The body is not what its content type says.",
    401: "A token is required.",
    403: "The token may not do this, or Host or Origin is of another site.",
    404: "An id, a snapshot or an endpoint is unknown.",
    405: "The method is not allowed.",
    408: "The request took too long to arrive.",
    409: "An id is repeated, or nothing has been learned yet.",
    410: "An id has expired, or the response to a key was erased.",
    413: "The body is too large.",
    415: "The content type is not supported.",
    422: "The rows, targets, ids or options do not fit.",
    429: "The queue is full: retry later.",
    503: "The service is shutting down, or the disk is full.",
}
_INTEGER: Schema = {"type": "integer", "minimum": 0}
_ROWS_EXAMPLE = [{"a": 1.5, "b": "x"}, {"a": 0.5, "b": "y"}]


class Shapes:
    """The shapes of one task.

    Parameters
    ----------
    task : str
        One of TASKS.
    """

    def __init__(self, task: str) -> None:
        self._target = _NUMBER if task == REGRESSION else _CLASS
        prediction: Schema = {"anyOf": [self._target, {"type": "null"}]}
        answers: dict[str, Schema] = {"predictions": _many(prediction)}
        values: Any = [2.5] if task == REGRESSION else ["yes"]
        self._targets_example = [2.5, 1.0] if task == REGRESSION else ["yes", "no"]
        example: dict[str, Any] = {"predictions": values}
        if task != REGRESSION:
            shares = {"type": "object", "additionalProperties": {"type": "number"}}
            answers["probabilities"] = _many(shares)
            example["probabilities"] = [{"yes": 0.9, "no": 0.1}]
        learned: dict[str, Schema] = {"learned": _INTEGER, "seen": _INTEGER}
        ids = {"ids": _many({"type": "string"})}
        rows = {"rows": _many(_ROW)}
        targets = {} if task == RETRIEVAL else {"targets": _many(self._target)}
        targets_example = {} if task == RETRIEVAL else {"targets": self._targets_example}
        given = {"ids": _many(_ID)}
        self.requests: dict[str, tuple[Schema, Any]] = {
            "predict": (
                _object(("rows",), **rows, **given),
                {"rows": _ROWS_EXAMPLE[:1], "ids": ["order-17"]},
            ),
            "learn": (
                _object(("rows", *targets), **rows, **targets, **given),
                {"rows": _ROWS_EXAMPLE, **targets_example},
            ),
            "label": (
                _object(("ids", "targets"), **given, targets=_many(self._target)),
                {"ids": ["order-17"], "targets": self._targets_example[:1]},
            ),
            "neighbors": (
                _object(
                    ("rows",),
                    **rows,
                    n_neighbors={"type": "integer", "minimum": 1, "maximum": 10_000, "default": 5},
                    allowed=_many(_ID),
                    beam={"type": "integer", "minimum": 1, "maximum": 10_000},
                    exact={"type": "boolean"},
                ),
                {"rows": [[1.5, 2.0]], "n_neighbors": 2},
            ),
            "upsert": (
                _object(("rows", "ids"), **rows, **given),
                {"rows": [[1.5, 2.0]], "ids": ["a"]},
            ),
            "explain": (
                _object(("rows",), rows={**_many(_ROW), "maxItems": 1}),
                {"rows": _ROWS_EXAMPLE[:1]},
            ),
            "forget": (_object(("ids",), **given), {"ids": ["order-17"]}),
        }
        self.requests["predict-then-learn"] = self.requests["learn"]
        self.responses: dict[str, tuple[Schema, Any]] = {
            "predict": (_object(tuple(answers), **answers), example),
            "learn": (
                _object(("learned", "seen", "ids"), **learned, **ids),
                {"learned": 2, "seen": 2, "ids": ["k3v1x0c9d8b7a6q5", "z9y8x7w6v5u4t3s2"]},
            ),
            "label": (_object(tuple(learned), **learned), {"learned": 1, "seen": 3}),
            "predict-then-learn": (
                _object((*answers, *learned, "ids"), **answers, **learned, **ids),
                {**example, "learned": 1, "seen": 4, "ids": ["k3v1x0c9d8b7a6q5"]},
            ),
            "neighbors": (
                _object(
                    ("ids", "distances"),
                    ids=_many({"type": "array", "items": {"type": "string"}}),
                    distances=_many({"type": "array", "items": {"type": "number"}}),
                ),
                {"ids": [["a", "b"]], "distances": [[0.0, 1.5]]},
            ),
            "upsert": (
                _object(("upserted", "seen"), upserted=_INTEGER, seen=_INTEGER),
                {"upserted": 1, "seen": 1},
            ),
            "forget": (
                _object(("forgotten", "seen"), forgotten=_INTEGER, seen=_INTEGER),
                {"forgotten": 1, "seen": 4},
            ),
            "explain": (_open(("answer", "examples", "trees")), None),
            "rows": (
                _object(
                    ("rows", "next"),
                    rows={"type": "array", "items": _open(("id", "row"), id={"type": "string"})},
                    next={"anyOf": [_INTEGER, {"type": "null"}]},
                ),
                {"rows": [{"id": "a", "row": [1.5, 2.0]}], "next": None},
            ),
            "stats": (
                _open(
                    ("task", "examples_seen", "fingerprint", "waiting"),
                    task={"type": "string"},
                    examples_seen=_INTEGER,
                    fingerprint={"anyOf": [{"type": "string"}, {"type": "null"}]},
                ),
                None,
            ),
            "snapshot": (_SNAPSHOT, _SNAPSHOT_EXAMPLE),
            "snapshots": (
                _object(("snapshots",), snapshots={"type": "array", "items": _SNAPSHOT}),
                {"snapshots": [_SNAPSHOT_EXAMPLE]},
            ),
            "live": (_object(("live",), live={"type": "boolean"}), {"live": True}),
            "ready": (_object(("ready",), ready={"type": "boolean"}), {"ready": True}),
        }

    def request(self, name: str) -> Schema:
        """Return the request body of an endpoint."""
        schema, example = self.requests[name]
        binary = {"type": "string", "format": "binary"}
        content: dict[str, Any] = {JSON: {"schema": schema, "example": example}}
        if "rows" in schema["properties"]:
            arrays = "rows, targets and ids, written one after the other by numpy.save"
            content[NPY] = {"schema": {**binary, "description": arrays}}
            table = "a table; the query parameters target and id name columns of it"
            content[ARROW] = {"schema": {**binary, "description": table}}
        return {"required": True, "content": content}

    def responded(self, name: str, errors: tuple[int, ...]) -> dict[str, dict[str, Any]]:
        """Return the responses of an endpoint by status."""
        found: dict[str, dict[str, Any]] = {"200": {"description": "Done."}}
        if name in self.responses:
            schema, example = self.responses[name]
            shown = (
                {"schema": schema} if example is None else {"schema": schema, "example": example}
            )
            found["200"]["content"] = {JSON: shown}
        else:
            kind = "text/plain" if name == "metrics" else "application/octet-stream"
            found["200"]["content"] = {kind: {"schema": {"type": "string"}}}
        reference = {"$ref": "#/components/schemas/Error"}
        for status in errors:
            found[str(status)] = {
                "description": ERRORS[status],
                "content": {JSON: {"schema": reference}},
            }
        return found


_SNAPSHOT: Schema = _object(
    ("name", "bytes", "examples_seen"),
    name={"type": "string"},
    bytes=_INTEGER,
    examples_seen=_INTEGER,
)
_SNAPSHOT_EXAMPLE = {"name": "20260131T120000-1000.bf", "bytes": 123456, "examples_seen": 1000}
KEY_HEADER: Schema = {
    "name": "Idempotency-Key",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[a-zA-Z0-9-]+$"},
    "description": "Any text: a request that is repeated with it within 24 hours is done once.",
}
ROWS_PARAMETERS: list[Schema] = [
    {
        "name": "id",
        "in": "query",
        "required": False,
        "schema": {
            "type": "array",
            "items": {"type": "string", "minLength": 1, "maxLength": LONGEST_ID},
        },
        "description": "Ids of the rows; without them, rows are listed page by page.",
    },
    {
        "name": "after",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": -1, "maximum": 2**63 - 1},
        "description": "``next`` of the page before.",
    },
    {
        "name": "limit",
        "in": "query",
        "required": False,
        "schema": {"type": "integer", "minimum": 1, "maximum": 1000, "default": 100},
        "description": "Rows of a page.",
    },
]
