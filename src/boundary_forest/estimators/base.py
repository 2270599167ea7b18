"""What the estimators share: parameters, and calls over what was learned.

Estimators validate and never compute: whatever touches a distance, a tree or a vote is in the
compiled engine.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Self

from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, StrOptions

from boundary_forest.estimators.adaptive import check_adaptive
from boundary_forest.estimators.batch import BatchRecorder, LearningBatch
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.copying import Parts, put_together, taken_apart
from boundary_forest.estimators.engine_constants import (
    ELEMENT_TYPES,
    FEWEST_CHILDREN,
    METRICS,
    MOST_CHILDREN,
    MOST_TREES,
)
from boundary_forest.estimators.fitted import Fitted, Forest, new_engine
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import forget_examples
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.learning_call import (
    LearningCall,
    LearningMode,
    PreparedBatch,
    check_batch_ids,
    checked_batch,
    encoded_labels,
    first_settings,
    train_engine,
)
from boundary_forest.estimators.learning_lock import LearningLock
from boundary_forest.estimators.metrics import ALIASES, engine_metric
from boundary_forest.estimators.queries import QueryMixin

# Of this process and this estimator alone: copies begin without them.
_NOT_COPIED = ("_fitted", "_recorder", "_learning_lock")


PARAMETER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_estimators": [Interval(Integral, 1, MOST_TREES, closed="both")],
    "max_children": [Interval(Integral, FEWEST_CHILDREN, MOST_CHILDREN, closed="both"), None],
    "metric": [StrOptions({*METRICS, *ALIASES}), callable],
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


class BaseBoundaryForest(QueryMixin, BaseEstimator):
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
    _recorder: BatchRecorder | None = None

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
            raise AttributeError(
                "feature_names_in_ does not exist: the first batch had no feature names"
            )
        return names

    @property
    def examples_seen(self) -> int:
        """How many examples were learned; 0 before fitting."""
        fitted = self._fitted
        return 0 if fitted is None else int(fitted.engine.seen)

    def _attributes(self, name: str) -> Fitted:
        if self._fitted is None:
            raise AttributeError(
                f"{type(self).__name__} has no {name} before it is fitted: call fit or "
                "partial_fit first"
            )
        return self._fitted

    # Learning

    def _new_engine(self, settings: ForestSettings, labels: LabelPolicy) -> Forest:
        """Return the engine that a forest begins to learn with."""
        return new_engine(settings, labels)

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
        check_adaptive(vars(self))

    def learning_paused(self) -> AbstractContextManager[Any]:
        """Return a lock: inside, learning calls of other threads wait.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> with forest.learning_paused():
        ...     forest.examples_seen == forest.stats()["examples_seen"]
        True
        """
        # Made when it is first needed; of two threads that make one, both use the first.
        lock = self.__dict__.get("_learning_lock")
        if lock is None:
            lock = self.__dict__.setdefault("_learning_lock", LearningLock())
        held: AbstractContextManager[Any] = lock.taken()
        return held

    def record_with(self, recorder: BatchRecorder | None) -> None:
        """Have every batch written down before it is learned.

        From then on ``fit`` is refused, because it would forget what was recorded. Copies and
        pickles of the estimator have no recorder.

        Parameters
        ----------
        recorder : BatchRecorder or None
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

    def learn_batch(self, batch: LearningBatch) -> None:
        """Learn a batch that a recorder was given, exactly as it was learned then.

        Parameters
        ----------
        batch : LearningBatch
            What a learning call was given after it was checked.

        Examples
        --------
        >>> import numpy as np
        >>> from boundary_forest import BoundaryForestClassifier
        >>> from boundary_forest.estimators import LearningBatch
        >>> forest = BoundaryForestClassifier()
        >>> forest.learn_batch(LearningBatch(np.array([[0.0], [9.0]]), np.array(["a", "b"])))
        >>> forest.predict([[8.0]]).tolist()
        ['b']
        """
        mode = LearningMode.REPLACE if batch.replaces else LearningMode.LEARN
        with self.learning_paused():
            fitted = self._fitted
            if fitted is None:
                self.check_params()
            self._train(self._prepared(fitted, batch, mode))

    def forget(self, ids: Any) -> Self:
        """Forget the examples with these ids.

        They are removed from all trees (the examples below an inner node are learned again in order
        of arrival), from the latest examples that feature weights are learned from, and from
        memory; the next saved file does not contain them. Feature weights that were learned with
        them stay until they are learned again. The ids may be used again.

        With ``search="graph"`` no search returns them any more. They leave trees and memory later:
        when they are as many as the other examples, or when the forest is saved, pickled or copied.

        Parameters
        ----------
        ids : array-like of int or str
            The ids that were passed to ``partial_fit``.

        Returns
        -------
        self : estimator

        Raises
        ------
        KeyError
            If some ids are unknown: never used, already forgotten, or of examples that are not
            stored. It lists them, and nothing is removed.
        ValueError
            If no example would be left, or examples have no ids.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> forest = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]], ids=["a", "b"])
        >>> forest.forget(["a"]).kneighbors([[0.0]], 1, return_distance=False).tolist()
        [['b']]
        """
        with self.learning_paused():
            if self._recorder is not None:
                raise TypeError(
                    "forget() must be called on the durable forest, not on its model, so that "
                    "the folder is updated too"
                )
            forget_examples(self._fitted, ids, n_threads(self.n_jobs))
        return self

    def erase_forgotten(self) -> None:
        """Let what was forgotten leave trees and memory, which ``search="graph"`` puts off.

        It is done before a forest is saved, pickled or copied, and by itself when what was
        forgotten is as much as the rest. Learning must be paused.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> forest = BoundaryForestNeighbors(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0.0], [3.0], [4.0]], ids=["a", "b", "c"]).forget(["a"])
        >>> forest.stats()["nodes_per_tree"]
        [3, 3]
        >>> with forest.learning_paused():
        ...     forest.erase_forgotten()
        >>> forest.stats()["nodes_per_tree"]
        [2, 2]
        """
        if self._fitted is not None:
            self._erase_forgotten(self._fitted)

    def _erase_forgotten(self, fitted: Fitted) -> None:
        if not fitted.engine.n_forgotten:
            return
        fitted.engine.erase_forgotten(n_threads(self.n_jobs))
        if self._recorder is not None:
            self._recorder.erased()

    def _learn(self, call: LearningCall) -> tuple[Fitted, Any]:
        """Learn; return the fitted forest and the engine's answers, None if it gave none."""
        with self.learning_paused():
            if call.reset and self._recorder is not None:
                raise TypeError(
                    "fit() would discard what this durable forest has learned: use "
                    "partial_fit(), or open another folder"
                )
            fitted = None if call.reset else self._fitted
            if fitted is None:
                self.check_params()
            batch = checked_batch(self, fitted, call)
            mode = LearningMode.LEARN_OFFLINE if call.reset and self.offline else call.mode
            prepared = self._prepared(fitted, batch, mode, with_leaves=call.with_leaves)
            return prepared.fitted, self._train(prepared)

    def _prepared(
        self,
        fitted: Fitted | None,
        batch: LearningBatch,
        mode: LearningMode,
        *,
        with_leaves: bool = False,
    ) -> PreparedBatch:
        """Return a batch ready to be learned, with an engine of its own if ``fitted`` is None."""
        if fitted is not None:
            check_batch_ids(fitted, batch)
        labels, policy = encoded_labels(self, fitted, batch)
        if fitted is None:
            settings = first_settings(self, batch, labels.shape[1])
            engine = self._new_engine(settings, policy)
            fitted = Fitted(engine, settings, policy, batch.feature_names)
            check_batch_ids(fitted, batch)
        elif policy is not fitted.labels:
            fitted = replace(fitted, labels=policy)
        return PreparedBatch(batch, fitted, labels, mode, with_leaves)

    def _train(self, prepared: PreparedBatch) -> Any:
        """Let the engine learn, and become what it has published; return its answers."""
        recorder, batch, engine = self._recorder, prepared.batch, prepared.fitted.engine
        threads, before, failed = n_threads(self.n_jobs), engine.seen, False
        with nullcontext((batch,)) if recorder is None else recorder.recording(batch) as parts:
            try:
                return train_engine(prepared, parts, threads)
            except Exception:
                failed = True
                raise
            finally:  # an interrupted call keeps the rows that were published
                only_first = before == 0 and engine.seen == 1  # learned for its own, and taken back
                if engine.seen > before and not (failed and only_first):
                    self._fitted = prepared.fitted

    # Files and copies

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Save the forest to a file that :func:`boundary_forest.load` reads.

        The loaded forest predicts and continues to learn exactly like this one. The file is
        replaced atomically: after a crash, the old or the new file is complete.

        Parameters
        ----------
        path : str or path-like
            The file; its folder must exist. The permissions of an existing file are kept.
        attachments : dict of JSON values or None, default=None
            Further documents for the file, by name, which ``boundary_forest.files.load_forest``
            returns with the forest.

        Raises
        ------
        TypeError
            If labels are neither str, int, bool, float nor bytes, or parameters are not JSON: use
            pickle instead. Functions (a metric, label metric or estimator) are saved by name and
            must be passed to ``load``.
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
            self.erase_forgotten()
            fitted = self._fitted
            if fitted is not None:
                state["_parts"] = taken_apart(fitted, fitted.engine.snapshot().state())
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        parts: Parts | None = state.pop("_parts", None)
        super().__setstate__(state)
        if parts is not None:
            try:
                self._fitted = put_together(self.label_policy, parts)
            except MemoryError:
                raise
            except Exception as error:  # of the bindings, too: std::bad_cast is a RuntimeError
                what = f"{type(error).__name__}: {error}"
                raise ValueError(f"the pickled forest is damaged ({what})") from error
