"""Write answers as they are given: NDJSON, or CSV if the file is named so; flushed at once.

A durable run brings them to the disk before it learns more, and records length and checksum. When
it is resumed, the file must begin with what was recorded, so that no answer is missing and nobody
else's file is written to; what comes after that is cut off, and given again.
"""

from __future__ import annotations

import csv
import io
import json
import os
import re
import stat
import sys
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any, BinaryIO

from boundary_forest.cli.terminal import naming_file
from boundary_forest.files.writing import sync_folder
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.session.class_measures import names_of
from boundary_forest.session.events import Answered, Refused
from boundary_forest.sources.row_batch import StreamError

BLOCK_BYTES = 1 << 20
_WHAT_TO_DO = "restore that file, or use another --durable folder"
# JSON itself escapes the first 32 characters. These move the cursor, or the direction of text.
_ESCAPED = {
    code: f"\\u{code:04x}"
    for code in (*range(0x7F, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
}
_CSV_ROW, _JSON_ROW = re.compile(rb"(\d+),"), re.compile(rb'\{"row": (\d+), ')


class PredictionFile:
    """A file of answers; ``-`` is standard output.

    Every row gives a record: its number in the source, its id if there is one, the answer and its
    confidence; or why it was left out.

    Parameters
    ----------
    path : str
        The file.
    id_column : str or None
        The column that identifies rows.
    probabilities : bool
        Whether records also have the share of every class, as an object; in CSV as JSON.
    after : int or None
        What an earlier run has written is kept up to this row, where this run continues; if that is
        None, the file is overwritten.
    kept : dict of int, or None
        What ``sync`` returned in the earlier run; None if it has written no file.
    """

    def __init__(
        self,
        path: str,
        *,
        id_column: str | None,
        probabilities: bool = False,
        after: int | None,
        kept: dict[str, int] | None = None,
    ) -> None:
        self._path = path
        self._id_column = id_column
        self._probabilities = probabilities
        self._after = after
        self._kept = kept
        self._names = ["row", *([] if id_column is None else ["id"]), "answer", "confidence"]
        self._names += ["probabilities"] if probabilities else []
        self._csv = path.lower().endswith(".csv")
        self._file: BinaryIO | None = None  # None: standard output
        self._length = self._checksum = 0
        self._is_open = False
        self._is_new = True  # whether its name may not be on the disk yet

    def __enter__(self) -> PredictionFile:
        if self._path != "-":
            if self._after is not None:
                self._continue(self._after)
            self._file = open(self._path, "wb" if self._after is None else "ab")
            if self._csv and self._length == 0:
                self._write(csv_lines([[*self._names, "error"]]))
        self._is_open = True
        return self

    def __exit__(self, *error: Any) -> None:
        if self._file is not None:
            with naming_file(self._path):
                self._file.close()

    def sync(self) -> dict[str, int] | None:
        """Bring all answers to the disk; return how long the file is, and its checksum.

        Before the file is opened, that is what the earlier run has recorded.
        """
        if not self._is_open:
            return self._kept
        if self._file is None or not stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
            return None
        with naming_file(self._path):
            os.fsync(self._file.fileno())
        if self._is_new:
            sync_folder(Path(self._path).absolute().parent)
            self._is_new = False
        return {"bytes": self._length, "crc32": self._checksum}

    def _continue(self, after: int) -> None:
        """Make sure that the file is the earlier run's, and cut off what comes after the row."""
        path, kept = self._path, self._kept
        if kept is None:
            if os.path.isfile(path) and os.path.getsize(path) > 0:
                raise StreamError(
                    f"--predictions {path}: this file exists, but the interrupted run wrote no "
                    "predictions: choose a new file"
                )
            return
        if not os.path.exists(path):
            raise StreamError(
                f"--predictions {path}: this file is missing, but the interrupted run wrote "
                f"predictions: {_WHAT_TO_DO}"
            )
        known = kept["bytes"]
        if _checksum_of(path, known) != (known, kept["crc32"]):
            raise StreamError(
                f"--predictions {path}: this file does not start with the predictions of the "
                f"interrupted run: {_WHAT_TO_DO}"
            )
        record = _CSV_ROW if self._csv else _JSON_ROW
        _cut_off(path, record, after, known)
        self._length, self._checksum = _checksum_of(path, None)

    def _write(self, text: str) -> None:
        if self._file is None:
            with naming_file("standard output"):
                sys.stdout.write(text)
                sys.stdout.flush()
            return
        content = text.encode()
        with naming_file(self._path):
            self._file.write(content)
            self._file.flush()
        self._length += len(content)
        self._checksum = zlib.crc32(content, self._checksum)

    def add(self, rows: Answered) -> None:
        """Write the answers to some rows."""
        n = len(rows.numbers)
        columns = [rows.numbers.tolist()]
        if self._id_column is not None:
            columns.append(self._ids(rows.table))
        columns.append([None] * n if rows.answers is None else rows.answers.tolist())
        columns.append([None] * n if rows.confidence is None else rows.confidence.tolist())
        objects = _probabilities(rows) if self._probabilities else None
        if self._csv:
            columns += [] if objects is None else [objects]
            records = zip(*columns, strict=True)
            self._write(csv_lines([*map(_plain, row), ""] for row in records))
        else:
            texts = [_json_values(column) for column in columns]
            self._write(_json_lines(self._names, [*texts, *([] if objects is None else [objects])]))

    def refuse(self, row: Refused) -> None:
        """Write why a row has no answer."""
        if row.answered:
            return
        if self._csv:
            blank = [""] * (len(self._names) - 1)
            self._write(csv_lines([[row.number, *blank, row.why]]))
        else:
            self._write(json.dumps({"row": row.number, "answer": None, "error": row.why}) + "\n")

    def _ids(self, table: Any) -> list[Any]:
        if self._id_column not in table.column_names:
            raise ColumnError(f"there is no column {self._id_column!r}")
        ids = table[self._id_column].to_pylist()
        return [
            value if isinstance(value, int | float | str | None) else str(value) for value in ids
        ]


def _checksum_of(path: str, length: int | None) -> tuple[int, int]:
    """Return length and checksum of a file, or of so many bytes at its beginning."""
    done = checksum = 0
    with open(path, "rb") as file:
        while length is None or done < length:
            block = file.read(BLOCK_BYTES if length is None else min(BLOCK_BYTES, length - done))
            if not block:
                break
            done, checksum = done + len(block), zlib.crc32(block, checksum)
    return done, checksum


def _cut_off(path: str, record: re.Pattern[bytes], row: int, known: int) -> None:
    """Remove the records of later rows, and an unfinished one, from the end of a file.

    Parameters
    ----------
    path : str
        The file.
    record : Pattern
        Matches the beginning of a record; its first group is the row's number.
    row : int
        The last row to keep.
    known : int
        How many bytes are known to be right, after which a crash may have left anything.
    """
    with open(path, "r+b") as file:
        file.seek(known)
        while line := file.readline():
            number = record.match(line)
            # A line without a number is part of a record, or no record at all.
            strange = number is None and row < sys.maxsize
            later = number is not None and int(number[1]) > row
            if not line.endswith(b"\n") or strange or later:
                file.truncate(file.tell() - len(line))
                return


def json_text(value: Any) -> str:
    """Return a value as JSON, readable in any script, that no terminal takes for a command."""
    return json.dumps(value, ensure_ascii=False).translate(_ESCAPED)


def csv_lines(records: Iterable[list[Any]]) -> str:
    """Return records as lines of CSV."""
    text = io.StringIO(newline="")
    csv.writer(text).writerows(records)
    return text.getvalue()


def _json_lines(names: list[str], texts: list[list[str]]) -> str:
    """Return a JSON object per row; by a template, in a third of the time of a call per row."""
    template = "{" + ", ".join(f"{json.dumps(name)}: %s" for name in names) + "}\n"
    return "".join([template % row for row in zip(*texts, strict=True)])


def _probabilities(rows: Answered) -> list[str]:
    """Return each row's share of every class as a JSON object; null where there is none."""
    shares, classes = rows.result.shares, rows.result.classes
    if shares is None or classes is None:
        return ["null"] * len(rows.numbers)
    keys = [json_text(name).replace("%", "%%") for name in names_of(classes)]
    template = "{" + ", ".join(f"{key}: %r" for key in keys) + "}"
    return [template % tuple(row) for row in shares.tolist()]


def _json_values(column: list[Any]) -> list[str]:
    if all(type(value) is float for value in column):
        return [float.__repr__(value) for value in column]
    known = {value: json_text(value) for value in set(column)}
    return [known[value] for value in column]


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else value
