"""What is wrong with a column, or with a row's value in it."""

from __future__ import annotations

from dataclasses import dataclass


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
