"""What the estimators share: parameters, and calls over what was learned.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from boundary_forest.estimators.batch import Batch, Recorder
from boundary_forest.estimators.blocks import joined, row_blocks
from boundary_forest.estimators.checking import checked_positions, n_threads
from boundary_forest.estimators.copying import Parts, put_together, taken_apart
from boundary_forest.estimators.element_type import ELEMENT_TYPES, as_queries
from boundary_forest.estimators.errors import as_count
from boundary_forest.estimators.explanation import Explanation, explanation_of
from boundary_forest.estimators.fingerprint import fingerprint_of
from boundary_forest.estimators.fitted import Fitted, Forest, Tree
from boundary_forest.estimators.ids import names_of
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.learning import checked_batch, learn, prepared
from boundary_forest.estimators.metrics import METRICS, engine_metric
from boundary_forest.estimators.turns import Turns

# Of this process and this estimator alone: copies begin without them.
_NOT_COPIED = ("_fitted", "_recorder", "_turns")


PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
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


class BaseBoundaryForest(BaseEstimator):
    """A forest behind scikit-learn's methods.

    ``_fitted`` is all that was learned, as one value. Queries use whichever is there when they
    begin; learning calls exclude each other.

    Attributes
    ----------
    label_policy : type
        What labels mean in the estimator's task.
    """

    label_policy: ClassVar[type[LabelPolicy]]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = PARAMETER_CONSTRAINTS

    _fitted: Fitted | None = None
    _recorder: Recorder | None = None

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

    def __sklearn_is_fitted__(self) -> bool:
        return self._fitted is not None

    # What was learned

    @property
    def fitted(self) -> Fitted | None:
        """All that was learned, as one value that is only ever replaced; None before."""
        return self._fitted

    @fitted.setter
    def fitted(self, fitted: Fitted | None) -> None:
        self._fitted = fitted

    @property
    def seed_(self) -> int:
        """The seed in use."""
        return self._attributes("seed_").settings.seed

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._attributes("n_features_in_").settings.n_features

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the features, if the first batch was a data frame with names."""
        names = self._attributes("feature_names_in_").feature_names
        if names is None:
            raise AttributeError("the first batch had no feature names")
        return names

    @property
    def examples_seen(self) -> int:
        """How many examples were learned; 0 before fitting."""
        fitted = self._fitted
        return 0 if fitted is None else int(fitted.engine.seen)

    def _attributes(self, name: str) -> Fitted:
        if self._fitted is None:
            raise AttributeError(f"{type(self).__name__} has no {name} before it is fitted")
        return self._fitted

    def _learned(self) -> Fitted:
        fitted = self._fitted
        if fitted is None:
            check_is_fitted(self)
        assert fitted is not None
        return fitted

    # Learning

    def check_params(self) -> None:
        """Raise the error that ``fit`` would raise for a parameter that cannot be used.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> BoundaryForestClassifier(metric="minkowski", metric_params={"p": 0}).check_params()
        Traceback (most recent call last):
            ...
        ValueError: metric_params['p'] must be a finite number >= 1, got 0
        """
        self._validate_params()
        engine_metric(self.metric, self.metric_params)

    def learning_paused(self) -> AbstractContextManager[Any]:
        """Return a lock: inside, learning calls of other threads wait for their turn.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> with forest.learning_paused():
        ...     forest.examples_seen == forest.stats()["examples_seen"]
        True
        """
        turns: Turns = self.__dict__.get("_turns") or self.__dict__.setdefault("_turns", Turns())
        return turns.taken()

    def record_with(self, recorder: Recorder | None) -> None:
        """Have every batch written down before it is learned.

        From then on ``fit`` is refused, because it would forget what was recorded. Copies and
        pickles of the estimator have no recorder.

        Parameters
        ----------
        recorder : Recorder or None
            Whoever writes batches down; None ends it.

        Examples
        --------
        >>> from contextlib import contextmanager
        >>> from boundary_forest import BoundaryForestClassifier
        >>> class Printed:
        ...     @contextmanager
        ...     def recording(self, batch):
        ...         print(len(batch), "examples after", batch.first)
        ...         yield [batch]
        >>> forest = BoundaryForestClassifier()
        >>> forest.record_with(Printed())
        >>> forest.partial_fit([[0], [9]], ["a", "b"]).examples_seen
        2 examples after 0
        2
        """
        self._recorder = recorder

    def learn_batch(self, batch: Batch) -> None:
        """Learn a batch that a recorder was given, exactly as it was learned then.

        Parameters
        ----------
        batch : Batch
            What a learning call was given after it was checked.

        Examples
        --------
        >>> import numpy as np
        >>> from boundary_forest import BoundaryForestClassifier
        >>> from boundary_forest.estimators import Batch
        >>> forest = BoundaryForestClassifier()
        >>> forest.learn_batch(Batch(np.array([[0.0], [9.0]]), np.array(["a", "b"])))
        >>> forest.predict([[8.0]]).tolist()
        ['b']
        """
        with self.learning_paused():
            fitted = self._fitted
            if fitted is None:
                self._validate_params()
            self._learn_checked(fitted, batch)

    def _learn(
        self,
        X: Any,
        y: Any,
        *,
        reset: bool = False,
        classes: Any = None,
        ids: Any = None,
        answers: Callable[[Fitted, NDArray[np.float64]], NDArray[Any]] | None = None,
    ) -> NDArray[Any] | None:
        """Learn; with ``answers``, return what it makes of the estimates from before each row."""
        with self.learning_paused():
            if reset and self._recorder is not None:
                raise TypeError(
                    "fit would forget what a durable forest is to keep: use partial_fit, or open "
                    "another folder"
                )
            fitted = None if reset else self._fitted
            if fitted is None:
                self._validate_params()
            batch = checked_batch(self, fitted, X, y, classes=classes, ids=ids)
            how = "predict_then_learn" if answers is not None else "learn"
            how = "learn_offline" if reset and self.offline else how
            estimates = self._learn_checked(fitted, batch, how)
            return None if answers is None else answers(self._learned(), np.asarray(estimates))

    def _learn_checked(
        self, fitted: Fitted | None, batch: Batch, how: str = "learn"
    ) -> NDArray[np.float64] | None:
        ready = prepared(self, fitted, batch)
        threads = n_threads(self.n_jobs)
        return learn(ready, threads, self._become, how=how, recorder=self._recorder)

    def _become(self, fitted: Fitted) -> None:
        self._fitted = fitted

    # Answering

    def apply(self, X: Any) -> NDArray[np.int64]:
        """Return the example that each tree ends at, by its arrival number.

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
        _, arrivals = self._queried(X, lambda engine, rows, n: engine.apply(rows, n))
        return np.asarray(arrivals, dtype=np.int64)

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
        _, distances, _, names = self._neighbors(X, n_neighbors)
        return (distances, names) if return_distance else names

    def _neighbors(
        self, X: Any, n_neighbors: Any
    ) -> tuple[Fitted, NDArray[np.float64], NDArray[np.int64], NDArray[Any]]:
        """Distances, arrival numbers and names of the neighbours, and whose they are."""
        n = as_count(n_neighbors)

        def query(engine: Forest, rows: NDArray[Any], threads: int) -> tuple[NDArray[Any], ...]:
            return named_neighbors(engine.neighbors(rows, n, threads))

        fitted, (distances, arrivals, names) = self._queried(X, query)
        return fitted, distances, arrivals, names

    def explain(self, x: Any) -> Explanation:
        """Return the answer to one query, and the path that each tree takes to it.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            The query.

        Returns
        -------
        explanation : Explanation
            The answer, how far the trees agree (in [0, 1]), and for each tree the stored examples
            from its root to the locally closest one, with distances and labels, and the share that
            the last one had in the answer. It prints, and has ``to_dict()``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0], [9], [5]], ["a", "b", "a"])
        >>> print(forest.explain([8]))
        answer 'b', confidence 1.00
        tree   0, weight 0.500: #0 'a' at 8 > #1 'b' at 1
        tree   1, weight 0.500: #1 'b' at 1
        """
        fitted, rows = self._query_rows(np.asarray(x)[None] if np.ndim(x) == 1 else x)
        if len(rows) != 1:
            raise ValueError(f"x must be one query, got {len(rows)}")
        return explanation_of(fitted, rows)

    def trees(self) -> list[Tree]:
        """Return the trees: who came under whom.

        Returns
        -------
        trees : list of (arrivals, parents)
            For each tree, the arrival numbers of its examples in order of creation, the root first,
            and those of their parents, -1 for the root. Both are int64 arrays, which are empty
            until ``n_estimators`` examples have arrived.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest.fit([[0], [9], [5]], ["a", "b", "a"]).trees()
        [(array([0, 1, 2]), array([-1,  0,  1])), (array([1, 0, 2]), array([-1,  1,  1]))]
        """
        return self._learned().trees()

    def stats(self) -> dict[str, Any]:
        """Return what was learned and what it cost.

        Returns
        -------
        stats : dict
            ``examples_seen`` and ``examples_stored``; ``nodes_per_tree``; ``comparisons`` (the
            paper's unit, totals over all trees) and ``evaluations`` (distances really computed),
            each for ``learn`` and ``query``; ``bytes`` of ``positions``, ``examples`` (labels and
            arrival numbers), ``trees``, ``ids`` (if examples have them) and in ``total``;
            ``instruction_set``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> forest.stats()["examples_seen"]
        2
        """
        return dict(self._learned().engine.stats())

    def fingerprint(self) -> str:
        """Return a hash of the whole forest: parameters, seed, trees, positions and labels.

        Two forests with the same fingerprint give the same answers, provided that functions of the
        same name are the same. It does not depend on ``n_jobs``, on how the stream was cut into
        batches, or on the instruction set. A learning call of another thread is waited for.

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
        fitted = self._learned()
        with self.learning_paused():
            return fingerprint_of(fitted)

    def _queried(
        self, X: Any, query: Callable[[Forest, NDArray[Any], int], Any]
    ) -> tuple[Fitted, Any]:
        """What the engine answers for all rows of X, and the fitted forest that it belongs to."""
        fitted = self._learned()
        X = checked_positions(self, X, fitted)
        threads = n_threads(self.n_jobs)
        return fitted, joined(
            [query(fitted.engine, rows, threads) for rows in row_blocks(X, as_queries)]
        )

    def _estimated(self, X: Any) -> tuple[Fitted, NDArray[np.float64]]:
        """The engine's estimates, and the fitted forest that they are of."""
        return self._queried(X, lambda engine, rows, threads: engine.estimate(rows, threads))

    def _query_rows(self, X: Any) -> tuple[Fitted, NDArray[Any]]:
        """The fitted forest, and X as rows to query it with."""
        fitted = self._learned()
        (rows,) = row_blocks(checked_positions(self, X, fitted), as_queries, whole=True)
        return fitted, rows

    # Files and copies

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Save the whole forest to a file, from which :func:`boundary_forest.load` gets it back.

        What is loaded answers and continues to learn exactly as this one. The file is replaced as a
        whole: whatever happens while it is written, the old or the new one is there, complete.

        Parameters
        ----------
        path : str or path-like
            The file; its folder must exist. The permissions of an existing file are kept.
        attachments : dict of JSON values or None, default=None
            Further documents for the file, by name, which ``boundary_forest.files.load_forest``
            returns beside the forest.

        Raises
        ------
        TypeError
            If labels are neither str, int, bool, float nor bytes, or parameters are not JSON;
            pickle takes them. Functions (a metric, label metric or estimator) are saved by name
            and given again to ``load``.
        OSError
            If the file cannot be written; the old one stays as it was.

        Examples
        --------
        >>> import tempfile, pathlib
        >>> import boundary_forest
        >>> forest = boundary_forest.BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = pathlib.Path(folder) / "model.bf"
        ...     forest.save(path)
        ...     boundary_forest.load(path).fingerprint() == forest.fingerprint()
        True
        """
        # Files know estimators; this is the one place where it is the other way round.
        from boundary_forest.files import save_forest

        save_forest(self, path, attachments)

    def __getstate__(self) -> dict[str, Any]:
        with self.learning_paused():  # a copy is a forest between two learning calls
            state = {k: v for k, v in super().__getstate__().items() if k not in _NOT_COPIED}
            fitted = self._fitted
            if fitted is not None:
                state["_parts"] = taken_apart(fitted, fitted.engine.snapshot().state())
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        parts: Parts | None = state.pop("_parts", None)
        super().__setstate__(state)
        if parts is not None:
            self._fitted = put_together(self.label_policy, parts)


def named_neighbors(found: tuple[Any, Any, Any]) -> tuple[NDArray[Any], ...]:
    """Return the engine's answer as distances, arrival numbers and names."""
    distances, arrivals, ids = found
    arrivals = arrivals.astype(np.int64, copy=False)
    return distances, arrivals, names_of(ids, arrivals)
