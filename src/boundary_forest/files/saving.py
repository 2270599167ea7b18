"""A forest as a document and arrays, and back: what a model file says of it.

Parameters are kept twice: as they are now, and as they were when the forest was begun, because
set_params acts at the next ``fit`` only. Of randomness, ``seed_`` is all that learning needs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.blocks import slices
from boundary_forest.estimators.copying import CopiedWithEngine
from boundary_forest.estimators.element_type import ELEMENT_TYPES
from boundary_forest.estimators.ids import IdTable
from boundary_forest.estimators.metrics import engine_metric
from boundary_forest.files import ModelFile, Streamed, write_model
from boundary_forest.files.values import (
    column_arrays,
    read_column,
    read_parameters,
    written_parameters,
)

FRAME = "frame"
TREE_ARRAYS = ("tree_sizes", "node_examples", "node_parents")


class SavedForest(CopiedWithEngine):
    """An estimator that can be saved to a file and loaded from it."""

    _PARAMETERS_IN_USE: ClassVar[tuple[str, ...]] = (
        "n_estimators",
        "max_children",
        "metric",
        "metric_params",
    )

    # What raw rows mean, as JSON, where the forest is that of a boundary_forest.frames.FrameModel.
    _frame: dict[str, Any]
    _ids: IdTable | None
    _settings: dict[str, Any]
    _metric_in_use: tuple[Any, dict[str, Any] | None]
    n_features_in_: int
    seed_: int

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the whole forest to a file, from which :func:`boundary_forest.load` gets it back.

        What is loaded answers and goes on learning exactly as this one. The file is replaced as a
        whole: whatever happens while it is written, the old or the new one is there, complete.

        Parameters
        ----------
        path : str or path-like
            The file; its folder must exist. The permissions of an existing file are kept.

        Raises
        ------
        TypeError
            If labels are neither str, int, bool, float nor bytes, or parameters are not JSON;
            pickle takes them. Functions (a metric, label metric or estimator) are saved by name
            and given again to ``load``.
        OSError
            If the file cannot be written; the old one stays as it was.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import boundary_forest
        >>> forest = boundary_forest.BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "model.bf"
        ...     forest.save(path)
        ...     boundary_forest.load(path).fingerprint() == forest.fingerprint()
        True
        """
        document, arrays = self._saved()
        write_model(path, document, arrays)

    # What a subclass adds

    def _saved_labels(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        """What labels mean, for the document and as arrays."""
        return {}, {}

    def _load_labels(self, file: ModelFile, forest: dict[str, Any], label_length: int) -> None:
        """The same, from a file."""

    def _in_use(self) -> dict[str, Any]:
        """The parameters that the forest was begun with, by the names of the constructor's."""
        metric, metric_params = self._metric_in_use
        settings = self._settings
        return {
            "n_estimators": settings["n_estimators"],
            "max_children": settings["max_children"],
            "metric": metric,
            "metric_params": metric_params,
        }

    def _epsilon_in_use(self) -> float | str:
        epsilon: float | None = self._settings["epsilon"]
        return "auto" if epsilon is None else epsilon

    # Saving

    def _saved(self) -> tuple[dict[str, Any], dict[str, NDArray[Any] | Streamed]]:
        if type(self).__module__.partition(".")[0] != __name__.partition(".")[0]:
            raise TypeError(
                f"{type(self).__name__} cannot be saved to a file, because load could not make it; "
                "pickle takes classes of your own"
            )
        with self._learning():  # rows never move, so they are written when others learn again
            parameters = self.get_params(deep=False)  # type: ignore[attr-defined]
            document = {
                "estimator": type(self).__name__,
                "parameters": written_parameters(parameters),
                "forest": None,
            }
            frame = _frame_array(self.__dict__.get("_frame"))
            if not hasattr(self, "_engine"):
                return document, frame
            _check_functions(parameters, self._in_use())
            document["forest"], arrays = self._saved_forest()
            return document, {**arrays, **frame}

    def _saved_forest(self) -> tuple[dict[str, Any], dict[str, NDArray[Any] | Streamed]]:
        state = self._engine.state(with_positions=False)
        labels, columns = self._saved_labels()
        if self._ids is not None:
            columns |= column_arrays("ids", self._ids.stored[1])
        if hasattr(self, "feature_names_in_"):
            columns |= column_arrays("feature_names", self.feature_names_in_)
        forest = {
            "in_use": written_parameters(self._in_use()),
            "seed": self._settings["seed"],
            "seen": state["seen"],
            "n_classes": state["n_classes"],
            "counts": list(state["counts"]),
            "has_ids": self._ids is not None,
            "has_feature_names": hasattr(self, "feature_names_in_"),
            **labels,
        }
        return forest, {**columns, **_engine_arrays(self._engine, state)}

    # Loading

    @classmethod
    def _loaded(cls, file: ModelFile, given: dict[str, Any], *, mapped: bool) -> Self:
        """The estimator that the file holds; ``given`` are the functions it names."""
        names: set[str] = set(cls._get_param_names())  # type: ignore[attr-defined]
        model = cls(**read_parameters(file, file.document.get("parameters"), names, given))
        if FRAME in file.entries:
            model._frame = read_frame(file)
        forest = file.document.get("forest")
        if forest is not None:
            if not isinstance(forest, dict):
                raise file.error("its forest is not an object", "document")
            model._load_forest(file, forest, given, mapped=mapped)
        return model

    def _load_forest(
        self, file: ModelFile, forest: dict[str, Any], given: dict[str, Any], *, mapped: bool
    ) -> None:
        in_use = read_parameters(file, forest.get("in_use"), set(self._PARAMETERS_IN_USE), given)
        begun: Any = type(self)(**in_use)
        if callable(begun.metric):  # if it is no metric, that is not the file's fault
            engine_metric(begun.metric, begun.metric_params)
        positions = file.entry("positions")
        file.expect(positions, positions.dtype.name, 2)
        n, n_features = positions.shape
        if positions.dtype.name not in ELEMENT_TYPES or n < 1 or n_features < 1:
            raise file.error(f"it is {positions.dtype} of shape {positions.shape}", "positions")
        state = _engine_state(file, forest, n)
        with file.checking("document"):
            begun._validate_params()
            if begun.n_estimators != len(state["tree_sizes"]):
                raise file.error(f"it is not of {begun.n_estimators} trees", "tree_sizes")
            begun.seed_ = _whole(forest, "seed", 2**64 - 1)
            begun._load_labels(file, forest, state["labels"].shape[1])
            begun._make_engine(positions.dtype.name, n_features, state["labels"].shape[1])
        begun.n_features_in_ = n_features
        self._take_learned(begun)
        self._load_names(file, forest, state["arrivals"])
        # Read after all else was found sound; the engine keeps the array as it is.
        state["positions"] = file.mapped("positions") if mapped else _checked_positions(file)
        with file.checking():
            self._adopt(state, positions="mapped" if mapped else "kept")

    def _take_learned(self, begun: Self) -> None:
        parameters = begun.get_params(deep=False)  # type: ignore[attr-defined]
        learned = {name: v for name, v in begun.__dict__.items() if name not in parameters}
        self.__dict__.update(learned)

    def _load_names(
        self, file: ModelFile, forest: dict[str, Any], arrivals: NDArray[np.uint64]
    ) -> None:
        self._ids = None
        if _flag(file, forest, "has_ids"):
            with file.checking("ids"):
                self._ids = IdTable.of_stored(arrivals.astype(np.int64), read_column(file, "ids"))
        if _flag(file, forest, "has_feature_names"):
            names = read_column(file, "feature_names")
            all_text = names.dtype.kind == "O" and all(type(name) is str for name in names)
            if len(names) != self.n_features_in_ or not all_text:
                raise file.error("it does not name every feature", "feature_names")
            self.feature_names_in_ = names


def _frame_array(frame: dict[str, Any] | None) -> dict[str, NDArray[Any] | Streamed]:
    """JSON as an array, because it has every category of every column and may be long."""
    if frame is None:
        return {}
    return {FRAME: np.frombuffer(json.dumps(frame).encode(), dtype=np.uint8)}


def read_frame(file: ModelFile) -> dict[str, Any]:
    """What raw rows mean, in a file that has it; boundary_forest.frames checks what it says."""
    text = file.array(FRAME, "uint8").tobytes()
    with file.checking(FRAME):
        frame = json.loads(text)
        if not isinstance(frame, dict):
            raise ValueError("it is not an object")
        return frame


def _check_functions(parameters: dict[str, Any], in_use: dict[str, Any]) -> None:
    """One function is given at load for each name, so there must be no two."""
    for name, function in in_use.items():
        now = parameters[name]
        if callable(function) and callable(now) and function is not now:
            raise TypeError(
                f"{name} was set to another function after learning, and a file has room for one: "
                f"set_params({name}=...) to the one in use, or pickle the forest"
            )


def _engine_arrays(engine: Any, state: dict[str, Any]) -> dict[str, NDArray[Any] | Streamed]:
    first = engine.rows_from(0)
    shape = (len(state["arrivals"]), first.shape[1])
    return {
        "positions": Streamed(first.dtype, shape, lambda: _row_blocks(engine, shape[0])),
        **{name: state[name] for name in ("labels", "arrivals", "spread", *TREE_ARRAYS)},
    }


def _row_blocks(engine: Any, n: int) -> Iterator[NDArray[Any]]:
    """The first n rows, as they lie in memory."""
    at = 0
    while at < n:
        rows = engine.rows_from(at)[: n - at]
        yield rows
        at += len(rows)


def _engine_state(file: ModelFile, forest: dict[str, Any], n: int) -> dict[str, Any]:
    """What the engine is restored from, but for positions; it checks the rest itself."""
    labels = file.array("labels", "float64", 2)
    arrivals = file.array("arrivals", "uint64")
    for name, array in (("labels", labels), ("arrivals", arrivals)):
        if len(array) != n:
            raise file.error(f"it has {len(array)} examples, and positions {n}", name)
    with file.checking("document"):
        counts = forest["counts"]
        if not isinstance(counts, list) or len(counts) != 4:
            raise ValueError("its counts are not four numbers")
        return {
            "seen": _whole(forest, "seen", 2**53),
            "n_classes": _whole(forest, "n_classes", 2**32 - 1),
            "counts": tuple(_whole({"counts": c}, "counts", 2**64 - 1) for c in counts),
            "spread": file.array("spread", "float64"),
            **{name: file.array(name, "uint32") for name in TREE_ARRAYS},
            "labels": labels,
            "arrivals": arrivals,
        }


def _checked_positions(file: ModelFile) -> NDArray[Any]:
    """The positions, read whole and checked."""
    positions = file.array("positions", file.entry("positions").dtype.name, 2)
    for block in slices(*positions.shape) if positions.dtype != np.uint8 else ():
        finite = np.isfinite(positions[block])
        if not finite.all():
            row = block.start + int(np.flatnonzero(~finite.all(axis=1))[0])
            raise file.error(f"row {row} has a value that is not finite", "positions")
    return positions


def _whole(part: dict[str, Any], name: str, largest: int) -> int:
    value = part[name]
    if type(value) is not int or not 0 <= value <= largest:
        raise ValueError(f"its {name} is {str(value)[:40]}, not a number from 0 to {largest}")
    return value


def _flag(file: ModelFile, part: dict[str, Any], name: str) -> bool:
    value = part.get(name)
    if not isinstance(value, bool):
        raise file.error(f"its {name} is neither true nor false", "document")
    return value
