"""What the estimators share: parameters, checked arrays, an engine, calls that are all or nothing.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine, ``_core``, and this is the only module that talks to it.
"""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted, validate_data

from boundary_forest import _core
from boundary_forest.estimators.blocks import is_sparse, joined, row_blocks
from boundary_forest.estimators.element_type import (
    ELEMENT_TYPES,
    as_queries,
    as_rows,
    element_type_of,
    is_checked,
)
from boundary_forest.estimators.engine_state import NO_PARENT, trees_in
from boundary_forest.estimators.errors import as_count, keeping, naming, plain
from boundary_forest.estimators.fingerprint import digest_of
from boundary_forest.estimators.ids import IdTable, as_ids, check_ids
from boundary_forest.estimators.label_vectors import as_label_vectors
from boundary_forest.estimators.metrics import METRICS, engine_metric
from boundary_forest.files.saving import SavedForest

_making_locks = threading.Lock()


class BaseBoundaryForest(SavedForest, BaseEstimator):
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
    _ids: IdTable | None  # of the engine's examples, if the user names them
    seed_: int

    @property
    def examples_seen(self) -> int:
        """Number of examples learned so far."""
        return self._engine.seen if hasattr(self, "_engine") else 0

    def trees(self) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Return, for each tree, the arrivals of its nodes and of their parents (-1: the root)."""
        state = self._engine.state(with_positions=False)
        arrivals = state["arrivals"].astype(np.int64)
        found = []
        for examples, parents in trees_in(state):
            nodes = arrivals[examples]
            is_root = parents == NO_PARENT
            found.append((nodes, np.where(is_root, -1, nodes[np.where(is_root, 0, parents)])))
        return found

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

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # What a subclass decides

    @abstractmethod
    def _label_rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon."""

    @abstractmethod
    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        """Labels as the engine's label vectors, one row an example."""

    def _answers(self, estimates: NDArray[np.float64]) -> NDArray[Any]:
        """What the engine's estimates mean."""
        return estimates

    def _label_names(self, labels: NDArray[np.float64]) -> list[Any]:
        """What the label vectors stand for, as the fingerprint should see them."""
        return [labels.tobytes()]

    def _announce(self) -> None:
        """Let queries know what labels are about to mean, before any of them can be met."""

    def _withdraw(self, before: Self) -> None:
        """Take back what was announced: nothing was learned."""

    # Learning: everything is prepared on a draft of the estimator, which it becomes when the engine
    # has learned. So a call that fails changes nothing, and queries never see half of a change.

    def _learn(
        self,
        X: Any,
        y: Any,
        *,
        reset: bool,
        classes: Any = None,
        ids: Any = None,
        telling: Callable[[Self, NDArray[np.float64]], NDArray[Any]] | None = None,
    ) -> NDArray[Any] | None:
        """Learn; with ``telling``, give what it makes of the estimates from before each row."""
        with self._learning():
            if reset and "_journal" in self.__dict__:
                raise TypeError(
                    "fit would forget what a durable forest is to keep: use partial_fit, or open "
                    "another folder"
                )
            offline = reset and self.offline
            reset = reset or not hasattr(self, "_engine")
            draft = self._view()
            X, labels, names = draft._prepare(X, y, ids, reset=reset, classes=classes)
            engine, n_threads = draft._engine, self._n_threads()
            learn = engine.learn if telling is None else engine.predict_then_learn
            said, start = [], 0
            recorded = self._recorded(draft, X, y, names, classes)
            with recorded, self._becoming(draft, names, reset=reset):
                for rows in draft._blocks_to_learn(X, whole=offline):
                    with keeping(start):
                        part = labels[start : start + len(rows)]
                        learn_block = engine.learn_offline if offline else learn
                        said.append(learn_block(rows, part, n_threads))
                        start += len(rows)
            return None if telling is None else telling(self, joined(said))

    def _prepare(
        self, X: Any, y: Any, ids: Any, *, reset: bool, classes: Any
    ) -> tuple[Any, NDArray[np.float64], NDArray[Any] | None]:
        if reset:
            self._validate_params()
        X = self._checked(X, reset=reset)
        n_rows, n_features = X.shape
        if reset:
            element_type = element_type_of(X.dtype) if self.dtype == "auto" else self.dtype
        else:
            element_type = self._settings["element_type"]
        if is_sparse(X):  # what would not fit is found before the first block is learned
            as_rows(X.data, element_type)
        else:
            X = as_rows(X, element_type)
        with naming("y"):
            labels = np.ascontiguousarray(self._encode(y, n_rows, reset=reset, classes=classes))
        if len(labels) != n_rows:
            raise ValueError(f"X has {n_rows} rows but y has {len(labels)}")
        names = None if ids is None else as_ids(ids, n_rows)
        if reset:
            self._ids = None if names is None else IdTable(names.dtype)
        check_ids(names, self._ids)
        if reset:
            self.seed_ = self._draw_seed()
            self._engine = self._make_engine(element_type, n_features, labels.shape[1])
        return X, labels, names

    def _blocks_to_learn(self, X: Any, *, whole: bool) -> Iterator[NDArray[Any]]:
        """Sparse rows by blocks, unless a call that fails half-way must be taken back whole."""
        whole = whole or any(map(callable, (self._metric_in_use[0], *self._settings.values())))
        element_type = self._settings["element_type"]
        return row_blocks(X, lambda rows: as_rows(rows, element_type), whole=whole)

    def _recorded(
        self, draft: Self, X: Any, y: Any, ids: Any, classes: Any
    ) -> AbstractContextManager[None]:
        """Inside, the batch is learned; a durable forest writes it down before."""
        journal = self.__dict__.get("_journal")
        return nullcontext() if journal is None else journal.recording(draft, X, y, ids, classes)

    def _labels_given(self, y: Any) -> NDArray[Any] | None:
        """Labels as they were given, but checked: what a journal keeps of them."""
        return as_label_vectors(y)

    @contextmanager
    def _becoming(self, draft: Self, names: NDArray[Any] | None, *, reset: bool) -> Iterator[None]:
        """The estimator becomes the draft if that learns anything, even if only part of a batch."""
        before, first = self._view(), draft._engine.seen
        if draft._ids is not None and names is not None:
            n_stored = draft._engine.stats()["examples_stored"]
            draft._ids.announce(first, names)
        if not reset:
            draft._announce()
        try:
            yield
        finally:  # an interrupted call keeps the rows that were published
            if draft._ids is not None and names is not None:
                stored = draft._engine.stats()["examples_stored"]
                new = np.arange(n_stored, stored, dtype=np.uint32)
                draft._ids.keep(draft._engine.examples(new)[2].astype(np.int64), first, names)
            if draft._engine.seen > first:
                self.__dict__.update(draft.__dict__)
                for name in self.__dict__.keys() - draft.__dict__.keys():  # feature names
                    del self.__dict__[name]
            elif not reset:
                draft._withdraw(before)

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

    def _view(self) -> Self:
        """The estimator as it is at this moment: one engine, and what belongs to it."""
        view = object.__new__(type(self))
        view.__dict__.update(self.__dict__)
        return view

    def _draw_seed(self) -> int:
        if isinstance(self.random_state, Integral):
            return int(self.random_state)
        return int(check_random_state(self.random_state).randint(2**32, dtype=np.uint64))

    def _make_engine(self, element_type: str, n_features: int, label_length: int) -> _core.Forest:
        params = None if self.metric_params is None else dict(self.metric_params)
        self._metric_in_use = (self.metric, params)  # whatever set_params may say later
        self._settings = {
            "n_estimators": int(self.n_estimators),
            "max_children": None if self.max_children is None else int(self.max_children),
            "n_features": n_features,
            "label_length": label_length,
            "element_type": element_type,
            "seed": self.seed_,
            "p": self._metric_and_p()[1],
            **self._label_rules(),
        }
        return self._empty_engine()

    def _empty_engine(self) -> _core.Forest:
        return _core.Forest(metric=engine_metric(*self._metric_in_use)[0], **self._settings)

    def _check_state(self, state: dict[str, Any]) -> None:
        if self._ids is not None and not np.array_equal(self._ids.stored[0], state["arrivals"]):
            raise ValueError("ids do not name the examples that are stored")

    def _metric_and_p(self) -> tuple[Any, float]:
        return engine_metric(self.metric, self.metric_params)

    # Asking

    def apply(self, X: Any) -> NDArray[np.int64]:
        """The example that each tree ends at, by its arrival number.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        arrivals : ndarray of shape (n_samples, n_estimators)
            0 for the first example ever learned, 1 for the second, and so on. Until
            ``n_estimators`` examples have arrived, every column has the nearest one.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=3).partial_fit([[0], [9]], ["a", "b"])
        >>> forest.apply([[8]])
        array([[1, 1, 1]])
        """
        _, arrivals = self._asked(X, lambda engine, rows, n: engine.apply(rows, n))
        return np.asarray(arrivals, dtype=np.int64)

    def kneighbors(self, X: Any, n_neighbors: int = 5, return_distance: bool = True) -> Any:
        """Stored examples close to each query, nearest first.

        One neighbour is the paper's retrieval: the closest of the examples that the trees end at.
        More are the closest of all examples that the trees compared on the way down.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The queries.
        n_neighbors : int, default=5
            How many; at most as many as there are stored examples.
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
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> forest.kneighbors([[8]], 2)
        (array([[1., 8.]]), array([[1, 0]]))
        """
        view, distances, arrivals = self._neighbors(X, n_neighbors)
        named = arrivals if view._ids is None else view._ids.named(arrivals)
        return (distances, named) if return_distance else named

    def _neighbors(
        self, X: Any, n_neighbors: Any
    ) -> tuple[Self, NDArray[np.float64], NDArray[np.int64]]:
        """Distances and arrival numbers, and the estimator that was asked."""
        n = as_count(n_neighbors)
        view, (distances, arrivals) = self._asked(
            X, lambda engine, rows, n_threads: engine.neighbors(rows, n, n_threads)
        )
        return view, distances, arrivals.astype(np.int64, copy=False)

    def stats(self) -> dict[str, Any]:
        """What was learned and what it cost.

        Returns
        -------
        stats : dict
            ``examples_seen`` and ``examples_stored``; ``nodes_per_tree``; ``comparisons`` (the
            paper's unit, totals over all trees) and ``evaluations`` (distances really computed),
            each for ``learn`` and ``query``; ``bytes`` of ``positions``, ``examples`` (labels and
            arrival numbers), ``trees``, ``ids`` (if examples have them; 24 an example, and the
            text of those that are text) and in ``total``; ``instruction_set``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> forest.stats()["examples_seen"]
        2
        """
        view = self._view()
        check_is_fitted(view, "_engine")
        stats = view._engine.stats()
        stats["bytes"]["ids"] = 0 if view._ids is None else view._ids.n_bytes
        stats["bytes"]["total"] += stats["bytes"]["ids"]
        return stats

    def fingerprint(self) -> str:
        """A hash of the whole forest: parameters, seed, trees, positions and labels.

        Two forests with the same fingerprint give the same answers, provided that functions of the
        same name are the same. It does not depend on ``n_jobs``, on how the stream was cut into
        batches, or on the instruction set.

        Returns
        -------
        fingerprint : str
            32 hexadecimal digits.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestRegressor
        >>> one, two = (BoundaryForestRegressor(random_state=0) for _ in range(2))
        >>> one.fit([[0], [9]], [1, 2]).partial_fit([[3]], [4]).fingerprint() == (
        ...     two.fit([[0], [9], [3]], [1, 2, 4]).fingerprint()
        ... )
        True
        """
        view = self._view()
        check_is_fitted(view, "_engine")
        state = view._engine.state()
        metric, metric_params = view._metric_in_use
        settings = {
            **view._settings,
            "metric": metric,
            "metric_params": sorted((key, plain(v)) for key, v in (metric_params or {}).items()),
            "E": getattr(view, "_estimate_with", None),
        }
        return digest_of(settings, state, view._label_names(state["labels"]))

    def _asked(
        self, X: Any, question: Callable[[_core.Forest, NDArray[Any], int], Any]
    ) -> tuple[Self, Any]:
        """What the engine says of all rows of X, and the estimator that it said it for.

        The view's tables belong to that engine, and know at least what it knew.
        """
        view = self._view()
        check_is_fitted(view, "_engine")
        X = view._checked(X, reset=False)
        n_threads = view._n_threads()
        said = [question(view._engine, rows, n_threads) for rows in row_blocks(X, as_queries)]
        return view, joined(said)

    def _ask(self, X: Any) -> tuple[_core.Forest, NDArray[Any]]:
        """The engine, and X as rows to ask it about."""
        check_is_fitted(self, "_engine")
        (rows,) = row_blocks(self._checked(X, reset=False), as_queries, whole=True)
        return self._engine, rows

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """X as an array, or as a CSR matrix if it is sparse."""
        named = reset or hasattr(self, "feature_names_in_")
        if not named and is_checked(X) and X.shape[1] == self.n_features_in_:
            return X
        with naming("X"):
            checked = validate_data(
                self, X, reset=reset, dtype="numeric", order="C", accept_sparse="csr"
            )
            if getattr(X, "dtype", None) == np.dtype(object) and not np.array_equal(X, checked):
                raise ValueError("X has objects that float64 does not hold exactly")
        return checked

    def _n_threads(self) -> int:
        if self.n_jobs is not None and (not isinstance(self.n_jobs, Integral) or self.n_jobs == 0):
            raise ValueError(f"n_jobs must be None or an integer but 0, got {self.n_jobs!r}")
        return int(effective_n_jobs(self.n_jobs))
