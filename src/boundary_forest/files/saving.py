"""A forest as a document and arrays: what a model file says of it.

Parameters are kept twice: as they are now, and as they were when the forest began to learn, because
set_params acts at the next ``fit`` only. Of randomness, ``seed_`` is all that learning needs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.blocks import slices
from boundary_forest.estimators.copying import taken_apart
from boundary_forest.estimators.engine_constants import ID_COLUMNS, STATE_ARRAYS
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.ids import id_column
from boundary_forest.files.layout import Streamed
from boundary_forest.files.serialization import column_arrays, written_parameters
from boundary_forest.files.writing import write_model

FileArrays = dict[str, NDArray[Any] | Streamed]


def save_forest(
    forest: BaseBoundaryForest,
    path: str | os.PathLike[str],
    attachments: Mapping[str, Any] | None = None,
) -> None:
    """Save a forest to a file, in place of what is there.

    Parameters
    ----------
    forest : estimator
        Fitted or not.
    path : str or path-like
        The file.
    attachments : dict of JSON values or None, default=None
        Further documents, by name; ``load_forest`` returns them.
    """
    write_model(path, *contents_of(forest, attachments))


def contents_of(
    forest: BaseBoundaryForest, attachments: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], FileArrays]:
    """Return the document and the arrays of a forest's file."""
    if type(forest).__module__.partition(".")[0] != __name__.partition(".")[0]:
        raise TypeError(
            f"{type(forest).__name__} is not a class of boundary_forest, so load() could not read "
            "the file: use pickle"
        )
    attached = {name: _json_array(value) for name, value in (attachments or {}).items()}
    with forest.learning_paused(), forest.changing():  # between two learning calls
        parameters = forest.get_params(deep=False)
        document: dict[str, Any] = {
            "estimator": type(forest).__name__,
            "parameters": written_parameters(parameters),
            "forest": None,
            "attachments": sorted(attached),
        }
        arrays: FileArrays = {}
        if forest.fitted is not None:
            forest.erase_forgotten()
            _check_functions(parameters, forest.fitted.parameters)
            document["forest"], arrays = _fitted_contents(forest.fitted)
    taken = sorted(arrays.keys() & attached.keys())
    if taken:
        raise ValueError(
            f"attachments must not contain {taken[0]!r}, which is the name of an array of the "
            "forest"
        )
    return document, {**arrays, **attached}


def _fitted_contents(fitted: Fitted) -> tuple[dict[str, Any], FileArrays]:
    snapshot = fitted.engine.snapshot()  # keeps its rows readable until they are written
    parts = taken_apart(fitted, snapshot.state(with_positions=False))
    state, settings, names = parts.state, parts.settings, parts.feature_names
    columns = dict(parts.columns)
    if state["ids"] is not None:
        columns |= {name: id_column(state[name]) for name in ID_COLUMNS}
    if names is not None:
        columns["feature_names"] = names
    if parts.encoder is not None:
        columns |= parts.encoder.saved()
    document = {
        "in_use": written_parameters(dict(parts.parameters)),
        "seed": settings.seed,
        "order": list(settings.order),
        "seen": state["seen"],
        "n_classes": state["n_classes"],
        "counts": list(state["counts"]),
        "has_ids": state["ids"] is not None,
        "has_feature_names": names is not None,
        "has_columns": parts.encoder is not None,
        "vote_power": state["vote_power"],
        "replays": int(state["replays"]),
        **parts.labels,
    }
    arrays: FileArrays = {}
    for name, column in columns.items():
        arrays |= column_arrays(name, column)
    shape = (len(state["arrivals"]), settings.n_features)

    def rows() -> Iterator[NDArray[Any]]:
        return (snapshot.positions(block.start, block.stop) for block in slices(*shape))

    arrays["positions"] = Streamed(np.dtype(settings.element_type), shape, rows)
    return document, arrays | {name: state[name] for name in STATE_ARRAYS}


def _json_array(value: Any) -> NDArray[np.uint8]:
    """Return JSON as an array, because it may be longer than a header should be."""
    return np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)


def _check_functions(parameters: dict[str, Any], in_use: dict[str, Any]) -> None:
    """Refuse two functions of one name, because one is given at load for each."""
    for name, function in in_use.items():
        now = parameters[name]
        if callable(function) and callable(now) and function is not now:
            raise TypeError(
                f"{name} was changed to another function after learning: call "
                f"set_params({name}=...) with the function in use, or use pickle"
            )
