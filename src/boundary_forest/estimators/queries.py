"""Queries: what can be read from a fitted forest."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from boundary_forest.estimators.blocks import joined, row_blocks
from boundary_forest.estimators.checking import n_threads, query_positions
from boundary_forest.estimators.copying import fingerprint_of
from boundary_forest.estimators.element_type import as_queries
from boundary_forest.estimators.errors import as_count
from boundary_forest.estimators.explaining import explanation_of
from boundary_forest.estimators.explanation import Explanation
from boundary_forest.estimators.fitted import Fitted, Tree
from boundary_forest.estimators.ids import names_of
from boundary_forest.estimators.lifetime_stats import forest_stats
from boundary_forest.estimators.unusable_columns import check_cell

T = TypeVar("T")

# Distances, arrival numbers, and ids if there are some, else arrival numbers again.
Neighbors = tuple[NDArray[np.float64], NDArray[np.int64], NDArray[Any]]


class QueryMixin:
    """Adds queries to an estimator that has ``fitted`` and ``n_jobs``. They change nothing.

    A query reads ``fitted`` once, at its start, and passes it on, so that all its parts belong
    together whatever other threads fit.
    """

    fitted: Any
    n_jobs: int | None

    def _require_fitted(self) -> Fitted:
        """What a query begins with; NotFittedError if nothing was learned."""
        fitted: Fitted | None = self.fitted
        if fitted is None:
            check_is_fitted(self)
        assert fitted is not None
        return fitted

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the row number of the stored example at which each tree's descent ends.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        arrivals : ndarray of shape (n_samples, n_estimators)
            0 for the first row that was ever passed, 1 for the second, and so on. Until
            ``n_estimators`` rows have arrived, every column has the nearest row. If the example was
            forgotten but is not yet erased, it is the closest other one that the tree compared.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=3).partial_fit([[0], [9]], ["a", "b"])
        >>> forest.apply([[8]])
        array([[1, 1, 1]])
        """
        fitted = self._require_fitted()
        arrivals = self._queried(fitted, X, lambda fitted, rows, n: fitted.engine.apply(rows, n))
        return fitted.rows(arrivals)

    def kneighbors(self, X: Any, n_neighbors: int = 5, return_distance: bool = True) -> Any:
        """Return stored examples close to each query, nearest first.

        One neighbour is the paper's retrieval: the closest of the examples that the trees end at.
        More are the closest of all examples that the trees compared on the way down.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.
        n_neighbors : int, default=5
            How many; at most as many as there are stored examples.
        return_distance : bool, default=True
            Whether to return the distances as well.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        neighbors : ndarray of shape (n_samples, n_neighbors)
            Ids of the neighbours if they were learned with ``ids``, else row numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> forest.kneighbors([[8]], 2)
        (array([[1., 8.]]), array([[1, 0]]))
        """
        n = as_count(n_neighbors)

        def query(fitted: Fitted, rows: NDArray[Any], threads: int) -> Neighbors:
            return named_neighbors(fitted, fitted.engine.neighbors(rows, n, threads))

        distances, _, names = self._queried(self._require_fitted(), X, query)
        return (distances, names) if return_distance else names

    def explain(self, x: Any) -> Explanation:
        """Explain the prediction for one query.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features), or dict
            The query; a dict, or a Series with names, has a value for each of
            ``feature_names_in_``.

        Returns
        -------
        explanation : Explanation
            The prediction; each class's share of the votes and number of trees; the stored examples
            behind it, with ids, labels, distances, weights, numbers of trees, their rows and what
            each feature contributes to the distance; and for each tree the examples from its root
            to the locally closest one. Printing it shows the features that differ most, with their
            shares of the squared distance. A notebook shows a table, or pictures if rows look like
            images (``to_html()``). ``paths()`` returns the paths as text, ``to_dict()`` everything.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0], [9], [5]], ["a", "b", "a"])
        >>> print(forest.explain([8]))
        prediction: 'b'
          'b': weight 1.00, 2 trees
        from the stored examples
          #1, label 'b', distance 1: weight 1.00, 2 trees
            differs in x0 (9, query 8: 100%)
        """
        fitted = self._require_fitted()
        if fitted.encoder is not None:
            rows = self._query_rows(fitted, _single(x))
        elif (named := _named_row(fitted, x)) is not None:
            rows = self._query_rows(replace(fitted, feature_names=None), named)
        else:
            rows = self._query_rows(fitted, np.asarray(x)[None] if np.ndim(x) == 1 else x)
        if len(rows) != 1:
            raise ValueError(f"x must be a single row, got {len(rows)} rows")
        return explanation_of(fitted, rows)

    def trees(self) -> list[Tree]:
        """Return the trees: their examples and the parent of each.

        Returns
        -------
        trees : list of (arrivals, parents)
            For each tree, the row numbers of its examples in order of creation, the root first, and
            those of their parents, -1 for the root. Both are int64 arrays, which are empty until
            ``n_estimators`` rows have arrived. Examples that were forgotten but are not yet erased
            are left out: the parent is then the closest ancestor that was not forgotten, or -1.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest.fit([[0], [9], [5]], ["a", "b", "a"]).trees()
        [(array([2, 1]), array([-1,  2])), (array([0, 1]), array([-1,  0]))]
        """
        return self._require_fitted().trees()

    def stats(self) -> dict[str, Any]:
        """Return counts of examples, nodes, comparisons and bytes.

        Returns
        -------
        stats : dict
            - ``examples_seen`` and ``examples_stored``.
            - ``nodes_per_tree``.
            - ``comparisons`` (the paper's unit, summed over all trees) and ``evaluations``
              (distances that were computed), each for ``learn`` and ``query``.
            - ``bytes``: those of ``positions``, ``examples`` (labels and arrival numbers),
              ``trees`` and, if there are any, ``ids`` and others, and their ``total``.
            - ``instruction_set``: the processor's instructions in use.
            - ``turnover``, with ``forgetting``: the number of ``renewals`` of trees; the current
              rule of the ``votes`` and its number, ``rule``; and for each of the ``lifetimes`` its
              number of ``trees``, the ages of the ``youngest`` and the ``oldest`` (how many
              examples ago their oldest example arrived), their ``renewals``, and their
              ``recent_accuracy`` or ``recent_rmse``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> forest.stats()["examples_seen"]
        2
        """
        return forest_stats(self._require_fitted())

    def fingerprint(self) -> str:
        """Return a hash of the whole forest: parameters, seed, trees, positions and labels.

        Two forests with the same fingerprint make the same predictions, provided that functions of
        the same name are the same. It does not depend on ``n_jobs``, on how the stream was split
        into batches, or on the instruction set.

        Returns
        -------
        fingerprint : str
            32 hexadecimal digits.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestRegressor
        >>> one, two = (BoundaryForestRegressor(random_state=0) for _ in range(2))
        >>> one.partial_fit([[0], [9]], [1, 2]).partial_fit([[3]], [4]).fingerprint() == (
        ...     two.partial_fit([[0], [9], [3]], [1, 2, 4]).fingerprint()
        ... )
        True
        """
        return fingerprint_of(self._require_fitted())

    def _query_blocks(
        self, fitted: Fitted, X: Any, query: Callable[[Fitted, NDArray[Any], int], T]
    ) -> list[T]:
        """The answers to each block of rows."""
        X = query_positions(self, X, fitted)
        threads = n_threads(self.n_jobs)
        return [query(fitted, rows, threads) for rows in row_blocks(X, as_queries)]

    def _queried(
        self, fitted: Fitted, X: Any, query: Callable[[Fitted, NDArray[Any], int], Any]
    ) -> Any:
        """The answers to all rows as one."""
        return joined(self._query_blocks(fitted, X, query))

    def _predicted(self, X: Any) -> NDArray[Any]:
        """The label that the engine predicts for each row."""
        fitted = self._require_fitted()
        return fitted.labels.answers(self._queried(fitted, X, Fitted.predicted))

    def _query_rows(self, fitted: Fitted, X: Any) -> NDArray[Any]:
        """X as rows to query the forest with."""
        (rows,) = row_blocks(query_positions(self, X, fitted), as_queries, whole=True)
        return rows


