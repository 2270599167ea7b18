"""Rows as they come, before it matters what a model's columns mean: a matrix, dicts, or a table."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from boundary_forest.service.errors import unprocessable
from boundary_forest.service.rows import Rows

_NUMBERS = {int, float, bool}
_VALUES = {int, float, bool, str, type(None)}


def checked_rows(rows: Rows, most_columns: int) -> Rows:
    """Return rows of a request, lists of numbers as a matrix; refuse those that are of no kind."""
    if not isinstance(rows, list):
        width = rows.num_columns if isinstance(rows, pa.Table) else rows.shape[1]
        if not 1 <= width <= most_columns:
            raise unprocessable(f"rows must have 1 to {most_columns:,} columns", "rows")
        return rows
    if type(rows[0]) is list:
        matrix = _matrix_of_lists(rows)
        if matrix is not None and 1 <= matrix.shape[1] <= most_columns:
            return matrix
    kind = type(rows[0])
    if kind not in (list, dict):
        raise unprocessable("a row must be a list of numbers or an object", "rows[0]")
    allowed = _NUMBERS if kind is list else _VALUES
    for i, row in enumerate(rows):
        if type(row) is not kind:
            raise unprocessable("rows must be all lists or all objects", f"rows[{i}]")
        if not 1 <= len(row) <= most_columns:
            raise unprocessable(f"a row must have 1 to {most_columns:,} values", f"rows[{i}]")
        values = row.values() if isinstance(row, dict) else row
        if not allowed.issuperset(map(type, values)):
            _refuse_value(i, row, allowed)
        if kind is list and len(row) != len(rows[0]):
            what = f"rows must have the same length, got {len(rows[0]):,} and {len(row):,}"
            raise unprocessable(what, f"rows[{i}]")
    if kind is dict:
        return rows
    raise unprocessable("a number is too large", "rows")


def _matrix_of_lists(rows: list[Any]) -> NDArray[Any] | None:
    """Return lists of numbers as a matrix, in one pass; None if they are something else."""
    try:
        matrix = np.array(rows)
    except (ValueError, OverflowError):
        return None
    return matrix if matrix.ndim == 2 and matrix.dtype.kind in "biuf" else None


def _refuse_value(i: int, row: Any, allowed: set[Any]) -> None:
    pairs = enumerate(row) if isinstance(row, list) else row.items()
    for name, value in pairs:
        if type(value) in allowed:
            continue
        if isinstance(row, list):
            raise unprocessable("a value of a list must be a number", f"rows[{i}][{name}]")
        # A list of numbers is a column of vectors, such as an embedding.
        if type(value) is not list or not value or not _NUMBERS.issuperset(map(type, value)):
            raise unprocessable(
                "a value must be a number, text, true, false, null or a list of numbers",
                f"rows[{i}].{name}",
            )
