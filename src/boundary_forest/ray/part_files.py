"""The state of an engine that holds a part of the trees, as a file of the form of model files."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.ids import engine_ids
from boundary_forest.files import ModelFile, write_model
from boundary_forest.files.values import column_arrays, column_length, read_column
from boundary_forest.ray.states import State

_NUMBERS = ("seen", "n_classes", "counts", "vote_power")
_IDS = ("ids", "window_ids")


def write_part(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to a file, in place of what is there.

    Parameters
    ----------
    path : str or path-like
        The file.
    state : dict
        The engine's, with positions.
    """
    document = {name: state[name] for name in _NUMBERS}
    arrays = {name: array for name, array in state.items() if name not in (*_NUMBERS, *_IDS)}
    for name in _IDS:
        if state[name] is not None:
            arrays |= column_arrays(name, _column(state[name]))
    write_model(path, {"part": document}, arrays)


def read_part(path: str | os.PathLike[str]) -> State:
    """Return the state that a file holds; the engine checks what it says when it is restored.

    Parameters
    ----------
    path : str or path-like
        The file.
    """
    with ModelFile(path) as file, file.checking("document"):
        state: State = {name: file.document["part"][name] for name in _NUMBERS}
        state["counts"] = tuple(state["counts"])
        for name in _IDS:
            known = column_length(file, name) is not None
            state[name] = engine_ids(read_column(file, name)) if known else None
        for name, entry in file.entries.items():
            if name.partition(".")[0] not in _IDS:
                state[name] = file.array(name, entry.dtype.name, len(entry.shape))
        return state


def _column(ids: Any) -> NDArray[Any]:
    if not isinstance(ids, list):
        return np.asarray(ids)
    column = np.empty(len(ids), dtype=object)
    column[:] = ids
    return column
