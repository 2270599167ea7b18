"""Targets of requests as the forest learns them: of one kind, so that requests can be merged."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.service.errors import unprocessable
from boundary_forest.service.settings import REGRESSION

TEXT, INTEGER, BOOLEAN, NUMBER = "text", "integer", "boolean", "number"
_LARGEST = 2**63 - 1


def checked_targets(targets: list[Any], task: str) -> tuple[list[Any], str]:
    """Return targets, and their kind.

    Parameters
    ----------
    targets : list
        As they came.
    task : str
        Classes are text, integers or booleans; targets of regression are finite numbers.
    """
    if task == REGRESSION:
        return [_number(value, i) for i, value in enumerate(targets)], NUMBER
    kind = _kind(targets[0], 0)
    for i, value in enumerate(targets):
        if _kind(value, i) != kind:
            raise unprocessable(f"classes must be of one kind, {kind} in targets[0]", _at(i))
    return [int(value) for value in targets] if kind == INTEGER else targets, kind


def target_array(targets: list[Any], kind: str) -> NDArray[Any]:
    """Return targets of one kind as an array."""
    types: dict[str, Any] = {TEXT: object, INTEGER: np.int64, BOOLEAN: np.bool_}
    array: NDArray[Any] = np.array(targets, dtype=types.get(kind, np.float64))
    return array


def _kind(value: Any, i: int) -> str:
    if type(value) is str:
        return TEXT
    if type(value) is bool:
        return BOOLEAN
    if type(value) is float and value.is_integer():  # JSON does not tell 1.0 from 1
        value = int(value)
    if type(value) is int and abs(value) <= _LARGEST:
        return INTEGER
    raise unprocessable("a class must be text, an integer, true or false", _at(i))


def _number(value: Any, i: int) -> float:
    if type(value) in (int, float) and abs(value) < 2**1023 and math.isfinite(value):
        return float(value)
    raise unprocessable("a target must be a finite number", _at(i))


def _at(i: int) -> str:
    return f"targets[{i}]"
