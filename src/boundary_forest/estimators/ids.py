"""External ids: names that the user gives to examples, and by which examples are forgotten.

The engine keeps them with their rows.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.engine_constants import INT64, NONE, TEXT
from boundary_forest.estimators.errors import UnknownIdsError, plain
from boundary_forest.estimators.fitted import Fitted, Forest, new_engine
from boundary_forest.estimators.labels import ClassLabels, NoLabels

_LARGEST = np.iinfo(np.int64).max
_SHOWN = {INT64: "int64", TEXT: "str"}
MOST_SHOWN = 50  # unknown ids, in a message


def as_ids(ids: Any, n_rows: int) -> NDArray[Any]:
    """Return ids as an array of int64, or of str objects, which no fixed width cuts short."""
    array = np.asarray(ids)
    if array.ndim != 1 or len(array) != n_rows:
        raise ValueError(
            f"ids must have one value per row of X ({n_rows}), got shape {array.shape}"
        )
    if array.dtype.kind in "UTf" and not isinstance(ids, np.ndarray):
        # What numpy made text or floats of was perhaps neither: [1, "a"], or integers beyond int64.
        array = np.asarray(ids, dtype=object)
    if array.dtype.kind in "UT":
        return _unicode(array.astype(object))
    if array.dtype.kind == "O":
        array = np.array([str(one) if _is_like_text(one) else one for one in array], object)
        kinds = {str if isinstance(one, str) else type(plain(one)) for one in array}
        if kinds == {str}:
            return _unicode(array)
        if kinds != {int}:
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise TypeError(
                f"ids must be all integers (int64) or all strings, got values of type {names}"
            )
    elif array.dtype.kind not in "iu":
        raise TypeError(f"ids must be integers (int64) or strings, got dtype {array.dtype}")
    for extreme in (array.max(), array.min()):
        if not -_LARGEST - 1 <= extreme <= _LARGEST:
            raise ValueError(f"ids must fit into int64, got {extreme}: use strings for larger ids")
    return array.astype(np.int64)


def _is_like_text(one: Any) -> bool:
    """Return whether an id is of a class whose text identifies it: a UUID, a path, an ObjectId."""
    others = (str, bytes, Number, np.generic, Iterable, datetime.date, datetime.time)
    has_text = "__str__" in {name for cls in type(one).__mro__[:-1] for name in vars(cls)}
    return has_text and one is not None and not isinstance(one, others)


def _unicode(ids: NDArray[Any]) -> NDArray[Any]:
    try:
        "".join(ids).encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"ids must be valid Unicode text: {error}") from error
    return ids


def kind_of(ids: NDArray[Any] | None) -> str:
    """Return what the engine calls ids of this kind."""
    if ids is None:
        return NONE
    return TEXT if ids.dtype.kind == "O" else INT64


def check_kind(ids: NDArray[Any] | None, expected: str) -> None:
    """Refuse ids of another kind than the first batch's, or ids where it had none."""
    kind = kind_of(ids)
    if kind == expected:
        return
    if NONE not in (kind, expected):
        raise TypeError(f"ids must be {_SHOWN[expected]} as in the first batch, got {_SHOWN[kind]}")
    first = "had ids, so pass ids" if ids is None else "had no ids, so do not pass any"
    raise ValueError(
        f"all batches must have ids, or none: the first batch {first}, or start a new forest"
    )


def engine_ids(ids: NDArray[Any]) -> Any:
    """Return ids as the engine takes them: an array of int64, or a list of str."""
    return ids if ids.dtype == np.int64 else ids.tolist()


def id_column(ids: Any) -> NDArray[Any]:
    """Return the engine's ids as an array of int64, or of str objects."""
    if not isinstance(ids, list):
        return np.asarray(ids)
    texts = np.empty(len(ids), dtype=object)
    texts[:] = ids
    return texts


def taken_ids(parts: Sequence[Any], which: NDArray[Any]) -> Any:
    """Return some of the engine's ids, which are given in parts; None if there are none."""
    if not parts or parts[0] is None:
        return None
    return engine_ids(np.concatenate([id_column(ids) for ids in parts])[which])


