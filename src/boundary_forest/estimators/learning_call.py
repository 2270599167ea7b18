"""A learning call: checked first, then prepared, recorded if there is a recorder, and then learned.

The engine's ``publish`` is the only commit. What is prepared before it shows nowhere: a new forest
is assigned once its engine has published something, and of a forest that learns on, nothing but
what its engine has published counts. So an interrupt, wherever it comes, leaves a forest that has
learned the first rows of the batch, or none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from boundary_forest.estimators.batch import LearningBatch
from boundary_forest.estimators.blocks import is_sparse
from boundary_forest.estimators.checking import (
    checked_positions,
    checked_rows,
    first_positions,
    takes_any_columns,
)
from boundary_forest.estimators.columns import ColumnEncoder, LabelSlots, LearnedPart, RawRows
from boundary_forest.estimators.element_type import as_rows, element_type_of
from boundary_forest.estimators.errors import raise_naming
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import ForestSettings
from boundary_forest.estimators.ids import as_ids, check_kind, engine_ids, kind_of
from boundary_forest.estimators.labels import ClassLabels, LabelPolicy, NoLabels


class LearningMode(Enum):
    """What is done with the rows of a learning call; the values name the engine's methods."""

    LEARN = "learn"
    LEARN_OFFLINE = "learn_offline"
    REPLACE = "replace"
    PREDICT_THEN_LEARN = "predict_then_learn"
    ESTIMATE_THEN_LEARN = "estimate_then_learn"


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
        dense = not is_sparse(X) and takes_any_columns(estimator)
        X, names = (checked_rows if dense else first_positions)(estimator, X, *[None] * dense)
        first, labels = 0, new_labels(estimator)
    else:
        if fitted.encoder is None:
            X = checked_positions(estimator, X, fitted)
        else:
            X, names = checked_rows(estimator, X, fitted)
            names = None if X.shape[1] == fitted.n_columns else names
        first, labels = fitted.engine.seen, fitted.labels
    element_type = element_type_for(estimator, fitted, X)
    if is_sparse(X):  # what would not fit is found before the first block is learned
        as_rows(X.data, element_type)
    elif isinstance(X, RawRows):
        X = X.as_type(element_type)
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
    dtype = X.declared if isinstance(X, RawRows) else X.dtype
    return str(element_type_of(dtype) if estimator.dtype == "auto" else estimator.dtype)


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
    encoder : ColumnEncoder or None, default=None
        What was known about columns before it.
    """

    batch: LearningBatch
    fitted: Fitted
    labels: NDArray[np.float64]
    mode: LearningMode
    with_leaves: bool = False
    shuffle: bool = False
    encoder: ColumnEncoder | None = None


def learned_columns(
    batch: LearningBatch,
    labels: NDArray[np.float64],
    policy: LabelPolicy,
    settings: ForestSettings,
    encoder: ColumnEncoder | None,
    *,
    shuffle: bool,
) -> tuple[ColumnEncoder | None, ColumnEncoder | None]:
    """Return what is known about columns before and after a batch; None if they are features."""
    if not isinstance(batch.X, RawRows):
        return None, None
    if encoder is None:
        classes = () if isinstance(policy, ClassLabels) else None
        encoder = ColumnEncoder(LabelSlots(classes, labels.shape[1]), settings.element_type)
    order = settings.row_order.rows(np.arange(len(batch))) if shuffle else None
    return encoder, encoder.learned(batch.X, labels, order)


def with_columns(
    fitted: Fitted, labels: LabelPolicy, batch: LearningBatch, encoder: ColumnEncoder | None
) -> Fitted:
    """Return what a forest is once it has learned something of a batch; if it has new features,
    with an engine of its own, so that queries go on with the one they know.
    """
    if encoder is None:
        return fitted if labels is fitted.labels else replace(fitted, labels=labels)
    names = fitted.feature_names if batch.feature_names is None else batch.feature_names
    engine, settings = fitted.engine, fitted.settings
    if encoder.width > settings.n_features:
        engine = engine.widened(encoder.width)
        settings = replace(settings, n_features=encoder.width)
    return Fitted(engine, settings, labels, names, encoder)


def as_learned(prepared: PreparedBatch) -> Fitted:
    """Return what the estimator is after a batch was learned, whole or in part."""
    fitted, batch, before = prepared.fitted, prepared.batch, prepared.encoder
    n_rows, n_learned = fitted.settings.order
    n = fitted.engine.seen - batch.first
    at = fitted.settings.row_order.rows(np.arange(n)) if prepared.shuffle else slice(0, n)
    if prepared.shuffle and fitted.engine.seen < n_learned:
        settings = replace(fitted.settings, order=(n_rows, fitted.engine.seen))
        fitted = replace(fitted, settings=settings)
    if before is None or n == len(batch):
        return fitted
    return LearnedInPart.of(fitted, LearnedPart(before, batch.X, prepared.labels, at))


class LearnedInPart(Fitted):
    """What a forest is after a call that learned a part of its rows, of columns of any kind.

    What it knows about columns is computed when it is first used: computed at once, it would be
    missing if that failed as well, for want of memory or by another Ctrl-C.
    """

    part: LearnedPart

    @classmethod
    def of(cls, fitted: Fitted, part: LearnedPart) -> LearnedInPart:
        """Return the same forest with the part instead of what the whole call would have left."""
        made = cls.__new__(cls)
        vars(made).update(vars(fitted), part=part)
        del vars(made)["encoder"]
        return made

    @cached_property
    def encoder(self) -> ColumnEncoder | None:
        """What is known about columns."""
        return self.part.encoder
