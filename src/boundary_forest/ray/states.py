"""The state of a forest, taken apart for engines that hold parts of its trees, and put together.

A part's state is an engine's (``estimators/engine_state.py``): what is about trees or examples has
those of the part, and all else is that of the whole forest. In a checkpoint it is a model file.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import (
    ID_COLUMNS,
    NUMBERS,
    STATE_ARRAYS,
    VOTE_ARRAYS,
    trees_in,
)
from boundary_forest.estimators.ids import engine_ids, id_column
from boundary_forest.files import ModelFile, write_model
from boundary_forest.files.serialization import column_arrays, column_length, read_column

State = dict[str, Any]
TreeRange = tuple[int, int]  # from the first up to but not including the second


def ranges(n_trees: int, n_parts: int) -> list[TreeRange]:
    """Return which trees each part holds: as many each, as far as that goes."""
    ends = [n_trees * i // n_parts for i in range(n_parts + 1)]
    return list(itertools.pairwise(ends))


def merged(parts: Sequence[State], votes: State) -> State:
    """Return the state of the whole forest.

    Parameters
    ----------
    parts : sequence of dict
        The engines' states, by place.
    votes : dict
        The driver's, which knows how votes are weighed.
    """
    n_answering = [len(part["tree_sizes"]) - len(part["tree_places"]) for part in parts]
    answering = [(p, i) for p, n in enumerate(n_answering) for i in range(n)]
    growing = [
        (p, n + i) for p, n in enumerate(n_answering) for i in range(len(parts[p]["tree_places"]))
    ]
    return {
        **parts[0],
        **{name: votes[name] for name in ("vote_power", *VOTE_ARRAYS)},
        **_trees_and_examples(
            parts,
            answering + growing,
            np.concatenate([part["tree_places"] for part in parts]),
            np.unique(np.concatenate([part["arrivals"] for part in parts])),
        ),
        "counts": tuple(map(sum, zip(*(part["counts"] for part in parts), strict=True))),
    }


def split(state: State, trees: Sequence[TreeRange], rule: int) -> list[State]:
    """Return the states of engines that hold these trees.

    Parameters
    ----------
    state : dict
        Of the whole forest, with positions.
    trees : sequence of (int, int)
        Which each holds.
    rule : int
        By which votes are weighed in an engine that has learned nothing.
    """
    n_answering = len(state["tree_sizes"]) - len(state["tree_places"])
    places = np.concatenate([np.arange(n_answering), state["tree_places"]])
    nodes = [examples for examples, _ in trees_in(state)]
    parts = []
    for number, (first, end) in enumerate(trees):
        which = np.flatnonzero((first <= places) & (places < end)).tolist()
        arrivals = state["arrivals"]
        if is_planted(state):
            members = np.flatnonzero(np.isin(arrivals, state["reservoir_arrivals"]))
            arrivals = arrivals[np.unique(np.concatenate([*(nodes[i] for i in which), members]))]
        growing = places[[i for i in which if i >= n_answering]]
        part = _trees_and_examples([state], [(0, i) for i in which], growing, arrivals)
        part |= {"vote_power": rule, **dict.fromkeys(VOTE_ARRAYS, np.empty(0))}
        parts.append({**state, **part, "counts": (0, 0, 0, 0) if number else state["counts"]})
    return parts


def is_planted(state: State) -> bool:
    """Return whether there are trees."""
    return bool(state["tree_sizes"][0] > 0)


def _trees_and_examples(
    parts: Sequence[State],
    trees: Sequence[tuple[int, int]],
    growing: NDArray[Any],
    arrivals: NDArray[np.uint64],
) -> State:
    """Return the arrays of some trees and examples.

    Parameters
    ----------
    parts : sequence of dict
        The states that have them.
    trees : sequence of (int, int)
        The part of each tree, and its number there.
    growing : ndarray
        The places of the last ones, which do not answer yet.
    arrivals : ndarray
        Those of the examples, which ascend.
    """
    chosen = [list(trees_in(part)) for part in parts]
    numbers: list[Any] = [
        np.searchsorted(arrivals, part["arrivals"]).astype(np.uint32) for part in parts
    ]
    generations = [parts[p]["tree_generations"][i : i + 1].sum() for p, i in trees]
    state: State = {
        "tree_sizes": np.array([len(chosen[p][i][0]) for p, i in trees], dtype=np.uint32),
        "tree_places": growing.astype(np.uint32),
        "tree_generations": np.array(generations if any(generations) else [], dtype=np.uint32),
        "node_examples": np.concatenate([numbers[p][chosen[p][i][0]] for p, i in trees]),
        "node_parents": np.concatenate([chosen[p][i][1] for p, i in trees]),
        **_weights(parts, trees),
        "arrivals": arrivals,
    }
    own = [np.isin(part["arrivals"], arrivals, assume_unique=True) for part in parts]
    for name in ("positions", "labels", "ids"):
        if parts[0].get(name) is None:
            continue
        columns = [id_column(part[name]) if name == "ids" else part[name] for part in parts]
        values = np.empty((len(arrivals), *columns[0].shape[1:]), columns[0].dtype)
        for column, number, which in zip(columns, numbers, own, strict=True):
            values[number[which]] = column[which]
        state[name] = engine_ids(values) if name == "ids" else values
    return state


def _weights(parts: Sequence[State], trees: Sequence[tuple[int, int]]) -> State:
    """Return the weights that some of the trees have, each once, and the newest of all."""
    newest = parts[0]["log_weights"][-1:]
    rows = [
        parts[p]["log_weights"][parts[p]["tree_weights"][i]]
        for p, i in trees
        if len(parts[p]["tree_weights"])
    ]
    distinct = {row.tobytes(): row[None] for row in rows}
    which = {row: i for i, row in enumerate(distinct)}
    return {
        "log_weights": np.concatenate([*distinct.values(), newest]),
        "tree_weights": np.array([which[row.tobytes()] for row in rows], dtype=np.uint32),
    }


# Files


def write_part(path: str | os.PathLike[str], state: State) -> None:
    """Write a state to a file, in place of what is there.

    Parameters
    ----------
    path : str or path-like
        The file.
    state : dict
        The engine's, with positions.
    """
    document = {name: state[name] for name in NUMBERS}
    arrays = {name: state[name] for name in ("positions", *STATE_ARRAYS)}
    for name in ID_COLUMNS:
        if state[name] is not None:
            arrays |= column_arrays(name, id_column(state[name]))
    write_model(path, {"part": document}, arrays)


def read_part(path: str | os.PathLike[str]) -> State:
    """Return the state that a file holds; the engine checks what it says when it is restored.

    Parameters
    ----------
    path : str or path-like
        The file.
    """
    with ModelFile(path) as file, file.checking("document"):
        state: State = {name: file.document["part"][name] for name in NUMBERS}
        state["counts"] = tuple(state["counts"])
        for name in ID_COLUMNS:
            known = column_length(file, name) is not None
            state[name] = engine_ids(read_column(file, name)) if known else None
        for name in ("positions", *STATE_ARRAYS):
            entry = file.entry(name)
            state[name] = file.array(name, entry.dtype.name, len(entry.shape))
        return state
