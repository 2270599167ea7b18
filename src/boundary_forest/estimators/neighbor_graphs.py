"""Neighbours as sparse graphs: ``kneighbors_graph``, and scikit-learn's transformer of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from boundary_forest.estimators.errors import as_count
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.metrics import canonical
from boundary_forest.estimators.queries import Neighbors
from boundary_forest.estimators.searching import MODES, graph_of


class NeighborGraphMixin(ClassNamePrefixFeaturesOutMixin, TransformerMixin):
    """Adds graphs to an estimator that is searched by ``_neighbors``."""

    n_neighbors: int
    mode: str
    metric: Any
    fit: Callable[..., Any]
    _require_fitted: Callable[[], Fitted]
    _neighbors: Callable[..., Neighbors]

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """Return the neighbours of each query as a sparse graph.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            The queries; None means every stored example, which is then not its own neighbour.
        n_neighbors : int or None, default=None
            Number of neighbours; None means the estimator's ``n_neighbors``.
        mode : {"connectivity", "distance"}, default="connectivity"
            Whether the edges have weight 1 or the distance.

        Returns
        -------
        graph : CSR matrix of shape (n_samples, n_samples_fit_)
            Its columns are arrival numbers, even where examples have ids; in each row the
            neighbours stand nearest first.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.kneighbors_graph([[0.2], [2.5]], 2).toarray()
        array([[1., 0., 1.],
               [0., 1., 1.]])
        """
        if mode not in MODES:
            raise ValueError(f"mode must be one of {MODES}, got {mode!r}")
        n = self.n_neighbors if n_neighbors is None else n_neighbors
        fitted = self._require_fitted()
        return graph_of(fitted, self._neighbors(fitted, X, n), mode)

    def transform(self, X: Any) -> csr_matrix:
        """Return the neighbours of each query as a sparse graph, like KNeighborsTransformer.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        graph : CSR matrix of shape (n_samples, n_samples_fit_)
            With ``mode="distance"``, ``n_neighbors`` + 1 entries per row, so that a stored example
            has ``n_neighbors`` neighbours and itself; with "connectivity", ``n_neighbors``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(1, random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.transform([[3.0]]).toarray()
        array([[0., 0., 2.]])
        """
        fitted = self._require_fitted()
        return graph_of(fitted, self._entries(fitted, X), self.mode)

    def fit_transform(self, X: Any, y: Any = None, *, ids: Any = None) -> csr_matrix:
        """Learn from scratch, and return the neighbours of each example as a sparse graph.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, int64 or str, unique in the batch and among the stored examples;
            ``kneighbors`` then returns them. Either all batches have ids or none.

        Returns
        -------
        graph : CSR matrix of shape (n_samples, n_samples)
            As ``transform`` returns it. Every example is among its own neighbours, even if it has
            more duplicates than neighbours.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> graph = BoundaryForestNeighbors(1, random_state=0).fit_transform([[0.0], [3.0], [1.0]])
        >>> graph.nnz, graph.diagonal().tolist()
        (6, [0.0, 0.0, 0.0])
        """
        self.fit(X, y, ids=ids)
        fitted = self._require_fitted()
        distances, arrivals, _ = neighbors = self._entries(fitted, X)
        if canonical(self.metric) != "inner_product":  # by which others may be closer than itself
            own = np.arange(len(arrivals))
            hidden = (arrivals != own[:, None]).all(axis=1)
            for column, itself in ((distances, 0.0), (arrivals, own[hidden])):
                column[hidden, 1:] = column[hidden, :-1]
                column[hidden, 0] = itself
        return graph_of(fitted, neighbors, self.mode)

    @property
    def n_samples_fit_(self) -> int:
        """Number of examples seen; the graphs have as many columns."""
        return int(self._require_fitted().engine.seen)

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def _entries(self, fitted: Fitted, X: Any) -> Neighbors:
        n_entries = as_count(self.n_neighbors) + (self.mode == "distance")
        n_stored = fitted.engine.stats()["examples_stored"]
        if n_entries > n_stored:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} with mode={self.mode!r} needs {n_entries} "
                f"neighbours per row, but only {n_stored} examples are stored: use a smaller "
                "n_neighbors, or learn more examples first"
            )
        return self._neighbors(fitted, X, n_entries)
