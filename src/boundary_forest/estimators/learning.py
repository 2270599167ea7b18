"""Learning a batch: checked first, recorded if anyone records, and then learned.

The engine's ``publish`` is the only commit. What is prepared before it shows nowhere: a new forest
is assigned once its engine has published something, and of a forest that learns on, nothing but
what its engine has published counts. So an interrupt, wherever it comes, leaves a forest that has
learned the first rows of the batch, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from boundary_forest.estimators.batch import Batch, Recorder
from boundary_forest.estimators.blocks import is_sparse, joined, row_blocks
from boundary_forest.estimators.checking import checked_positions, first_positions
from boundary_forest.estimators.element_type import as_rows, element_type_of
from boundary_forest.estimators.errors import keeping, naming
from boundary_forest.estimators.fitted import Fitted, Forest, Settings
from boundary_forest.estimators.ids import as_ids, check_kind, engine_ids, kind_of
from boundary_forest.estimators.labels import LabelPolicy, NoLabels


def checked_batch(
    estimator: Any, fitted: Fitted | None, X: Any, y: Any, *, classes: Any, ids: Any
) -> Batch:
    """Return what a learning call was given, or raise; ``fitted`` is what it continues."""
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
    with naming("y"):
        y = labels.checked(y, n_rows)
    if y is not None and len(y) != n_rows:
        raise ValueError(f"X has {n_rows} rows but y has {len(y)}")
    if classes is not None:
        with naming("classes"):
            classes = labels.checked(classes, n_rows)
    ids = None if ids is None else as_ids(ids, n_rows)
    return Batch(X, y, ids, classes, names, first)


def new_labels(estimator: Any) -> LabelPolicy:
    """Return the policy of labels of an estimator that has learned nothing."""
    policy: type[LabelPolicy] = estimator.label_policy
    return policy.from_parameters(vars(estimator))


def element_type_for(estimator: Any, fitted: Fitted | None, X: Any) -> str:
    """Return what positions are kept as, or will be."""
    if fitted is not None:
        return fitted.settings.element_type
    return str(element_type_of(X.dtype) if estimator.dtype == "auto" else estimator.dtype)


@dataclass(frozen=True)
class Prepared:
    """A batch with all that learning it needs.

    Parameters
    ----------
    batch : Batch
        What is to be learned.
    fitted : Fitted
        What the estimator is once some of it was learned.
    labels : ndarray of shape (n_rows, label_length)
        The batch's labels as the engine takes them.
    """

    batch: Batch
    fitted: Fitted
    labels: NDArray[np.float64]


def prepared(
    estimator: Any,
    fitted: Fitted | None,
    batch: Batch,
    make_engine: Callable[[Settings, LabelPolicy], Forest],
    *,
    may_be_known: bool = False,
) -> Prepared:
    """Return a batch ready to be learned, with an engine of its own if ``fitted`` is None.

    If ids may be known, examples that have them are replaced.
    """
    n_rows, n_features = batch.X.shape
    kind = kind_of(batch.ids)
    if fitted is not None:
        check_kind(batch.ids, fitted.settings.ids)
        if batch.ids is not None:
            fitted.engine.check_ids(engine_ids(batch.ids), may_be_known)
    policy = new_labels(estimator) if fitted is None else fitted.labels
    n_met = 0 if fitted is None else fitted.engine.n_classes
    with naming("y"):
        labels, policy = policy.encoded(batch.y, batch.classes, n_rows, n_met)
    labels = np.ascontiguousarray(labels)
    if fitted is not None:
        if policy is not fitted.labels:
            fitted = replace(fitted, labels=policy)
        return Prepared(batch, fitted, labels)
    settings = Settings.of(
        vars(estimator),
        element_type=element_type_for(estimator, None, batch.X),
        n_features=n_features,
        label_length=labels.shape[1],
        seed=drawn_seed(estimator.random_state),
        ids=kind,
    )
    engine = make_engine(settings, policy)
    if batch.ids is not None:
        engine.check_ids(engine_ids(batch.ids))
    return Prepared(batch, Fitted(engine, settings, policy, batch.feature_names), labels)


def drawn_seed(random_state: Any) -> int:
    """Return the seed that ``random_state`` stands for."""
    if isinstance(random_state, Integral):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**32, dtype=np.uint64))


def learn(
    ready: Prepared,
    n_threads: int,
    become: Callable[[Fitted], None],
    *,
    how: str = "learn",
    with_ends: bool = False,
    recorder: Recorder | None = None,
) -> Any:
    """Learn a batch, and return what the engine's method says: answers, or None.

    A forest that has learned nothing has no answer to its first row, and none is returned.

    Parameters
    ----------
    ready : Prepared
        The batch.
    n_threads : int
        How many threads may be used.
    become : callable
        Called with the fitted forest if the engine has published anything.
    how : {"learn", "learn_offline", "replace", "predict_then_learn", "estimate_then_learn"}, \
