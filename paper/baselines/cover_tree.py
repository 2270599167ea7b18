"""The cover tree, CT in the paper: an online tree over metric distances, compiled for this."""

from __future__ import annotations

import functools
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, StrOptions

from paper import _cover_tree
from paper.baselines.base import NeighborsBaseline, as_rows, element_type_of

# For the engine's other two, cosine and inner product, the way round may be shorter than the
# direct one.
TRUE_METRICS = ("euclidean", "manhattan", "chebyshev", "minkowski", "hamming", "canberra")
ELEMENT_TYPES = ("uint8", "float32", "float64")


class CoverTree(NeighborsBaseline):
    """Nearest neighbours by an online cover tree (Beygelzimer, Kakade and Langford, 2006).

    Level i holds examples that are more than ``base**i`` apart, and each example has a parent one
    level up, within ``base**(i + 1)``. The tree is not scale invariant: it depends on where the
    distances lie between the powers of ``base``.

    Parameters
    ----------
    base : float, default=1.3
        The paper's b, > 1: the ratio between the distances of one level and the next. A smaller
        base makes more levels of fewer children.
    epsilon : float, default=0.0
        A neighbour found is at most 1 + epsilon times as far away as the true one; 0 is exact.
    n_neighbors : int, default=1
        The number of neighbours that vote, and the default of ``kneighbors``.
    separated : bool, default=True
        Whether an insertion looks at every example that may have one too close below it, so that
        examples of a level are separated whatever ``base`` is. If False, it descends only within
        ``base**(i + 1)`` of an example of level i, which is the original rule, made for base 2:
        with a smaller base learning costs fewer comparisons, and examples of a level may come too
        close. Answers are within epsilon either way.
    tight : bool, default=False
        Whether each example keeps the distance to the farthest one below it, which prunes more
        than the level alone. The tree is the same and needs fewer comparisons, but this goes beyond
        what the paper compares with.
    metric : str or callable, default="euclidean"
        "euclidean", "manhattan", "chebyshev", "minkowski", "hamming", "canberra", or a function as
        for :class:`boundary_forest.BoundaryForestClassifier`. It must obey the triangle inequality;
        this is not checked for a function.
    metric_params : dict or None, default=None
        ``{"p": 3}`` for "minkowski", whose p is 2 by default; the others have no parameters.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        The type in which positions are stored; "auto" chooses it from the first batch's dtype.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The classes seen, sorted.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from paper.baselines import CoverTree
    >>> tree = CoverTree(base=1.3).fit([[0.0], [5.0]], ["a", "b"])
    >>> tree.partial_fit([[9.0]], ["c"]).predict([[1.0], [8.0]]).tolist()
    ['a', 'c']
    >>> tree.stats()["comparisons"]["learn"]
    3
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "base": [Interval(Real, 1, None, closed="neither")],
        "epsilon": [Interval(Real, 0, None, closed="left")],
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "separated": ["boolean"],
        "tight": ["boolean"],
        "metric": [StrOptions(set(TRUE_METRICS)), callable],
        "metric_params": [dict, None],
        "dtype": [StrOptions({"auto", *ELEMENT_TYPES})],
    }

    _engine: _cover_tree.CoverTree
    _element_type: str

    def __init__(
        self,
        *,
        base: float = 1.3,
        epsilon: float = 0.0,
        n_neighbors: int = 1,
        separated: bool = True,
        tight: bool = False,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
    ) -> None:
        self.base = base
        self.epsilon = epsilon
        self.n_neighbors = n_neighbors
        self.separated = separated
        self.tight = tight
        self.metric = metric
        self.metric_params = metric_params
        self.dtype = dtype

    @property
    def name(self) -> str:
        """The name with both parameters: CT(b, epsilon)."""
        return f"CT({self.base:g}, {self.epsilon:g})"

    def _begin(self, X: NDArray[Any]) -> None:
        element_type = element_type_of(X.dtype) if self.dtype == "auto" else self.dtype
        metric, p = self._metric_and_p()
        self._engine = _cover_tree.CoverTree(
            base=float(self.base),
            n_features=X.shape[1],
            element_type=element_type,
            separated=bool(self.separated),
            tight=bool(self.tight),
            metric=metric,
            p=p,
        )
        self._element_type = element_type

    def _metric_and_p(self) -> tuple[Any, float]:
        """Return the metric's name, the address of a compiled function or a function; and p."""
        params = dict(self.metric_params or {})
        p = params.pop("p", 2.0) if self.metric == "minkowski" else 2.0
        if params:
            raise ValueError(f"metric={self.metric!r} does not take metric_params={params!r}")
        if isinstance(self.metric, str):
            return self.metric, float(p)
        if hasattr(self.metric, "address"):
            return int(self.metric.address), 2.0
        return functools.partial(self.metric), 2.0  # an object of this tree alone

    def _add(self, X: NDArray[Any]) -> None:
        self._engine.insert(as_rows(X, self._element_type))

    @property
    def _n_learned(self) -> int:
        return self._engine.size

    def _nearest(self, X: NDArray[Any], n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        queries = as_rows(X, element_type_of(X.dtype))  # compared without rounding
        distances, arrivals = self._engine.neighbors(queries, n, float(self.epsilon))
        return distances, arrivals.astype(np.int64)

    def _comparisons(self) -> dict[str, int]:
        learn, query = self._engine.comparisons
        return {"learn": learn, "query": query}
