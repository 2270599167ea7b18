"""Errors that say which parameter they are about, and how far a call came."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from numbers import Integral
from typing import Any

import numpy as np


@contextmanager
def naming(parameter: str) -> Iterator[None]:
    """An error about what was given as ``parameter`` says so."""
    try:
        yield
    except (TypeError, ValueError) as error:
        if re.search(rf"\b{parameter}\b|cannot be used:", str(error)):
            raise
        kind = ValueError if isinstance(error, ValueError) else TypeError
        raise kind(f"{parameter} cannot be used: {error}") from error


@contextmanager
def keeping(n_learned: int) -> Iterator[None]:
    """Whatever ends a call between blocks says how much of it was learned."""
    try:
        yield
    except BaseException as error:
        if n_learned:
            error.add_note(f"{n_learned} rows of earlier blocks were learned, and are kept")
        raise


def plain(value: Any) -> Any:
    """A value as Python would show it, without the name of numpy's type."""
    return value.item() if isinstance(value, np.generic) else value


def as_count(n_neighbors: Any) -> int:
    """How many neighbours are asked for, if that is a number of them."""
    if not isinstance(n_neighbors, Integral) or n_neighbors < 1:
        raise ValueError(f"n_neighbors must be an integer >= 1, got {n_neighbors!r}")
    return int(n_neighbors)


class JournalError(OSError):
    """A journal that cannot be opened, read or written: which, and what is wrong with it."""
