"""What a request says: JSON, npy or Arrow IPC, checked before anything is done with it."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boundary_forest.service.errors import ServiceError, unprocessable
from boundary_forest.service.row_values import checked_rows
from boundary_forest.service.rows import Rows
from boundary_forest.service.settings import Limits

try:
    import orjson
except ImportError:  # where it has no wheel
    orjson = None  # type: ignore[assignment]

JSON = "application/json"
NPY = "application/x-npy"
ARROW = "application/vnd.apache.arrow.stream"
CONTENT_TYPES = (JSON, NPY, ARROW)
LONGEST_ID = 200  # characters


@dataclass
class Body:
    """The contents of a request.

    Parameters
    ----------
    rows : Rows or None
        Its rows.
    targets : list or None
        Their targets, not yet checked against the task.
    ids : list of str or None
        Their ids.
    options : dict
        The other members of a JSON object.
    """

    rows: Rows | None = None
    targets: list[Any] | None = None
    ids: list[str] | None = None
    options: dict[str, Any] = field(default_factory=dict)

    def check(self, limits: Limits, members: tuple[str, ...], *optional: str) -> None:
        """Refuse a body that lacks a member, has another one, or whose members do not fit.

        Rows that are lists of numbers become a matrix.

        Parameters
        ----------
        limits : Limits
            What a client may take.
        members : tuple of str
            Those that must be there.
        *optional : str
            Those that may be there.
        """
        for name in members:
            if self.member(name) is None:
                raise unprocessable(f"the request has no {name!r}", name)
        allowed = {*members, *optional}
        for name in ("rows", "targets", "ids", *self.options):
            if name not in allowed and self.member(name) is not None:
                raise unprocessable(f"{name!r} is not a member of this request", name)
        lengths = {
            name: len(values)
            for name in ("rows", "targets", "ids")
            if (values := self.member(name)) is not None
        }
        for name, n in lengths.items():
            if not 1 <= n <= limits.rows:
                raise unprocessable(f"{name!r} must have 1 to {limits.rows:,} values", name)
        if len({*lengths.values()}) > 1:
            shown = ", ".join(f"{n:,} {name}" for name, n in lengths.items())
            raise unprocessable(f"members must have the same length, got {shown}")
        if self.rows is not None:
            self.rows = checked_rows(self.rows, limits.columns)
        if self.ids is not None and len({*self.ids}) < len(self.ids):
            places = {id: i for i, id in enumerate(self.ids)}  # the last one of each
            i, id = next((i, id) for i, id in enumerate(self.ids) if places[id] != i)
            raise ServiceError(409, "repeated_id", f"id {id!r} is repeated", f"ids[{i}]")

    def member(self, name: str) -> Any:
        """Return a member by its name; None if it is not there."""
        known = {"rows": self.rows, "targets": self.targets, "ids": self.ids}
        return known[name] if name in known else self.options.get(name)


def read_body(content: bytes, content_type: str, query: dict[str, str]) -> Body:
    """Return what a request says.

    Parameters
    ----------
    content : bytes
        The body.
    content_type : str
        The header.
    query : dict of str
        The query parameters: ``target`` and ``id`` name columns of an Arrow table.
    """
    kind = content_type.partition(";")[0].strip().lower()
    reader = _READERS.get(kind)
    if reader is None:
        raise ServiceError(
            415,
            "unsupported_type",
            f"the content type must be {', '.join(CONTENT_TYPES)}, got {kind[:100]!r}",
        )
    return reader(content, query)


def read_object(content: bytes) -> dict[str, Any]:
    """Return a JSON object; ServiceError if the bytes are none."""
    found = _read_fast(content)
    if found is None:
        found = _read_plain(content)
    if not isinstance(found, dict):
        raise ServiceError(400, "bad_json", "the body must be a JSON object")
    return found


def _read_fast(content: bytes) -> Any:
    """Return what orjson reads, in a fifth of json's time; None if json must decide."""
    if orjson is None:
        return None
    try:
        found = orjson.loads(content)
    except orjson.JSONDecodeError:
        return None
    # It rounds integers of more than 64 bits, which are ids where there is no other number.
    if isinstance(found, dict) and any(_has_float(found.get(name)) for name in ("ids", "allowed")):
        return None
    return found


def _has_float(values: Any) -> bool:
    return isinstance(values, list) and float in map(type, values)


