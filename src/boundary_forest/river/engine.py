"""A forest as the search engine of River's own k-NN."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
from river.neighbors.base import BaseNN, FunctionWrapper

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.neighbors import BoundaryForestNeighbors as SklearnNeighbors
from boundary_forest.river.river_forest import RiverForest


class BoundaryForestEngine(RiverForest, BaseNN):
    """A search engine for River's ``neighbors.KNNClassifier`` and ``neighbors.KNNRegressor``.

    A forest that stores every example finds neighbours in O(log N). Unlike River's windows it
    forgets nothing, so memory grows with the stream. While there are at most ``n_estimators``
    examples the neighbours are exact; later they are the nearest of those that the trees compared.

    Parameters
    ----------
    n_estimators : int, default=10
        Number of trees (the paper's
        n_T). More find nearer neighbours; time and memory grow with it.
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`boundary_forest.BoundaryForestClassifier`; it takes the place of River's
        ``dist_func``.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    seed : int or None, default=None
        Seed of the forest; None draws one at the first example.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, neighbors, preprocessing
    >>> from boundary_forest.river import BoundaryForestEngine
    >>> model = preprocessing.StandardScaler() | neighbors.KNNClassifier(
    ...     engine=BoundaryForestEngine(seed=0)
    ... )
    >>> accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    >>> accuracy.get() > 0.85
    True
    """

    def __init__(
        self,
        n_estimators: int = 10,
        max_children: int | None = 50,
        metric: str | Callable[..., float] = "euclidean",
        metric_params: dict[str, Any] | None = None,
        seed: int | None = None,
    ) -> None:
        super().__init__(n_estimators, max_children, metric, metric_params, None, seed)
        # River's k-NN wraps an engine's dist_func unless it is wrapped already.
        self.dist_func = FunctionWrapper(_measured_by_the_forest)
        self._items: list[Any] = []  # by arrival number

    def _estimator(self) -> BaseBoundaryForest:
        return SklearnNeighbors(search="paper", **self._shared_parameters())

    def append(self, item: tuple[dict[Any, Any], Any], **kwargs: Any) -> None:
        """Keep an item.

        Parameters
        ----------
        item : tuple
            A dict of features, and its label or target.
        **kwargs : Any
            River's; not used.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestEngine
        >>> engine = BoundaryForestEngine(seed=0)
        >>> engine.append(({"size": 0}, "a"))
        >>> engine.search(({"size": 2}, None), n_neighbors=1)
        ([({'size': 0}, 'a')], [2.0])
        """
        self._learn_one(item[0], NO_LABEL)
        self._items.append(item)

    def search(
        self, item: tuple[dict[Any, Any], Any], n_neighbors: int, **kwargs: Any
    ) -> tuple[list[Any], list[float]]:
        """Return the items nearest to this one.

        Parameters
        ----------
        item : tuple
            A dict of features, and anything.
        n_neighbors : int
            How many; fewer are found if there are fewer.
        **kwargs : Any
            River's; not used.

        Returns
        -------
        items : list
            As they were appended, nearest first.
        distances : list of float

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestEngine
        >>> engine = BoundaryForestEngine(seed=0)
        >>> engine.append(({"size": 0}, "a"))
        >>> engine.append(({"size": 9}, "b"))
        >>> engine.search(({"size": 7}, None), n_neighbors=1)
        ([({'size': 9}, 'b')], [2.0])
        """
        n = min(n_neighbors, len(self._items))
        if self._forest is None or n < 1:
            return [], []
        distances, arrivals = self._forest.neighbors(item[0], n)
        return [self._items[arrival] for arrival in arrivals], distances

    def explain(self, x: dict[Any, Any]) -> Explanation | None:
        """Explain a search for one neighbour; None before the first item.

        Parameters
        ----------
        x : dict
            Features, by name.

        Returns
        -------
        explanation : Explanation
            As for :meth:`boundary_forest.BoundaryForestNeighbors.explain`; examples are items, by
            the numbers in which they were appended.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestEngine
        >>> engine = BoundaryForestEngine(seed=0)
        >>> engine.append(({"size": 0}, "a"))
        >>> engine.append(({"size": 9}, "b"))
        >>> print(engine.explain({"size": 7}))
        nearest: 1
        from the stored examples
          #1, distance 2: weight 1.00, 10 trees
            differs in size (9, query 7: 100%)
        """
        return None if self._forest is None else self._explanation(self._forest, x)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the items' features as an index, without their labels.

        :func:`boundary_forest.load` returns a :class:`boundary_forest.BoundaryForestNeighbors`,
        whose neighbours are the numbers in which items were appended: what else there is of them is
        to be kept with it. To get the engine back with all items, pickle it.

        Parameters
        ----------
        path : str or path-like
            The file.

        Raises
        ------
        ValueError
            Before the first item.

        Examples
        --------
        >>> import tempfile
        >>> import pandas as pd
        >>> import boundary_forest
        >>> from boundary_forest.river import BoundaryForestEngine
        >>> engine = BoundaryForestEngine(seed=0)
        >>> engine.append(({"size": 0}, "a"))
        >>> engine.append(({"size": 9}, "b"))
        >>> path = tempfile.mkdtemp() + "/index.bf"
        >>> engine.save(path)
        >>> index = boundary_forest.load(path)
        >>> index.kneighbors(pd.DataFrame({"size": [7]}), 1, return_distance=False)
        array([[1]])
        """
        super().save(path)

    def refresh_targets(self) -> set[Any]:
        """Return the labels of all items.

        Returns
        -------
        labels : set
            Without None.

        Examples
        --------
        >>> from boundary_forest.river import BoundaryForestEngine
        >>> engine = BoundaryForestEngine(seed=0)
        >>> engine.append(({"size": 0}, "a"))
        >>> engine.append(({"size": 9}, "b"))
        >>> sorted(engine.refresh_targets())
        ['a', 'b']
        """
        return {label for _, label in self._items} - {None}


NO_LABEL = np.zeros((1, 1))  # a forest for retrieval does not look at labels


def _measured_by_the_forest(a: Any, b: Any, **kwargs: Any) -> float:
    raise TypeError("BoundaryForestEngine computes distances itself: pass metric, not dist_func")
