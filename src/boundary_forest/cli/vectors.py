"""What ``index`` and ``neighbors`` share: the positions in a source, row by row."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from rich.console import Console

from boundary_forest.cli.display import MOST_SHOWN, warn
from boundary_forest.cli.stopping import Stopping
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.problems import ColumnError
from boundary_forest.frames.vectors import VectorColumns
from boundary_forest.session.problems import StreamError
from boundary_forest.session.sources import Source, open_source
from boundary_forest.session.sources.sizing import about_lines

SEVERAL = 256  # rows between two looks at whether to stop, where each may take long


@dataclass(frozen=True)
class Vectors:
    """Some rows of a source.

    Parameters
    ----------
    X : ndarray of shape (n_rows, n_features)
        The positions of those that have one.
    ids : list or None
        Their ids, if there is a column of them.
    numbers : ndarray of int64
        Their numbers in the source, from 1.
    bad : dict
        The numbers of the rows that are left out, and why.
    """

    X: NDArray[Any]
    ids: list[Any] | None
    numbers: NDArray[np.int64]
    bad: dict[int, str]


class VectorSource:
    """The positions in a source; errors name the source and the row.

    Parameters
    ----------
    path : str
        A file, a pipe, or ``-``.
    format : str or None
        The source's format; detected if omitted.
    vector, id
        As for :class:`~boundary_forest.frames.vectors.VectorColumns`.
    likely : list of str
        Columns of positions by another source's account, which count if nobody names any and this
        one has them.
    width : int or None
        The number of features, if that is known.
    dialect : Dialect
        How text is written.
    skip : bool
        Whether rows without a position are left out; else the first one is an error.
    stopped : callable
        Called while waiting for a pipe; true ends the rows.
    """

    def __init__(
        self,
        path: str,
        format: str | None,
        *,
        vector: tuple[str, ...],
        id: str | None,
        likely: list[str] | None = None,
        width: int | None = None,
        dialect: Dialect,
        skip: bool,
        stopped: Callable[[], bool],
    ) -> None:
        self._vector, self._id, self._likely = vector, id, likely or []
        self._width, self._dialect, self._skip = width, dialect, skip
        if id is None and (format == "npz" or path.lower().endswith(".npz")):
            raise StreamError(
                f"{path}: an npz file requires --id, the name of a one-dimensional array of ids; "
                "all arrays of the same length are read"
            )
        self._source: Source = open_source(
            path, format, target=id, dialect=dialect, stopped=stopped
        )
        self.name = self._source.name
        self.columns: VectorColumns | None = None
        self.left_out = 0
        self.total = self._source.total_rows
        if self.total is None and self._source.format in ("csv", "ndjson"):
            self.total = None if self._source.is_pipe else about_lines(path)

    def __iter__(self) -> Iterator[Vectors]:
        for batch in self._source.batches:
            if self.columns is None and len(batch.numbers):
                with naming(self.name):
                    self.columns = self._chosen(batch.table.schema)
            bad = dict(batch.bad)
            if self.columns is None:  # all rows so far were unreadable
                read = None
            else:
                with naming(self.name):
                    read = self.columns.read(batch.table)
                bad |= {int(batch.numbers[place]): why for place, why in read.bad.items()}
            self._refuse(bad)
            if read is None:
                yield Vectors(np.zeros((0, 0)), None, np.zeros(0, dtype=np.int64), bad)
            else:
                yield Vectors(read.X, read.ids, batch.numbers[read.places], bad)

    def _chosen(self, schema: Any) -> VectorColumns:
        known = not self._vector and {*self._likely} <= {*schema.names}
        return VectorColumns(
            schema,
            self._likely if known else self._vector,
            id=self._id,
            width=self._width,
            dialect=self._dialect,
        )

    def _refuse(self, bad: dict[int, str]) -> None:
        for number, why in sorted(bad.items()):
            if not self._skip:
                raise StreamError(
                    f"{self.name}: row {number}: {why} (use --on-error skip to skip bad rows)"
                )
            self.left_out += 1
            if self.left_out <= MOST_SHOWN:
                warn(f"row {number} is skipped: {why}")
            elif self.left_out == MOST_SHOWN + 1:
                warn("further skipped rows are counted, but not shown")


@contextmanager
def naming(name: str) -> Iterator[None]:
    """Put the source's name before what is wrong with a column, or with values together."""
    try:
        yield
    except ColumnError as error:
        raise StreamError(f"{name}: {error} (choose columns with --vector and --id)") from error


@contextmanager
def watching() -> Iterator[Stopping]:
    """Notice Ctrl-C between two pieces of work."""
    pa.enable_signal_handlers(False)  # else its readers take a signal for an error of their own
    try:
        with Stopping() as stopped:
            yield stopped
    finally:
        pa.enable_signal_handlers(True)


def console_on(stream: Any = None) -> Console:
    """Return a console; elsewhere than on a terminal, lines are as long as they need to be."""
    stream = sys.stdout if stream is None else stream
    width = None if stream.isatty() else 400
    return Console(file=stream, width=width, force_terminal=stream.isatty(), highlight=False)
