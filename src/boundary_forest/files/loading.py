"""Model files: loading whichever estimator was saved, checking and describing a file."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import Any

import numpy as np

from boundary_forest.estimators.adaptive import importances_of, named_importances
from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.classifier import BoundaryForestClassifier
from boundary_forest.estimators.engine_constants import LOG_WEIGHTS_PER_OCTAVE
from boundary_forest.estimators.forest import BoundaryForest
from boundary_forest.estimators.forest_settings import checked_lifetimes, lifetimes_of
from boundary_forest.estimators.labels import ClassLabels
from boundary_forest.estimators.lifetime_stats import Turnover, turnover_of
from boundary_forest.estimators.neighbors import BoundaryForestNeighbors
from boundary_forest.estimators.regressor import BoundaryForestRegressor
from boundary_forest.files.reading import ModelFile
from boundary_forest.files.restoring import FRAME, attachments_in, restored
from boundary_forest.files.serialization import CALLABLE, column_length, is_named, read_column

ESTIMATORS: dict[str, type[BaseBoundaryForest]] = {
    kind.__name__: kind
    for kind in (
        BoundaryForest,
        BoundaryForestClassifier,
        BoundaryForestNeighbors,
        BoundaryForestRegressor,
    )
}
FUNCTIONS = ("metric", "label_metric", "estimator")


def load(
    path: str | os.PathLike[str],
    *,
    mmap: bool = False,
    metric: Any = None,
    label_metric: Any = None,
    estimator: Any = None,
) -> Any:
    """Load a model that ``save`` wrote.

    Everything in the file is checked before it is used, and no code in it is run.

    Parameters
    ----------
    path : str or path-like
        The file.
    mmap : bool, default=False
        Whether positions stay in the file and are read when they are needed. Learning continues in
        memory, and the file is not changed. Positions are then not checked: bad ones may give
        wrong answers; ``boundary-forest verify`` finds them. The file must not be truncated or
        rewritten in place while the model is in use; saving to the same path is safe.
    metric, label_metric, estimator : callable or None, default=None
        The functions that the model was saved with, if it was: a file has only their names.

    Returns
    -------
    model : BoundaryForestClassifier, BoundaryForestRegressor, BoundaryForestNeighbors, \
            BoundaryForest or boundary_forest.frames.FrameModel
        Whichever was saved, as it was. The last is what ``boundary-forest stream`` and ``fit``
        save: a forest that takes raw rows, which needs pyarrow.

    Raises
    ------
    ModelFileError
        If the file is damaged, is not a model, or is of another format.
    TypeError
        If a function must be given and is not, or the other way round.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import boundary_forest
    >>> forest = boundary_forest.BoundaryForestClassifier(random_state=0)
    >>> forest = forest.fit([[0], [9]], ["a", "b"])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "model.bf"
    ...     forest.save(path)
    ...     other = boundary_forest.load(path)
    >>> other.partial_fit([[4]], ["c"]).predict([[5]]).tolist()
    ['c']
    """
    given = {"metric": metric, "label_metric": label_metric, "estimator": estimator}
    with ModelFile(path) as file:
        forest, attachments = _forest_in(file, given, mapped=mmap)
        return forest if FRAME not in attachments else _framed(file, forest, attachments)


def load_forest(
    path: str | os.PathLike[str], *, mmap: bool = False, **functions: Any
) -> tuple[BaseBoundaryForest, dict[str, Any]]:
    """Load the estimator in a file, and the documents that were attached to it.

    Parameters
    ----------
    path, mmap, **functions
        As for ``load``.

    Returns
    -------
    forest : estimator
        The forest itself, also where ``load`` returns one that takes raw rows.
    attachments : dict of JSON values
        What ``save_forest`` was given.
    """
    with ModelFile(path) as file:
        return _forest_in(file, functions, mapped=mmap)


def _forest_in(
    file: ModelFile, given: dict[str, Any], *, mapped: bool
) -> tuple[BaseBoundaryForest, dict[str, Any]]:
    kind = _kind_of(file)
    functions = {name: f for name, f in given.items() if f is not None}
    _check_given(file, functions)
    attachments = attachments_in(file)
    return restored(kind, file, functions, mapped=mapped), attachments


def _framed(file: ModelFile, forest: BaseBoundaryForest, attachments: dict[str, Any]) -> Any:
    try:
        from boundary_forest.frames import FrameModel  # needs pyarrow, which other models do not
    except ModuleNotFoundError as error:
        if error.name != "pyarrow":
            raise
        raise ModuleNotFoundError(
            f"{file.path} is a model for raw rows, which requires pyarrow: pip install pyarrow",
            name="pyarrow",
        ) from error
    with file.checking(FRAME):
        return FrameModel.of_forest(forest, attachments)


def verify(path: str | os.PathLike[str]) -> None:
    """Check a whole file, positions too; ModelFileError says what is wrong with it.

    Parameters
    ----------
    path : str or path-like
        The file. Functions that it names need not be given: none is called.
    """
    with ModelFile(path) as file:
        functions = dict.fromkeys(named_functions(file), _not_called)
        forest = restored(_kind_of(file), file, functions, mapped=False)
        attachments = attachments_in(file)
        if FRAME in attachments:
            _framed(file, forest, attachments)


def describe(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Return what a file says of its model, without its examples; ``verify`` checks all of it.

    Parameters
    ----------
    path : str or path-like
        The file.

    Returns
    -------
    description : dict
        Plain JSON.
    """
    with ModelFile(path) as file, file.checking("document"):
        forest = file.document["forest"]
        described: dict[str, Any] = {
            "file": file.path,
            "bytes": file.size,
            "format_version": file.version,
            "model": _kind_of(file).__name__,
            "parameters": dict(file.document["parameters"]),
            "fitted": forest is not None,
        }
        attachments = attachments_in(file)
        if FRAME in attachments:
            described["frame"] = attachments[FRAME]
        if forest is not None:
            described |= _described_forest(file, forest)
        described["arrays"] = {
            entry.name: {"dtype": entry.dtype.name, "shape": entry.shape, "bytes": entry.n_bytes}
            for entry in file.entries.values()
        }
        return described


