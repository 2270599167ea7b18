"""``boundary-forest neighbors``: the nearest vectors of an index, for each row of a file."""

import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from boundary_forest import BoundaryForestNeighbors
from boundary_forest.cli import options as o
from boundary_forest.cli.display import RowCounter
from boundary_forest.cli.index_io import (
    IndexFile,
    VectorBatch,
    VectorSource,
)
from boundary_forest.cli.prediction_file import csv_lines, json_text
from boundary_forest.cli.terminal import (
    console_on,
    discard_output,
    is_same_path,
    naming_file,
    stoppable,
)
from boundary_forest.sources.row_batch import StreamError

NEIGHBORS = 10
SEVERAL = 256  # rows that are answered by one call


def neighbors(
    index: Annotated[Path, typer.Argument(help="An index file.", metavar="INDEX")],
    source: o.SourceArgument,
    k: Annotated[
        int, typer.Option("-k", "--neighbors", min=1, help="Number of neighbours for each row.")
    ] = NEIGHBORS,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="Write the neighbours to this file; - is standard output. NDJSON, or CSV with one "
            "line per neighbour if the name ends in .csv.",
            metavar="FILE",
        ),
    ] = "-",
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="Column that identifies the queries.", metavar="COLUMN"),
    ] = None,
    vector: o.Vector = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Width of the search: a larger beam finds more of the true neighbours, but takes "
            "longer.",
            show_default="that of the index",
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option(
            "--exact", help="Compare each row with all vectors: exact, but slower for many vectors."
        ),
    ] = False,
    on_error: o.OnError = "stop",
    format: o.Format = None,
    sep: o.Sep = None,
    header: o.Header = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    as_json: o.Json = False,
    threads: o.Threads = 1,
) -> None:
    """Find the nearest vectors in an index for each row."""
    dialect = o.dialect(sep, header, encoding, decimal, thousands)

    def work() -> int:
        opened = IndexFile.opened(index)
        forest, likely = opened.forest, opened.columns
        forest.set_params(n_jobs=threads)
        n_stored = forest.stats()["examples_stored"]
        if n_stored == 0:
            raise StreamError(f"{index} is empty: add vectors with index --into {index}")
        if k > n_stored:
            raise StreamError(
                f"-k must be between 1 and {n_stored}, the number of vectors in {index}, got {k}"
            )
        if output != "-" and (is_same_path(output, index) or is_same_path(output, source)):
            raise StreamError(f"--output {output}: this file is an input, and would be overwritten")
        with ExitStack() as stack:
            stopped = stack.enter_context(stoppable())
            rows = VectorSource(
                source,
                format,
                vector=o.listed(vector) or (),
                id=id_column,
                likely=likely,
                width=forest.n_features_in_,
                dialect=dialect,
                skip=on_error == "skip",
                stopped=stopped,
            )
            answers = stack.enter_context(_NeighborFile(output, with_ids=id_column is not None))
            # A bar among answers on the same terminal would be in their way.
            quiet = not as_json and (output == "-" or not sys.stderr.isatty())
            console = console_on(sys.stderr)
            counter = stack.enter_context(
                RowCounter(console, rows.total, "answered", as_json=as_json, quiet=quiet)
            )
            try:
                for batch in rows:
                    for part in batch.parts(SEVERAL):
                        answers.add(part, *_neighbors_of(forest, part, k, beam, exact=exact))
                        counter.add(len(part.numbers))
                        if stopped():
                            return 128 + int(stopped.signal or 0)
                    answers.refuse(batch.bad)
                    counter.add(len(batch.bad))
            except BrokenPipeError:  # nobody reads any more
                discard_output()
            if as_json:
                counter.say("end", {"left_out": rows.left_out}, "")
            return 128 + stopped.signal if stopped.signal is not None else 0

    o.exit_with(work)


def _neighbors_of(
    forest: BoundaryForestNeighbors, part: VectorBatch, k: int, beam: int | None, *, exact: bool
) -> tuple[list[list[Any]], list[list[float]]]:
    try:
        with warnings.catch_warnings():
            # An index that was fitted on a frame knows names, by which columns were chosen here.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            distances, names = forest.kneighbors(part.X, k, beam=beam, exact=exact or None)
    except (TypeError, ValueError) as error:
        raise StreamError(str(error)) from error
    return names.tolist(), distances.tolist()


class _NeighborFile:
    """A file of neighbours; ``-`` is standard output.

    It is opened, and what was in it lost, when there is something to write.
    """

    def __init__(self, path: str, *, with_ids: bool) -> None:
        self._path = path
        self._csv = path.lower().endswith(".csv")
        self._with_ids = with_ids
        self._file: TextIO | None = None  # None: standard output, or nothing was written yet

    def __enter__(self) -> "_NeighborFile":
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: Any) -> None:
        if kind is None:
            self._write("")  # of no rows, too
        if self._file is not None:
            with naming_file(self._path):
                self._file.close()

    def _opened(self) -> TextIO:
        return open(self._path, "w", encoding="utf-8", newline="")

    def _write(self, text: str) -> None:
        if self._path == "-":
            with naming_file("standard output"):
                sys.stdout.write(text)
                sys.stdout.flush()
            return
        with naming_file(self._path):
            if self._file is None:
                self._file = self._opened()
                ids = ["id"] if self._with_ids else []
                names = ["row", *ids, "rank", "neighbor", "distance", "error"]
                self._file.write(csv_lines([names]) if self._csv else "")
            self._file.write(text)
            self._file.flush()

    def add(self, part: VectorBatch, names: list[list[Any]], distances: list[list[float]]) -> None:
        """Write the neighbours of some rows."""
        lines: list[list[Any]] = []
        for i, number in enumerate(part.numbers.tolist()):
            own = [] if part.ids is None else [part.ids[i]]
            if self._csv:
                found = zip(names[i], distances[i], strict=True)
                lines += [[number, *own, rank, *pair, ""] for rank, pair in enumerate(found, 1)]
                continue
            record = {"row": number} | ({"id": own[0]} if own else {})
            record |= {"neighbors": names[i], "distances": distances[i]}
            lines.append([json_text(record) + "\n"])
        self._write(csv_lines(lines) if self._csv else "".join(line[0] for line in lines))

    def refuse(self, bad: dict[int, str]) -> None:
        """Write why rows have no neighbours."""
        for number, why in sorted(bad.items()):
            if self._csv:
                blank = [""] * (4 if self._with_ids else 3)
                self._write(csv_lines([[number, *blank, why]]))
            else:
                record = {"row": number, "neighbors": None, "error": why}
                self._write(json_text(record) + "\n")
