"""What ``index`` and ``neighbors`` share: the vectors in a source, row by row, and index files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import BoundaryForestNeighbors, ModelFileError
from boundary_forest.cli.display import MOST_SHOWN
from boundary_forest.cli.terminal import naming_file, warn
from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.files.loading import load_forest
from boundary_forest.files.saving import save_forest
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.vector_columns import VectorColumns
from boundary_forest.sources import Source, open_source
from boundary_forest.sources.row_batch import StreamError
from boundary_forest.sources.text_blocks import about_lines

VECTORS = "vectors"  # the document of an index that names the columns of positions
SEVERAL_VALUES = 1 << 20  # of the rows between two looks at whether to stop


@dataclass(frozen=True)
class VectorBatch:
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

    def parts(self, most: int) -> Iterator[VectorBatch]:
        """Yield the positions in parts, after each of which a run may stop.

        Parameters
        ----------
        most : int
            Number of rows; fewer if they are long.
        """
        n, width = self.X.shape
        rows = max(1, min(most, SEVERAL_VALUES // max(1, width)))
        for begin in range(0, n, rows):
            here = slice(begin, begin + rows)
            ids = None if self.ids is None else self.ids[here]
            yield VectorBatch(self.X[here], ids, self.numbers[here], {})


class VectorSource:
    """The positions in a source; errors name the source and the row.

    Parameters
    ----------
    path : str
        A file, a pipe, or ``-``.
    format : str or None
        The source's format; detected if omitted.
    vector, id
        As for :class:`~boundary_forest.frames.vector_columns.VectorColumns`.
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

    def __iter__(self) -> Iterator[VectorBatch]:
        for batch in self._source.batches:
            if self.columns is None and len(batch.numbers):
                with naming_source(self.name):
                    self.columns = self._chosen(batch.table.schema)
            bad = dict(batch.bad)
            if self.columns is None:  # all rows so far were unreadable
                read = None
            else:
                with naming_source(self.name):
                    read = self.columns.read(batch.table)
                bad |= {int(batch.numbers[place]): why for place, why in read.bad.items()}
            self._refuse(bad)
            if read is None:
                yield VectorBatch(np.zeros((0, 0)), None, np.zeros(0, dtype=np.int64), bad)
            else:
                yield VectorBatch(read.X, read.ids, batch.numbers[read.places], bad)

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
def naming_source(name: str) -> Iterator[None]:
    """Put the source's name before what is wrong with a column, or with values together."""
    try:
        yield
    except ColumnError as error:
        raise StreamError(f"{name}: {error} (choose columns with --vector and --id)") from error


@dataclass
class IndexFile:
    """An index, and the file that it is read from.

    Parameters
    ----------
    path : Path
        The file.
    forest : BoundaryForestNeighbors
        The index, which has vectors.
    attachments : dict
        The documents in the file.
    """

    path: Path
    forest: BoundaryForestNeighbors
    attachments: dict[str, Any]
    _as_read: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def opened(cls, path: Path) -> IndexFile:
        """Return the index in a file; StreamError if there is none, or none with vectors."""
        as_read = _state_of(path) if path.exists() else ()
        try:
            forest, attachments = load_forest(path)
        except TypeError as error:  # a function of one's own as metric
            raise StreamError(f"{path}: {error}") from error
        if not isinstance(forest, BoundaryForestNeighbors):
            raise StreamError(
                f"{path} is not an index but a {type(forest).__name__}: create an index with "
                "boundary-forest index"
            )
        if forest.fitted is None:
            raise StreamError(f"{path} is an empty index")
        return cls(path, forest, attachments, as_read)

    @property
    def has_ids(self) -> bool:
        """Whether vectors have ids."""
        assert self.forest.fitted is not None
        return self.forest.fitted.settings.ids != NONE

    @property
    def columns(self) -> list[str] | None:
        """The columns that its positions came from, if they are known."""
        if VECTORS not in self.attachments:
            names = getattr(self.forest, "feature_names_in_", None)
            return None if names is None else [str(name) for name in names]
        document = self.attachments[VECTORS]
        columns = document.get("columns") if isinstance(document, dict) else None
        if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
            raise ModelFileError(f"{self.path}: {VECTORS}: it does not contain column names")
        return columns

    def check_unchanged(self) -> None:
        """Refuse to replace what another process has written since the file was read."""
        if not self.path.exists() or _state_of(self.path) != self._as_read:
            raise StreamError(
                f"{self.path} was changed by another process, and nothing was saved: run the "
                "command again"
            )


def save_index(
    forest: BoundaryForestNeighbors, path: Path, columns: list[str], attachments: dict[str, Any]
) -> None:
    """Save an index, with the columns that its positions come from unless that is known already."""
    with naming_file(path):
        save_forest(forest, path, {VECTORS: {"columns": columns}} | attachments)


def _state_of(path: Path) -> tuple[int, ...]:
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns
