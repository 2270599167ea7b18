"""Answers as they are made: NDJSON, or CSV if the file is called so; flushed at once."""

from __future__ import annotations

import csv
import json
import sys
from contextlib import ExitStack
from typing import IO, Any

from boundary_forest.frames.values import ColumnError
from boundary_forest.stream.events import Answered, Refused


class AnswerFile:
    """Where answers go; ``-`` is standard output.

    Every row gives a record: its number in the source, its id if there is one, the answer and its
    confidence; or why it was left out.
    """

    def __init__(self, path: str, *, id_column: str | None, adding: bool) -> None:
        self._path = path
        self._id_column = id_column
        self._adding = adding
        self._names = ["row", *([] if id_column is None else ["id"]), "answer", "confidence"]
        self._csv = path.lower().endswith(".csv")

    def __enter__(self) -> AnswerFile:
        self._open = ExitStack()
        if self._path == "-":
            self._to: IO[str] = sys.stdout
            return self
        mode = "a" if self._adding else "w"
        self._to = self._open.enter_context(open(self._path, mode, encoding="utf-8", newline=""))
        if self._csv and self._to.tell() == 0:
            csv.writer(self._to).writerow([*self._names, "error"])
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.__exit__(*error)

    def add(self, rows: Answered) -> None:
        """Write answers."""
        n = len(rows.numbers)
        columns = [rows.numbers.tolist()]
        if self._id_column is not None:
            columns.append(self._ids(rows.table))
        columns.append([None] * n if rows.answers is None else rows.answers.tolist())
        columns.append([None] * n if rows.confidence is None else rows.confidence.tolist())
        if self._csv:
            csv.writer(self._to).writerows(
                [*map(_plain, row), ""] for row in zip(*columns, strict=True)
            )
        else:
            self._to.write("".join(self._record(row) for row in zip(*columns, strict=True)))
        self._to.flush()

    def refuse(self, row: Refused) -> None:
        """Write why there is no answer."""
        if row.answered:
            return
        if self._csv:
            blank = [""] * (len(self._names) - 1)
            csv.writer(self._to).writerow([row.number, *blank, row.why])
        else:
            self._to.write(json.dumps({"row": row.number, "answer": None, "error": row.why}) + "\n")
        self._to.flush()

    def _record(self, row: tuple[Any, ...]) -> str:
        return json.dumps(dict(zip(self._names, row, strict=True)), ensure_ascii=False) + "\n"

    def _ids(self, table: Any) -> list[Any]:
        if self._id_column not in table.column_names:
            raise ColumnError(f"there is no column {self._id_column!r}")
        ids = table[self._id_column].to_pylist()
        return [
            value if isinstance(value, int | float | str | None) else str(value) for value in ids
        ]


def _plain(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else "" if value is None else value
