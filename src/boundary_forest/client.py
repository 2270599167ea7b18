"""A client of ``boundary-forest serve``: each method is one request, retried until it is answered.

A request that writes carries an idempotency key, so a retry never learns twice, whether the
connection, the service or the machine failed in between.
"""

from __future__ import annotations

import io
import json
import random
import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import httpx
import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pyarrow as pa

_RETRIED = (429, 502, 503, 504)
_LONGEST_PAUSE = 2.0  # seconds between two attempts
_LONGEST_WAIT = 30.0  # seconds, if the service or a proxy says when to retry
_TARGET, _ID = "__target__", "__id__"  # columns of an Arrow table


class RequestError(Exception):
    """A request that the service refused.

    Parameters
    ----------
    status : int
        The HTTP status.
    code, message : str
        What was wrong: a short name that does not change, and a sentence.
    where : str or None
        The part of the request, such as ``rows[3].age``.
    """

    def __init__(self, status: int, code: str, message: str, where: str | None = None) -> None:
        super().__init__(f"{message} ({status} {code}{f' at {where}' if where else ''})")
        self.status = status
        self.code = code
        self.message = message
        self.where = where


@dataclass(frozen=True, eq=False)
class Predictions:
    """The predictions for some rows.

    Parameters
    ----------
    values : ndarray of shape (n,)
        Classes, or float64 in regression. Before any row is learned, they are None or NaN.
    probabilities : ndarray of shape (n, n_classes) or None
        The probability of each class; None in regression.
    classes : ndarray of shape (n_classes,) or None
        The classes as text, in the order of the columns of ``probabilities``.
    """

    values: NDArray[Any]
    probabilities: NDArray[np.float64] | None = None
    classes: NDArray[Any] | None = None

    def to_arrow(self) -> pa.Table:
        """Return a table: ``prediction``, and a column for each class's probability.

        ``.to_pandas()`` and ``polars.from_arrow`` make a frame of it.
        """
        import pyarrow as pa

        columns = {"prediction": pa.array(self.values.tolist())}
        if self.probabilities is not None and self.classes is not None:
            shares = zip(self.classes.tolist(), self.probabilities.T, strict=True)
            columns |= {f"probability of {name}": pa.array(share) for name, share in shares}
        return pa.table(columns)


@dataclass(frozen=True)
class Learned:
    """The result of a request that learns rows.

    Parameters
    ----------
    learned, seen : int
        Number of rows that this request has learned, and that the model has learned in all.
    ids : tuple of str
        The ids of the rows; empty for ``label``.
    predictions : Predictions or None
        The predictions of ``predict_then_learn``, each made before its row was learned.
    """

    learned: int
    seen: int
    ids: tuple[str, ...] = ()
    predictions: Predictions | None = None


