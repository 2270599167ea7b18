"""Read times: timestamps, dates and times of day, typed or as ISO 8601 text, as seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from boundary_forest.frames.values import INSTANT, mask_of, without_nothing

NO_TIME = "is not a time, but the earlier values are"
_CLOCK = r"\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?"
_ZONE = r"(?:Z|[+-]\d{2}(?::?\d{2})?)"
_TIME = rf"^(?:\d{{4}}-\d{{2}}-\d{{2}}(?:[T ](?:\d{{2}}|{_CLOCK}){_ZONE}?)?|{_CLOCK})$"


def as_times(values: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    """Return seconds since 1970 in UTC, NaN where a value is missing; and a mask of what is none.

    What names no zone is taken to be in UTC, and a time of day to be on the first day.
    """
    if pa.types.is_timestamp(values.type):
        return _seconds(values), None
    if pa.types.is_null(values.type) or not pa.types.is_string(values.type):
        return np.full(len(values), np.nan), mask_of(values.is_valid())
    texts = without_nothing(values)
    looks = pc.fill_null(pc.match_substring_regex(texts, _TIME), False)
    if not pc.any(looks).as_py():
        return np.full(len(values), np.nan), mask_of(texts.is_valid())
    # Microseconds are kept, and what has no date gets one.
    exact = pc.replace_substring_regex(texts, r"(\.\d{6})\d+", r"\1")
    exact = pc.replace_substring_regex(exact, r"^(\d{2}:)", r"1970-01-01T\1")
    zoned = pc.match_substring_regex(exact, rf"[T ].*{_ZONE}$")
    nothing = pa.scalar(None, pa.string())
    here = pc.if_else(pc.and_(looks, pc.invert(zoned)), exact, nothing)
    there = pc.if_else(pc.and_(looks, zoned), exact, nothing)
    instants = _seconds(_cast(here, INSTANT)), _seconds(_cast(there, pa.timestamp("us", "UTC")))
    seconds = np.where(np.isnan(instants[0]), instants[1], instants[0])
    misfit = mask_of(texts.is_valid()) & np.isnan(seconds)
    return seconds, misfit if misfit.any() else None


def _cast(texts: Any, kind: Any) -> Any:
    """Cast text; what is no time after all, as the 31st of February, becomes null."""
    try:
        return pc.cast(texts, kind)
    except pa.ArrowInvalid:
        if len(texts) == 1:
            return pa.nulls(1, kind)
        half = len(texts) // 2
        return pa.concat_arrays([_cast(texts[:half], kind), _cast(texts[half:], kind)])


def _seconds(instants: Any) -> NDArray[np.float64]:
    whole = pc.cast(instants, pa.int64())
    numbers: NDArray[np.float64] = pc.cast(whole, pa.float64(), safe=False).to_numpy(
        zero_copy_only=False
    )
    return numbers / 1e6
