"""Retrieval: every example is kept, and queries find stored examples close to them."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix  # type: ignore[import-untyped]
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.base import PARAMETER_CONSTRAINTS, BaseBoundaryForest
from boundary_forest.estimators.blocks import joined, slices
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.errors import as_count
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.labels import NoLabels
from boundary_forest.estimators.queries import named_neighbors

MODES = ("connectivity", "distance")


class BoundaryForestNeighbors(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseBoundaryForest
):
    """Online approximate nearest-neighbour search with a Boundary Forest.

    Parameters
    ----------
    n_neighbors : int, default=5
        How many neighbours ``kneighbors`` finds by default.
    mode : {"distance", "connectivity"}, default="distance"
        What ``transform`` puts into its graph: distances to ``n_neighbors`` neighbours and to the
        example itself, or ones for ``n_neighbors``, itself among them; as scikit-learn's
        :class:`~sklearn.neighbors.KNeighborsTransformer` does.
    n_estimators : int, default=50
        Trees (the paper's n_T).
    max_children : int or None, default=50
        Most children a node may have (k); None is unlimited.
    metric : str or callable, default="euclidean"
        As for :class:`BoundaryForestClassifier`, and "inner_product", 1 - x.y.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        What positions are kept as; "auto" lets the first batch's dtype decide.
    offline : bool, default=False
        Whether ``fit`` shows each tree its own shuffle of the data.
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The answers do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.

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

    Examples may have names of their own:

    >>> index = BoundaryForestNeighbors(random_state=0)
    >>> index = index.partial_fit([[0.0], [10.0]], ids=["left", "right"])
    >>> index.kneighbors([[9.0]], 1, return_distance=False).tolist()
    [['right']]

    As a transformer it serves scikit-learn's estimators on precomputed graphs:

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
    }

    def __init__(
        self,
        n_neighbors: int = 5,
        *,
        mode: str = "distance",
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
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
        )
        self.n_neighbors = n_neighbors
        self.mode = mode

    def fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Forget everything and learn from the beginning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Names of your own for the examples, int64 or str, unique in the batch and among the
            stored; ``kneighbors`` then answers with them. Either every batch has ids or none.

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
        self._learn(X, y, reset=True, ids=ids)
        return self

    def partial_fit(self, X: Any, y: Any = None, *, ids: Any = None) -> Self:
        """Continue learning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Names of your own for the examples, int64 or str, unique in the batch and among the
            stored; ``kneighbors`` then answers with them. Either every batch has ids or none.

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
        self._learn(X, y, ids=ids)
        return self

    def kneighbors(
        self, X: Any = None, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Return stored examples close to each query, nearest first.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            The queries; None is every stored example, each left out of its own neighbours.
        n_neighbors : int or None, default=None
            How many; None is the estimator's ``n_neighbors``.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        neighbors : ndarray of shape (n_samples, n_neighbors)
            Ids of the neighbours if they were learned with ``ids``, else arrival numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(1, random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.kneighbors([[2.0]], 2)
        (array([[1., 1.]]), array([[1, 2]]))
        >>> index.kneighbors(return_distance=False).ravel()
        array([2, 2, 0])
        """
        return super().kneighbors(
            X, self.n_neighbors if n_neighbors is None else n_neighbors, return_distance
        )

    def kneighbors_graph(
        self, X: Any = None, n_neighbors: int | None = None, mode: str = "connectivity"
    ) -> csr_matrix:
        """Return the neighbours of each query as a sparse graph.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features) or None, default=None
            The queries; None is every stored example, each left out of its own neighbours.
        n_neighbors : int or None, default=None
            How many; None is the estimator's ``n_neighbors``.
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
        return _graph(*self._neighbors(X, n)[:3], mode)

    def transform(self, X: Any) -> csr_matrix:
        """Return the graph from queries to their neighbours, as KNeighborsTransformer gives it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        graph : CSR matrix of shape (n_samples, n_samples_fit_)
            With ``mode="distance"``, ``n_neighbors`` + 1 entries a row, so that an example that was
            learned has its ``n_neighbors`` beside itself; with "connectivity", ``n_neighbors``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> index = BoundaryForestNeighbors(1, random_state=0).fit([[0.0], [3.0], [1.0]])
        >>> index.transform([[3.0]]).toarray()
        array([[0., 0., 2.]])
        """
        return _graph(*self._entries(X), self.mode)

    def fit_transform(self, X: Any, y: Any = None, *, ids: Any = None) -> csr_matrix:
        """Forget everything, learn, and return the graph of the examples among themselves.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : ignored
        ids : array-like of shape (n_samples,) or None, default=None
            Names of your own for the examples, int64 or str, unique in the batch and among the
            stored; ``kneighbors`` then answers with them. Either every batch has ids or none.

        Returns
        -------
        graph : CSR matrix of shape (n_samples, n_samples)
            As ``transform`` gives it, with every example among its own neighbours, even if it has
            more duplicates than it may have neighbours.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> graph = BoundaryForestNeighbors(1, random_state=0).fit_transform([[0.0], [3.0], [1.0]])
        >>> graph.nnz, graph.diagonal().tolist()
        (6, [0.0, 0.0, 0.0])
        """
        self.fit(X, y, ids=ids)
        fitted, distances, arrivals = self._entries(X)
        if self.metric != "inner_product":  # by which others may be closer than itself
            own = np.arange(len(arrivals))
            hidden = (arrivals != own[:, None]).all(axis=1)
            for column, itself in ((distances, 0.0), (arrivals, own[hidden])):
                column[hidden, 1:] = column[hidden, :-1]
                column[hidden, 0] = itself
        return _graph(fitted, distances, arrivals, self.mode)

    @property
    def n_samples_fit_(self) -> int:
        """Number of examples seen; the graphs have as many columns."""
        return int(self._learned().engine.seen)

    @property
    def _n_features_out(self) -> int:
        return self.n_samples_fit_

    def _entries(self, X: Any) -> tuple[Fitted, NDArray[np.float64], NDArray[np.int64]]:
        n_entries = as_count(self.n_neighbors) + (self.mode == "distance")
        n_stored = self.stats()["examples_stored"]
        if n_entries > n_stored:
            raise ValueError(
                f"n_neighbors={self.n_neighbors} with mode={self.mode!r} needs {n_entries} "
                f"entries a row, and {n_stored} examples are stored: set a smaller "
                "n_neighbors, or learn more first"
            )
        return self._neighbors(X, n_entries)[:3]

    def _neighbors(
        self, X: Any, n_neighbors: Any
    ) -> tuple[Fitted, NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        if X is not None:
            return super()._neighbors(X, n_neighbors)
        return _others(self._learned(), as_count(n_neighbors), n_threads(self.n_jobs))


def _others(
    fitted: Fitted, n: int, threads: int
) -> tuple[Fitted, NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
    """Return the neighbours of every stored example, in order of arrival, without itself."""
    snapshot, found = fitted.engine.snapshot(), []
    if n >= snapshot.size:
        raise ValueError(
            f"n_neighbors must be smaller than the number of stored examples when X is None, "
            f"got {n} with {snapshot.size} stored: choose fewer, or learn more first"
        )
    for block in slices(snapshot.size, fitted.settings.n_features):
        rows = snapshot.positions(block.start, block.stop)
        neighbors = named_neighbors(snapshot.neighbors(rows, n + 1, threads))
        others = neighbors[1] != snapshot.arrivals(block.start, block.stop)[:, None]
        others[others.all(axis=1), -1] = False  # it is hidden behind its own duplicates
        found.append(tuple(part[others].reshape(-1, n) for part in neighbors))
    distances, arrivals, names = joined(found)
    return fitted, distances, arrivals, names


def _graph(
    fitted: Fitted, distances: NDArray[np.float64], arrivals: NDArray[np.int64], mode: str
) -> csr_matrix:
    n_rows, n_edges = distances.shape
    weights = distances.ravel() if mode == "distance" else np.ones(distances.size)
    starts = np.arange(0, n_rows * n_edges + 1, n_edges)
    shape = (n_rows, fitted.engine.seen)
    return csr_matrix((weights, arrivals.ravel(), starts), shape=shape)
