"""The state of a forest, taken apart for engines that hold parts of its trees, and put together."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_state import trees_in

State = dict[str, Any]
Trees = tuple[int, int]  # from the first up to but not including the second

_WINDOW = ("window_positions", "window_labels", "window_arrivals", "window_ids")
_VOTES = ("vote_power", "vote_errors", "tree_losses")


def ranges(n_trees: int, n_parts: int) -> list[Trees]:
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
    first = parts[0]
    arrivals = np.unique(np.concatenate([part["arrivals"] for part in parts]))
    numbers: list[NDArray[np.uint32]] = [
        np.asarray(np.searchsorted(arrivals, part["arrivals"]), dtype=np.uint32) for part in parts
    ]
    sizes, generations, weights, examples, parents = [], [], [], [], []
    for part, i in _by_place(parts):
        nodes, above = part["trees"][i]
        sizes.append(len(nodes))
        generations.append(int(part["tree_generations"][i]) if len(part["tree_generations"]) else 0)
        examples.append(numbers[part["number"]][nodes])
        parents.append(above)
        if len(part["tree_weights"]):
            weights.append(part["log_weights"][part["tree_weights"][i]])
    rows: list[Any] = []
    for row in weights:
        if not any(np.array_equal(row, other) for other in rows):
            rows.append(row)
    which = [
        next(j for j, other in enumerate(rows) if np.array_equal(row, other)) for row in weights
    ]
    newest = first["log_weights"][-1:]
    state = {
        **{name: first[name] for name in ("seen", "n_classes", "spread", *_WINDOW)},
        **{name: votes[name] for name in _VOTES},
        "counts": tuple(
            int(sum(counts)) for counts in zip(*(p["counts"] for p in parts), strict=True)
        ),
        "tree_sizes": np.array(sizes, dtype=np.uint32),
        "tree_places": np.concatenate([part["tree_places"] for part in parts]),
        "tree_generations": np.array(generations if any(generations) else [], dtype=np.uint32),
        "node_examples": _joined(examples, np.uint32),
        "node_parents": _joined(parents, np.uint32),
        "log_weights": np.concatenate([*(row[None] for row in rows), newest]),
        "tree_weights": np.array(which, dtype=np.uint32),
        "arrivals": arrivals,
    }
    for name in ("positions", "labels"):
        if name in first:
            state[name] = np.empty((len(arrivals), first[name].shape[1]), first[name].dtype)
            for part, places in zip(parts, numbers, strict=True):
                state[name][places] = part[name]
    state["ids"] = _merged_ids(parts, numbers, len(arrivals))
    return state


def split(state: State, trees: Sequence[Trees], rule: int) -> list[State]:
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
    return [_part(state, held, rule, i == 0) for i, held in enumerate(trees)]


def driver_state(state: State) -> State:
    """Return what the driver of a forest in this state knows."""
    known = {name: state[name] for name in ("seen", "n_classes", "spread", *_VOTES)}
    return {**known, "planted": bool(state["tree_sizes"][0] > 0)}


def _part(state: State, held: Trees, rule: int, counts: bool) -> State:
    first, end = held
    n_answering = len(state["tree_sizes"]) - len(state["tree_places"])
    growing = [i for i, place in enumerate(state["tree_places"].tolist()) if first <= place < end]
    which = [*range(first, end), *(n_answering + i for i in growing)]
    all_trees = list(trees_in(state))
    nodes = [all_trees[i][0] for i in which]
    is_planted = state["tree_sizes"][0] > 0
    kept = np.unique(np.concatenate(nodes)) if is_planted else np.arange(len(state["arrivals"]))
    generations = state["tree_generations"]
    return {
        **{name: state[name] for name in ("seen", "n_classes", "spread", *_WINDOW)},
        "vote_power": rule,
        "vote_errors": np.empty(0),
        "tree_losses": np.empty(0),
        "counts": tuple(state["counts"]) if counts else (0, 0, 0, 0),
        "tree_sizes": state["tree_sizes"][which],
        "tree_places": state["tree_places"][growing],
        "tree_generations": generations[which] if len(generations) else generations,
        "node_examples": _joined([np.searchsorted(kept, one) for one in nodes], np.uint32),
        "node_parents": _joined([all_trees[i][1] for i in which], np.uint32),
        **_weights(state, which),
        **{name: state[name][kept] for name in ("arrivals", "labels", "positions")},
        "ids": chosen_ids(state["ids"], kept),
    }


def chosen_ids(ids: Any, which: NDArray[Any]) -> Any:
    """Return some of the engine's ids."""
    if isinstance(ids, list):
        return [ids[i] for i in which]
    return None if ids is None else ids[which]


def joined_ids(parts: Sequence[Any]) -> Any:
    """Return the engine's ids one after the other."""
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    return None if parts[0] is None else np.concatenate(parts)


def _weights(state: State, which: list[int]) -> State:
    """Return the weights that some of the trees have, and the newest of all."""
    if not len(state["tree_weights"]):
        return {"log_weights": state["log_weights"][-1:], "tree_weights": state["tree_weights"]}
    used, places = np.unique(state["tree_weights"][which], return_inverse=True)
    rows = np.concatenate([state["log_weights"][used], state["log_weights"][-1:]])
    return {"log_weights": rows, "tree_weights": places.astype(np.uint32)}


def _by_place(parts: Sequence[State]) -> list[tuple[State, int]]:
    """Return every tree as its part and its number there: those that answer first, by place."""
    answering, growing = [], []
    for number, part in enumerate(parts):
        trees = list(trees_in(part))
        known = {**part, "number": number, "trees": trees}
        n = len(trees) - len(part["tree_places"])
        answering += [(known, i) for i in range(n)]
        growing += [(known, i) for i in range(n, len(trees))]
    return answering + growing


def _merged_ids(parts: Sequence[State], numbers: list[NDArray[np.uint32]], n: int) -> Any:
    every = joined_ids([part["ids"] for part in parts])
    last = np.empty(n, dtype=np.intp)  # any of those that have the example
    places = np.concatenate(numbers)
    last[places] = np.arange(len(places))
    return chosen_ids(every, last)


def _joined(arrays: Sequence[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate([np.empty(0, dtype), *arrays]).astype(dtype)
