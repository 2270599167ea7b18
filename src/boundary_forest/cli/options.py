"""Options that commands on rows share, and how such a command exits."""

import math
import re
import shlex
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from boundary_forest import ModelFileError
from boundary_forest.cli.running import Job, run
from boundary_forest.estimators.element_type import ELEMENT_TYPES
from boundary_forest.estimators.errors import JournalError
from boundary_forest.estimators.lifetimes import LONGEST, SHORTEST, checked_lifetimes
from boundary_forest.estimators.metrics import ALIASES, METRICS, canonical
from boundary_forest.frames.columns import MISSING, SCALES
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.problems import ColumnError
from boundary_forest.session.problems import StreamError
from boundary_forest.session.settings import WARMUP
from boundary_forest.session.sources import FORMATS

_NAME = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^,\s](?:[^,]*[^,\s])?))\s*(?:,|$)')
_INDEX_METRICS = sorted({*METRICS, *ALIASES} - {"minkowski"})
_METRICS = [name for name in _INDEX_METRICS if name != "inner_product"]


def _one_of(*allowed: str, **more: Any) -> Any:
    """Return an option that has a few values; help shows them, and shells complete them."""

    def check(value: str | None) -> str | None:
        if value is not None and value not in allowed:
            raise typer.BadParameter(f"must be one of {', '.join(allowed)}, got {value!r}")
        return value

    def complete(incomplete: str) -> list[str]:
        return [value for value in allowed if value.startswith(incomplete)]

    more = {"metavar": "|".join(allowed), **more}
    return typer.Option(callback=check, autocompletion=complete, **more)


def _epsilon(text: str | None) -> str | None:
    if text not in (None, "auto"):
        try:
            valid = 0 <= float(text) < math.inf
        except ValueError:
            valid = False
        if not valid:
            raise typer.BadParameter(f"must be a number from 0 on, or auto, got {text!r}")
    return text


def _lifetimes_in(text: str | None) -> Any:
    if text is None or text == "auto":
        return text
    return [None if part.strip() == "never" else int(part) for part in text.split(",")]


def _lifetimes(text: str | None) -> str | None:
    try:
        checked_lifetimes(_lifetimes_in(text))
    except ValueError:
        raise typer.BadParameter(
            f"{text!r} is neither auto nor numbers of rows from {SHORTEST} to {LONGEST} or never, "
            "separated by commas"
        ) from None
    return text


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
        help="Of a text file, such as latin-1 or utf-16.",
        metavar="ENCODING",
        show_default="utf-8",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="The decimal point of numbers.", metavar="CHARACTER", show_default="."),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="What separates the thousands of numbers.", metavar="CHARACTER"),
]
Task = Annotated[
    str | None,
    _one_of(
        "classify",
        "regress",
        help="What to do with the target.",
        show_default="inferred from the target",
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=1, max=999_999, help="Rows from which columns are decided.", show_default=str(WARMUP)
    ),
]
Scale = Annotated[
    str | None,
    _one_of(*SCALES, help="How numbers are scaled.", show_default="standard"),
]
Missing = Annotated[
    str | None,
    _one_of(
        *MISSING,
        help="A missing value: is an error, becomes the mean, or drops the row.",
        show_default="error",
    ),
]
OnError = Annotated[str, _one_of("stop", "skip", help="A bad row: stop, or skip it.")]
Format = Annotated[
    str | None,
    _one_of(*FORMATS, help="The source's format.", show_default="detected"),
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
    typer.Option(min=1, help="Number of trees.", show_default="100; 50 if plain or not euclidean"),
]
Forgetting = Annotated[
    str | None,
    typer.Option(
        help="For how many rows each tree answers, before one that has learned later rows takes "
        "its place: auto, or numbers separated by commas, with never among them. Implies 64 trees.",
        callback=_lifetimes,
        metavar="LIFETIMES",
    ),
]
MaxStored = Annotated[
    int | None, typer.Option(min=1, help="Store at most so many rows; the oldest go first.")
]
Children = Annotated[
    int | None,
    typer.Option(min=2, help="Maximum number of children of a node.", show_default="50"),
]
Metric = Annotated[
    str | None,
    _one_of(
        *_METRICS,
        metavar="METRIC",
        help=f"Distance between rows: {', '.join(_METRICS)}. Others than euclidean imply --plain.",
        show_default="euclidean",
    ),
]
IndexMetric = Annotated[
    str | None,
    _one_of(
        *_INDEX_METRICS,
        metavar="METRIC",
        help=f"Distance between positions: {', '.join(_INDEX_METRICS)}.",
        show_default="euclidean",
    ),
]
Vector = Annotated[
    list[str] | None,
    typer.Option(
        help="The column of lists that are the positions, or columns of numbers, separated by "
        "commas.",
        metavar="COLUMNS",
        show_default="the only column of lists, else all columns but the ids",
    ),
]
Kept = Annotated[
    str | None,
    _one_of(
        *ELEMENT_TYPES,
        help="What positions are kept as; float32 and float16 round numbers, to save memory.",
        show_default="as in the source",
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        help="Regression: targets so close count as equal; auto follows their spread.",
        callback=_epsilon,
        metavar="NUMBER|auto",
        show_default="auto",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Seed of the forest.", show_default="0")]
Threads = Annotated[
    int, typer.Option(help="Number of threads; -1 for one per core.", callback=_threads)
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities", help="Predictions have the share of every class, not the answer's alone."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Report progress as JSON, one object per line.")]
Save = Annotated[Path | None, typer.Option(help="Write the model to this file.", metavar="FILE")]


def forest_parameters(
    trees: int | None,
    children: int | None,
    metric: str | None,
    seed: int | None,
    *,
    epsilon: str | None = None,
    offline: bool = False,
    forgetting: str | None = None,
    max_stored: int | None = None,
) -> dict[str, Any]:
    """Return the parameters that were given, by the estimators' names."""
    given = {
        "forgetting": _lifetimes_in(forgetting),
        "max_stored": max_stored,
        "n_estimators": trees,
        "max_children": children,
        "metric": canonical(metric),
        "random_state": seed,
        "epsilon": epsilon if epsilon in (None, "auto") else float(epsilon),
        "offline": offline or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def task_with(task: str | None, epsilon: str | None) -> str | None:
    """Return the task: that of epsilon is to regress."""
    if epsilon is None:
        return task
    if task == "classify":
        raise typer.BadParameter("--epsilon is an option of regression, not of --task classify")
    return "regress"


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
    command = shlex.join(["boundary-forest", *sys.argv[1:]])
    exit_with(lambda: run(replace(job, command=command)))


def exit_with(work: Callable[[], int]) -> None:
    """Exit with the code that the work returns, or as ``finish`` does after an error."""
    try:
        code = work()
    except (ColumnError, JournalError, ModelFileError, StreamError, OSError) as error:
        print(f"boundary-forest: {_message(error)}", file=sys.stderr)
        raise typer.Exit(2) from None
    if code:
        raise typer.Exit(code)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
