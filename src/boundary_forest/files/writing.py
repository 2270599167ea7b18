"""Writing a model file: the old file or the new one, whole, whatever happens meanwhile.

The header is written by hand, as the format's documentation defines it (a length and JSON): the
safetensors library wants all arrays in memory at once, and positions may be most of it.
"""

from __future__ import annotations

import os
import secrets
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from boundary_forest.files.layout import Streamed, as_bytes, crc32, header, laid_out, shown

_UNFINISHED = ".saving-*.tmp"  # what a file is called until it is whole


def remove_unfinished(folder: Path) -> None:
    """Remove what a process that was killed while it saved has left, if nobody else saves here."""
    for path in folder.glob(_UNFINISHED):
        path.unlink(missing_ok=True)


def write_model(
    path: str | os.PathLike[str],
    document: dict[str, Any],
    arrays: Mapping[str, NDArray[Any] | Streamed],
) -> None:
    """Write document and arrays to ``path``, in place of what is there."""
    entries = laid_out(arrays)
    checksums = {entry.name: shown(0) for entry in entries}
    with _replacing(path) as file:
        # The checksums are known once all is written, and take as many characters then.
        file.write(header(document, entries, checksums))
        for entry in entries:
            checksum = entry.begin_checksum()
            for block in _blocks(arrays[entry.name]):
                content = as_bytes(np.ascontiguousarray(block, dtype=entry.dtype))
                checksum = crc32(content, checksum)
                file.write(content)
            checksums[entry.name] = shown(checksum)
        file.seek(0)
        file.write(header(document, entries, checksums))


def _blocks(array: NDArray[Any] | Streamed) -> Iterator[NDArray[Any]]:
    if isinstance(array, Streamed):
        yield from array.blocks()
    else:
        yield array


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def make_folder(folder: Path) -> None:
    """Make a folder, and those above that are missing, so that a crash does not lose its name."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(exist_ok=True)
    sync_folder(folder.parent)


@contextmanager
def _freed_later(path: Path) -> Iterator[None]:
    """Return a context in which ``path`` is replaced without waiting for its memory to be freed.

    The last to close a file that has no name any more frees its cached pages, which took a sixth of
    the time of saving: a thread does it, and nobody needs to wait for it.
    """
    old = None
    with suppress(OSError):  # there is none, or it may not be read
        old = os.open(path, os.O_RDONLY)
    try:
        yield
    finally:
        if old is not None:
            try:
                threading.Thread(target=os.close, args=(old,)).start()
            except RuntimeError:  # too many threads, or the interpreter is about to end
                os.close(old)


@contextmanager
def _replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Return a file that takes the place of ``path`` once it is whole and on the disk.

    It is made beside the target, so that renaming is atomic. What a symbolic link points to is
    replaced, not the link. An existing file's permissions are kept; a new one's follow the umask.
    """
    target = Path(os.path.realpath(path))
    with suppress(FileNotFoundError):
        mode = target.stat().st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(f"cannot save a model to {path}: it is a directory")
        if not stat.S_ISREG(mode):
            raise OSError(f"cannot save a model to {path}: it is not a regular file")
    temporary = target.parent / _UNFINISHED.replace("*", secrets.token_hex(8))
    try:
        # Rows come in pieces that end within pages; one by one, writing them takes twice as long.
        with open(temporary, "xb", buffering=1 << 20) as file:
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
        with _freed_later(target):
            os.replace(temporary, target)
    except BaseException as error:
        if isinstance(error, OSError):  # tell the user's file, not the one that takes its place
            error.filename = os.fspath(path)
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(target.parent)
