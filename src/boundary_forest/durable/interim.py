"""What the estimators and model files do not offer in public yet, in one place.

Every function here is replaced by its public namesake when there is one: ``examples_seen``,
``record_with`` and ``learn_batch`` of the estimators, attachments of model files.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from boundary_forest.estimators.batch import Batch, Recorder
from boundary_forest.files import ModelFile, write_model
from boundary_forest.files.loading import _forest_in


def examples_seen(model: Any) -> int:
    """Return how many examples a forest has learned."""
    return int(model._engine.seen) if hasattr(model, "_engine") else 0


def unfitted_copy(model: Any) -> Any:
    """Return a forest with the same parameters, unless ``fit`` would refuse them."""
    copy = clone(model)
    copy._validate_params()
    if "_frame" in model.__dict__:
        copy._frame = model._frame
    return copy


def record_with(model: Any, recorder: Recorder | None) -> None:
    """Have every learning call of a forest recorded before it learns."""
    model._journal = recorder


def learn_batch(model: Any, batch: Batch) -> None:
    """Learn a batch as it was checked."""
    names = model.__dict__.pop("feature_names_in_", None)  # rows in a journal have none
    try:
        model._learn(batch.X, batch.y, reset=False, classes=batch.classes, ids=batch.ids)
    finally:
        names = names if batch.feature_names is None else batch.feature_names
        if names is not None:
            model.feature_names_in_ = names


def captured(model: Any, attachments: dict[str, Any]) -> Callable[[str | os.PathLike[str]], None]:
    """Return what writes the forest to a file as it is now, though it learns meanwhile."""
    document, arrays = model._saved()
    attached = {
        name: np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        for name, value in attachments.items()
    }
    document["attachments"] = sorted({*attached, *({"frame"} & arrays.keys())})
    return lambda path: write_model(path, document, {**arrays, **attached})


def loaded(
    path: str | os.PathLike[str], *, mmap: bool, **functions: Any
) -> tuple[Any, dict[str, Any]]:
    """Return the forest in a file and its attachments."""
    with ModelFile(path) as file:
        attachments = {}
        for name in file.document.get("attachments", list({"frame"} & file.entries.keys())):
            text = file.array(name, "uint8").tobytes()
            with file.checking(name):
                attachments[name] = json.loads(text)
        return _forest_in(file, functions, mapped=mmap), attachments