def _named_row(fitted: Fitted, x: Any) -> NDArray[Any] | None:
    """Return a row that has names in the order of the forest's columns; None if it has none."""
    if hasattr(x, "index") and hasattr(x, "to_dict") and not hasattr(x, "columns"):  # a Series
        x = x.to_dict()
        if not all(isinstance(name, str) for name in x):
            return None
    if not isinstance(x, Mapping):
        return None
    names = fitted.feature_names
    if names is None:
        raise TypeError(
            "x must be an array, because this forest did not learn the names of its columns: pass "
            f"a list of {fitted.settings.n_features} numbers"
        )
    if missing := [name for name in names if name not in x]:
        raise ValueError(
            f"x must have a value for each column, but has none for {', '.join(map(repr, missing))}"
        )
    if unknown := x.keys() - set(names):
        raise ValueError(
            f"x has values for unknown columns: {', '.join(sorted(map(repr, unknown)))}"
        )
    for name in names:
        check_cell(name, x[name])
    return np.asarray([[x[name] for name in names]])


def _single(x: Any) -> Any:
    """Return one row as rows: a dict, a Series with names, or an array of one dimension."""
    if isinstance(x, Mapping):
        return [x]
    if hasattr(x, "to_dict") and hasattr(x, "index") and np.ndim(x) == 1:
        named = x.to_dict()
        return [named] if all(isinstance(name, str) for name in named) else np.asarray(x)[None]
    return np.asarray(x)[None] if np.ndim(x) == 1 else x


def named_neighbors(fitted: Fitted, found: tuple[Any, Any, Any]) -> Neighbors:
    """Return the engine's answer as distances, row numbers and names."""
    distances, arrivals, ids = found
    rows = fitted.rows(arrivals)
    return distances, rows, names_of(ids, rows)
