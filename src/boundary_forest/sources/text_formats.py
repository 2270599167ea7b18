"""CSV, NDJSON and LIBSVM text, block by block; pyarrow and scikit-learn read what is in a block.

Files and pipes are read the same way, so that they give the same rows. Values of CSV stay text
until it is known what a column holds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
from sklearn.datasets import load_svmlight_file

from boundary_forest.estimators.element_type import LARGEST_INTEGER
from boundary_forest.frames.arrow_columns import NOTHING, column_of
from boundary_forest.frames.column_kinds import as_numbers
from boundary_forest.frames.dialect import PLAIN, Dialect
from boundary_forest.sources.row_batch import RowBatch, StreamError, numbered

LIBSVM_TARGET = "target"


class CsvRows:
    """CSV: the first line names the columns, or they are called ``c1``, ``c2`` and so on."""

    def __init__(self, name: str, blocks: Iterator[bytes], dialect: Dialect = PLAIN) -> None:
        self._name = name
        self._blocks = blocks
        self._dialect = dialect
        first = next(blocks, b"").removeprefix(b"\xef\xbb\xbf").lstrip(b"\r\n")
        end = first.find(b"\n") + 1
        header, self._first = first[:end], first[end:]
        guess = next((d for d in ",\t;|" if d.encode() in header), ",")
        self._delimiter = dialect.sep or guess
        self._numbers: set[str] = set()
        self.names = self._names(header)
        if dialect.header is False:
            self.names, self._first = [f"c{i}" for i in range(1, len(self.names) + 1)], first
        if len(set(self.names)) != len(self.names):
            twice = next(n for n, count in Counter(self.names).items() if count > 1)
            numbers = as_numbers(pa.array(self.names))[1]
            hint = (
                ": use --no-header if the first line has no column names" if numbers is None else ""
            )
            raise StreamError(f"{name}: two columns are named {twice!r}{hint}")

    def _names(self, header: bytes) -> list[str]:
        try:
            names: list[str] = pa.csv.read_csv(
                pa.py_buffer(header),
                parse_options=pa.csv.ParseOptions(delimiter=self._delimiter),
            ).column_names
        except pa.ArrowInvalid as error:
            raise StreamError(
                f"{self._name}: the first line does not contain column names ({error})"
            ) from error
        return names

    def expect_numbers(self, names: list[str]) -> None:
        """Read these columns as numbers where possible, which is faster and gives the same."""
        if self._dialect.thousands is None:  # which pyarrow does not know
            self._numbers = set(names)

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows."""
        row = 1
        for block in self._all_blocks():
            try:
                table, bad = self._read(block, self._numbers)
                exact = not self._numbers or not _may_be_rounded(table.select([*self._numbers]))
            except pa.ArrowInvalid:
                exact = False
                if not self._numbers:
                    raise
            if not exact:
                table, bad = self._read(block, set())
            bad = {row + n - 1: why for n, why in bad.items()}
            yield RowBatch(table, numbered(row, len(table), bad), bad)
            row += len(table) + len(bad)

    def _all_blocks(self) -> Iterator[bytes]:
        if self._first.strip():
            yield self._first
        self._first = b""
        for block in self._blocks:
            if block.strip():
                yield block

    def _read(self, block: bytes, numbers: set[str]) -> tuple[Any, dict[int, str]]:
        bad: dict[int, str] = {}

        def leave_out(row: Any) -> str:
            why = f"it has {row.actual_columns} values instead of {row.expected_columns}"
            bad[row.number if row.number is not None else len(bad) + 1] = why
            return "skip"

        text, number = pa.string(), pa.float64()
        table = pa.csv.read_csv(
            pa.py_buffer(block),
            pa.csv.ReadOptions(
                column_names=self.names, use_threads=False, block_size=max(len(block), 1024)
            ),
            pa.csv.ParseOptions(
                delimiter=self._delimiter, newlines_in_values=True, invalid_row_handler=leave_out
            ),
            pa.csv.ConvertOptions(
                column_types={n: number if n in numbers else text for n in self.names},
                null_values=NOTHING,
                strings_can_be_null=False,
                decimal_point=self._dialect.point,
            ),
        )
        return table, bad


