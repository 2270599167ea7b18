"""Retrieval: no labels, and every example is kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.labels.policy import Endings, LabelColumns


@dataclass(frozen=True)
class NoLabels:
    """The policy of retrieval; an answer is the nearest example."""

    parameter_names: ClassVar[tuple[str, ...]] = ()

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the policy, which has no parameters."""
        return cls()

    @property
    def parameters(self) -> dict[str, Any]:
        """None."""
        return {}

    @property
    def rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon."""
        return {"label_metric": "always", "estimator": "nearest", "epsilon": 0.0}

    def checked(self, y: Any, n_rows: int) -> None:
        """Return None, whatever was given as labels."""
        return

    def encoded(
        self, y: NDArray[Any] | None, classes: NDArray[Any] | None, n_rows: int, n_met: int
    ) -> tuple[NDArray[np.float64], Self]:
        """Return label vectors of length 0."""
        return np.zeros((n_rows, 0)), self

    def ranks(self, n_met: int | None = None) -> None:
        """Return None: there are no classes."""
        return

    def answers(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the label vectors, which are empty."""
        return labels

    def shown(self, labels: NDArray[np.float64]) -> list[None]:
        """Return None for each example."""
        return [None] * len(labels)

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights: those of the nearest example."""
        return weights

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return the nearest example, and the share of the trees that found it."""
        nearest = int(np.flatnonzero(endings.weights > 0)[0])
        same = endings.arrivals == endings.arrivals[nearest]
        return endings.names[nearest : nearest + 1].tolist()[0], float(same.mean())

    def keys(self) -> None:
        """Return None: there is nothing that needs a key."""
        return

    def saved(self, n_met: int) -> tuple[dict[str, Any], LabelColumns]:
        """Return nothing to save."""
        return {}, {}

    def loaded(
        self, document: Mapping[str, Any], column: Callable[[str], NDArray[Any]], label_length: int
    ) -> Self:
        """Return the policy; nothing of it is in the file."""
        return self

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse a state without an example that was seen, unless it may have been forgotten."""
        replaced = len(state["tree_generations"]) > 0
        if not replaced and state["ids"] is None and len(state["arrivals"]) != state["seen"]:
            raise ValueError(
                "arrivals has fewer examples than were learned, but retrieval stores all of them"
            )
