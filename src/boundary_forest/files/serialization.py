"""Labels, ids, names and parameters as a container can hold them, and back.

A column is a one-dimensional array of values. Numbers and booleans are stored as they are, text of
one width as its code points, and Python objects as a letter for their kind and their text. Code is
neither stored nor run: a function is named, and whoever loads gives it again.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.metrics import name_of
from boundary_forest.files.layout import NAMES
from boundary_forest.files.reading import Arrays, ModelFile

LAST_CODE_POINT = 0x10FFFF
CALLABLE = "callable"
RANDOM_STATE = "RandomState"
CLASS_WEIGHT, BY_CLASS = "class_weight", "by_class"

# Of Python objects: how each kind is written and read. Their types must be these, not derived.
_KINDS: dict[str, tuple[type, Callable[[Any], bytes], Any]] = {
    "s": (str, lambda x: x.encode("utf-8", "surrogatepass"), None),
    "i": (int, lambda x: str(x).encode(), int),
    "f": (float, lambda x: x.hex().encode(), float.fromhex),
    "b": (bool, lambda x: str(int(x)).encode(), lambda text: {"0": False, "1": True}[text]),
    "y": (bytes, lambda x: x.hex().encode(), bytes.fromhex),
}
_LETTERS = {kind: letter for letter, (kind, _, _) in _KINDS.items()}
_NUMPY = "n"  # then numpy's code for its type, a colon, and the same as for Python's
_NUMPY_TYPES = {dtype.str[1:]: dtype.type for dtype in NAMES} | {"U": np.str_, "S": np.bytes_}


# Columns


def column_arrays(name: str, values: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Return the arrays that hold a column; raise TypeError if a file does not take its values."""
    if values.dtype.kind == "O":
        texts = _all_written(values.tolist(), name)
        ends = np.cumsum(np.fromiter(map(len, texts), np.uint64, len(texts)))
        text = np.frombuffer(b"".join(texts), dtype=np.uint8)
        return {f"{name}.text": text, f"{name}.ends": ends}
    if values.dtype.kind == "U":
        native = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
        return {name: native.view(np.uint32).reshape(len(values), -1)}
    if values.dtype.newbyteorder("<") not in NAMES:
        raise TypeError(f"{name} of dtype {values.dtype} cannot be saved to a file: use pickle")
    return {name: values}


def read_column(file: Arrays, name: str) -> NDArray[Any]:
    """Return a column that must be there."""
    if f"{name}.text" in file.entries:
        return _read_objects(file, name)
    entry = file.entry(name)
    values = file.array(name, entry.dtype.name, len(entry.shape))
    if entry.dtype == np.uint32 and len(entry.shape) == 2:
        n, width = entry.shape
        if width == 0 or (values > LAST_CODE_POINT).any():
            raise file.error("it is not text", name)
        with file.checking(name):
            return values.view(f"U{width}").reshape(n)
    file.expect(entry, entry.dtype.name, 1)
    if entry.dtype == np.bool_ and (values.view(np.uint8) > 1).any():
        raise file.error("it must contain only true and false", name)
    return values


def column_length(file: Arrays, name: str) -> int | None:
    """Return the number of values of a column; None if there is no such column."""
    entry = file.entries.get(f"{name}.ends", file.entries.get(name))
    return None if entry is None or not entry.shape else entry.shape[0]


def _read_objects(file: Arrays, name: str) -> NDArray[Any]:
    text = file.array(f"{name}.text", "uint8").tobytes()
    ends = file.array(f"{name}.ends", "uint64")
    if (ends[1:] < ends[:-1]).any() or (ends[-1] if len(ends) else 0) != len(text):
        raise file.error("it must be ascending and end at the last value", f"{name}.ends")
    values = np.empty(len(ends), dtype=object)
    begin = 0
    for i, end in enumerate(ends.tolist()):
        with file.checking(f"{name}.text"):
            values[i] = _read(text[begin:end])
        begin = end
    return values


def _all_written(values: list[Any], name: str) -> list[bytes]:
    if not {str}.issuperset(map(type, values)):
        return [_written(value, name) for value in values]
    # Each text once: a thousand columns have few kinds, and every batch of a journal has them.
    written = {value: _written(value, name) for value in set(values)}
    return [written[value] for value in values]


