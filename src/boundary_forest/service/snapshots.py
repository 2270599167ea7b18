"""Snapshots for download: model files in a folder of their own."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

from boundary_forest.durable import DurableForest
from boundary_forest.service.errors import ServiceError

FOLDER = "snapshots"
_NAME = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9]+\.bf")


class Snapshots:
    """The snapshots of a folder, the latest few.

    Parameters
    ----------
    folder : Path
        The durable folder.
    most : int
        How many are kept.
    """

    def __init__(self, folder: Path, most: int) -> None:
        self._folder = folder / FOLDER
        self._most = most

    def make(self, forest: DurableForest) -> dict[str, Any]:
        """Save the forest and describe the file."""
        if forest.examples_seen == 0:
            raise ServiceError(409, "nothing_learned", "nothing has been learned yet")
        self._folder.mkdir(exist_ok=True)
        stamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        path = self._folder / f"{stamp}-{forest.examples_seen}.bf"
        forest.save(path)
        # This one stays even if the clock was set back since the others were made.
        others = [other for other in self._paths() if other != path]
        for old in others[: max(0, len(others) - self._most + 1)]:
            old.unlink(missing_ok=True)
        return _described(path)

    def listed(self) -> list[dict[str, Any]]:
        """Describe all files, the oldest first."""
        return [_described(path) for path in self._paths()]

    def path(self, name: str) -> Path:
        """Return the file of this name; ServiceError if there is none."""
        path = self._folder / name
        if not _NAME.fullmatch(name) or not path.is_file():
            raise ServiceError(404, "unknown_snapshot", "there is no snapshot of this name")
        return path

    def delete_all(self) -> None:
        """Delete all files: they contain what was forgotten."""
        for path in self._paths():
            path.unlink(missing_ok=True)

    def _paths(self) -> list[Path]:
        if not self._folder.is_dir():
            return []
        return sorted(
            (path for path in self._folder.iterdir() if _NAME.fullmatch(path.name)), key=_age
        )


def _age(path: Path) -> tuple[int, str]:
    """Return what orders files by age: a forest never unlearns a row, while clocks are set back."""
    stamp, _, seen = path.stem.partition("-")
    return int(seen), stamp


def _described(path: Path) -> dict[str, Any]:
    return {"name": path.name, "bytes": path.stat().st_size, "examples_seen": _age(path)[0]}
