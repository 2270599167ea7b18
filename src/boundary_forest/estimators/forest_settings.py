"""What the trees of a forest are grown with, and how long they live."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from boundary_forest.estimators.engine_constants import LONGEST_LIFETIME, SHORTEST_LIFETIME
from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.metrics import canonical
from boundary_forest.estimators.row_order import RowOrder

TREE_PARAMETERS = ("n_estimators", "max_children", "metric", "metric_params")

# Beyond the paper, of the estimators that have labels; and their defaults, which are the paper's.
ADAPTIVE_PARAMETERS = {
    "feature_weights": None,
    "max_samples": None,
    "weights": "distance",
    "forgetting": None,
    "max_stored": None,
    "class_weight": None,
    "columns": None,
}
AUTO_COLUMNS = "auto"  # columns of any kind
BALANCED = "balanced"  # the class_weight that follows the examples of each class
# And of retrieval, with what is the paper's.
LATER_PARAMETERS = {**ADAPTIVE_PARAMETERS, "search": "paper"}

# What measurement found best on streams of all kinds: half of the trees have no limit, an eighth
# for 4,096 arrivals, and the rest for 16, 64, 256 and 1,024. Trees take them in turn.
_RENEWED = (4096, 16, 256, 64, 1024, 4096, 16, 64, 256, 1024, 4096, 64, 16, 1024, 256, 4096)
AUTO: tuple[int | None, ...] = tuple(life for renewed in _RENEWED for life in (None, renewed))


def checked_lifetimes(forgetting: Any) -> None:
    """Refuse what is neither None, "auto" nor lifetimes, with a ValueError."""
    if forgetting is None or (isinstance(forgetting, str) and forgetting == "auto"):
        return
    if isinstance(forgetting, str) or not hasattr(forgetting, "__len__") or not len(forgetting):
        raise ValueError(
            f"forgetting must be None, 'auto' or a list of lifetimes, got {forgetting!r}"
        )
    for lifetime in forgetting:
        whole = isinstance(lifetime, Integral) and not isinstance(lifetime, bool)
        if lifetime is not None and not (
            whole and SHORTEST_LIFETIME <= lifetime <= LONGEST_LIFETIME
        ):
            raise ValueError(
                f"forgetting contains the lifetime {lifetime!r}: each lifetime must be a number "
                f"of examples from {SHORTEST_LIFETIME} to {LONGEST_LIFETIME}, or None for trees "
                "that are never replaced"
            )


def as_written(forgetting: Any) -> str | list[int | None] | None:
    """Return the parameter as JSON has it too."""
    if forgetting is None or isinstance(forgetting, str):
        return forgetting
    return [None if lifetime is None else int(lifetime) for lifetime in forgetting]


def lifetimes_of(forgetting: str | Sequence[int | None] | None, n_trees: int) -> list[int]:
    """Return the lifetime of each tree, 0 if unlimited; nothing if no tree forgets."""
    if forgetting is None:
        return []
    lifetimes = AUTO if isinstance(forgetting, str) else forgetting
    return [lifetimes[i % len(lifetimes)] or 0 for i in range(n_trees)]


@dataclass(frozen=True)
class ForestSettings:
    """What the trees were grown with, whatever the estimator's parameters are set to later.

    Parameters
    ----------
    n_estimators, max_children, metric, metric_params
        The estimator's parameters when it began to learn.
    element_type : str
        What positions are kept as.
    n_features, label_length : int
        Numbers of each position and of each label vector.
    seed : int
        The seed.
    ids : {"none", "int64", "text"}
        What examples are named by.
    adaptive : dict
        The parameters of ``LATER_PARAMETERS`` that the estimator has.
    order : (int, int)
        How many rows ``fit`` has shuffled, and how many of them were learned.
    """

    n_estimators: int
    max_children: int | None
    metric: Any
    metric_params: dict[str, Any] | None
    element_type: str
    n_features: int
    label_length: int
    seed: int
    ids: str = "none"
    adaptive: Mapping[str, Any] = field(default_factory=dict)
    order: tuple[int, int] = (0, 0)

    @property
    def row_order(self) -> RowOrder:
        """What the numbers of rows follow from."""
        return RowOrder(self.seed, *self.order)

    @classmethod
    def of(cls, parameters: Mapping[str, Any], **more: Any) -> ForestSettings:
        """Return the settings for an estimator with these parameters."""
        max_children, metric_params = parameters["max_children"], parameters["metric_params"]
        more["order"] = tuple(more.get("order", (0, 0)))
        return cls(
            n_estimators=int(parameters["n_estimators"]),
            max_children=None if max_children is None else int(max_children),
            metric=canonical(parameters["metric"]),
            metric_params=None if metric_params is None else dict(metric_params),
            adaptive={
                name: _WRITTEN[name](parameters[name]) if name in _WRITTEN else parameters[name]
                for name in LATER_PARAMETERS
                if name in parameters
            },
            **more,
        )


def _weights(value: Any) -> Any:
    """Return weights as a list of floats."""
    if value is None or isinstance(value, str):
        return value
    return np.asarray(value, dtype=np.float64).tolist()


def _class_weights(value: Any) -> Any:
    """Return weights by class in one order, whatever order they were given in."""
    if value is None or isinstance(value, str):
        return value
    weights = {plain(label): float(weight) for label, weight in value.items()}
    return dict(sorted(weights.items(), key=lambda item: repr(item[0])))


def _whole(value: Any) -> int | None:
    return None if value is None else int(value)


# In one form each, as JSON has it too.
_WRITTEN = {
    "feature_weights": _weights,
    "forgetting": as_written,
    "max_stored": _whole,
    "class_weight": _class_weights,
}