default="learn"
        The engine's method.
    with_ends : bool, default=False
        Whether answers come with the ends of the trees that they were made of.
    recorder : Recorder or None, default=None
        Whoever writes the batch down.
    """
    if recorder is None:
        return _learned((ready.batch,), ready, n_threads, become, how, with_ends)
    with recorder.recording(ready.batch) as parts:
        return _learned(parts, ready, n_threads, become, how, with_ends)


def _learned(
    parts: Iterable[Batch],
    ready: Prepared,
    n_threads: int,
    become: Callable[[Fitted], None],
    how: str,
    with_ends: bool,
) -> Any:
    """Learn the parts of a batch in order."""
    batch, engine = ready.batch, ready.fitted.engine
    method, said, before = getattr(engine, how), [], engine.seen
    if how.endswith("_then_learn"):  # all classes of the batch are known by now, and will be met
        method = partial(method, ranks=ready.fitted.labels.ranks(), with_ends=with_ends)
        method = partial(_answered_but_the_first, engine, method)
    ids = None if batch.ids is None else engine_ids(batch.ids)
    failed = False
    try:
        for part in parts:
            start = part.first - batch.first
            for rows in _blocks(ready, part.X, whole=how == "learn_offline"):
                with keeping(start):
                    block = slice(start, start + len(rows))
                    names = None if ids is None else ids[block]
                    said.append(method(rows, ready.labels[block], n_threads, names))
                    start = block.stop
    except Exception:
        failed = True
        raise
    finally:  # an interrupted call keeps the rows that were published
        only_first = before == 0 and engine.seen == 1  # learned for its own, and taken back
        if engine.seen > before and not (failed and only_first):
            become(ready.fitted)
    return None if said[0] is None else joined(said)


def _answered_but_the_first(
    engine: Forest,
    method: Callable[..., Any],
    rows: NDArray[Any],
    labels: NDArray[np.float64],
    n_threads: int,
    ids: Any,
) -> Any:
    """Call a method that answers and learns; the first row of all is learned without an answer."""
    if engine.seen == 0:
        engine.learn(rows[:1], labels[:1], n_threads, None if ids is None else ids[:1])
        rows, labels, ids = rows[1:], labels[1:], None if ids is None else ids[1:]
    return method(rows, labels, n_threads, ids)


def _blocks(ready: Prepared, X: Any, *, whole: bool) -> Iterator[NDArray[Any]]:
    """Return sparse rows by blocks, unless a call that fails half-way must be taken back whole."""
    settings = ready.fitted.settings
    if not is_sparse(X):
        return iter((as_rows(X, settings.element_type),))
    functions = (settings.metric, *ready.fitted.labels.rules.values())
    whole = whole or any(map(callable, functions))
    return row_blocks(X, lambda rows: as_rows(rows, settings.element_type), whole=whole)
