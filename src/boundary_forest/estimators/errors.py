"""Errors that say which parameter they are about, and how far a call came."""

from __future__ import annotations

import re
from numbers import Integral
from typing import Any

import numpy as np


class naming:
    """A context in which an error about what was given as ``parameter`` names the parameter.

    Both contexts here are entered for every batch, so they are classes: generators take longer.
    """

    def __init__(self, parameter: str) -> None:
        self._parameter = parameter

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if not isinstance(error, TypeError | ValueError):
            return
        if re.search(rf"\b{self._parameter}\b|cannot be used:", str(error)):
            return
        raised = ValueError if isinstance(error, ValueError) else TypeError
        raise raised(f"{self._parameter} cannot be used: {error}") from error


class keeping:
    """A context in which an exception says how many rows of earlier blocks were learned."""

    def __init__(self, n_learned: int) -> None:
        self._n_learned = n_learned

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> None:
        if error is not None and self._n_learned:
            error.add_note(f"{self._n_learned} rows were learned before this error and are kept")


def plain(value: Any) -> Any:
    """Return a value as Python shows it, without the name of numpy's type."""
    return value.item() if isinstance(value, np.generic) else value


def as_count(n_neighbors: Any) -> int:
    """Return a number of neighbours, or raise if it is none."""
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer >= 1, got {n_neighbors!r}")
    return int(n_neighbors)


class JournalError(OSError):
    """A journal that cannot be opened, read or written: which, and what is wrong with it."""
