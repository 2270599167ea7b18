"""What goes beyond the paper, for the River classes that learn labels and targets."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import (
    FOR_STREAMS,
    FOR_TABLES,
    importances_of,
    most_important,
)
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.river.base import RiverForest
from boundary_forest.river.named_forest import NamedForest

if TYPE_CHECKING:
    import pandas as pd


class AdaptiveRiverForest(RiverForest):
    """A River class with the parameters that go beyond the paper."""

    def __init__(
        self,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
        feature_weights: str | None = None,
        max_samples: float | None = None,
        weights: str = "distance",
        forgetting: str | list[int | None] | None = None,
        max_stored: int | None = None,
        drift_detector: Any = None,
    ) -> None:
        self.drift_detector = drift_detector
        self._detector: Any = None  # a copy of it, from the first answer on
        self.feature_weights = feature_weights
        self.max_samples = max_samples
        self.weights = weights
        self.forgetting = forgetting
        self.max_stored = max_stored
        super().__init__(n_estimators, max_children, metric, metric_params, n_jobs, seed)

    @classmethod
    def for_tables(cls, **overrides: Any) -> Self:
        """Return a model for tables: raw features of any scale, some of them useless.

        The same setting as that of :meth:`boundary_forest.BoundaryForestClassifier.for_tables`.

        Parameters
        ----------
        **overrides
            Parameters to set otherwise.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_tables(seed=0).feature_weights
        'learned'
        """
        return cls(**{**FOR_TABLES, **overrides})

    @classmethod
    def for_streams(cls, **overrides: Any) -> Self:
        """Return a model for streams that drift, whose trees come and go.

        The same setting as that of :meth:`boundary_forest.BoundaryForestClassifier.for_streams`.

        Parameters
        ----------
        **overrides
            Parameters to set otherwise.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_streams(seed=0).forgetting
        'auto'
        """
        return cls(**{**FOR_STREAMS, **overrides})

    def renew(self) -> None:
        """Bring the next renewal of trees forward, because the stream has changed.

        As :meth:`boundary_forest.BoundaryForestClassifier.renew`; nothing happens before the first
        example. A ``drift_detector`` has this called.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier.for_streams(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.renew()
        >>> model.stats()["turnover"]["renewals"]
        0
        """
        if self.forgetting is None:
            raise ValueError("renew needs forgetting, which is None: no tree has a lifetime")
        if self._forest is not None:
            self._forest.renew()

    def _learn_one(self, x: Mapping[Hashable, Any], label: NDArray[np.float64]) -> None:
        if self.drift_detector is None:
            super()._learn_one(x, label)
            return
        forest = self._forest or self._forest_to_learn()
        self._learn_watched(forest, forest.row_to_learn(x), label)

    def _learn_many(self, X: pd.DataFrame, labels: NDArray[np.float64]) -> None:
        if self.drift_detector is None:
            super()._learn_many(X, labels)
            return
        forest = self._forest_to_learn()
        rows = forest.rows_to_learn(X)
        for i in range(len(rows)):  # a renewal may come after any of them
            self._learn_watched(forest, rows[i : i + 1], labels[i : i + 1])

    def _learn_watched(
        self, forest: NamedForest, row: NDArray[np.float64], label: NDArray[np.float64]
    ) -> None:
        """Learn a row, show the detector how wrong the answer was, and renew if it signals."""
        if forest.examples_seen == 0:
            forest.learn(row, label, 1)
            self._forest = forest
            return
        said = forest.learn(row, label, 1, "predict_then_learn")
        if self._detector is None:
            self._detector = _unused(self.drift_detector)
        self._detector.update(self._loss(said.item(), label.item()))
        if self._detector.drift_detected:
            forest.renew()

    def _loss(self, said: float, true: float) -> float:
        """Return how wrong an answer was."""
        return abs(said - true)

    @property
    def feature_weights_(self) -> dict[Hashable, float]:
        """The weights that multiply squared differences, by feature; empty before any example."""
        return {} if self._forest is None else self._forest.by_name(lambda weights, _: weights)

    @property
    def feature_importances_(self) -> dict[Hashable, float]:
        """Each feature's weight times its variance, as shares that sum to 1, by feature."""
        return {} if self._forest is None else self._forest.by_name(importances_of)

    def explain(self, x: dict[Any, Any]) -> Explanation | None:
        """Return the answer to one query and what it is made of; None before the first example.

        Parameters
        ----------
        x : dict
            Features, by name.

        Returns
        -------
        explanation : Explanation
            As for :meth:`boundary_forest.BoundaryForestClassifier.explain`.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.learn_one({"size": 9}, "b")
        >>> print(model.explain({"size": 8}))
        answer 'b'
          'b': 1.00, 50 trees
        made of
          #1 'b' at 1: 1.00, 50 trees
        """
        if self._forest is None:
            return None
        explanation = self._explanation(self._forest, x)
        if not explanation.importances:
            return explanation
        named = {str(name): share for name, share in self.feature_importances_.items()}
        return replace(explanation, importances=most_important(named))

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("feature_weights", "max_samples", "weights", "forgetting", "max_stored")
        return {**super()._shared_parameters(), **{name: getattr(self, name) for name in names}}

    def _check_parameters(self) -> None:
        weights = self.feature_weights
        if weights is not None and not isinstance(weights, str):
            raise ValueError(
                "feature_weights must be None or 'learned', because features may appear at any "
                f"time, got {type(weights).__name__}: multiply the features by the square roots of "
                "weights of your own instead"
            )
        if self.drift_detector is not None:
            if not callable(getattr(self.drift_detector, "update", None)):
                raise TypeError(
                    "drift_detector must be None or have update() and drift_detected, as River's "
                    f"ADWIN has, got {self.drift_detector!r}"
                )
            if self.forgetting is None:
                raise ValueError(
                    "drift_detector needs forgetting, which is None: no tree has a lifetime that "
                    "could be ended"
                )
        super()._check_parameters()


def _unused(detector: Any) -> Any:
    """Return a copy that has seen nothing: parameters stay as they were given."""
    clone = getattr(detector, "clone", None)
    return copy.deepcopy(detector) if clone is None else clone()
