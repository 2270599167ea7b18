"""What the estimators share: parameters, checked arrays, an engine, calls that are all or nothing.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine, ``_core``, and this is the only module that talks to it.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
import threading
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral, Real
from typing import Any, ClassVar, Self

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

COMPILED_SIGNATURE = "(float64*, float64*, int64) -> float64"

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
        "n_jobs": [
            Interval(Integral, 1, None, closed="left"),
            Interval(Integral, None, -1, closed="right"),
            None,
        ],
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

    # Learning: everything is prepared on a draft of the estimator, which it becomes when the engine
    # has learned. So a call that fails changes nothing, and queries never see half of a change.

    def _learn(self, X: Any, y: Any, *, reset: bool, classes: Any = None) -> None:
        with self._learning():
            draft = object.__new__(type(self))
            draft.__dict__.update(self.__dict__)
            offline = reset and self.offline
            reset = reset or not hasattr(self, "_engine")
            rows, labels = draft._prepare(X, y, reset=reset, classes=classes)
            engine, seen = draft._engine, draft._examples_seen()
            if not reset:
                self._announce(draft)
            try:
                learn = engine.learn_offline if offline else engine.learn
                learn(rows, labels, self._n_threads())
            finally:  # an interrupted call keeps the rows that were published
                if draft._examples_seen() > seen:
                    self.__dict__.update(draft.__dict__)
                else:
                    self._withdraw()

    def _prepare(
        self, X: Any, y: Any, *, reset: bool, classes: Any
    ) -> tuple[NDArray[Any], NDArray[np.float64]]:
        if reset:
            self._validate_params()
        X = self._checked(X, reset=reset)
        if reset:
            element_type = element_type_of(X.dtype) if self.dtype == "auto" else self.dtype
        else:
            element_type = self._settings["element_type"]
        rows = as_rows(X, element_type)
        with naming("y"):
            labels = np.ascontiguousarray(self._encode(y, len(rows), reset=reset, classes=classes))
        if len(labels) != len(rows):
            raise ValueError(f"X has {len(rows)} rows but y has {len(labels)}")
        if reset:
            self.seed_ = self._draw_seed()
            self._engine = self._make_engine(element_type, rows.shape[1], labels.shape[1])
        return rows, labels

    def _announce(self, draft: Self) -> None:
        """Let queries know what labels are about to mean, before any of them can be met."""

    def _withdraw(self) -> None:
        """Take back what was announced: nothing was learned."""

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Learning calls exclude each other, and one inside another can only come from a metric."""
        with _making_locks:
            lock = self.__dict__.setdefault("_learning_lock", threading.RLock())
        with lock:
            if self.__dict__.get("_is_learning"):
                raise RuntimeError("a metric must not call the forest that is calling it")
            self._is_learning = True
            try:
                yield
            finally:
                self._is_learning = False

    def _examples_seen(self) -> int:
        return int(self._engine.stats()["examples_seen"])

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**32, dtype=np.uint64))

    def _make_engine(self, element_type: str, n_features: int, label_length: int) -> _core.Forest:
        metric, p = self._metric_and_p()
        self._metric_name = self.metric if isinstance(self.metric, str) else _name_of(self.metric)
        self._settings = {
            "n_estimators": int(self.n_estimators),
            "max_children": None if self.max_children is None else int(self.max_children),
            "n_features": n_features,
            "label_length": label_length,
            "element_type": element_type,
            "seed": self.seed_,
            "p": p,
            **self._label_rules(),
        }
        return _core.Forest(metric=metric, **self._settings)

    def _metric_and_p(self) -> tuple[Any, float]:
        """The metric as the engine takes it: a name, address or function; and minkowski's p."""
        params = dict(self.metric_params or {})
        if callable(self.metric):
            if not hasattr(self.metric, "address"):
                _check_arguments(self.metric, params)
                return functools.partial(self.metric, **params), 2.0
            if params:
                raise ValueError(
                    f"metric_params must be None for a compiled metric, got {self.metric_params!r}"
                )
            signature = str(getattr(self.metric, "_sig", COMPILED_SIGNATURE))
            if signature != COMPILED_SIGNATURE:
                raise TypeError(
                    f"metric is compiled for {signature}, but must be for {COMPILED_SIGNATURE}: "
                    'numba.cfunc("float64(CPointer(float64), CPointer(float64), int64)")'
                )
            return int(self.metric.address), 2.0
        p = params.pop("p", None) if self.metric == "minkowski" else None
        if params:
            raise ValueError(
                f"metric_params has {sorted(map(str, params))}, which metric={self.metric!r} does "
                "not take; minkowski takes 'p', a callable whatever it names, the others nothing"
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
        seen = self._examples_seen()
        settings = {**self._settings, "metric": self._metric_name, "seen": seen}
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
        with naming("X"):
            checked: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric", order="C")
            if getattr(X, "dtype", None) == np.dtype(object) and not np.array_equal(X, checked):
                raise ValueError("X has objects that float64 does not hold exactly")
        return checked

    def _n_threads(self) -> int:
        return int(effective_n_jobs(self.n_jobs))


@contextmanager
def naming(parameter: str) -> Iterator[None]:
    """An error about what was given as ``parameter`` says so."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{parameter}\b", str(error)):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{parameter} cannot be used: {error}") from error


def _check_arguments(metric: Any, params: dict[str, Any]) -> None:
    """A callable that does not take what metric_params names is better refused now than in use."""
    try:
        signature = inspect.signature(metric)
    except (TypeError, ValueError):  # some compiled functions do not tell
        return
    try:
        signature.bind(None, None, **params)
    except TypeError as error:
        raise TypeError(
            f"metric must take two arrays and what metric_params names: metric{signature} does not "
            f"take metric_params={params!r} ({error})"
        ) from error


def _name_of(function: Any) -> str:
    """A callable's name, as far as it has one."""
    module = getattr(function, "__module__", "")
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{module}.{name}"
