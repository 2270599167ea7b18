"""Examples that are forgotten on request."""

from __future__ import annotations

from typing import Any

from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.ids import as_ids, check_kind, engine_ids

MOST_SHOWN = 50  # unknown ids, in a message


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


def forget_examples(fitted: Fitted | None, ids: Any, n_threads: int) -> None:
    """Forget the examples with these ids; KeyError if some are not known, and none is forgotten."""
    if fitted is None:
        raise KeyError("forget() got ids, but nothing has been learned yet")
    wanted = checked_ids(fitted, ids)
    if len(wanted) == 0:
        return
    unknown = [wanted[i] for i in fitted.engine.forget(wanted, n_threads)]
    if unknown:
        shown = ", ".join(repr(plain(one)) for one in unknown[:MOST_SHOWN])
        more = f" and {len(unknown) - MOST_SHOWN} more" if len(unknown) > MOST_SHOWN else ""
        raise KeyError(
            f"forget() got {len(unknown)} unknown id{'s' * (len(unknown) > 1)}: {shown}{more} "
            "(nothing was removed)"
        )
