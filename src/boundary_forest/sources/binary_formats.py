"""Parquet, Arrow and npz: files that name their columns, read a batch at a time."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from boundary_forest.sources.row_batch import BATCH_ROWS, BATCH_VALUES, RowBatch, StreamError

LONGEST_ROW = 1 << 24  # bytes, on average; a small file may hold rows of any length, compressed


def parquet(path: str) -> tuple[list[str], int, Iterator[RowBatch]]:
    """Return the names, the number of rows and the rows of a Parquet file."""
    file = pa.parquet.ParquetFile(path)
    for i in range(file.metadata.num_row_groups):
        group = file.metadata.row_group(i)
        if group.total_byte_size > LONGEST_ROW * max(1, group.num_rows):
            raise StreamError(
                f"{path}: rows take {group.total_byte_size // max(1, group.num_rows):,} bytes "
                f"each, but at most {LONGEST_ROW:,} are supported"
            )
    names = file.schema_arrow.names
    batches = file.iter_batches(batch_size=_batch_rows(len(names)))
    return names, file.metadata.num_rows, _numbered(batches)


def arrow(path: str) -> tuple[list[str], int | None, Iterator[RowBatch]]:
    """Return the names, the number of rows if known, and the rows of an Arrow or Feather file."""
    source = pa.memory_map(path)
    try:
        file = pa.ipc.open_file(source)
    except pa.ArrowInvalid:
        source.seek(0)
        stream = pa.ipc.open_stream(source)
        return stream.schema.names, None, _numbered(iter(stream))
    batches = (file.get_batch(i) for i in range(file.num_record_batches))
    return file.schema.names, None, _numbered(batches)


def npz(path: str, target: str) -> tuple[list[str], int, Iterator[RowBatch]]:
    """Return the names, the number of rows and the rows of the arrays as long as the target.

    An array of one dimension is a column; one of two, ``X`` say, gives the columns ``X0``, ``X1``
    and so on.
    """
    with zipfile.ZipFile(path) as archive:
        members = {n.removesuffix(".npy"): n for n in archive.namelist() if n.endswith(".npy")}
        shapes = {}
        for name, member in members.items():
            with archive.open(member) as content:
                shapes[name] = _header(content, path, name)
    if target not in shapes:
        raise StreamError(
            f"{path}: there is no array {target!r}; the arrays are {', '.join(shapes)}"
        )
    n_rows = shapes[target][0][0] if shapes[target][0] else 0
    used = {n: s for n, s in shapes.items() if len(s[0]) in (1, 2) and s[0][0] == n_rows}
    if len(shapes[target][0]) != 1:
        raise StreamError(f"{path}: the array {target!r} must have one dimension")
    names = [column for name, (shape, _) in used.items() for column in _columns(name, shape)]
    tables = _npz_tables(path, {n: members[n] for n in used}, used, n_rows)
    return names, n_rows, _numbered(tables)


def _header(content: Any, path: str, name: str) -> tuple[tuple[int, ...], np.dtype[Any]]:
    version = np.lib.format.read_magic(content)
    read = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    if version not in read:
        raise StreamError(
            f"{path}: the array {name!r} has npy version {version}, which is not supported"
        )
    shape, fortran, dtype = read[version](content)
    if dtype.hasobject:
        raise StreamError(
            f"{path}: the array {name!r} contains Python objects, which are not supported"
        )
    if fortran and len(shape) > 1:
        raise StreamError(f"{path}: the array {name!r} is in Fortran order; save it in C order")
    return shape, dtype


def _columns(name: str, shape: tuple[int, ...]) -> list[str]:
    return [name] if len(shape) == 1 else [f"{name}{i}" for i in range(shape[1])]


def _npz_tables(
    path: str, members: dict[str, str], used: dict[str, Any], n_rows: int
) -> Iterator[Any]:
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.open(member) for name, member in members.items()}
        for name, content in contents.items():
            _header(content, path, name)
        rows = _batch_rows(sum(1 if len(shape) == 1 else shape[1] for shape, _ in used.values()))
        for start in range(0, n_rows, rows):
            n = min(rows, n_rows - start)
            columns: dict[str, Any] = {}
            for name, (shape, dtype) in used.items():
                width = 1 if len(shape) == 1 else shape[1]
                n_bytes = n * width * dtype.itemsize
                values = np.frombuffer(_exactly(contents[name], n_bytes), dtype).reshape(n, width)
                columns |= dict(zip(_columns(name, shape), values.T, strict=True))
            yield pa.table({name: pa.array(values) for name, values in columns.items()})


def _batch_rows(n_columns: int) -> int:
    """Return how many rows a batch has; of wide rows fewer, so that a session can stop soon."""
    return min(BATCH_ROWS, max(64, BATCH_VALUES // max(1, n_columns)))


def _exactly(content: Any, n_bytes: int) -> bytes:
    data = content.read(n_bytes)
    if len(data) != n_bytes:
        raise EOFError("the file ends before its last row")
    return bytes(data)


def _numbered(tables: Iterator[Any]) -> Iterator[RowBatch]:
    row = 1
    for whole in tables:
        rows = _batch_rows(whole.num_columns)
        for start in range(0, len(whole), rows):
            part = whole.slice(start, rows)
            table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
            yield RowBatch(table, np.arange(row, row + len(table), dtype=np.int64))
            row += len(table)
