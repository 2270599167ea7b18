"""Retrieval: every example is kept, and queries find stored examples close to them."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.base import PARAMETER_CONSTRAINTS, BaseBoundaryForest
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.container import ContainerMixin
from boundary_forest.estimators.engine_constants import BEAM, GRAPH, SEARCHES
from boundary_forest.estimators.errors import as_count
from boundary_forest.estimators.familiar_names import FamiliarNamesMixin
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.ids import names_of
from boundary_forest.estimators.labels import NoLabels
from boundary_forest.estimators.learning_call import LearningCall, LearningMode
from boundary_forest.estimators.neighbor_graphs import NeighborGraphMixin
from boundary_forest.estimators.queries import Neighbors, named_neighbors
from boundary_forest.estimators.searching import (
    MODES,
    as_radius,
    neighbors_of_stored,
    search_options,
)


class BoundaryForestNeighbors(
    FamiliarNamesMixin, NeighborGraphMixin, ContainerMixin, BaseBoundaryForest
):
    """Online approximate nearest-neighbour search with a Boundary Forest.

    Parameters
    ----------
    n_neighbors : int, default=5
        Default number of neighbours of ``kneighbors``.
    mode : {"distance", "connectivity"}, default="distance"
        What ``transform`` puts into its graph: distances to ``n_neighbors`` neighbours and to the
        example itself, or ones for ``n_neighbors``, itself among them; as scikit-learn's
        :class:`~sklearn.neighbors.KNeighborsTransformer` does.
    search : {"graph", "paper"}, default="graph"
        How to search. "graph" follows the edges of all trees, best first, and finds nearly all true
        neighbours; it needs additional memory for links and byte codes. "paper" is the paper's
        rule: the closest of the examples at which the trees end, or, for more than one neighbour,
        of those that they compare on the way down.
    beam : int, default=100
        Number of examples from which a typical search of the "graph" continues. A larger beam finds
        more of the true neighbours, but takes longer, up to the time of exact search.
    n_estimators : int, default=30
        Number of trees (the paper's n_T). More trees make a better graph, but take memory and time
        to learn.
    max_children : int or None, default=50
        Maximum number of children per node (the paper's k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`BoundaryForestClassifier`, and "inner_product" or "ip", 1 - x.y; "angular"
        is "cosine".
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "int8", "float16", "float32", "float64"}, default="auto"
        Type in which vectors are stored. "auto" follows the first batch, but never chooses int8 or
        float16, which save memory and give the same results as float32.
    offline : bool, default=False
        Whether ``fit`` lets each tree learn the data in its own random order.
    n_jobs : int or None, default=None
        Number of threads; None is 1, -1 all cores. Results do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.
    verbose : int or bool, default=0
        Whether ``fit`` and ``partial_fit`` print every few seconds how many rows were learned and
        how long the rest will take, and ``save`` how long it erases what was forgotten. It acts at
        once, like ``n_jobs``, and changes no forest.

    Attributes
    ----------
    seed_ : int
        The seed in use.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, if the first batch was a data frame.
    n_samples_fit_ : int
        Number of examples seen; the graphs have as many columns.

    Notes
    -----
    Sparse X is accepted, as for :class:`BoundaryForestClassifier`.

    Examples
    --------
    >>> import numpy as np
    >>> from boundary_forest import BoundaryForestNeighbors
    >>> X = np.random.default_rng(0).normal(size=(1000, 8))
    >>> index = BoundaryForestNeighbors(random_state=0).fit(X)
    >>> distances, arrivals = index.kneighbors(X[:3], 1)
    >>> arrivals.ravel()
    array([0, 1, 2])

    Examples may have ids:

    >>> index = BoundaryForestNeighbors(random_state=0)
    >>> index = index.partial_fit([[0.0], [10.0]], ids=["left", "right"])
    >>> index.kneighbors([[9.0]], 1, return_distance=False).tolist()
    [['right']]

    It is a transformer for scikit-learn's estimators that take precomputed graphs:

    >>> from sklearn.datasets import load_digits
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from sklearn.pipeline import make_pipeline
    >>> X, y = load_digits(return_X_y=True)
    >>> graph = BoundaryForestNeighbors(n_neighbors=5, random_state=0)
    >>> model = make_pipeline(graph, KNeighborsClassifier(5, metric="precomputed"))
    >>> model.fit(X[:1500], y[:1500]).score(X[1500:], y[1500:]) > 0.93
    True
    """

    label_policy = NoLabels

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **PARAMETER_CONSTRAINTS,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "mode": [StrOptions(set(MODES))],
        "search": [StrOptions(set(SEARCHES))],
        "beam": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        search: str = GRAPH,
        beam: int = BEAM,
        n_estimators: int = 30,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            n_estimators=n_estimators,
            max_children=max_children,
            metric=metric,
            metric_params=metric_params,
            dtype=dtype,
            offline=offline,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.n_neighbors = n_neighbors
        self.mode = mode
        self.search = search
        self.beam = beam

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Learn from scratch; everything learned before is discarded.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned. A column of a frame whose
            values are lists of numbers is taken, too.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, unique in the batch and among the stored examples; ``kneighbors``
            then returns them. They are int64 or str; UUIDs, paths and other objects that are
            identified by their text become str. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestNeighbors

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.n_samples_fit_
        3
        """
        self._learn(LearningCall(X, y, ids, reset=True))
        return self

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Continue learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned. A column of a frame whose
            values are lists of numbers is taken, too.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Ids of the examples, unique in the batch and among the stored examples; ``kneighbors``
            then returns them. They are int64 or str; UUIDs, paths and other objects that are
            identified by their text become str. Either all batches have ids or none.

        Returns
        -------
        self : BoundaryForestNeighbors

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).partial_fit([[0.0]], ids=[7])
        >>> index = index.partial_fit([[3.0], [1.0]], ids=[8, 9])
        >>> index.kneighbors([[2.9]], 1, return_distance=False)
        array([[8]])
        """
        self._learn(LearningCall(X, y, ids))
        return self

    def upsert(self, X: Any, ids: Any) -> Self:
        """Add vectors; those with a known id replace the old vector.

        A search sees the old vector of an id or the new one, never both or neither.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training vectors, in the order in which they are learned. A column of a frame whose
            values are lists of numbers is taken, too.
        ids : array-like of shape (n_samples,)
            int64 or str, unique in the batch.

        Returns
        -------
        self : BoundaryForestNeighbors

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]], ids=["a", "b"])
        >>> index.upsert([[9.0], [5.0]], ["a", "c"]).kneighbors([[8.0]], 3)[1].tolist()
        [['a', 'c', 'b']]
        """
        if ids is None:
            raise ValueError("upsert() requires ids: use partial_fit() for rows without ids")
        fitted = self.fitted
        if (self.search if fitted is None else fitted.settings.adaptive["search"]) != GRAPH:
            raise ValueError(
                "upsert() requires search='graph': with search='paper', call forget(ids), "
                "then partial_fit(X, ids=ids)"
            )
        self._learn(LearningCall(X, None, ids, mode=LearningMode.REPLACE))
        return self

    def kneighbors(
        self,
        X: Any = None,
        n_neighbors: int | None = None,
        return_distance: bool = True,
        *,
        beam: int | None = None,
        exact: bool | None = None,
        allowed: Any = None,
    ) -> Any:
        """Return stored examples close to each query, nearest first; ties go to the earlier
        example.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            The queries; None means every stored example, which is then not its own neighbour.
        n_neighbors : int or None, default=None
            Number of neighbours; None means the estimator's ``n_neighbors``.
        return_distance : bool, default=True
            Whether to return the distances as well.
        beam : int or None, default=None
            Overrides the estimator's ``beam``.
        exact : bool or None, default=None
            Whether to compare all stored examples and return the true neighbours. None does so
            where it is estimated to take no longer than the graph's search: for up to some thousand
            examples, and for a wide beam. False always searches the graph.
        allowed : array-like, callable or None, default=None
            The examples that may be returned: a boolean mask of ``n_samples_fit_`` values, in order
            of arrival; or ids, of which unknown ones are ignored; or a function of an id (of an
            arrival number if there are no ids) that returns whether it is allowed. The function is
            called for every stored example once per call of ``kneighbors``, which takes about a
            second for a million of them: for many calls with one filter, pass a mask. If few are
            allowed, the search is exact.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        neighbors : ndarray of shape (n_samples, n_neighbors)
            Ids of the neighbours if they were learned with ``ids``, else row numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(1, random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.kneighbors([[2.0]], 2)
        (array([[1., 1.]]), array([[1, 2]]))
        >>> index.kneighbors(return_distance=False).ravel()
        array([2, 2, 0])
        >>> index.kneighbors([[2.0]], 1, allowed=[True, False, False])
        (array([[2.]]), array([[0]]))
        """
        n = self.n_neighbors if n_neighbors is None else n_neighbors
        distances, _, names = self._neighbors(
            self._require_fitted(), X, n, beam=beam, exact=exact, allowed=allowed
        )
        return (distances, names) if return_distance else names

    def radius_neighbors(
        self,
        X: Any,
        radius: float,
        return_distance: bool = True,
        *,
        beam: int | None = None,
        exact: bool | None = None,
        allowed: Any = None,
    ) -> Any:
        """Return stored examples within a radius of each query, nearest first.

        The beam grows until the search reaches beyond the radius.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.
        radius : float
            The largest distance.
        return_distance : bool, default=True
            Whether to return the distances as well.
        beam : int or None, default=None
            As for ``kneighbors``: the beam to begin with.
        exact : bool or None, default=None
            As for ``kneighbors``.
        allowed : array-like, callable or None, default=None
            As for ``kneighbors``.

        Returns
        -------
        distances : ndarray of shape (n_samples,) of arrays
            Only if ``return_distance``.
        neighbors : ndarray of shape (n_samples,) of arrays
            Ids of the neighbours if they were learned with ``ids``, else row numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> distances, arrivals = index.radius_neighbors([[0.2], [9.0]], 1.0)
        >>> arrivals[0], arrivals[1]
        (array([0, 2]), array([], dtype=int64))
        """
        radius, fitted = as_radius(radius), self._require_fitted()
        options = search_options(fitted, beam, self.beam, exact=exact, allowed=allowed)

        def query(fitted: Fitted, rows: NDArray[Any], threads: int) -> tuple[NDArray[Any], ...]:
            ends, distances, arrivals, ids = fitted.engine.within(rows, radius, threads, **options)
            names = names_of(ids, arrivals.astype(np.int64, copy=False))
            return _ragged(distances, ends), _ragged(names, ends)

        distances, names = self._queried(fitted, X, query)
        return (distances, names) if return_distance else names

    def _neighbors(
        self,
        fitted: Fitted,
        X: Any,
        n_neighbors: Any,
        *,
        beam: int | None = None,
        exact: bool | None = None,
        allowed: Any = None,
    ) -> Neighbors:
        n = as_count(n_neighbors)
        if fitted.engine.seen == 0:  # it has forgotten everything
            raise ValueError("the index is empty: add vectors with partial_fit() or upsert() first")
        options = search_options(fitted, beam, self.beam, exact=exact, allowed=allowed)
        if X is None:
            return neighbors_of_stored(fitted, n, n_threads(self.n_jobs), options)

        def query(fitted: Fitted, rows: NDArray[Any], threads: int) -> Neighbors:
            return named_neighbors(fitted, fitted.engine.neighbors(rows, n, threads, **options))

        neighbors: Neighbors = self._queried(fitted, X, query)
        return neighbors


def _ragged(values: NDArray[Any], ends: NDArray[np.uint64]) -> NDArray[Any]:
    """Return the parts of an array, by where they end, as an array of arrays."""
    parts = np.empty(len(ends), dtype=object)
    begin = 0
    for i, end in enumerate(ends.tolist()):
        parts[i] = values[begin:end]
        begin = end
    return parts