class Client:
    """A client of ``boundary-forest serve``.

    Rows may be a numpy matrix, a frame of pandas, polars or pyarrow, or a list of lists or dicts.
    Matrices and frames are sent as bytes, which is many times faster than JSON. Several threads may
    share a client. Call ``close`` at the end, or use the client in ``with``.

    Parameters
    ----------
    address : str, default="http://127.0.0.1:8000"
        The address of the service.
    token : str or None, default=None
        A read or write token, if the service has tokens.
    timeout : float, default=30.0
        Maximum number of seconds of an attempt.
    patience : float, default=60.0
        For how many seconds a request is repeated if the service cannot be reached, is busy (429)
        or is restarting (503). 0: the request is sent once.

    Examples
    --------
    >>> from boundary_forest import Client  # doctest: +SKIP
    >>> with Client() as client:  # doctest: +SKIP
    ...     client.learn([[0.0], [9.0]], ["low", "high"])
    ...     client.predict([[8.0]]).values
    array(['high'], dtype=object)
    """

    def __init__(
        self,
        address: str = "http://127.0.0.1:8000",
        *,
        token: str | None = None,
        timeout: float = 30.0,
        patience: float = 60.0,
    ) -> None:
        headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout)
        self._patience = patience

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def predict(self, rows: Any, ids: Sequence[str | int] | None = None) -> Predictions:
        """Predict rows. With ids, the service keeps them until ``label`` sends their targets."""
        return _predictions(self._post_rows("predict", rows, None, ids))

    def learn(self, rows: Any, targets: Any = None, ids: Any = None) -> Learned:
        """Learn rows with their targets; in retrieval there are no targets."""
        return _learned(self._post_rows("learn", rows, targets, ids))

    def label(self, ids: Sequence[str | int], targets: Any) -> Learned:
        """Learn rows that were predicted with these ids, now that their targets are known."""
        return _learned(self._post("label", {"ids": _plain(ids), "targets": _plain(targets)}))

    def predict_then_learn(self, rows: Any, targets: Any, ids: Any = None) -> Learned:
        """Predict each row just before it is learned."""
        return _learned(self._post_rows("predict-then-learn", rows, targets, ids))

    def neighbors(self, rows: Any, **options: Any) -> tuple[NDArray[np.float64], list[list[str]]]:
        """Return distances and ids of the nearest stored rows to each row.

        ``options`` are ``n_neighbors``, ``allowed``, ``beam`` and ``exact``.
        """
        found = self._post("neighbors", {"rows": _listed(rows), **options})
        return np.array(found["distances"], dtype=np.float64), found["ids"]

    def upsert(self, rows: Any, ids: Sequence[str | int]) -> int:
        """Add rows, or replace those with a known id; return how many rows were learned in all."""
        seen: int = self._post_rows("upsert", rows, None, ids)["seen"]
        return seen

    def rows(self, ids: Sequence[str | int]) -> list[Any]:
        """Return stored rows by their ids."""
        found = self._send("GET", "/v1/rows", params={"id": _plain(ids)})["rows"]
        return [one["row"] for one in found]

    def explain(self, row: Any) -> dict[str, Any]:
        """Explain the prediction of one row by stored rows and the trees' paths."""
        return self._post("explain", {"rows": _listed(row if _is_frame(row) else [row])})

    def forget(self, ids: Sequence[str | int]) -> int:
        """Erase the rows with these ids, and return their number."""
        forgotten: int = self._post("forget", {"ids": _plain(ids)})["forgotten"]
        return forgotten

    def stats(self) -> dict[str, Any]:
        """Return the counts, the fingerprint and the scores of the service."""
        return self._send("GET", "/v1/stats")

    def snapshot(self) -> dict[str, Any]:
        """Save the model to a file of the service; return its name for ``download``."""
        return self._post("snapshot", None)

    def download(self, name: str) -> bytes:
        """Return the bytes of a snapshot: written to a file, they are a model file."""
        return self._response("GET", f"/v1/snapshot/{name}").content

    def is_ready(self) -> bool:
        """Return whether the service responds and can learn; the request is sent once."""
        try:
            return self._http.get("/v2/health/ready").status_code == 200
        except httpx.TransportError:
            return False

    def _post_rows(self, path: str, rows: Any, targets: Any, ids: Any) -> dict[str, Any]:
        """Send rows as npy or Arrow if they are an array or a frame, else as JSON."""
        if _is_frame(rows):
            content, params = _arrow(rows, targets, ids)
            return self._post(path, content, "application/vnd.apache.arrow.stream", params)
        if isinstance(rows, np.ndarray) and rows.ndim == 2 and rows.dtype.kind in "biuf":
            return self._post(path, _npy(rows, targets, ids), "application/x-npy")
        members = {"rows": _listed(rows), "targets": _plain(targets), "ids": _plain(ids)}
        return self._post(path, {k: v for k, v in members.items() if v is not None})

    def _post(
        self, path: str, body: Any, kind: str = "application/json", params: Any = None
    ) -> dict[str, Any]:
        content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
        headers = {"content-type": kind, "idempotency-key": uuid.uuid4().hex}
        return self._send("POST", f"/v1/{path}", content=content, headers=headers, params=params)

    def _send(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        found: dict[str, Any] = self._response(method, path, **options).json()
        return found

    def _response(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request, again and again for as long as patience lasts; the key stays the same."""
        end, pause = time.monotonic() + self._patience, 0.05
        while True:
            try:
                response = self._http.request(method, path, **options)
                if response.status_code < 400:
                    return response
                if response.status_code not in _RETRIED or time.monotonic() > end:
                    _refuse(response)
                wait = _seconds(response.headers.get("retry-after"))
            except httpx.TransportError:
                if time.monotonic() > end:
                    raise
                wait = 0.0
            time.sleep(max(wait, pause) * random.uniform(0.5, 1.0))  # clients spread out
            pause = min(2 * pause, _LONGEST_PAUSE)


def _seconds(header: str | None) -> float:
    return min(float(header), _LONGEST_WAIT) if header and header.isdecimal() else 0.0


def _refuse(response: httpx.Response) -> NoReturn:
    try:
        error = response.json()["error"]
        found = error["code"], error["message"], error.get("where")
    except (ValueError, KeyError, TypeError):  # of a proxy
        found = "http", response.reason_phrase, None
    raise RequestError(response.status_code, *found)


def _is_frame(rows: Any) -> bool:
    return hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__dataframe__")


def _plain(values: Any) -> Any:
    """Return a sequence as a list of Python's values."""
    if values is None or isinstance(values, str):
        return values
    return np.asarray(values).tolist() if hasattr(values, "__array__") else list(values)


def _listed(rows: Any) -> list[Any]:
    """Return rows as JSON takes them."""
    if _is_frame(rows):
        import pyarrow as pa

        listed: list[Any] = pa.table(rows).to_pylist()
        return listed
    return [row if isinstance(row, dict) else _plain(row) for row in rows]


def _npy(rows: NDArray[Any], targets: Any, ids: Any) -> bytes:
    """Return arrays written one after the other; an empty one stands for no targets."""
    file = io.BytesIO()
    np.save(file, rows)
    if targets is not None or ids is not None:
        targets = np.array([] if targets is None else _plain(targets))
        np.save(file, targets)
    if ids is not None:
        np.save(file, np.array([str(id) for id in _plain(ids)]))
    return file.getvalue()


def _arrow(rows: Any, targets: Any, ids: Any) -> tuple[bytes, dict[str, str]]:
    """Return a table as an Arrow stream, and the names of its columns of targets and ids."""
    import pyarrow as pa

    table = pa.table(rows).replace_schema_metadata(None)
    params: dict[str, str] = {}
    for role, name, values in (("target", _TARGET, targets), ("id", _ID, ids)):
        if values is not None:
            table = table.append_column(name, pa.array(_plain(values)))
            params[role] = name
    file = io.BytesIO()
    with pa.ipc.new_stream(file, table.schema) as stream:
        stream.write_table(table)
    return file.getvalue(), params


def _predictions(found: dict[str, Any]) -> Predictions:
    values = found["predictions"]
    if "probabilities" not in found:
        return Predictions(np.array(values, dtype=np.float64))  # None becomes NaN
    answers = np.empty(len(values), dtype=object)
    answers[:] = values
    names = list(dict.fromkeys(name for row in found["probabilities"] for name in row))
    shares = np.array([[row.get(name, 0.0) for name in names] for row in found["probabilities"]])
    return Predictions(answers, shares.reshape(len(values), -1), np.array(names, dtype=object))


def _learned(found: dict[str, Any]) -> Learned:
    predictions = _predictions(found) if "predictions" in found else None
    return Learned(found["learned"], found["seen"], tuple(found.get("ids", ())), predictions)
