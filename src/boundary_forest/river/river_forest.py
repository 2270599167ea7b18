"""What the River classes share."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Hashable, Mapping
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from river import base

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.checking import takes_any_columns
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.ids import as_ids, kind_of
from boundary_forest.river.encoded_forest import EncodedForest
from boundary_forest.river.named_forest import NamedForest

if TYPE_CHECKING:
    import pandas as pd

LARGEST_SEED = 2**32 - 1  # scikit-learn's bound for random_state


class RiverForest(base.Estimator):
    """What the River classes share: parameters, and a forest from the first example on."""

    _forest: NamedForest | None

    def __init__(
        self,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        n_jobs: int | None = None,
        seed: int | None = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_children = max_children
        self.metric = metric
        self.metric_params = metric_params
        self.n_jobs = n_jobs
        self.seed = seed
        self._forest = None
        self._check_parameters()

    def stats(self) -> dict[str, Any]:
        """Return what was learned and what it cost; nothing before the first example.

        Returns
        -------
        stats : dict
            As for :meth:`boundary_forest.BoundaryForestClassifier.stats`.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestRegressor
        >>> model = BoundaryForestRegressor(seed=0)
        >>> model.learn_one({"size": 0}, 1.5)
        >>> model.stats()["examples_seen"]
        1
        """
        return {} if self._forest is None else self._forest.stats()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the forest to a file.

        :func:`boundary_forest.load` returns it as the scikit-learn estimator that is the same
        learner: its columns are the features in order of appearance, by ``feature_names_in_``.
        To get a River model back, pickle it.

        Parameters
        ----------
        path : str or path-like
            The file.

        Raises
        ------
        ValueError
            Before the first example.
        TypeError
            If labels are not of one kind that sorts.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> import boundary_forest
        >>> from boundary_forest.river import BoundaryForestClassifier
        >>> model = BoundaryForestClassifier(seed=0)
        >>> model.learn_one({"size": 0}, "a")
        >>> model.learn_one({"size": 9}, "b")
        >>> path = tempfile.mkdtemp() + "/model.bf"
        >>> model.save(path)
        >>> boundary_forest.load(path).predict(pd.DataFrame({"size": [8]})).tolist()
        ['b']
        """
        if self._forest is None:
            raise ValueError("nothing has been learned yet, so there is nothing to save")
        self._forest.as_estimator(self._all_labels()).save(path)

    def _estimator(self) -> BaseBoundaryForest:
        """Return the scikit-learn estimator that is the same learner."""
        raise NotImplementedError

    def _all_labels(self) -> NDArray[Any]:
        """Return all labels in order of their codes, or any target."""
        return np.zeros(1)

    def _explanation(self, forest: NamedForest, x: dict[Any, Any]) -> Explanation:
        return forest.explanation(x, np.zeros(1))

    def _shared_parameters(self) -> dict[str, Any]:
        names = ("n_estimators", "max_children", "metric", "metric_params", "n_jobs")
        return {name: getattr(self, name) for name in names}

    def _check_parameters(self) -> None:
        seed = self.seed
        if seed is not None and not (isinstance(seed, Integral) and 0 <= seed <= LARGEST_SEED):
            raise ValueError(f"seed must be None or an integer from 0 to 2**32 - 1, got {seed!r}")
        self._estimator().check_params()

    def _before_learning(self, forest: NamedForest) -> None:
        """Tell the forest what it must know of labels that are learned next."""

    def _forest_to_learn(self, ids: NDArray[Any] | None) -> NamedForest:
        """Return the forest, or a new one that becomes it once it has learned rows with these ids.

        Raises an error if its next rows cannot have them.
        """
        forest = self._forest
        if forest is None:
            seed = random.getrandbits(32) if self.seed is None else int(self.seed)
            estimator = self._estimator()
            kind = EncodedForest if takes_any_columns(estimator) else NamedForest
            forest = kind(estimator, seed, kind_of(ids))
        forest.check_ids(ids)
        return forest

    def _learn_one(
        self, x: Mapping[Hashable, Any], label: NDArray[np.float64], id: Any = None
    ) -> None:
        ids = None if id is None else as_ids([id], 1)
        forest = self._forest_to_learn(ids)
        row = forest.row_to_learn(x, label)
        self._before_learning(forest)
        forest.learn(row, label, 1, ids)
        self._forest = forest

    def _learn_many(self, X: pd.DataFrame, labels: NDArray[np.float64], ids: Any = None) -> None:
        names = None if ids is None else as_ids(ids, len(labels))
        forest = self._forest_to_learn(names)
        rows = forest.rows_to_learn(X, labels)
        self._before_learning(forest)
        try:
            forest.learn(rows, labels, self._n_threads(), names)
        finally:  # an interrupted call keeps the rows that were published
            if forest.examples_seen:
                self._forest = forest

    def _n_threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))

    @property
    def _mutable_attributes(self) -> set[str]:
        return {"n_jobs"}

    @property
    def _raw_memory_usage(self) -> int:
        engine = 0 if self._forest is None else self._forest.n_bytes
        return int(super()._raw_memory_usage) + engine


def check_lengths(X: pd.DataFrame, y: Any) -> None:
    """Raise ValueError unless every row has one label."""
    if len(X) != len(y):
        raise ValueError(f"X has {len(X)} rows but y has {len(y)}")
