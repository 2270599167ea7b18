"""The text of a source in blocks of whole lines, as UTF-8, from a file or a pipe.

A block ends where a line ends, so that it can be read by itself. From a pipe it is all that has
arrived: nobody waits for a block to fill up. A JSON array is turned into lines, one per object.
"""

from __future__ import annotations

import codecs
import gzip
import json
import os
import re
import select
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from boundary_forest.sources.row_batch import StreamError

HINT = "set the encoding, for example to latin-1, cp1252 or utf-16"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
BLOCK_BYTES = 1 << 20
LONGEST_LINE = 1 << 26
LONG_LINE, MOST_HELD = 1 << 16, 1 << 25  # bytes; long lines of a file are read many at once
POLL_SECONDS = 0.05  # how soon a pipe without data notices that the session is to stop
_GZIP = b"\x1f\x8b"
_BETWEEN = re.compile(r"[\s,]*")
SAMPLES, SAMPLE_BYTES = 4, 1 << 18


class Utf8:
    """The bytes of a source as UTF-8, in which lines end with a feed: call it until it has none.

    Parameters
    ----------
    read : callable
        Returns the next bytes; none at the end.
    name : str
        Of the source, for errors.
    encoding : str or None
        The encoding; None: UTF-8, unless a mark says that it is UTF-16.
    """

    def __init__(self, read: Callable[[], bytes], name: str, encoding: str | None) -> None:
        self._read = read
        self._name = name
        self._start: bytes | None = read()
        if encoding is None:
            encoding = "utf-16" if self._start.startswith(_MARKS) else "utf-8"
        self._encoding = encoding
        self._converts = codecs.lookup(encoding).name != "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._returns: bool | None = None  # whether lines end with a carriage return alone
        self._held = b""  # a return that a feed may follow

    def __call__(self) -> bytes:
        """Return the next bytes, at least one; none at the end."""
        while True:
            more = self._decoded() if self._converts else self._next()
            text, self._held = self._held + more, b""
            if self._returns is None and (b"\n" in text or b"\r" in text[:-1]):
                self._returns = b"\n" not in text
            if self._returns is None and more and text.endswith(b"\r"):
                text, self._held = text[:-1], b"\r"
            if text or not more:
                return text.replace(b"\r", b"\n") if self._returns else text

    def _next(self) -> bytes:
        start, self._start = self._start, None
        return self._read() if start is None else start

    def _decoded(self) -> bytes:
        try:
            while True:
                raw = self._next()
                text = self._decoder.decode(raw, final=not raw)
                if text or not raw:  # else it is a part of a character
                    return text.encode()
        except UnicodeDecodeError as error:
            raise StreamError(
                f"{self._name} is not valid {self._encoding} text ({error.reason}): {HINT}"
            ) from error


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
    rest, in_pieces = b"", is_pipe(path)
    try:
        with _reader(path, stopped) as raw:
            read, is_array = Utf8(raw, path, encoding), None
            while more := read():
                block = rest + more
                if is_array is None and block.strip():
                    is_array = not quoted and starts_array(block)
                    quoted = not block.lstrip().startswith(b"{") if quoted is None else quoted
                end = len(block) if is_array else _whole_lines(block, bool(quoted))
                # Columns cost time per block: a wide row should not be one of its own.
                wide = not (in_pieces or is_array) and end > LONG_LINE * block.count(b"\n", 0, end)
                if wide and end < MOST_HELD:
                    end = 0
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
    with open(path, "rb", opener=_without_waiting) as file:
        if is_pipe(path):
            yield _pipe_reader(file.fileno(), stopped)
        elif file.peek(2).startswith(_GZIP):
            with gzip.open(file, "rb") as content:
                yield lambda: content.read(BLOCK_BYTES)
        else:
            yield lambda: file.read(BLOCK_BYTES)


def _without_waiting(path: str, flags: int) -> int:
    """Open a named pipe before anybody writes to it, so that a session can be stopped meanwhile."""
    return os.open(path, flags | os.O_NONBLOCK if is_pipe(path) else flags)


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


def lines_of_array(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the objects of a JSON array as blocks of lines, whatever the array's line ends."""
    decode, read = codecs.getincrementaldecoder("utf-8-sig")().decode, json.JSONDecoder().raw_decode
    text, ended = "", False
    for block in blocks:
        text += decode(block)
        if text.lstrip().startswith("["):
            text = text.lstrip()[1:]
        lines: list[str] = []
        begin = 0
        while not ended:
            begin = _next_object(name, text, begin)
            ended = text.startswith("]", begin)
            try:
                _, end = read(text, begin)
            except ValueError:  # it goes on in the next block
                break
            lines.append(text[begin:end].replace("\r", " ").replace("\n", " ") + "\n")
            begin = end
        text = text[begin:]
        if lines:
            yield "".join(lines).encode()
        if len(text) > LONGEST_LINE:
            raise StreamError(
                f"{name}: a JSON object does not end within {LONGEST_LINE:,} characters"
            )
    if not ended or text.strip() != "]":
        raise StreamError(f"{name} is not a valid JSON array: unexpected {text[:40]!r}")


def _next_object(name: str, text: str, begin: int) -> int:
    """Return where the next object begins, or the array ends."""
    between = _BETWEEN.match(text, begin)
    begin = begin if between is None else between.end()
    if begin < len(text) and text[begin] not in "{]":
        raise StreamError(
            f"{name} must be a JSON array of objects, got {text[begin : begin + 40]!r}"
        )
    return begin


def about_lines(path: str) -> int | None:
    """Return about how many lines a file has; None if it is compressed, or has none."""
    size = os.path.getsize(path)
    lines = taken = 0
    with open(path, "rb") as file:
        if file.read(2) == _GZIP:
            return None
        for i in range(SAMPLES):
            file.seek(max(i * SAMPLE_BYTES, i * (size - SAMPLE_BYTES) // max(1, SAMPLES - 1)))
            sample = file.read(SAMPLE_BYTES)
            lines, taken = lines + sample.count(b"\n"), taken + len(sample)
    return round(size * lines / taken) if lines else None
