"""``boundary-forest neighbors``: the nearest vectors of an index, for each row of a file."""

import csv
import io
import json
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from boundary_forest import BoundaryForestNeighbors, ModelFileError
from boundary_forest.cli import options as o
from boundary_forest.cli.answers import naming
from boundary_forest.cli.counting import Counter
from boundary_forest.cli.index import VECTORS
from boundary_forest.cli.running import discard_output
from boundary_forest.cli.vectors import SEVERAL, Vectors, VectorSource, console_on, watching
from boundary_forest.files.loading import load_forest
from boundary_forest.session.problems import StreamError

NEIGHBORS = 10


def neighbors(
    index: Annotated[Path, typer.Argument(help="An index file.", metavar="INDEX")],
    source: o.SourceArgument,
    k: Annotated[
        int, typer.Option("-k", "--neighbors", min=1, help="How many neighbours.")
    ] = NEIGHBORS,
    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            help="The file of answers; - is standard output. NDJSON, or .csv with a line per "
            "neighbour.",
            metavar="FILE",
        ),
    ] = "-",
    id_column: Annotated[
        str | None,
        typer.Option("--id", help="The column that identifies queries.", metavar="COLUMN"),
    ] = None,
    vector: o.Vector = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many close vectors a search keeps in sight: more find more of the true "
            "neighbours, and take longer.",
            show_default="the index's",
        ),
    ] = None,
    exact: Annotated[
        bool,
        typer.Option("--exact", help="Compare all vectors: the true neighbours, in a longer time."),
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
    """Find the vectors of an index that are nearest to each row."""
    dialect = o.dialect(sep, header, encoding, decimal, thousands)

    def work() -> int:
        forest, likely = _opened(index)
        forest.set_params(n_jobs=threads)
        if output != "-" and Path(output).resolve() in (index.resolve(), Path(source).resolve()):
            raise StreamError(f"--output {output}: it is read from")
        with ExitStack() as stack:
            stopped = stack.enter_context(watching())
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
            answers = stack.enter_context(_AnswerFile(output, with_ids=id_column is not None))
            # A bar among answers on the same terminal would be in their way.
            quiet = not as_json and (output == "-" or not sys.stderr.isatty())
            console = console_on(sys.stderr)
            counter = stack.enter_context(
                Counter(console, rows.total, "answered", as_json=as_json, quiet=quiet)
            )
            try:
                for batch in rows:
                    for part in _parts(batch):
                        answers.add(part, *_asked(forest, part, k, beam, exact=exact))
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


def _opened(path: Path) -> tuple[BoundaryForestNeighbors, list[str] | None]:
    """Return an index, and the columns that its positions came from, if they are known."""
    try:
        forest, attachments = load_forest(path)
    except TypeError as error:  # a function of one's own as metric
        raise StreamError(f"{path}: {error}") from error
    if not isinstance(forest, BoundaryForestNeighbors):
        raise StreamError(
            f"{path} is no index: it holds a {type(forest).__name__}; boundary-forest index makes "
            "indexes"
        )
    if forest.fitted is None:
        raise StreamError(f"{path} has no vectors: nothing has been indexed")
    names = getattr(forest, "feature_names_in_", None)
    if VECTORS not in attachments:
        return forest, None if names is None else [str(name) for name in names]
    document = attachments[VECTORS]
    columns = document.get("columns") if isinstance(document, dict) else None
    if not isinstance(columns, list) or not all(isinstance(name, str) for name in columns):
        raise ModelFileError(f"{path}: {VECTORS}: it does not name columns")
    return forest, columns


def _parts(batch: Vectors) -> list[Vectors]:
    """Return a batch in parts, after each of which a run may stop."""
    if len(batch.X) == 0:
        return []
    return [
        Vectors(
            batch.X[begin : begin + SEVERAL],
            None if batch.ids is None else batch.ids[begin : begin + SEVERAL],
            batch.numbers[begin : begin + SEVERAL],
            {},
        )
        for begin in range(0, len(batch.X), SEVERAL)
    ]


def _asked(
    forest: BoundaryForestNeighbors, part: Vectors, k: int, beam: int | None, *, exact: bool
) -> tuple[list[list[Any]], list[list[float]]]:
    try:
        with warnings.catch_warnings():
            # An index that was fitted on a frame knows names, by which columns were chosen here.
            warnings.filterwarnings("ignore", "X does not have valid feature names")
            distances, names = forest.kneighbors(part.X, k, beam=beam, exact=exact)
    except (TypeError, ValueError) as error:
        raise StreamError(str(error)) from error
    return names.tolist(), distances.tolist()


class _AnswerFile:
    """A file of neighbours; ``-`` is standard output."""

    def __init__(self, path: str, *, with_ids: bool) -> None:
        self._path = path
        self._csv = path.lower().endswith(".csv")
        self._with_ids = with_ids
        self._file: TextIO | None = None  # None: standard output

    def __enter__(self) -> "_AnswerFile":
        if self._path != "-":
            self._file = open(self._path, "w", encoding="utf-8", newline="")
        if self._csv:
            ids = ["id"] if self._with_ids else []
            self._write(_csv_lines([["row", *ids, "rank", "neighbor", "distance", "error"]]))
        return self

    def __exit__(self, *error: Any) -> None:
        if self._file is not None:
            with naming(self._path):
                self._file.close()

    def _write(self, text: str) -> None:
        with naming("standard output" if self._file is None else self._path):
            file = sys.stdout if self._file is None else self._file
            file.write(text)
            file.flush()

    def add(self, part: Vectors, names: list[list[Any]], distances: list[list[float]]) -> None:
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
            lines.append([json.dumps(record, ensure_ascii=False) + "\n"])
        self._write(_csv_lines(lines) if self._csv else "".join(line[0] for line in lines))

    def refuse(self, bad: dict[int, str]) -> None:
        """Write why rows have no neighbours."""
        for number, why in sorted(bad.items()):
            if self._csv:
                blank = [""] * (4 if self._with_ids else 3)
                self._write(_csv_lines([[number, *blank, why]]))
            else:
                record = {"row": number, "neighbors": None, "error": why}
                self._write(json.dumps(record, ensure_ascii=False) + "\n")


def _csv_lines(records: list[list[Any]]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text).writerows(records)
    return text.getvalue()
