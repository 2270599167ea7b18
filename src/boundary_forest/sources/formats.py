"""Open a source of rows: detect its format, and choose its reader."""

from __future__ import annotations

import codecs
import os
import re
import zipfile
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import pyarrow as pa

from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.sources.binary_formats import arrow, npz, parquet
from boundary_forest.sources.row_batch import RowBatch, Source, StreamError
from boundary_forest.sources.text_blocks import (
    HINT,
    Utf8,
    blocks_of,
    first_bytes,
    is_pipe,
    lines_of_array,
    starts_array,
)
from boundary_forest.sources.text_formats import LIBSVM_TARGET, CsvRows, JsonRows, LibsvmRows

FORMATS = ("csv", "ndjson", "parquet", "arrow", "libsvm", "npz")
_SUFFIXES = {
    "csv": "csv",
    "tsv": "csv",
    "ndjson": "ndjson",
    "jsonl": "ndjson",
    "json": "ndjson",
    "parquet": "parquet",
    "pq": "parquet",
    "arrow": "arrow",
    "arrows": "arrow",
    "feather": "arrow",
    "ipc": "arrow",
    "libsvm": "libsvm",
    "svm": "libsvm",
    "svmlight": "libsvm",
    "npz": "npz",
}
_MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"PK\x03\x04": "npz"}
_LIBSVM_LINE = re.compile(rb"\s*[-+.\deE,]+(\s+\d+:[-+.\deE]+)+\s*(#.*)?$")


def open_source(
    path: str,
    format: str | None = None,
    *,
    target: str | None = None,
    dialect: Dialect = PLAIN,
    stopped: Callable[[], bool] = lambda: False,
) -> Source:
    """Return the rows of a file, or of standard input if ``path`` is ``-``.

    Parameters
    ----------
    path : str
        A file, which may be compressed by gzip if it is text; a pipe; or ``-``.
    format : str or None
        One of FORMATS; detected if omitted.
    target : str or None
        The array of an npz file that is the target: it determines the number of rows.
    dialect : Dialect
        How text is written.
    stopped : callable
        Called while waiting for a pipe; true ends the rows.
    """
    try:
        source = _opened(path, format, target, dialect, stopped)
    except _REASONS as error:
        raise StreamError(_message(path, error)) from error
    source.batches = _with_messages(path, source.batches)
    return source


_REASONS = (OSError, pa.ArrowException, zipfile.BadZipFile, EOFError, UnicodeDecodeError)


def _opened(
    path: str, format: str | None, target: str | None, dialect: Dialect, stopped: Any
) -> Source:
    if path != "-" and os.path.isdir(path):
        raise StreamError(f"{path} is a folder, not a file")
    if is_pipe(path):
        return _pipe(path, format, dialect, stopped)
    start = _as_text(path, first_bytes(path), dialect)
    if not start:
        raise StreamError(f"{path} is empty")
    kind = format or _format_of(path, start)
    if kind in ("csv", "ndjson", "libsvm"):
        _check_text(path, start)
        options = {"quoted": kind == "csv", "encoding": dialect.encoding, "stopped": stopped}
        return _text(path, kind, lambda: blocks_of(path, **options), dialect, start)
    if kind == "npz":
        names, total, batches = npz(path, target or "y")
    else:
        names, total, batches = (parquet if kind == "parquet" else arrow)(path)  # type: ignore[assignment]
    if len(set(names)) != len(names):
        raise StreamError(f"{path}: two columns have the same name")
    return Source(path, kind, names, total, batches)


def _as_text(path: str, start: bytes, dialect: Dialect) -> bytes:
    """Return the first bytes of a file as UTF-8 if they are text in another encoding."""
    if any(start.startswith(magic) for magic in _MAGIC):
        return start
    return Utf8(iter([start, b""]).__next__, path, dialect.encoding)()


def _pipe(path: str, format: str | None, dialect: Dialect, stopped: Any) -> Source:
    name = "standard input" if path == "-" else path
    if format not in (None, "csv", "ndjson"):
        raise StreamError(f"{name} can be read as csv or ndjson, not as {format}")
    quoted = None if format is None else format == "csv"
    blocks = blocks_of(path, quoted=quoted, encoding=dialect.encoding, stopped=stopped)
    first = next((block for block in blocks if block.strip()), None)
    if first is None:
        raise StreamError(
            f"{name}: stopped before the first row" if stopped() else f"{name} was empty"
        )
    _check_text(name, first)
    kind = format or ("ndjson" if first.lstrip()[:1] in (b"{", b"[") else "csv")
    source = _text(name, kind, lambda: chain([first], blocks), dialect, first)
    source.is_pipe = True
    return source


def _text(
    name: str, kind: str, blocks: Callable[[], Iterator[bytes]], dialect: Dialect, start: bytes
) -> Source:
    if kind == "csv":
        rows = CsvRows(name, blocks(), dialect)
        return Source(
            name, kind, rows.names, None, rows.batches(), expect_numbers=rows.expect_numbers
        )
    if kind == "ndjson":
        lines = lines_of_array(name, blocks()) if starts_array(start) else blocks()
        return Source(name, kind, None, None, JsonRows(lines).batches())
    libsvm = LibsvmRows(name, blocks)
    return Source(name, kind, libsvm.names, libsvm.total_rows, libsvm.batches())


def default_target(source_format: str) -> str | None:
    """Return the column to predict if none is specified; None if the format has no such column."""
    return LIBSVM_TARGET if source_format == "libsvm" else None


def _format_of(path: str, start: bytes) -> str:
    for magic, kind in _MAGIC.items():
        if start.startswith(magic):
            return kind
    suffix = path.lower().removesuffix(".gz").rpartition(".")[2]
    if suffix in _SUFFIXES:
        return _SUFFIXES[suffix]
    _check_text(path, start)
    if start.lstrip()[:1] in (b"{", b"["):
        return "ndjson"
    return "libsvm" if _LIBSVM_LINE.match(start.lstrip().partition(b"\n")[0]) else "csv"


def _check_text(name: str, start: bytes) -> None:
    try:
        # A character may be cut off where the first bytes end.
        codecs.getincrementaldecoder("utf-8")().decode(start)
        binary = b"\0" in start
    except UnicodeDecodeError:
        binary = True
    if binary:
        raise StreamError(
            f"{name} is neither UTF-8 text nor a Parquet, Arrow or npz file; if it is text, {HINT}"
        )


def _with_messages(path: str, batches: Iterator[RowBatch]) -> Iterator[RowBatch]:
    """Yield the batches; the readers' errors become one line each."""
    try:
        yield from batches
    except _REASONS as error:
        raise StreamError(_message(path, error)) from error


def _message(path: str, error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{path}: {error.strerror}"
    what = str(error).strip().partition("\n")[0]
    if "invalid UTF8" in what:
        what += f": {HINT}"
    return what if path in what else f"{path}: {what}"
