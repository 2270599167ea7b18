"""``class_weight``: what the votes for each class are multiplied by.

"balanced" is the engine's own affair: it counts the examples of each class (``cpp/vote/``). Weights
that the user gave are known here by class, and to the engine by code: it gets them again before
it learns a class that is new.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import (
    LARGEST_CLASS_WEIGHT,
    LEAST_CLASS_WEIGHT,
)
from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.labels import ClassLabels
from boundary_forest.estimators.labels.class_codes import ClassCodes, kind_of_label


def check_class_weight(class_weight: Any) -> None:
    """Refuse weights that are not numbers above 0."""
    if not isinstance(class_weight, Mapping):
        return
    for label, weight in class_weight.items():
        is_number = isinstance(weight, Real) and not isinstance(weight, bool)
        if not is_number or not LEAST_CLASS_WEIGHT <= float(weight) <= LARGEST_CLASS_WEIGHT:
            raise ValueError(
                "class_weight must have a number between "
                f"{LEAST_CLASS_WEIGHT} and {LARGEST_CLASS_WEIGHT} for each class, got "
                f"{plain(weight)!r} for class {plain(label)!r}"
            )


def known_classes(fitted: Fitted | None) -> ClassCodes | None:
    """Return the table of the classes that a forest knows; None without classes."""
    if fitted is None or not isinstance(fitted.labels, ClassLabels):
        return None
    return fitted.labels.codes.newest.table


def weigh_new_classes(fitted: Fitted, known: ClassCodes | None) -> None:
    """Tell the engine the weights of all classes, if there are other classes than ``known``."""
    given, table = fitted.settings.adaptive.get("class_weight"), known_classes(fitted)
    if not isinstance(given, dict) or table is None or table is known:
        return
    for label in given:
        one = table.classes[:1].tolist()[0]
        if kind_of_label(label) != kind_of_label(one):
            raise TypeError(
                f"class_weight has the class {label!r}, but y has {kind_of_label(one)} such as "
                f"{one!r}: use the classes of y as keys"
            )
    weights = np.ones(table.n_codes)
    weights[table.codes] = weights_of(table.classes.tolist(), given)
    fitted.engine.weigh_classes(weights)


def weights_of(classes: Iterable[Any], given: Mapping[Any, float]) -> NDArray[np.float64]:
    """Return the weight of each class; 1 if none was given."""
    return np.array([given.get(label, 1.0) for label in classes], dtype=np.float64)
