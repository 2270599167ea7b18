"""Tensors of the Open Inference Protocol: as JSON, or as bytes after it (the binary extension)."""

from __future__ import annotations

import json
import math
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.service.bodies import read_object
from boundary_forest.service.errors import ServiceError, unprocessable

BYTES = "BYTES"  # text: in binary form each value follows its length, as 4 bytes
_TYPES = {
    "BOOL": "?",
    **{f"UINT{bits}": f"<u{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"INT{bits}": f"<i{bits // 8}" for bits in (8, 16, 32, 64)},
    **{f"FP{bits}": f"<f{bits // 8}" for bits in (16, 32, 64)},
}


@dataclass(frozen=True)
class InferRequest:
    """A request to infer.

    Parameters
    ----------
    id : str or None
        What the response repeats.
    inputs : dict of str to ndarray
        The tensors by name.
    parameters : dict
        Those of the request.
    outputs : dict of str to bool, or None
        The outputs that are wanted, and whether as bytes; None: all of them.
    """

    id: str | None
    inputs: dict[str, NDArray[Any]]
    parameters: dict[str, Any]
    outputs: dict[str, bool] | None


def read_request(content: bytes, header_length: str | None) -> InferRequest:
    """Return a request; ServiceError if it is none.

    Parameters
    ----------
    content : bytes
        The body.
    header_length : str or None
        The header ``Inference-Header-Content-Length``: where its JSON ends.
    """
    end = len(content)
    if header_length is not None:
        if not header_length.isdecimal() or int(header_length) > end:
            raise _bad("Inference-Header-Content-Length must be the length of the JSON")
        end = int(header_length)
    found, rest = read_object(content[:end]), memoryview(content)[end:]
    members = found.get("inputs")
    if not isinstance(members, list) or not members:
        raise _bad("the request needs 'inputs', a list of tensors", "inputs")
    inputs: dict[str, NDArray[Any]] = {}
    for i, tensor in enumerate(members):
        where = f"inputs[{i}]"
        if not isinstance(tensor, dict) or not isinstance(tensor.get("name"), str):
            raise _bad("an input must be an object with a name", where)
        n = _parameters(tensor, where).get("binary_data_size")
        if n is not None and (type(n) is not int or not 0 <= n <= len(rest)):
            raise _bad("binary_data_size must be the number of bytes that follow", where)
        raw = None if n is None else rest[:n]
        rest = rest[n or 0 :]
        if tensor["name"] in inputs:
            raise _bad(f"there are two inputs {tensor['name']!r}", where)
        inputs[tensor["name"]] = _array(tensor, raw, where)
    if len(rest):
        raise _bad("there are more bytes than the inputs say")
    parameters = _parameters(found, "parameters")
    return InferRequest(
        found["id"] if isinstance(found.get("id"), str) else None,
        inputs,
        parameters,
        _wanted(found.get("outputs"), bool(parameters.get("binary_data_output"))),
    )


def _wanted(outputs: Any, binary: bool) -> dict[str, bool] | None:
    if not outputs:
        return None
    if not isinstance(outputs, list):
        raise _bad("'outputs' must be a list", "outputs")
    wanted = {}
    for i, one in enumerate(outputs):
        where = f"outputs[{i}]"
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            raise _bad("an output must be an object with a name", where)
        wanted[one["name"]] = bool(_parameters(one, where).get("binary_data", binary))
    return wanted


def _parameters(holder: dict[str, Any], where: str) -> dict[str, Any]:
    found = holder.get("parameters", {})
    if not isinstance(found, dict):
        raise _bad("parameters must be an object", where)
    return found


def _array(tensor: dict[str, Any], raw: memoryview | None, where: str) -> NDArray[Any]:
    kind, shape = tensor.get("datatype"), tensor.get("shape")
    if kind != BYTES and kind not in _TYPES:
        raise _bad(f"the datatype must be {BYTES}, {', '.join(_TYPES)}", where)
    if not isinstance(shape, list) or any(type(n) is not int or n < 0 for n in shape):
        raise _bad("the shape must be a list of integers", where)
    try:
        if kind == BYTES:
            values = _texts(raw) if raw is not None else _flat(tensor.get("data"))
            flat: NDArray[Any] = np.empty(len(values), dtype=object)
            flat[:] = values
        elif raw is not None:
            flat = np.frombuffer(raw, _TYPES[kind])
        else:
            flat = np.array(_flat(tensor.get("data")), dtype=_TYPES[kind])
    except (TypeError, ValueError, OverflowError, struct.error) as error:
        raise _bad(f"the data are no {kind}", where) from error
    if flat.size != math.prod(shape):
        raise _bad(f"the shape {shape} has {math.prod(shape):,} values, got {flat.size:,}", where)
    return flat.reshape(shape)


def _flat(data: Any) -> list[Any]:
    """Return nested lists as one."""
    if not isinstance(data, list):
        raise ValueError("no list")
    flat: list[Any] = data
    while flat and isinstance(flat[0], list):
        flat = [value for row in flat for value in row]
    return flat


def _texts(raw: memoryview) -> list[str]:
    found, at = [], 0
    while at < len(raw):
        (n,) = struct.unpack_from("<I", raw, at)
        at += 4 + n
        if at > len(raw):
            raise ValueError("truncated")
        found.append(str(raw[at - n : at], "utf-8"))
    return found


def datatype(values: NDArray[Any]) -> str:
    """Return the protocol's name of an array's type."""
    names = {np.dtype(type): name for name, type in _TYPES.items()}
    return names.get(values.dtype, BYTES)


def response(
    request: InferRequest, about: dict[str, Any], outputs: dict[str, NDArray[Any]]
) -> tuple[bytes, dict[str, str]]:
    """Return the body of a response, and its headers.

    Parameters
    ----------
    request : InferRequest
        What is answered.
    about : dict
        Name, version and parameters of the model.
    outputs : dict of str to ndarray
        All outputs by name.
    """
    binary = bool(request.parameters.get("binary_data_output"))
    wanted = request.outputs or dict.fromkeys(outputs, binary)
    tensors, tail = [], []
    for name, as_bytes in wanted.items():
        if name not in outputs:
            raise unprocessable(f"the outputs are {', '.join(outputs)}, got {name!r}", "outputs")
        values = outputs[name]
        tensor: dict[str, Any] = {
            "name": name,
            "datatype": datatype(values),
            "shape": list(values.shape),
        }
        if as_bytes:
            raw = _packed(values)
            tensor["parameters"] = {"binary_data_size": len(raw)}
            tail.append(raw)
        else:
            tensor["data"] = values.ravel().tolist()
        tensors.append(tensor)
    found = about | {"outputs": tensors}
    if request.id is not None:
        found["id"] = request.id
    head = json.dumps(found).encode()
    if not tail:
        return head, {"content-type": "application/json"}
    headers = {
        "content-type": "application/octet-stream",
        "inference-header-content-length": str(len(head)),
    }
    return b"".join((head, *tail)), headers


def _packed(values: NDArray[Any]) -> bytes:
    if datatype(values) != BYTES:
        return values.tobytes()
    texts = [str(value).encode() for value in values.ravel().tolist()]
    return b"".join(struct.pack("<I", len(text)) + text for text in texts)


def _bad(message: str, where: str | None = None) -> ServiceError:
    return ServiceError(400, "bad_request", message, where)
