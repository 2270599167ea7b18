"""Options that ``stream``, ``fit`` and ``predict`` share, and how such a command exits."""

import re
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boundary_forest import ModelFileError
from boundary_forest.cli.running import Job, run
from boundary_forest.estimators.errors import JournalError
from boundary_forest.estimators.metrics import ALIASES, METRICS, canonical
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.problems import ColumnError
from boundary_forest.session.problems import StreamError
from boundary_forest.session.sources import FORMATS

_NAME = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^,\s](?:[^,]*[^,\s])?))\s*(?:,|$)')


def _one_of(*allowed: str) -> Any:
    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"must be one of {', '.join(allowed)}, got {value!r}")
        return value

    return check


def _threads(threads: int) -> int:
    if threads == 0:
        raise typer.BadParameter("must not be 0; -1 is one per core")
    return threads


SourceArgument = Annotated[
    str,
    typer.Argument(
        help="CSV, NDJSON or LIBSVM text (also .gz), Parquet, Arrow or npz; - is standard input.",
        metavar="SOURCE",
    ),
]
Target = Annotated[str | None, typer.Option(help="The column to predict.", metavar="COLUMN")]
Features = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to predict from, separated by commas; all others if omitted. Names with "
        "commas or outer spaces are put in double quotes.",
        metavar="COLUMNS",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Columns to ignore, separated by commas.", metavar="COLUMNS"),
]
Id = Annotated[
    str | None, typer.Option("--id", help="The column that identifies rows.", metavar="COLUMN")
]
Numbers = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that hold numbers, even if many of their values are none.",
        metavar="COLUMNS",
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that hold categories, even if these look like numbers.", metavar="COLUMNS"
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        help="What separates the values of a CSV file, \\t for a tab; detected if omitted.",
        metavar="CHARACTER",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file names the columns; else they are c1, c2, ...",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Of a text file, such as latin-1 or utf-16.  [default: utf-8]", metavar="ENCODING"
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal point of numbers.  [default: .]", metavar="CHARACTER"),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="What separates the thousands of numbers.", metavar="CHARACTER"),
]
Task = Annotated[
    str | None,
    typer.Option(
        help="classify or regress; inferred from the target if omitted.",
        callback=_one_of("classify", "regress"),
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(min=1, max=999_999, help="Rows from which columns are decided.  [default: 1000]"),
]
Scale = Annotated[
    str | None,
    typer.Option(
        help="none, standard or minmax.  [default: standard]",
        callback=_one_of("none", "standard", "minmax"),
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        help="A missing value: error, mean, or drop the row.  [default: error]",
        callback=_one_of("error", "mean", "drop"),
    ),
]
OnError = Annotated[
    str, typer.Option(help="A bad row: stop, or skip it.", callback=_one_of("stop", "skip"))
]
Format = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(FORMATS)}; detected if omitted.",
        callback=_one_of(*FORMATS),
        metavar="FORMAT",
    ),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="The paper's forest: no learned weights of columns, and every tree learns every row.",
    ),
]
Trees = Annotated[
    int | None,
    typer.Option(min=1, help="Number of trees.  [default: 100; 50 if plain or not euclidean]"),
]
Children = Annotated[
    int | None, typer.Option(min=2, help="Maximum number of children of a node.  [default: 50]")
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Distance between rows; others than euclidean imply --plain.  [default: euclidean]",
        callback=_one_of(*sorted({*METRICS, *ALIASES} - {"inner_product", "minkowski"})),
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the forest.  [default: 0]")]
Threads = Annotated[
    int, typer.Option(help="Number of threads; -1 for one per core.", callback=_threads)
]
Json = Annotated[bool, typer.Option("--json", help="Report progress as JSON, one object per line.")]
Save = Annotated[Path | None, typer.Option(help="Write the model to this file.", metavar="FILE")]


def forest_parameters(
    trees: int | None, children: int | None, metric: str | None, seed: int | None
) -> dict[str, Any]:
    """Return the parameters that were given, by the estimators' names."""
    given = {
        "n_estimators": trees,
        "max_children": children,
        "metric": canonical(metric),
        "random_state": seed,
    }
    return {name: value for name, value in given.items() if value is not None}


def listed(columns: list[str] | None) -> tuple[str, ...] | None:
    """Return columns that were given separated by commas, or one by one.

    In double quotes a name may have commas and outer spaces; quotes in it are doubled.
    """
    if columns is None:
        return None
    found = (match for text in columns for match in _NAME.finditer(text))
    return tuple(
        m["quoted"].replace('""', '"') if m["plain"] is None else m["plain"] for m in found
    )


def dialect(
    sep: str | None,
    header: bool | None,
    encoding: str | None,
    decimal: str | None,
    thousands: str | None,
) -> Dialect:
    """Return how text is written, as far as it was given."""
    sep = "\t" if sep in ("\\t", "tab") else sep
    try:
        return Dialect(sep, header, encoding, decimal, thousands)
    except ColumnError as error:
        raise typer.BadParameter(str(error)) from None


def finish(job: Job) -> None:
    """Run a job and exit with its code; an error is printed as one line, and exits with 2."""
    try:
        code = run(job)
    except (ColumnError, JournalError, ModelFileError, StreamError, OSError) as error:
        print(f"boundary-forest: {_message(error)}", file=sys.stderr)
        raise typer.Exit(2) from None
    if code:
        raise typer.Exit(code)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
