"""What the estimators share: parameters, checked arrays, an engine, calls that are all or nothing.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine, ``_core``, and this is the only module that talks to it.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from boundary_forest import _core
from boundary_forest.element_type import ELEMENT_TYPES, as_queries, as_rows, element_type_of

METRICS = (
    "euclidean",
    "manhattan",
    "chebyshev",
    "minkowski",
    "cosine",
    "hamming",
    "canberra",
    "inner_product",
)

_making_locks = threading.Lock()


class BaseBoundaryForest(BaseEstimator):
    """A forest behind scikit-learn's methods; subclasses say what labels mean.

    ``_engine`` is the compiled forest. Queries use whichever engine is there when they begin;
    learning calls exclude each other.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_estimators": [Interval(Integral, 1, 1_000_000, closed="both")],
        "max_children": [Interval(Integral, 2, 2**32 - 2, closed="both"), None],
        "metric": [StrOptions(set(METRICS)), callable],
        "metric_params": [dict, None],
        "dtype": [StrOptions({"auto", *ELEMENT_TYPES})],
        "offline": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    _engine: _core.Forest
    seed_: int

    def __init__(
        self,
        *,
        n_estimators: int = 50,
        max_children: int | None = 50,
        metric: Any = "euclidean",
        metric_params: dict[str, Any] | None = None,
        dtype: str = "auto",
        offline: bool = False,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_children = max_children
        self.metric = metric
        self.metric_params = metric_params
        self.dtype = dtype
        self.offline = offline
        self.n_jobs = n_jobs
        self.random_state = random_state

    # What a subclass decides

    @abstractmethod
    def _label_rules(self) -> dict[str, Any]:
        """The engine's label_rule, estimator and epsilon."""

    @abstractmethod
    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        """Labels as the engine's label vectors, one row an example."""

    def _label_names(self, labels: NDArray[np.float64]) -> list[Any]:
        """What the label vectors stand for, as the fingerprint should see them."""
        return [labels.tobytes()]

    # Learning

    def _learn(self, X: Any, y: Any, *, reset: bool, classes: Any = None) -> None:
        with self._learning(), self._all_or_nothing():
            reset = reset or not hasattr(self, "_engine")
            if reset:
                self._validate_params()
            X = self._checked(X, reset=reset)
            if reset:
                self._element_type = (
                    element_type_of(X.dtype) if self.dtype == "auto" else self.dtype
                )
            rows = as_rows(X, self._element_type)
            labels = np.ascontiguousarray(self._encode(y, len(rows), reset=reset, classes=classes))
            if len(labels) != len(rows):
                raise ValueError(f"X has {len(rows)} rows but y has {len(labels)}")
            if reset:
                self.seed_ = self._draw_seed()
                self._engine = self._make_engine(rows.shape[1], labels.shape[1])
            learn = self._engine.learn_offline if reset and self.offline else self._engine.learn
            learn(rows, labels, self._n_threads())

    @contextmanager
    def _learning(self) -> Iterator[None]:
        with _making_locks:
            lock = self.__dict__.setdefault("_learning_lock", threading.RLock())
        with lock:
            yield

    @contextmanager
    def _all_or_nothing(self) -> Iterator[None]:
        """A call that fails changes nothing; one that is interrupted keeps what it learned."""
        before = self.__dict__.copy()
        seen = self._examples_seen()
        try:
            yield
        except BaseException:
            same_engine = self.__dict__.get("_engine") is before.get("_engine")
            if self._examples_seen() == (seen if same_engine else 0):
                self.__dict__.clear()
                self.__dict__.update(before)
            raise

    def _examples_seen(self) -> int:
        engine = self.__dict__.get("_engine")
        return 0 if engine is None else int(engine.stats()["examples_seen"])

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**63, dtype=np.uint64))

    def _make_engine(self, n_features: int, label_length: int) -> _core.Forest:
        metric, p = self._metric_and_p()
        self._settings = {
            "n_estimators": int(self.n_estimators),
            "max_children": None if self.max_children is None else int(self.max_children),
            "n_features": n_features,
            "label_length": label_length,
            "element_type": self._element_type,
            "seed": self.seed_,
            "p": p,
            **self._label_rules(),
        }
        return _core.Forest(metric=metric, **self._settings)

    def _metric_and_p(self) -> tuple[Any, float]:
        params = dict(self.metric_params or {})
        if callable(self.metric):
            address = getattr(self.metric, "address", None)
            if address is None:
                return functools.partial(self.metric, **params), 2.0
            if params:
                raise ValueError("metric_params must be None for a compiled metric")
            return int(address), 2.0
        p = params.pop("p", None) if self.metric == "minkowski" else None
        if params:
            raise ValueError(
                f"metric_params has {sorted(params)}, which metric={self.metric!r} does not take; "
                "minkowski takes 'p', a callable whatever it names, the others nothing"
            )
        if p is not None and not (isinstance(p, Real) and 1 <= float(p) < np.inf):
            raise ValueError(f"metric_params['p'] must be a finite number >= 1, got {p!r}")
        return self.metric, 2.0 if p is None else float(p)

    # Asking

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The example that each tree ends at, by its arrival number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        arrivals : ndarray of shape (n_samples, n_estimators)
            0 for the first example ever learned, 1 for the second, and so on. Until
            ``n_estimators`` examples have arrived, every column has the nearest one.
        """
        engine, rows = self._ask(X)
        return engine.apply(rows, self._n_threads()).astype(np.int64)

    def kneighbors(self, X: Any, n_neighbors: int = 5, return_distance: bool = True) -> Any:
        """Stored examples close to each query, nearest first.

        One neighbour is the paper's retrieval: the closest of the examples that the trees end at.
        More are the closest of all examples that the trees compared on the way down.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.
        n_neighbors : int, default=5
            How many; at most as many as there are stored examples.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        arrivals : ndarray of shape (n_samples, n_neighbors)
            Arrival numbers of the neighbours.
        """
        if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
            raise ValueError(f"n_neighbors must be an integer >= 1, got {n_neighbors!r}")
        engine, rows = self._ask(X)
        distances, arrivals = engine.neighbors(rows, int(n_neighbors), self._n_threads())
        arrivals_ = arrivals.astype(np.int64)
        return (distances, arrivals_) if return_distance else arrivals_

    def stats(self) -> dict[str, Any]:
        """What was learned and what it cost.

        Returns
        -------
        stats : dict
            ``examples_seen`` and ``examples_stored``; ``nodes_per_tree``; ``comparisons`` (the
            paper's unit, totals over all trees) and ``evaluations`` (distances really computed),
            each for ``learn`` and ``query``; ``bytes`` of ``positions``, ``examples`` (labels and
            arrival numbers), ``trees`` and in ``total``; ``instruction_set``.
        """
        check_is_fitted(self, "_engine")
        return self._engine.stats()

    def fingerprint(self) -> str:
        """A hash of the whole forest: parameters, seed, trees, positions and labels.

        Two forests with the same fingerprint give the same answers. It does not depend on
        ``n_jobs``, on how the stream was cut into batches, or on the instruction set.

        Returns
        -------
        fingerprint : str
            32 hexadecimal digits.
        """
        check_is_fitted(self, "_engine")
        state = self._engine.state()
        metric = self.metric if isinstance(self.metric, str) else _name_of(self.metric)
        settings = {**self._settings, "metric": metric, "seen": self._examples_seen()}
        digest = hashlib.blake2b(repr(sorted(settings.items())).encode(), digest_size=16)
        arrivals = state["arrivals"]
        for examples, parents in state["trees"]:
            digest.update(arrivals[examples].tobytes())
            digest.update(arrivals[examples[parents[1:]]].tobytes())
        digest.update(arrivals.tobytes())
        digest.update(state["positions"])
        for name in self._label_names(state["labels"]):
            digest.update(name if isinstance(name, bytes) else repr(name).encode())
        return digest.hexdigest()

    def _ask(self, X: Any) -> tuple[_core.Forest, NDArray[Any]]:
        check_is_fitted(self, "_engine")
        return self._engine, as_queries(self._checked(X, reset=False))

    def _checked(self, X: Any, *, reset: bool) -> NDArray[Any]:
        checked: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric", order="C")
        return checked

    def _n_threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))


def _name_of(function: Any) -> str:
    """A callable's name, as far as it has one."""
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}.{name}"