def _may_be_rounded(numbers: Any) -> bool:
    """Return whether a table has numbers where float64 does not hold every integer."""
    chunks = [chunk for column in numbers.columns for chunk in column.chunks]
    ends = pc.min_max(pa.chunked_array(chunks, pa.float64()))
    least, most = ends["min"].as_py(), ends["max"].as_py()
    return least is not None and max(-least, most) >= LARGEST_INTEGER


class JsonRows:
    """NDJSON: one object per line; a key that a line lacks is a missing value."""

    def __init__(self, blocks: Iterator[bytes]) -> None:
        self._blocks = blocks
        self._texts: set[str] = set()  # columns that pyarrow would take for times

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows."""
        row = 1
        for block in self._blocks:
            if not block.strip():
                continue
            try:
                table, bad = self._read(block), dict[int, str]()
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
                table, bad = _read_lines(block)
            bad = {row + n: why for n, why in bad.items()}
            yield RowBatch(table, numbered(row, len(table), bad), bad)
            row += len(table) + len(bad)

    def _read(self, block: bytes) -> Any:
        while True:
            schema = pa.schema([(name, pa.string()) for name in sorted(self._texts)])
            table = pa.json.read_json(
                pa.py_buffer(block),
                pa.json.ReadOptions(use_threads=False, block_size=max(len(block), 1024)),
                pa.json.ParseOptions(explicit_schema=schema),
            )
            times = {f.name for f in table.schema if pa.types.is_temporal(f.type)}
            if not times:
                return table
            self._texts |= times


def _read_lines(block: bytes) -> tuple[Any, dict[int, str]]:
    """Read line by line what pyarrow refuses as a whole: values of several kinds, or bad lines."""
    rows, bad = [], {}
    for n, line in enumerate(line for line in block.splitlines() if line.strip()):
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            bad[n] = f"it is not JSON ({error})"
            continue
        if isinstance(row, dict):
            rows.append(row)
        else:
            bad[n] = "it is not a JSON object"
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: column_of([row.get(name) for row in rows]) for name in names}
    return pa.table(columns), bad


class LibsvmRows:
    """LIBSVM text: the label is the column ``target``, and index i the column ``f<i>``.

    What a row does not mention is 0, so the largest index must be known before the first row: the
    file is read twice.
    """

    def __init__(self, name: str, blocks: Callable[[], Iterator[bytes]]) -> None:
        self._name = name
        self._blocks = blocks
        self.total_rows, width, has_zero = 0, 0, False
        for block in blocks():
            X, _, bad = self._read(block, None)
            if X is not None:
                width = max(width, X.shape[1])
                has_zero = has_zero or X[:, :1].nnz > 0
                self.total_rows += X.shape[0]
            self.total_rows += len(bad)
        if width == 0:
            raise StreamError(f"{name} has no lines of LIBSVM text")
        self._width, self._first = width, 0 if has_zero else 1
        self.names = [LIBSVM_TARGET, *(f"f{i}" for i in range(self._first, width))]

    def batches(self) -> Iterator[RowBatch]:
        """Yield the rows."""
        row = 1
        for block in self._blocks():
            X, y, bad = self._read(block, self._width)
            dense = np.zeros((0, self._width)) if X is None else X.toarray()
            columns = [np.asarray(y), *np.asfortranarray(dense).T[self._first :]]
            table = pa.table(dict(zip(self.names, columns, strict=True)))
            bad = {row + n: why for n, why in bad.items()}
            yield RowBatch(table, numbered(row, len(table), bad), bad)
            row += len(table) + len(bad)

    def _read(self, block: bytes, width: int | None) -> tuple[Any, Any, dict[int, str]]:
        try:
            X, y = load_svmlight_file(BytesIO(block), n_features=width, zero_based=True)
            return X, y, {}
        except ValueError:
            good, bad = [], {}
        for n, line in enumerate(line for line in block.splitlines() if line.strip()):
            try:
                load_svmlight_file(BytesIO(line), n_features=width, zero_based=True)
                good.append(line)
            except ValueError as error:
                bad[n] = f"it is not LIBSVM text ({error})"
        if not good:
            return None, np.zeros(0), bad
        content = BytesIO(b"\n".join(good))
        return *load_svmlight_file(content, n_features=width, zero_based=True), bad
