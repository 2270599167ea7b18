"""Learning: what changes a fitted forest. Learning calls exclude each other; queries never wait."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from typing import Any, Self

from boundary_forest.estimators.batch import BatchRecorder, LearningBatch
from boundary_forest.estimators.checking import n_threads
from boundary_forest.estimators.class_runs import ClassRuns
from boundary_forest.estimators.class_weight import known_classes, weigh_new_classes
from boundary_forest.estimators.fitted import Fitted, Forest
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import forget_examples
from boundary_forest.estimators.labels import ClassLabels, LabelPolicy
from boundary_forest.estimators.learning_call import (
    LearningCall,
    LearningMode,
    PreparedBatch,
    as_learned,
    check_batch_ids,
    checked_batch,
    encoded_labels,
    first_settings,
    learned_columns,
    with_columns,
)
from boundary_forest.estimators.learning_lock import LearningLock
from boundary_forest.estimators.progress import shown_erasing, shown_learning
from boundary_forest.estimators.training import train_engine


class LearningMixin:
    """Adds learning calls to an estimator that has ``check_params`` and ``_new_engine``."""

    n_jobs: int | None
    verbose: int
    offline: bool
    check_params: Callable[[], None]
    _new_engine: Callable[[ForestSettings, LabelPolicy], Forest]

    _fitted: Fitted | None = None
    _recorder: BatchRecorder | None = None

    def learning_paused(self) -> AbstractContextManager[Any]:
        """Return a lock: inside, calls of other threads that change the forest wait.

        Those are ``fit``, ``partial_fit``, ``upsert`` and ``forget``, and also ``save``, pickling
        and copying, because they erase what was forgotten. Queries never wait. The thread that
        holds the lock may call any method.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier().partial_fit([[0], [9]], ["a", "b"])
        >>> with forest.learning_paused():
        ...     forest.examples_seen == forest.stats()["examples_seen"]
        True
        """
        return self._lock().held()

    def changing(self) -> AbstractContextManager[Any]:
        """Return the lock of one call that changes the forest; learning must be paused.

        RuntimeError if this thread is inside such a call.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> forest = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]])
        >>> with forest.learning_paused(), forest.changing():
        ...     forest.partial_fit([[4.0]])
        Traceback (most recent call last):
            ...
        RuntimeError: metric must not call the forest that is calling it
        """
        return self._lock().call()

    def _lock(self) -> LearningLock:
        # Made when it is first needed; of two threads that make one, both use the first.
        lock: LearningLock | None = self.__dict__.get("_learning_lock")
        return lock or self.__dict__.setdefault("_learning_lock", LearningLock())

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
        with self.learning_paused(), self.changing():
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

        A class without any example left leaves ``classes_``, and with it its column of
        ``predict_proba``, unless it was passed as ``classes=``. Files saved later do not have its
        name.

        With ``search="graph"`` no search returns them any more. They leave trees and memory later:
        when they are a third of all examples, or when the forest is saved, pickled or copied.
        That takes up to as long as learning the examples that are left.

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
            If no example would be left, unless it is an index, which can be empty; or if examples
            have no ids.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> forest = BoundaryForestNeighbors(random_state=0).fit([[0.0], [3.0]], ids=["a", "b"])
        >>> forest.forget(["a"]).kneighbors([[0.0]], 1, return_distance=False).tolist()
        [['b']]
        """
        with self.learning_paused(), self.changing():
            if self._recorder is not None:
                raise TypeError(
                    "forget() must be called on the durable forest, not on its model, so that "
                    "the folder is updated too"
                )
            self._fitted = forget_examples(self._fitted, ids, n_threads(self.n_jobs))
        return self

    def erase_forgotten(self) -> None:
        """Let what was forgotten leave trees and memory, which ``search="graph"`` puts off.

        It is done before a forest is saved, pickled or copied, and by itself when a third of the
        examples is forgotten. It is part of a call that changes the forest.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestNeighbors
        >>> forest = BoundaryForestNeighbors(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0], [3], [4], [8]], ids=["a", "b", "c", "d"]).forget(["a"])
        >>> forest.stats()["nodes_per_tree"]
        [4, 4]
        >>> with forest.learning_paused(), forest.changing():
        ...     forest.erase_forgotten()
        >>> forest.stats()["nodes_per_tree"]
        [3, 3]
        """
        if self._fitted is None or not self._fitted.engine.n_forgotten:
            return
        with shown_erasing(self):
            self._fitted.engine.erase_forgotten(n_threads(self.n_jobs))
        if self._recorder is not None:
            self._recorder.erased()

    def _learn(self, call: LearningCall) -> tuple[Fitted, Any]:
        """Learn; return the fitted forest and the engine's answers, None if it gave none."""
        with self.learning_paused(), self.changing():
            if call.reset and self._recorder is not None:
                raise TypeError(
                    "fit() would discard what this durable forest has learned: use "
                    "partial_fit(), or open another folder"
                )
            fitted = None if call.reset else self._fitted
            if fitted is None:
                self.check_params()
            batch = checked_batch(self, fitted, call)
            offline = call.reset and self.offline
            mode = LearningMode.LEARN_OFFLINE if offline else call.mode
            shuffle = call.shuffle and call.reset and not offline
            prepared = self._prepared(
                fitted, batch, mode, with_leaves=call.with_leaves, shuffle=shuffle
            )
            in_order = not shuffle and not offline  # else each tree or the forest has its own order
            if in_order and isinstance(prepared.fitted.labels, ClassLabels):
                self._class_runs(reset=call.reset).watch(prepared.labels[:, 0])
            return prepared.fitted, self._train(prepared)

    def _class_runs(self, *, reset: bool) -> ClassRuns:
        if reset or "_runs" not in self.__dict__:
            self._runs = ClassRuns()
        return self._runs

    def _prepared(
        self,
        fitted: Fitted | None,
        batch: LearningBatch,
        mode: LearningMode,
        *,
        with_leaves: bool = False,
        shuffle: bool = False,
    ) -> PreparedBatch:
        """Return a batch ready to be learned, with an engine of its own if ``fitted`` is None."""
        if fitted is not None:
            check_batch_ids(fitted, batch)
        known = known_classes(fitted)
        labels, policy = encoded_labels(self, fitted, batch)
        if fitted is None:
            settings = first_settings(self, batch, labels.shape[1], shuffle=shuffle)
            before, after = learned_columns(batch, labels, policy, settings, None, shuffle=shuffle)
            if after is not None:
                settings = replace(settings, n_features=after.width)
            engine = self._new_engine(settings, policy)
            fitted = Fitted(engine, settings, policy, batch.feature_names, after)
            check_batch_ids(fitted, batch)
        else:
            before, after = learned_columns(
                batch, labels, policy, fitted.settings, fitted.encoder, shuffle=False
            )
            fitted = with_columns(fitted, policy, batch, after)
        weigh_new_classes(fitted, known)
        return PreparedBatch(batch, fitted, labels, mode, with_leaves, shuffle, before)

    def _train(self, prepared: PreparedBatch) -> Any:
        """Let the engine learn, and become what it has published; return its answers."""
        recorder, batch, engine = self._recorder, prepared.batch, prepared.fitted.engine
        threads, before, failed = n_threads(self.n_jobs), engine.seen, False
        recorded = nullcontext((batch,)) if recorder is None else recorder.recording(batch)
        with recorded as parts, shown_learning(self, engine, len(batch)):
            try:
                return train_engine(prepared, parts, threads)
            except Exception:
                failed = True
                raise
            finally:  # an interrupted call keeps the rows that were published
                only_first = before == 0 and engine.seen == 1  # learned for its own, and taken back
                if engine.seen > before and not (failed and (only_first or prepared.shuffle)):
                    self._fitted = as_learned(prepared)