def _written(value: Any, name: str) -> bytes:
    letter = _LETTERS.get(type(value))
    if letter is not None:
        return letter.encode() + _KINDS[letter][1](value)
    item = plain(value)
    inner = _LETTERS.get(type(item))
    if isinstance(value, np.generic) and inner is not None:
        code = value.dtype.kind if value.dtype.kind in "US" else value.dtype.str[1:]
        if _NUMPY_TYPES.get(code) is type(value):
            return f"{_NUMPY}{code}:{inner}".encode() + _KINDS[inner][1](item)
    raise TypeError(
        f"{name} contains {value!r} of type {type(value).__name__}, but a file can store only "
        "str, int, bool, float and bytes: use pickle"
    )


def _read(content: bytes) -> Any:
    letter, rest = content[:1].decode("ascii"), content[1:]
    if letter == _NUMPY:
        code, _, inner = rest.partition(b":")
        numpy_type = _NUMPY_TYPES.get(code.decode("ascii"))
        if numpy_type is None or inner[:1] == _NUMPY.encode():
            raise ValueError(f"it has a value of unknown type {code[:20]!r}")
        return numpy_type(_read(inner))
    if letter not in _KINDS:
        raise ValueError(f"it has a value of unknown kind {letter!r}")
    text = rest.decode("utf-8", "surrogatepass")
    parse = _KINDS[letter][2]
    return text if parse is None else parse(text)


# Parameters


def written_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters as JSON has them; functions by name."""
    return {name: _written_parameter(name, value) for name, value in parameters.items()}


def _written_parameter(name: str, value: Any) -> Any:
    if callable(value) and not isinstance(value, type):
        return {CALLABLE: name_of(value)}
    if isinstance(value, np.random.RandomState):
        return {RANDOM_STATE: _written_random_state(value)}
    value = value.tolist() if isinstance(value, np.ndarray) else plain(value)
    if isinstance(value, dict):
        value = {key: plain(part) for key, part in value.items()}
        if name == CLASS_WEIGHT:  # keys of JSON are text, but classes need not be
            value = {BY_CLASS: [[plain(label), weight] for label, weight in value.items()]}
    try:
        same = json.loads(json.dumps(value)) == value
    except (TypeError, ValueError):
        same = False
    if not same:
        raise TypeError(f"{name}={value!r} is not JSON and cannot be saved to a file: use pickle")
    return value


def read_parameters(
    file: ModelFile, written: Any, names: set[str], given: dict[str, Any]
) -> dict[str, Any]:
    """Return parameters from JSON; functions from those that were given."""
    if not isinstance(written, dict) or written.keys() != names:
        raise file.error(f"its parameters must be {', '.join(sorted(names))}", "document")
    return {name: _read_parameter(file, name, written[name], given) for name in written}


def _read_parameter(file: ModelFile, name: str, value: Any, given: dict[str, Any]) -> Any:
    if not isinstance(value, dict) or name == "metric_params":
        return value
    if name == CLASS_WEIGHT and value.keys() == {BY_CLASS}:
        with file.checking("document"):
            return dict(value[BY_CLASS])
    if name == "random_state" and value.keys() == {RANDOM_STATE}:
        with file.checking("document"):
            return _read_random_state(value[RANDOM_STATE])
    if name in given and is_named(value):
        return given[name]
    raise file.error(f"its parameter {name} has the invalid value {str(value)[:80]}", "document")


def is_named(value: Any) -> bool:
    """Return whether a parameter is a function, of which a file has the name."""
    return isinstance(value, dict) and value.keys() == {CALLABLE}


def _written_random_state(state: np.random.RandomState) -> dict[str, Any]:
    whole: Any = state.get_state(legacy=False)
    if whole["bit_generator"] != "MT19937":
        raise TypeError(
            f"random_state with {whole['bit_generator']} cannot be saved to a file: use pickle"
        )
    return {
        "key": whole["state"]["key"].tolist(),
        "position": int(whole["state"]["pos"]),
        "has_gauss": int(whole["has_gauss"]),
        "cached_gaussian": float(whole["gauss"]),
    }


def _read_random_state(written: Any) -> np.random.RandomState:
    key = [operator.index(word) for word in written["key"]]
    position = operator.index(written["position"])
    if len(key) != 624 or not all(0 <= word < 2**32 for word in key) or not 0 <= position <= 624:
        raise ValueError("its random_state is not a Mersenne Twister")
    state = np.random.RandomState()
    has_gauss, cached = operator.index(written["has_gauss"]), float(written["cached_gaussian"])
    if has_gauss not in (0, 1):
        raise ValueError("its random_state is not a Mersenne Twister")
    state.set_state(("MT19937", np.array(key, np.uint32), position, has_gauss, cached))
    return state
