"""Lines of text in blocks, from a file or from whatever a pipe has ready.

A block ends where a line ends, so that it can be read by itself. From a pipe it is all that has
arrived: nobody waits for a block to fill up.
"""

from __future__ import annotations

import gzip
import os
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import BinaryIO

from boundary_forest.session.problems import StreamError
from boundary_forest.session.sources.encoding import Utf8

BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 26
POLL_SECONDS = 0.05  # how soon a pipe without data notices that the session is to stop
_GZIP = b"\x1f\x8b"


def blocks_of(
    path: str,
    *,
    quoted: bool | None,
    encoding: str | None = None,
    stopped: Callable[[], bool] = lambda: False,
) -> Iterator[bytes]:
    """Yield blocks of whole lines in UTF-8; ``-`` is standard input.

    A JSON array has no lines that would matter: its blocks end anywhere.

    Parameters
    ----------
    path : str
        A file, which may be compressed by gzip, or a pipe.
    quoted : bool or None
        Whether a line continues after a line break within double quotes, as in CSV; None: it does
        unless the first character is that of a JSON object.
    encoding : str or None
        The encoding of the source; None: UTF-8, or UTF-16 with a mark.
    stopped : callable
        Called while waiting for a pipe; true ends the lines.
    """
    rest = b""
    try:
        with _reader(path, stopped) as raw:
            read, is_array = Utf8(raw, path, encoding), None
            while more := read():
                block = rest + more
                if is_array is None and block.strip():
                    is_array = not quoted and starts_array(block)
                    quoted = not block.lstrip().startswith(b"{") if quoted is None else quoted
                end = len(block) if is_array else _whole_lines(block, bool(quoted))
                if end:
                    yield block[:end]
                rest = block[end:]
                if len(rest) > LONGEST_LINE:
                    raise StreamError(
                        f"{path}: a line or a quoted value does not end within {LONGEST_LINE:,} "
                        "bytes"
                    )
        if rest:
            yield rest if rest.endswith(b"\n") else rest + b"\n"
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StreamError(f"{path} is damaged ({error})") from error


def starts_array(start: bytes) -> bool:
    """Return whether text starts with a JSON array."""
    return start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"[")


def first_bytes(path: str) -> bytes:
    """Return the first bytes of a file, uncompressed."""
    try:
        with open(path, "rb") as file:
            start = file.read(1 << 16)
        if start.startswith(_GZIP):
            with gzip.open(path, "rb") as file:
                return file.read(1 << 16)
        return start
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise StreamError(f"{path} is damaged ({error})") from error


def is_pipe(path: str) -> bool:
    """Return whether a source arrives piece by piece, and cannot be read twice."""
    return path == "-" or not stat.S_ISREG(os.stat(path).st_mode)


def _whole_lines(block: bytes, quoted: bool) -> int:
    """Return where the last whole line ends."""
    end = block.rfind(b"\n") + 1
    if quoted and block.count(b'"', 0, end) % 2:  # within quotes: the value began on this line
        end = block.rfind(b"\n", 0, _last_open_quote(block, end)) + 1
    return end


def _last_open_quote(block: bytes, end: int) -> int:
    """Return where the quotes that are open at ``end`` begin: the last line with an odd number."""
    while True:
        begin = block.rfind(b"\n", 0, end - 1) + 1
        if block.count(b'"', begin, end) % 2:
            return block.find(b'"', begin, end)
        end = begin


@contextmanager
def _reader(path: str, stopped: Callable[[], bool]) -> Iterator[Callable[[], bytes]]:
    if path == "-":
        yield _pipe_reader(sys.stdin.fileno(), stopped)
        return
    with open(path, "rb") as file:
        if is_pipe(path):
            yield _pipe_reader(file.fileno(), stopped)
        elif file.peek(2).startswith(_GZIP):
            with gzip.open(file, "rb") as content:
                yield lambda: content.read(BLOCK_BYTES)
        else:
            yield lambda: _next(file)


def _next(file: BinaryIO) -> bytes:
    return file.read(BLOCK_BYTES)


def _pipe_reader(descriptor: int, stopped: Callable[[], bool]) -> Callable[[], bytes]:
    """Return what has arrived since the last call, at least one byte; nothing at the end."""

    def read() -> bytes:
        while not _ready(descriptor, POLL_SECONDS):
            if stopped():
                return b""
        parts: list[bytes] = []
        size = 0
        while size < BLOCK_BYTES and (not parts or _ready(descriptor, 0)):
            part = os.read(descriptor, BLOCK_BYTES)
            if not part:
                break
            parts.append(part)
            size += len(part)
        return b"".join(parts)

    return read


def _ready(descriptor: int, seconds: float) -> bool:
    return bool(select.select([descriptor], [], [], seconds)[0])