def _read_plain(content: bytes) -> Any:
    try:
        # A number of more digits than this is refused by Python, too, but with a hint for
        # programmers.
        found = _DECODER.decode(content.decode(json.detect_encoding(content)))
        if b"\\u" in content:  # half of a surrogate pair is not text, and nothing could store it
            json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        what = str(error) if isinstance(error, json.JSONDecodeError) else "it cannot be read"
        raise ServiceError(400, "bad_json", f"the body is not JSON: {what}") from error
    return found


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not a JSON number", "", 0)


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def _read_json(content: bytes, query: dict[str, str]) -> Body:
    members = read_object(content)
    lists = {}
    for name in ("rows", "targets", "ids"):
        value = members.pop(name, None)
        if value is not None and not isinstance(value, list):
            raise unprocessable(f"{name!r} must be a list", name)
        lists[name] = value
    ids = lists["ids"]
    return Body(lists["rows"], lists["targets"], None if ids is None else checked_ids(ids), members)


def checked_ids(ids: list[Any], where: str = "ids") -> list[str]:
    """Return ids as text; integers become text."""
    texts = []
    for i, one in enumerate(ids):
        text = str(one) if type(one) is int else one
        if type(text) is not str or not 1 <= len(text) <= LONGEST_ID:
            raise unprocessable(
                f"an id must be text of 1 to {LONGEST_ID} characters, or an integer",
                f"{where}[{i}]",
            )
        texts.append(text)
    return texts


def _read_npy(content: bytes, query: dict[str, str]) -> Body:
    """Arrays that were written one after the other by numpy.save: rows, targets, ids."""
    arrays: list[NDArray[Any]] = []
    at = 0
    while at < len(content) and len(arrays) < 3:
        array, at = _npy_array(content, at)
        arrays.append(array)
    if at < len(content) or not arrays:
        raise ServiceError(400, "bad_npy", "the body must have 1 to 3 arrays: rows, targets, ids")
    rows, *rest = arrays
    if rows.ndim != 2 or rows.dtype.kind not in "biuf":
        raise unprocessable("the first array must be a matrix of numbers", "rows")
    for array, name in zip(rest, ("targets", "ids"), strict=False):
        if array.ndim != 1:
            raise unprocessable(f"the array of {name} must have one dimension", name)
    lists = [array.tolist() for array in rest]
    ids = checked_ids(lists[1]) if len(lists) > 1 else None
    targets = lists[0] if lists and lists[0] else None  # an empty array stands for no targets
    return Body(rows, targets, ids)


def _npy_array(content: bytes, at: int) -> tuple[NDArray[Any], int]:
    """Read one array without a copy, and without believing its header about its size."""
    file = io.BytesIO(content)
    file.seek(at)
    try:
        version = np.lib.format.read_magic(file)
        headers: dict[Any, Callable[..., Any]] = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        shape, fortran, dtype = headers[version](file)
        begin, count = file.tell(), 1
        for n in shape:
            count *= n
        if dtype.hasobject or dtype.kind not in "biufU" or count < 0 or dtype.itemsize == 0:
            raise ValueError(f"arrays of {dtype} are not accepted")
        end = begin + count * dtype.itemsize
        if end > len(content):
            raise ValueError("it is truncated")
        flat = np.frombuffer(content, dtype, count, begin)
        array = flat.reshape(shape, order="F" if fortran else "C")
    except Exception as error:  # the header is parsed as Python source, which may raise anything
        what = str(error) if isinstance(error, ValueError) else type(error).__name__
        raise ServiceError(400, "bad_npy", f"the body is not npy: {what[:200]}") from error
    return array, end


def _read_arrow(content: bytes, query: dict[str, str]) -> Body:
    try:
        with pa.ipc.open_stream(content) as reader:
            table = reader.read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise ServiceError(400, "bad_arrow", "the body is not an Arrow IPC stream") from error
    if len({*table.column_names}) < table.num_columns:
        raise unprocessable("the names of columns must be unique", "rows")
    lists: dict[str, list[Any] | None] = {"target": None, "id": None}
    for role in lists:
        name = query.get(role)
        if name is None:
            continue
        if name not in table.column_names:
            raise unprocessable(f"the table has no column {name!r}", role)
        lists[role] = table[name].to_pylist()
        table = table.drop_columns([name])
    ids = lists["id"]
    return Body(table, lists["target"], None if ids is None else checked_ids(ids))


_READERS: dict[str, Callable[[bytes, dict[str, str]], Body]] = {
    JSON: _read_json,
    NPY: _read_npy,
    ARROW: _read_arrow,
}
