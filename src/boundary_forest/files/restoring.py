"""A forest from a document and arrays: nothing is used before it is checked."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.blocks import slices
from boundary_forest.estimators.columns import ColumnEncoder
from boundary_forest.estimators.copying import Parts, filled, unfilled
from boundary_forest.estimators.engine_constants import (
    ELEMENT_TYPE,
    ELEMENT_TYPES,
    EXPERTS,
    LONGEST_WINDOW,
    MOST_KNOTS,
    MOST_LINEAR_FEATURES,
    MOST_LINEAR_OUTPUTS,
    MOST_MEMBERS,
    MOST_SEEN,
    MOST_TERMS,
    N_STREAM_MODELS,
    STATE_ARRAYS,
    STREAM_EXPERTS,
    STREAM_RULES,
    TABLE_RULES,
)
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import (
    AUTO_COLUMNS,
    LATER_PARAMETERS,
    TREE_PARAMETERS,
    ForestSettings,
)
from boundary_forest.estimators.ids import as_ids, engine_ids, kind_of
from boundary_forest.estimators.labels import NoLabels
from boundary_forest.estimators.metrics import engine_metric
from boundary_forest.files.reading import ModelFile
from boundary_forest.files.serialization import column_length, read_column, read_parameters

FRAME = "frame"
_LONGEST_SPREAD = 8  # for each number of a label, and for all of them; the engine knows exactly


def restored(
    kind: type[BaseBoundaryForest], file: ModelFile, functions: dict[str, Any], *, mapped: bool
) -> BaseBoundaryForest:
    """Return the estimator that a file holds; ``functions`` are those that it names."""
    names = set(kind().get_params(deep=False))
    model = kind(**read_parameters(file, file.document.get("parameters"), names, functions))
    forest = file.document.get("forest")
    if forest is not None:
        if not isinstance(forest, dict):
            raise file.error("its forest is not an object", "document")
        model.fitted = _fitted(kind, file, forest, functions, mapped=mapped)
    return model


def attachments_in(file: ModelFile) -> dict[str, Any]:
    """Return the further documents of a file, by name; whoever wrote them checks what they say."""
    names = file.document.get("attachments")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise file.error("its attachments are not a list of names", "document")
    attachments = {}
    for name in names:
        text = file.array(name, "uint8").tobytes()
        with file.checking(name):
            attachments[name] = json.loads(text)
    return attachments


def _fitted(
    kind: type[BaseBoundaryForest],
    file: ModelFile,
    forest: dict[str, Any],
    functions: dict[str, Any],
    *,
    mapped: bool,
) -> Fitted:
    names = set(kind().get_params(deep=False))
    names &= {*TREE_PARAMETERS, *LATER_PARAMETERS, *kind.label_policy.parameter_names}
    in_use = read_parameters(file, forest.get("in_use"), names, functions)
    if callable(in_use["metric"]):  # if it is no metric, that is not the file's fault
        engine_metric(in_use["metric"], in_use["metric_params"])
    positions = file.entry("positions")
    file.expect(positions, positions.dtype.name, 2)
    n, n_features = positions.shape
    # An index may have forgotten everything.
    may_be_empty = forest.get("seen") == 0 and kind.label_policy is NoLabels
    least = 0 if may_be_empty else 1
    if positions.dtype.name not in ELEMENT_TYPES or n < least or n_features < 1:
        raise file.error(
            f"unsupported dtype {positions.dtype} or shape {positions.shape}", "positions"
        )
    _check_shapes(file, n, in_use["n_estimators"])
    state = _engine_state(file, forest)
    ids = _ids(file, forest, "ids", n)
    window_ids = _ids(file, forest, "window_ids", len(state["window_arrivals"]))
    with file.checking("document"):
        kind(**in_use).check_params()
        settings = ForestSettings.of(
            in_use,
            element_type=positions.dtype.name,
            n_features=n_features,
            label_length=state["labels"].shape[1],
            seed=_whole(forest, "seed", 2**64 - 1),
            ids=kind_of(ids),
            order=_order(forest),
        )
        encoder = _encoder(file, forest, settings)
        n_columns = n_features if encoder is None else encoder.n_columns
        feature_names = _feature_names(file, forest, n_columns)
        parts = Parts(settings, in_use, forest, _Columns(file), feature_names, state, encoder)
        fitted = unfilled(kind.label_policy, parts)
    if ids is not None and window_ids is not None:
        state["ids"], state["window_ids"] = engine_ids(ids), engine_ids(window_ids)
        with file.checking("ids"):
            fitted.engine.check_ids(state["ids"])
    # Read after all else was found sound; the engine keeps the array as it is.
    state["positions"] = file.mapped("positions") if mapped else _checked_positions(file)
    with file.checking():
        return filled(fitted, state, positions="mapped" if mapped else "kept")


class _Columns(dict[str, NDArray[Any]]):
    """The columns of a file, read when they are needed."""

    def __init__(self, file: ModelFile) -> None:
        super().__init__()
        self._file = file

    def __missing__(self, name: str) -> NDArray[Any]:
        return read_column(self._file, name)


def _ids(file: ModelFile, forest: dict[str, Any], name: str, n: int) -> NDArray[Any] | None:
    if not _flag(file, forest, "has_ids"):
        return None
    ids = read_column(file, name)
    with file.checking(name):
        if len(ids) != n or (n > 0 and ids.dtype != as_ids(ids, n).dtype):
            raise ValueError("ids must be int64 or str, one per example")
    return ids


def _encoder(
    file: ModelFile, forest: dict[str, Any], settings: ForestSettings
) -> ColumnEncoder | None:
    if not _flag(file, forest, "has_columns"):
        return None
    if settings.adaptive.get("columns") != AUTO_COLUMNS:
        raise ValueError("it has columns of any kind, but columns is not 'auto'")
    encoder = ColumnEncoder.loaded(_Columns(file), settings.element_type, settings.label_length)
    if encoder.width > settings.n_features or encoder.n_columns < 1:
        raise ValueError(
            f"its columns need {encoder.width} features, but it has {settings.n_features}"
        )
    return encoder


def _feature_names(file: ModelFile, forest: dict[str, Any], n_features: int) -> NDArray[Any] | None:
    if not _flag(file, forest, "has_feature_names"):
        return None
    names = read_column(file, "feature_names")
    all_text = names.dtype.kind == "O" and all(type(name) is str for name in names)
    if len(names) != n_features or not all_text:
        raise file.error("it must have one name per feature", "feature_names")
    return names


def longest_mixture(n_features: int, label_length: int, n_classes: int) -> dict[str, int]:
    """Return how long the arrays of a mixture may be; the engine knows exactly."""
    n, outputs = max(len(EXPERTS), len(STREAM_EXPERTS)), max(label_length, MOST_LINEAR_OUTPUTS)
    n_features = min(n_features, MOST_LINEAR_FEATURES)  # that models have
    mapped = (1 + MOST_KNOTS) * n_features  # features of the models of tables
    terms = mapped + MOST_TERMS
    return {
        "mixture_weights": n + 1,
        "mixture_trial": n * (n + 3) + label_length + n_classes + 100,
        "linear_map": (2 + MOST_KNOTS) * n_features + 3,
        "linear_sums": max(
            (terms + 3) * (terms + outputs + 2),
            N_STREAM_MODELS * (n_features + 3) * (n_features + outputs + 2),
        ),
        "linear_model": max(
            (mapped + terms + 2) * outputs, N_STREAM_MODELS * (n_features + 1) * outputs
        ),
    }


def _check_shapes(file: ModelFile, n: int, n_estimators: Any) -> None:
    """Refuse arrays whose lengths do not agree, before any of them is read."""
    for name in STATE_ARRAYS:
        file.expect(file.entry(name), *_type(file, name))
    length = {name: entry.shape[0] for name, entry in file.entries.items() if entry.shape}
    for name in ("labels", "arrivals"):
        if length[name] != n:
            raise file.error(f"it has {length[name]} examples, but positions has {n}", name)
    nodes, trees = length["node_examples"], length["tree_sizes"]
    if trees - length["tree_places"] != n_estimators:
        raise file.error(f"it must have {str(n_estimators)[:40]} trees", "tree_sizes")
    if length["node_parents"] != nodes:
        raise file.error(
            f"it has {length['node_parents']} nodes, but node_examples has {nodes}", "node_parents"
        )
    # Examples of the reservoir may be in no tree, and in a tree more than once.
    members = length["reservoir_arrivals"]
    if not (nodes == 0 or n <= nodes + members) or (nodes > n * trees and members == 0):
        raise file.error(
            f"it has {nodes} nodes, which {trees} trees of {n} examples cannot have",
            "node_examples",
        )
    n_features, label_length = file.entry("positions").shape[1], file.entry("labels").shape[1]
    if file.entry("window_positions").shape[1] != n_features:
        raise file.error(f"its rows must have {n_features} features", "window_positions")
    most = {"log_weights": trees + 1, "tree_weights": trees, "tree_losses": trees}
    most |= {"vote_errors": max(len(TABLE_RULES) * label_length, len(STREAM_RULES))}
    most |= {"reservoir_arrivals": MOST_MEMBERS}
    most |= {"spread": _LONGEST_SPREAD * (1 + label_length)}
    most |= longest_mixture(n_features, label_length, length["class_order"])
    most |= {name: LONGEST_WINDOW for name in STATE_ARRAYS if name.startswith("window_")}
    for name, largest in most.items():
        if length[name] > largest:
            raise file.error(
                f"it has {length[name]} rows, but at most {largest} are possible", name
            )
    classes = column_length(file, "classes")
    for name in ("class_codes", "class_declared"):
        if classes is not None and length.get(name) != classes:
            raise file.error(f"it must have one value for each of the {classes} classes", name)


def _engine_state(file: ModelFile, forest: dict[str, Any]) -> dict[str, Any]:
    """Return what the engine is restored from, except positions; it checks the rest itself."""
    arrays = {name: file.array(name, *_type(file, name)) for name in STATE_ARRAYS}
    _check_finite(file, arrays["window_positions"], "window_positions")
    with file.checking("document"):
        counts = forest["counts"]
        if not isinstance(counts, list) or len(counts) != 4:
            raise ValueError("counts must be four numbers")
        return {
            "seen": _whole(forest, "seen", MOST_SEEN),
            "n_classes": _whole(forest, "n_classes", 2**32 - 1),
            "counts": tuple(_whole({"counts": c}, "counts", 2**64 - 1) for c in counts),
            "vote_power": _whole(forest, "vote_power", len(STREAM_RULES) - 1),
            "replays": bool(_whole(forest, "replays", 1)),
            "ids": None,
            "window_ids": None,
            **arrays,
        }


def _type(file: ModelFile, name: str) -> tuple[str, int]:
    dtype, n_dimensions = STATE_ARRAYS[name]
    return file.entry("positions").dtype.name if dtype == ELEMENT_TYPE else dtype, n_dimensions


def _checked_positions(file: ModelFile) -> NDArray[Any]:
    """Return the positions, read whole and checked."""
    positions = file.array("positions", file.entry("positions").dtype.name, 2)
    _check_finite(file, positions, "positions")
    return positions


def _check_finite(file: ModelFile, positions: NDArray[Any], name: str) -> None:
    for block in slices(*positions.shape) if positions.dtype.kind == "f" else ():
        finite = np.isfinite(positions[block])
        if not finite.all():
            row = block.start + int(np.flatnonzero(~finite.all(axis=1))[0])
            raise file.error(f"row {row} has a value that is not finite", name)


def _whole(part: dict[str, Any], name: str, largest: int) -> int:
    value = part[name]
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"{name} must be an integer from 0 to {largest}, got {str(value)[:40]}")
    return value


def _order(forest: dict[str, Any]) -> tuple[int, int]:
    order = forest["order"]
    if not isinstance(order, list) or len(order) != 2:
        raise ValueError("order must be two integers")
    n_rows, n_learned = (_whole({"order": value}, "order", MOST_SEEN) for value in order)
    if n_learned > n_rows or (n_learned == 0) != (n_rows == 0):
        raise ValueError("order must not have more rows learned than shuffled")
    return n_rows, n_learned


def _flag(file: ModelFile, part: dict[str, Any], name: str) -> bool:
    value = part.get(name)
    if not isinstance(value, bool):
        raise file.error(f"{name} must be true or false", "document")
    return value