def _described_forest(file: ModelFile, forest: dict[str, Any]) -> dict[str, Any]:
    n, n_features = file.entry("positions").shape
    (n_trees,), (n_nodes,) = file.entry("tree_sizes").shape, file.entry("node_examples").shape
    (n_growing,) = file.entry("tree_places").shape
    described: dict[str, Any] = {
        "in_use": dict(forest["in_use"]),
        "seed": int(forest["seed"]),
        "examples_seen": int(forest["seen"]),
        "examples_stored": n,
        "features": n_features,
        "feature_names": bool(forest["has_feature_names"]),
        "ids": bool(forest["has_ids"]),
        "dtype": file.entry("positions").dtype.name,
        "classes": column_length(file, "classes"),
        "label_length": file.entry("labels").shape[1],
        "trees": n_trees - n_growing,
        "growing_trees": n_growing,
        "nodes": n_nodes,
    }
    if file.entry("log_weights").shape[0]:
        described["feature_importances"] = _importances(file, forest)
    if described["in_use"].get("forgetting") is not None:
        described["turnover"] = asdict(_turnover(file, forest, n_trees - n_growing))
    return described


def _turnover(file: ModelFile, forest: dict[str, Any], n: int) -> Turnover:
    """Return how the n trees of a forest that forgets stand, as the forest itself would."""
    forgetting, seen = forest["in_use"]["forgetting"], int(forest["seen"])
    checked_lifetimes(forgetting)

    arrivals = file.array("arrivals", "uint64")[file.array("node_examples", "uint32")]
    ends = np.cumsum(file.array("tree_sizes", "uint32").astype(np.int64))
    trees = np.split(arrivals, ends[:-1])[:n] if len(arrivals) else []
    tree_stats = {
        "ages": [seen - int(tree.min()) for tree in trees],
        "generations": file.array("tree_generations", "uint32").tolist() or [0] * n,
        "losses": file.array("tree_losses", "float64").tolist(),
        "rule": int(forest["vote_power"]),
    }
    classes = issubclass(_kind_of(file).label_policy, ClassLabels)
    return turnover_of(tree_stats, lifetimes_of(forgetting, n), classes=classes)


def _importances(file: ModelFile, forest: dict[str, Any]) -> dict[str, float]:
    """Return the importances of features by learned weights, as the forest itself would."""
    weights = 2.0 ** (file.array("log_weights", "int32", 2)[-1] / LOG_WEIGHTS_PER_OCTAVE)
    window = file.array("window_positions", file.entry("positions").dtype.name, 2)
    importances = importances_of(weights, window.astype(np.float64).var(axis=0))
    names = read_column(file, "feature_names") if forest["has_feature_names"] else None
    if forest["has_columns"]:
        columns, n = read_column(file, "feature_columns"), len(read_column(file, "column_kinds"))
        sums = np.bincount(columns, importances[: len(columns)], minlength=n)
        importances = sums.astype(np.float64)
    return named_importances(names, importances)


def _kind_of(file: ModelFile) -> type[BaseBoundaryForest]:
    name = file.document.get("estimator")
    if not isinstance(name, str) or name not in ESTIMATORS:
        raise file.error(f"unknown estimator {str(name)[:80]!r}", "document")
    return ESTIMATORS[name]


def named_functions(file: ModelFile) -> dict[str, str]:
    """Return the parameters that are functions, and the functions' names."""
    forest = file.document.get("forest")
    in_use = forest.get("in_use") if isinstance(forest, dict) else None
    named = {}
    for parameters in (file.document.get("parameters"), in_use):
        for name, value in parameters.items() if isinstance(parameters, dict) else ():
            if name in FUNCTIONS and is_named(value):
                named[name] = str(value[CALLABLE])
    return named


def _check_given(file: ModelFile, given: dict[str, Any]) -> None:
    named = named_functions(file)
    for name, function in named.items():
        if name not in given:
            raise TypeError(
                f"{file.path} was saved with the function {function} as {name}, but files contain "
                f"no code: pass the same function with load(path, {name}=...)"
            )
    for name, function in given.items():
        if name not in named:
            raise TypeError(
                f"{file.path} was saved without a function as {name}: do not pass {name}"
            )
        if not callable(function):
            raise TypeError(f"{name} must be the function {named[name]}, got {function!r}")


def _not_called(*arguments: Any, **parameters: Any) -> Any:
    raise RuntimeError("functions must not be called while a file is checked")
