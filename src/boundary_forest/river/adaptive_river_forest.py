"""Extensions of the paper, for the River classes that learn labels and targets."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any, Self

from boundary_forest.estimators.adaptive import (
    importances_of,
    most_important,
    stream_parameters,
    table_parameters,
)
from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.forest_settings import AUTO_COLUMNS
from boundary_forest.river.river_forest import RiverForest


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
        columns: str | None = None,
    ) -> None:
        self.columns = columns
        self.feature_weights = feature_weights
        self.max_samples = max_samples
        self.weights = weights
        self.forgetting = forgetting
        self.max_stored = max_stored
        super().__init__(n_estimators, max_children, metric, metric_params, n_jobs, seed)

    @classmethod
    def for_tables(cls, **overrides: Any) -> Self:
        """Return a model for tables with raw features, of which some may be useless.

        The same setting as that of :meth:`boundary_forest.BoundaryForestClassifier.for_tables`.

        Parameters
        ----------
        **overrides
            Parameters that differ from this setting.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_tables(seed=0).feature_weights
        'learned'
        """
        return cls(**{"columns": AUTO_COLUMNS, **table_parameters(overrides)})

    @classmethod
    def for_streams(cls, **overrides: Any) -> Self:
        """Return a model for streams that drift: its trees have lifetimes.

        The same setting as that of :meth:`boundary_forest.BoundaryForestClassifier.for_streams`.

        Parameters
        ----------
        **overrides
            Parameters that differ from this setting.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_streams(seed=0).forgetting
        'auto'
        """
        return cls(**{**stream_parameters(overrides), "columns": AUTO_COLUMNS, **overrides})

    @property
    def feature_weights_(self) -> dict[Hashable, float]:
        """The weights that multiply squared differences, by feature; empty before any example."""
        return {} if self._forest is None else self._forest.by_name(lambda weights, _: weights)

    @property
    def feature_importances_(self) -> dict[Hashable, float]:
        """Each feature's weight times its variance, as shares that sum to 1, by feature."""
        return {} if self._forest is None else self._forest.by_column(importances_of)

    @property
    def mixture_(self) -> dict[str, float]:
        """With ``weights="mixture"``, the weight of each expert that has one, by name."""
        return {} if self._forest is None else self._forest.mixture

    def forget(self, ids: Any) -> None:
        """Forget the examples with these ids.

        They are removed from all trees and from memory, and files and pickles that are made later
        do not contain them. Their labels stay known.

        Parameters
        ----------
        ids : array-like of int or str
            As they were given to ``learn_one`` or ``learn_many``. Those of examples that no tree
            stores are unknown.

        Raises
        ------
        KeyError
            If some ids are unknown. It lists them, and nothing is removed.
        ValueError
            If no example would be left, or examples have no ids.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a", id="ann")
        >>> model.learn_one({"size": 9}, "b", id="bob")
        >>> model.forget(["bob"])
        >>> model.predict_one({"size": 8})
        'a'
        """
        if self._forest is None:
            raise KeyError("forget() got ids, but nothing has been learned yet")
        if self._forest.ids == NONE:
            raise ValueError(
                "the examples of this model have no ids: pass id=... to learn_one(), or ids=... to "
                "learn_many(), to use them"
            )
        self._forest.forget(ids, self._n_threads())

    def explain(self, x: dict[Any, Any]) -> Explanation | None:
        """Explain the prediction for one query; None before the first example.

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
        prediction: 'b'
          'b': weight 1.00, 50 trees
        from the stored examples
          #1, label 'b', distance 1: weight 1.00, 50 trees
            differs in size (9, query 8: 100%)
        """
        if self._forest is None:
            return None
        explanation = self._explanation(self._forest, x)
        if not explanation.importances:
            return explanation
        named = {str(name): share for name, share in self.feature_importances_.items()}
        return replace(explanation, importances=most_important(named))

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("feature_weights", "max_samples", "weights", "forgetting", "max_stored", "columns")
        return {**super()._shared_parameters(), **{name: getattr(self, name) for name in names}}

    def _check_parameters(self) -> None:
        weights = self.feature_weights
        if weights is not None and not isinstance(weights, str):
            raise ValueError(
                "feature_weights must be None or 'learned', because features may appear at any "
                f"time, got {type(weights).__name__}: multiply the features by the square roots "
                "of your weights instead"
            )
        super()._check_parameters()
