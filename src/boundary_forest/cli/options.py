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
from boundary_forest.cli.job import Job, run
from boundary_forest.cli.terminal import warn
from boundary_forest.estimators.engine_constants import (
    ELEMENT_TYPES,
    LONGEST_LIFETIME,
    METRICS,
    SHORTEST_LIFETIME,
    VOTE_WEIGHTS,
)
from boundary_forest.estimators.errors import JournalError
from boundary_forest.estimators.forest_settings import checked_lifetimes
from boundary_forest.estimators.metrics import ALIASES, canonical
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.columns import MISSING, SCALES
from boundary_forest.frames.dialect import Dialect
from boundary_forest.session.settings import WARMUP
from boundary_forest.sources import FORMATS
from boundary_forest.sources.row_batch import StreamError

_NAME = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^,\s](?:[^,]*[^,\s])?))\s*(?:,|$)')
_INDEX_METRICS = sorted({*METRICS, *ALIASES} - {"minkowski"})
_METRICS = [name for name in _INDEX_METRICS if canonical(name) != "inner_product"]


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
            raise typer.BadParameter(f"must be a number >= 0 or auto, got {text!r}")
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
            f"must be auto, or lifetimes from {SHORTEST_LIFETIME} to {LONGEST_LIFETIME} rows (or "
            f"never) separated by commas, got {text!r}"
        ) from None
    return text


def _threads(threads: int) -> int:
    if threads == 0:
        raise typer.BadParameter("must not be 0; use -1 for one thread per core")
    return threads


SourceArgument = Annotated[
    str,
    typer.Argument(
        help="CSV, NDJSON or LIBSVM text (also .gz), Parquet, Arrow or npz file; - is standard "
        "input.",
        metavar="SOURCE",
    ),
]
Target = Annotated[str | None, typer.Option(help="Column to predict.", metavar="COLUMN")]
Features = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to predict from, separated by commas; all other columns if omitted. Put "
        "names that contain commas, or start or end with spaces, in double quotes.",
        metavar="COLUMNS",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(help="Columns to ignore, separated by commas.", metavar="COLUMNS"),
]
Id = Annotated[
    str | None, typer.Option("--id", help="Column that identifies rows.", metavar="COLUMN")
]
Numbers = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to read as numbers, even if many of their values are not numbers.",
        metavar="COLUMNS",
    ),
]
Categories = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns to read as categories, even if their values look like numbers.",
        metavar="COLUMNS",
    ),
]
Sep = Annotated[
    str | None,
    typer.Option(
        help="Separator between the values of a CSV file, \\t for a tab; detected if omitted.",
        metavar="CHARACTER",
    ),
]
Header = Annotated[
    bool | None,
    typer.Option(
        "--header/--no-header",
        help="Whether the first line of a CSV file has the column names; without them, columns "
        "are c1, c2, ...",
        show_default=False,
    ),
]
Encoding = Annotated[
    str | None,
    typer.Option(
        help="Encoding of a text file, such as latin-1 or utf-16.",
        metavar="ENCODING",
        show_default="utf-8",
    ),
]
Decimal = Annotated[
    str | None,
    typer.Option(help="Decimal separator of numbers.", metavar="CHARACTER", show_default="."),
]
Thousands = Annotated[
    str | None,
    typer.Option(help="Thousands separator of numbers.", metavar="CHARACTER"),
]
Task = Annotated[
    str | None,
    _one_of(
        "classify",
        "regress",
        help="Whether to predict classes or numbers.",
        show_default="inferred from the target",
    ),
]
Warmup = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=999_999,
        help="Number of first rows used to infer the columns.",
        show_default=str(WARMUP),
    ),
]
Scale = Annotated[
    str | None,
    _one_of(*SCALES, help="How numeric columns are scaled.", show_default="standard"),
]
Missing = Annotated[
    str | None,
    _one_of(
        *MISSING,
        help="What to do with a missing value: stop, use the mean, or drop the row.",
        show_default="error",
    ),
]
OnError = Annotated[str, _one_of("stop", "skip", help="What to do with a bad row.")]
Format = Annotated[
    str | None,
    _one_of(*FORMATS, help="Format of the source.", show_default="detected"),
]
Plain = Annotated[
    bool,
    typer.Option(
        "--plain",
        help="Use the paper's forest: no learned column weights, and every tree learns every row.",
    ),
]
Trees = Annotated[
    int | None,
    typer.Option(
        min=1, help="Number of trees.", show_default="100; 50 with --plain or another metric"
    ),
]
Forgetting = Annotated[
    str | None,
    typer.Option(
        help="Replace each tree after its lifetime, a number of rows: auto, or lifetimes separated "
        "by commas, where never means unlimited. Implies 48 trees.",
        callback=_lifetimes,
        metavar="LIFETIMES",
    ),
]
Weights = Annotated[
    str | None,
    _one_of(
        *VOTE_WEIGHTS,
        help="How the trees' predictions are weighted; mixture is the most accurate.",
        show_default="mixture; auto with --ray; distance with --plain or another metric",
    ),
]
MaxStored = Annotated[
    int | None,
    typer.Option(min=1, help="Maximum number of rows to store; the oldest are removed first."),
]
Children = Annotated[
    int | None,
    typer.Option(min=2, help="Maximum number of children per node.", show_default="50"),
]
Metric = Annotated[
    str | None,
    _one_of(
        *_METRICS,
        metavar="METRIC",
        help=f"Distance metric: {', '.join(_METRICS)}. Metrics other than euclidean imply --plain.",
        show_default="euclidean",
    ),
]
IndexMetric = Annotated[
    str | None,
    _one_of(
        *_INDEX_METRICS,
        metavar="METRIC",
        help=f"Distance metric: {', '.join(_INDEX_METRICS)}.",
        show_default="euclidean",
    ),
]
Vector = Annotated[
    list[str] | None,
    typer.Option(
        help="Column with the vectors (lists of numbers), or columns of numbers, separated by "
        "commas.",
        metavar="COLUMNS",
        show_default="the only column of lists, or all columns except the ids",
    ),
]
Kept = Annotated[
    str | None,
    _one_of(
        *ELEMENT_TYPES,
        help="Type in which vectors are stored; float32 and float16 round numbers and save memory.",
        show_default="as in the source",
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        help="Regression: a tree stores a row only if its prediction is off by more than this; "
        "auto adapts to the spread of the target.",
        callback=_epsilon,
        metavar="NUMBER|auto",
        show_default="auto",
    ),
]
Seed = Annotated[int | None, typer.Option(min=0, help="Random seed.", show_default="0")]
Threads = Annotated[
    int, typer.Option(help="Number of threads; -1 for one per core.", callback=_threads)
]
Probabilities = Annotated[
    bool,
    typer.Option(
        "--probabilities",
        help="Write the probability of every class, not only of the predicted one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print progress as JSON, one object per line.")]
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
    weights: str | None = None,
) -> dict[str, Any]:
    """Return the parameters that were given, by the estimators' names."""
    given = {
        "forgetting": _lifetimes_in(forgetting),
        "max_stored": max_stored,
        "weights": weights,
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
        raise typer.BadParameter(
            "--epsilon is for regression and cannot be combined with --task classify"
        )
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
        warn(_message(error))
        raise typer.Exit(2) from None
    if code:
        raise typer.Exit(code)


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())
