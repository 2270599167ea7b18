"""Errors that say which parameter they are about, and values as messages show them."""

from __future__ import annotations

import inspect
import re
from numbers import Integral
from typing import Any, NoReturn

import numpy as np


def raise_naming(parameter: str, error: Exception) -> NoReturn:
    """Raise an error about what was given as ``parameter`` so that it names the parameter.

    A function for ``except`` clauses: a context would take longer for every batch.
    """
    if re.search(rf"\b{parameter}\b|cannot be used:", str(error)):
        raise error
    raised = ValueError if isinstance(error, ValueError) else TypeError
    raise raised(f"{parameter} cannot be used: {error}") from error


def callers_level() -> int:
    """Return the ``stacklevel`` by which a warning names the line that called this package."""
    frame, level = inspect.currentframe(), 0
    while frame is not None:
        package = frame.f_globals.get("__name__", "").partition(".")[0]
        if package not in (__name__.partition(".")[0], "contextlib"):
            break
        frame, level = frame.f_back, level + 1
    return max(1, level)


def plain(value: Any) -> Any:
    """Return a value as Python shows it, without the name of numpy's type."""
    return value.item() if isinstance(value, np.generic) else value


def as_count(n_neighbors: Any) -> int:
    """Return a number of neighbours, or raise if it is none."""
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer >= 1, got {n_neighbors!r}")
    return int(n_neighbors)


class UnknownIdsError(KeyError):
    """Ids that no example has.

    Parameters
    ----------
    message : str
        Names some of them.
    ids : list of int or str
        All of them.
    """

    def __init__(self, message: str, ids: list[Any]) -> None:
        super().__init__(message)
        self.ids = ids


class JournalError(OSError):
    """A journal that cannot be opened, read or written: which, and what is wrong with it."""
