"""Options that ``stream``, ``fit`` and ``predict`` share, and how such a command ends."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from boundary_forest import ModelFileError
from boundary_forest.estimators.errors import JournalError
from boundary_forest.estimators.metrics import METRICS
from boundary_forest.frames.values import ColumnError
from boundary_forest.session.problems import StreamError
from boundary_forest.session.run import run
from boundary_forest.session.settings import Settings
from boundary_forest.session.sources import FORMATS


def _one_of(*allowed: str) -> Any:
    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"must be one of {', '.join(allowed)}, got {value!r}")
        return value

    return check


def _threads(threads: int) -> int:
    if threads == 0:
        raise typer.BadParameter("0 threads do no work; -1 is one per core")
    return threads


SourceArgument = Annotated[
    str,
    typer.Argument(
        help="CSV, NDJSON or LIBSVM text (also .gz), Parquet, Arrow or npz; - is standard input.",
        metavar="SOURCE",
    ),
]
Target = Annotated[str | None, typer.Option(help="The column to be answered.", metavar="COLUMN")]
Features = Annotated[
    list[str] | None,
    typer.Option(help="Columns to answer from, with commas; else all others.", metavar="COLUMNS"),
]
Drop = Annotated[
    list[str] | None, typer.Option(help="Columns to leave out, with commas.", metavar="COLUMNS")
]
Id = Annotated[
    str | None, typer.Option("--id", help="The column that names rows.", metavar="COLUMN")
]
Task = Annotated[
    str | None,
    typer.Option(
        help="classify or regress; else by the target's values.",
        callback=_one_of("classify", "regress"),
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(min=1, max=999_999, help="Rows by which columns are decided.  [default: 1000]"),
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
        help="Missing values: error, mean, or drop the row.  [default: error]",
        callback=_one_of("error", "mean", "drop"),
    ),
]
OnError = Annotated[
    str, typer.Option(help="A bad row: stop, or skip it.", callback=_one_of("stop", "skip"))
]
Format = Annotated[
    str | None,
    typer.Option(
        help=f"{', '.join(FORMATS)}; else found out.", callback=_one_of(*FORMATS), metavar="FORMAT"
    ),
]
Trees = Annotated[int | None, typer.Option(min=1, help="Number of trees.  [default: 50]")]
Children = Annotated[
    int | None, typer.Option(min=2, help="Most children a node may have.  [default: 50]")
]
Metric = Annotated[
    str | None,
    typer.Option(
        help="Distance between rows.  [default: euclidean]",
        callback=_one_of(*sorted(set(METRICS) - {"inner_product", "minkowski"})),
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Of the forest.  [default: 0]")]
Threads = Annotated[int, typer.Option(help="Threads; -1 for one per core.", callback=_threads)]
Json = Annotated[bool, typer.Option("--json", help="Reports as JSON, one object a line.")]
Save = Annotated[Path | None, typer.Option(help="Write the model to this file.", metavar="FILE")]


def forest_parameters(
    trees: int | None, children: int | None, metric: str | None, seed: int | None
) -> dict[str, Any]:
    """Those that were given, by the estimators' names."""
    given = {
        "n_estimators": trees,
        "max_children": children,
        "metric": metric,
        "random_state": seed,
    }
    return {name: value for name, value in given.items() if value is not None}


def listed(columns: list[str] | None) -> tuple[str, ...] | None:
    """Columns that were given with commas, or one by one."""
    if columns is None:
        return None
    return tuple(name.strip() for text in columns for name in text.split(",") if name.strip())


def end_with(settings: Settings, *, quiet: bool = False) -> None:
    """Run, and leave with its exit code; what is wrong is one line, and code 2."""
    try:
        code = run(settings, quiet=quiet)
    except (ColumnError, JournalError, ModelFileError, StreamError, OSError) as error:
        print(f"boundary-forest: {_told(error)}", file=sys.stderr)
        raise typer.Exit(2) from None
    if code:
        raise typer.Exit(code)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
