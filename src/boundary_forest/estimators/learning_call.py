"""A learning call: checked first, then prepared, recorded if there is a recorder, and then learned.

The engine's ``publish`` is the only commit. What is prepared before it shows nowhere: a new forest
is assigned once its engine has published something, and of a forest that learns on, nothing but
what its engine has published counts. So an interrupt, wherever it comes, leaves a forest that has
learned the first rows of the batch, or none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.blocks import is_sparse, joined, row_blocks, slices
from boundary_forest.estimators.checking import checked_positions, first_positions
from boundary_forest.estimators.element_type import as_rows, element_type_of
from boundary_forest.estimators.errors import raise_naming
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import as_ids, check_kind, engine_ids, kind_of
from boundary_forest.estimators.labels import LabelPolicy, NoLabels

BLOCKS_PER_GATHERING = 4  # shuffled rows are copied, 8 MB at a time as float64


class LearningMode(Enum):
    """What is done with the rows of a learning call; the values name the engine's methods."""

    LEARN = "learn"
    LEARN_OFFLINE = "learn_offline"
    REPLACE = "replace"
    PREDICT_THEN_LEARN = "predict_then_learn"
    ESTIMATE_THEN_LEARN = "estimate_then_learn"


_WITH_ANSWERS = (LearningMode.PREDICT_THEN_LEARN, LearningMode.ESTIMATE_THEN_LEARN)


@dataclass(frozen=True)
class LearningCall:
    """What a learning method was called with, not checked yet.

    Parameters
    ----------
    X, y, ids, classes
        As the user passed them.
    mode : LearningMode, default=LEARN
        What is done with the rows.
    with_leaves : bool, default=False
        Whether answers come with the leaves of the trees that they were made of.
    reset : bool, default=False
        Whether everything learned before is discarded.
    shuffle : bool, default=False
        Whether the rows are learned in an order drawn from the seed.
    """

    X: Any
    y: Any = None
    ids: Any = None
    classes: Any = None
    mode: LearningMode = LearningMode.LEARN
    with_leaves: bool = False
    reset: bool = False
    shuffle: bool = False


