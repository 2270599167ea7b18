"""Index files: what ``index`` makes and adds to, and ``neighbors`` searches."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from boundary_forest import BoundaryForestNeighbors, ModelFileError
from boundary_forest.cli.answers import naming
from boundary_forest.estimators.engine_constants import NONE
from boundary_forest.files.loading import load_forest
from boundary_forest.files.saving import save_forest
from boundary_forest.session.problems import StreamError

VECTORS = "vectors"  # the document of an index that names the columns of positions


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
    with naming(path):
        save_forest(forest, path, {VECTORS: {"columns": columns}} | attachments)


def _state_of(path: Path) -> tuple[int, ...]:
    state = os.stat(path)
    return state.st_ino, state.st_size, state.st_mtime_ns