def names_of(ids: Any, arrivals: NDArray[np.int64]) -> NDArray[Any]:
    """Return the engine's ids in the shape of ``arrivals``, or these if there are none."""
    if ids is None:
        return arrivals
    if isinstance(ids, list):
        return id_column(ids).reshape(arrivals.shape)
    integers: NDArray[Any] = ids.view(np.int64)  # which of the C types that is does not matter
    return integers


def checked_ids(fitted: Fitted, ids: Any) -> Any:
    """Return ids as the engine takes them; refuse those of another kind than the forest has."""
    if fitted.settings.ids == NONE:
        raise ValueError(
            "the examples of this forest have no ids: pass ids=... to fit() and partial_fit() to "
            "use them"
        )
    if isinstance(ids, str | bytes):
        raise TypeError(f"ids must be a list or an array, got {ids!r}")
    ids = list(ids) if not hasattr(ids, "__len__") else ids
    if len(ids) == 0:
        return []
    array = as_ids(ids, len(ids))
    check_kind(array, fitted.settings.ids)
    return engine_ids(array)


def rows_of(fitted: Fitted, ids: Any) -> NDArray[Any]:
    """Return the rows of the examples with these ids; KeyError if some are not known."""
    wanted = checked_ids(fitted, ids)
    known, rows = fitted.engine.named(wanted)
    unknown = [wanted[i] for i in np.flatnonzero(known == 0)]
    if unknown:
        raise KeyError(f"get() got {_listed(unknown)}")
    return np.asarray(rows)


def stored_names(fitted: Fitted) -> tuple[NDArray[np.int64], NDArray[Any]]:
    """Return the arrival numbers of the stored examples, in order, and their ids or the same."""
    snapshot = fitted.engine.snapshot()
    arrivals = snapshot.arrivals(0, snapshot.size).astype(np.int64)
    return arrivals, names_of(snapshot.ids(0, snapshot.size), arrivals)


def _listed(unknown: list[Any]) -> str:
    shown = ", ".join(repr(plain(one)) for one in unknown[:MOST_SHOWN])
    more = f" and {len(unknown) - MOST_SHOWN} more" if len(unknown) > MOST_SHOWN else ""
    return f"{len(unknown)} unknown id{'s' * (len(unknown) > 1)}: {shown}{more}"


def _has_only(engine: Forest, ids: Any) -> bool:
    """Return whether these ids, none of which is unknown, are those of all stored examples."""
    if len(set(ids)) != engine.stats()["examples_stored"]:
        return False
    return bool(engine.named(ids)[0].all())


def forget_known(engine: Any, ids: Any, n_threads: int, *, erase: bool = False) -> None:
    """Let an engine forget the examples with these ids; KeyError if some are not known."""
    unknown = [ids[i] for i in engine.forget(ids, n_threads, erase)]
    if unknown:
        message = f"forget() got {_listed(unknown)} (nothing was removed)"
        raise UnknownIdsError(message, unknown)


def forget_examples(
    fitted: Fitted | None, ids: Any, n_threads: int, *, erase: bool = False
) -> Fitted:
    """Forget the examples with these ids; KeyError if some are not known, and none is forgotten.

    Returns the forest without the classes that have no example left; an index that has no example
    left, as one that has learned nothing but keeps its seed. Learning must be paused. ``erase``:
    and erase what was forgotten, in the same step.
    """
    if fitted is None:
        raise KeyError("forget() got ids, but nothing has been learned yet")
    wanted = checked_ids(fitted, ids)
    if len(wanted) == 0:
        return fitted
    engine, labels, after = fitted.engine, fitted.labels, fitted
    if isinstance(labels, NoLabels) and isinstance(engine, Forest) and _has_only(engine, wanted):
        return replace(fitted, engine=new_engine(fitted.settings, labels))
    if isinstance(labels, ClassLabels):  # before anything is forgotten, as it might fail
        pruned = labels.pruned(engine.n_classes, engine.classes_without(wanted))
        after = replace(fitted, labels=pruned)
    forget_known(engine, wanted, n_threads, erase=erase)
    if isinstance(labels, ClassLabels):
        labels.give_way(pruned)
    return after
