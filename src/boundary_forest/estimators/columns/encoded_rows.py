"""Queries that become features a block at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from boundary_forest.estimators.columns.encoder import ColumnEncoder
from boundary_forest.estimators.columns.raw_rows import RawRows


@dataclass(frozen=True, eq=False)
class EncodedRows:
    """Rows as features, with the methods of a sparse matrix that blocks are made with.

    Parameters
    ----------
    rows : RawRows
        As they were given.
    encoder : ColumnEncoder
        What is known about their columns.
    width : int
        Number of features, with columns to spare.
    """

    rows: RawRows
    encoder: ColumnEncoder
    width: int

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of features."""
        return len(self.rows), self.width

    def __getitem__(self, rows: slice) -> EncodedRows:
        """Return some of the rows."""
        return replace(self, rows=self.rows[rows])

    def toarray(self) -> NDArray[Any]:
        """Return the features."""
        return self.encoder.query_rows(self.rows, self.width)