def checked_batch(estimator: Any, fitted: Fitted | None, call: LearningCall) -> LearningBatch:
    """Return what a learning call was given, or raise; ``fitted`` is what it continues."""
    X, y, classes = call.X, call.y, call.classes
    names: NDArray[Any] | None = None
    if fitted is None:
        X, names = first_positions(estimator, X)
        first, labels = 0, new_labels(estimator)
    else:
        X = checked_positions(estimator, X, fitted)
        first, labels = fitted.engine.seen, fitted.labels
    element_type = element_type_for(estimator, fitted, X)
    if is_sparse(X):  # what would not fit is found before the first block is learned
        as_rows(X.data, element_type)
    else:
        X = as_rows(X, element_type)
    n_rows = X.shape[0]
    # Retrieval has no labels, and asking for the tags of one row takes longer than checking it.
    has_labels = not isinstance(labels, NoLabels)
    if y is None and has_labels and estimator.__sklearn_tags__().target_tags.required:
        raise ValueError(
            f"{type(estimator).__name__} requires y to be passed, but the target y is None"
        )
    try:
        y = labels.checked(y, n_rows)
    except (TypeError, ValueError) as error:
        raise_naming("y", error)
    if y is not None and len(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {len(y)}")
    if classes is not None:
        try:
            classes = labels.checked(classes, n_rows)
        except (TypeError, ValueError) as error:
            raise_naming("classes", error)
    ids = None if call.ids is None else as_ids(call.ids, n_rows)
    return LearningBatch(X, y, ids, classes, names, first, call.mode is LearningMode.REPLACE)


def new_labels(estimator: Any) -> LabelPolicy:
    """Return the policy of labels of an estimator that has learned nothing."""
    policy: type[LabelPolicy] = estimator.label_policy
    return policy.from_parameters(vars(estimator))


def element_type_for(estimator: Any, fitted: Fitted | None, X: Any) -> str:
    """Return what positions are kept as, or will be."""
    if fitted is not None:
        return fitted.settings.element_type
    return str(element_type_of(X.dtype) if estimator.dtype == "auto" else estimator.dtype)


def check_batch_ids(fitted: Fitted, batch: LearningBatch) -> None:
    """Refuse ids of another kind than the forest has, and known ones unless they replace."""
    check_kind(batch.ids, fitted.settings.ids)
    if batch.ids is not None:
        fitted.engine.check_ids(engine_ids(batch.ids), batch.replaces)


def encoded_labels(
    estimator: Any, fitted: Fitted | None, batch: LearningBatch
) -> tuple[NDArray[np.float64], LabelPolicy]:
    """Return a batch's labels as the engine takes them, and the policy that knows them."""
    policy = new_labels(estimator) if fitted is None else fitted.labels
    n_met = 0 if fitted is None else fitted.engine.n_classes
    try:
        labels, policy = policy.encoded(batch.y, batch.classes, len(batch), n_met)
    except (TypeError, ValueError) as error:
        raise_naming("y", error)
    return np.ascontiguousarray(labels), policy


def first_settings(
    estimator: Any, batch: LearningBatch, label_length: int, *, shuffle: bool
) -> ForestSettings:
    """Return what the trees of a forest are grown with whose first batch this is."""
    return ForestSettings.of(
        vars(estimator),
        element_type=element_type_for(estimator, None, batch.X),
        n_features=batch.X.shape[1],
        label_length=label_length,
        seed=drawn_seed(estimator.random_state),
        ids=kind_of(batch.ids),
        order=(len(batch), len(batch)) if shuffle else (0, 0),
    )


def drawn_seed(random_state: Any) -> int:
    """Return the seed that ``random_state`` stands for."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**32, dtype=np.uint64))


@dataclass(frozen=True)
class PreparedBatch:
    """A batch with all that learning it needs.

    Parameters
    ----------
    batch : LearningBatch
        What is to be learned.
    fitted : Fitted
        What the estimator is once some of it was learned.
    labels : ndarray of shape (n_rows, label_length)
        The batch's labels as the engine takes them.
    mode : LearningMode
        What is done with the rows.
    with_leaves : bool, default=False
        Whether answers come with leaves.
    shuffle : bool, default=False
        Whether it is learned in the order of the forest's settings.
    """

    batch: LearningBatch
    fitted: Fitted
    labels: NDArray[np.float64]
    mode: LearningMode
    with_leaves: bool = False
    shuffle: bool = False


def as_learned(prepared: PreparedBatch) -> Fitted:
    """Return what the estimator is after a batch was learned, whole or in part."""
    fitted = prepared.fitted
    n_rows, n_learned = fitted.settings.order
    if not prepared.shuffle or fitted.engine.seen == n_learned:
        return fitted
    settings = replace(fitted.settings, order=(n_rows, fitted.engine.seen))
    return replace(fitted, settings=settings)


def train_engine(prepared: PreparedBatch, parts: Iterable[LearningBatch], n_threads: int) -> Any:
    """Learn the parts of a batch in order, and return the engine's answers, or None.

    A forest that has learned nothing has no answer to its first row, and none is returned.
    """
    batch, answers = prepared.batch, []
    if prepared.shuffle:
        return _train_shuffled(prepared, n_threads)
    ids = None if batch.ids is None else engine_ids(batch.ids)
    for part in parts:
        start = part.first - batch.first
        for rows in _blocks(prepared, part.X):
            block = slice(start, start + len(rows))
            names = None if ids is None else ids[block]
            try:
                answers.append(_train_block(prepared, rows, block, n_threads, names))
            except BaseException as error:
                if start:
                    error.add_note(f"{start} rows were learned before this error and are kept")
                raise
            start = block.stop
    return None if answers[0] is None else joined(answers)


def _train_shuffled(prepared: PreparedBatch, n_threads: int) -> None:
    """Learn a batch in the order of the settings; rows are gathered a block at a time."""
    batch, settings = prepared.batch, prepared.fitted.settings
    engine, order = prepared.fitted.engine, settings.row_order
    for block in slices(len(batch), settings.n_features * BLOCKS_PER_GATHERING):
        at = order.rows(np.arange(block.start, block.stop))
        rows = batch.X[at]
        rows = as_rows(rows.toarray() if is_sparse(rows) else rows, settings.element_type)
        ids = None if batch.ids is None else engine_ids(batch.ids[at])
        try:
            engine.learn(rows, prepared.labels[at], n_threads, ids)
        except KeyboardInterrupt as error:
            error.add_note(
                f"{engine.seen:,} of {len(batch):,} rows, drawn at random, were learned before "
                "this and are kept"
            )
            raise


def _train_block(
    prepared: PreparedBatch, rows: NDArray[Any], block: slice, n_threads: int, ids: Any
) -> Any:
    fitted, labels = prepared.fitted, prepared.labels[block]
    method = getattr(fitted.engine, prepared.mode.value)
    if prepared.mode not in _WITH_ANSWERS:
        return method(rows, labels, n_threads, ids)
    if fitted.engine.seen == 0:  # the first row of all is learned without an answer
        fitted.engine.learn(rows[:1], labels[:1], n_threads, None if ids is None else ids[:1])
        rows, labels, ids = rows[1:], labels[1:], None if ids is None else ids[1:]
    # All classes of the batch are known by now, and will be met.
    ranks = fitted.labels.ranks()
    return method(rows, labels, n_threads, ids, ranks=ranks, with_ends=prepared.with_leaves)


def _blocks(prepared: PreparedBatch, X: Any) -> Iterator[NDArray[Any]]:
    """Return sparse rows by blocks, unless a call that fails half-way must be taken back whole."""
    settings = prepared.fitted.settings
    if not is_sparse(X):
        return iter((as_rows(X, settings.element_type),))
    functions = (settings.metric, *prepared.fitted.labels.rules.values())
    whole = prepared.mode is LearningMode.LEARN_OFFLINE or any(map(callable, functions))
    return row_blocks(X, lambda rows: as_rows(rows, settings.element_type), whole=whole)
