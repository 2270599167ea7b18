"""What is wrong with a column, or with a row's value in it, and how messages name columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches


class ColumnError(ValueError):
    """A column does not exist or cannot be used: which, and why."""


class NothingYetError(ColumnError):
    """The columns lack the values that a decision needs; more rows may bring them."""


@dataclass(frozen=True)
class Problem:
    """Why a row cannot be used.

    Parameters
    ----------
    column : str
        The column.
    what : str
        What is wrong there.
    missing : bool
        Whether the value is missing.
    misfit : bool
        Whether the value is of another kind than the column's.
    """

    column: str
    what: str
    missing: bool = False
    misfit: bool = False

    def __str__(self) -> str:
        return f"column {self.column!r} {self.what}"


def listed(names: Sequence[str], most: int = 20) -> str:
    """Return names separated by commas; of more than ``most`` those at both ends."""
    if len(names) <= most:
        return ", ".join(names)
    first, last = names[: most - most // 3], names[-(most // 3) :]
    return f"{', '.join(first)}, ... {', '.join(last)} ({len(names):,} in all)"


def no_column(name: str, names: Sequence[str]) -> ColumnError:
    """Return the error that there is no such column, with what may have been meant."""
    alike = {other.strip().casefold(): other for other in reversed(names)}
    close = get_close_matches(name.strip().casefold(), alike, n=1)
    if close:
        return ColumnError(f"there is no column {name!r}; did you mean {alike[close[0]]!r}?")
    values = sum(_is_number(name) for name in names) > len(names) / 2
    hint = ", which look like values: use --no-header if the first line has no column names"
    shown = f"the columns are {listed(names)}{hint if values else ''}"
    return ColumnError(f"there is no column {name!r}; {shown}")


def _is_number(name: str) -> bool:
    try:
        return "." in name and math.isfinite(float(name))
    except ValueError:
        return False
