"""``boundary-forest index``: vectors of a file, with ids, as an index for ``neighbors``."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table
from rich.text import Text

from boundary_forest import BoundaryForestNeighbors
from boundary_forest.cli import options as o
from boundary_forest.cli.answers import naming
from boundary_forest.cli.counting import Counter
from boundary_forest.cli.running import Job
from boundary_forest.cli.vectors import Vectors, VectorSource, console_on, watching
from boundary_forest.estimators.metrics import canonical
from boundary_forest.files.saving import save_forest
from boundary_forest.frames.vectors import VectorColumns
from boundary_forest.session import Settings
from boundary_forest.session.problems import StreamError
from boundary_forest.session.wording import count, counted, duration, rate, size

VECTORS = "vectors"  # the document of an index that names the columns of positions
_DEFAULTS = BoundaryForestNeighbors()


def index(
    source: o.SourceArgument,
    save: Annotated[Path, typer.Option(help="Write the index to this file.", metavar="FILE")],
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="The column of ids, integers or text, by which neighbours are told; rows are "
            "numbered from 0 if omitted.",
            metavar="COLUMN",
        ),
    ] = None,
    vector: o.Vector = None,
    metric: o.IndexMetric = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="How many close vectors a search keeps in sight: more find more of the true "
            "neighbours, and take longer.",
            show_default=str(_DEFAULTS.beam),
        ),
    ] = None,
    dtype: o.Kept = None,
    trees: Annotated[
        int | None,
        typer.Option(
            "--trees",
            "--n-estimators",
            min=1,
            help="Number of trees.",
            show_default=str(_DEFAULTS.n_estimators),
        ),
    ] = None,
    children: o.Children = None,
    seed: o.Seed = None,
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
    """Index vectors for search, and save the index."""
    given = {
        "metric": canonical(metric),
        "beam": beam,
        "n_estimators": trees,
        "max_children": children,
        "dtype": dtype,
    }
    forest = BoundaryForestNeighbors(
        random_state=seed or 0,
        n_jobs=threads,
        **{name: value for name, value in given.items() if value is not None},
    )
    dialect = o.dialect(sep, header, encoding, decimal, thousands)

    def work() -> int:
        Job(source, Settings(), save=save).check()
        with watching() as stopped:
            rows = VectorSource(
                source,
                format,
                vector=o.listed(vector) or (),
                id=id_column,
                dialect=dialect,
                skip=on_error == "skip",
                stopped=stopped,
            )
            console = console_on()
            with Counter(console, rows.total, "indexed", as_json=as_json) as counter:
                for batch in rows:
                    _learn(forest, batch, rows.name, dtype)
                    counter.add(len(batch.numbers) + len(batch.bad))
                    if stopped():
                        break
            if rows.columns is None or forest.fitted is None:
                raise StreamError(f"{rows.name} has no rows to index")
            said = _summary(forest, rows.columns, counter)
            with naming(save):
                save_forest(forest, save, {VECTORS: {"columns": rows.columns.names}})
            if rows.left_out:
                said["left out"] = counted(rows.left_out, "row")
            said["saved"] = f"{save}, {size(save.stat().st_size)}"
            if stopped():
                said["stopped"] = f"after row {count(counter.rows)}"
            if as_json:
                counter.say("end", _figures(forest, rows.left_out, save), "")
            else:
                console.print(_table(said))
            return 0 if stopped.signal is None else 128 + stopped.signal

    o.exit_with(work)


def _learn(forest: BoundaryForestNeighbors, batch: Vectors, name: str, dtype: str | None) -> None:
    if len(batch.X) == 0:
        return
    X = batch.X
    if dtype in ("float16", "float32") and X.dtype.kind == "f":
        with np.errstate(over="ignore"):  # what is too large for it is refused
            X = X.astype(dtype)  # whoever says so wants it rounded
    try:
        forest.partial_fit(X, ids=batch.ids)
    except (TypeError, ValueError) as error:
        first, last = int(batch.numbers[0]), int(batch.numbers[-1])
        raise StreamError(f"{name}: rows {first} to {last}: {error}") from error


def _summary(
    forest: BoundaryForestNeighbors, columns: VectorColumns, counter: Counter
) -> dict[str, str]:
    fitted = forest.fitted
    assert fitted is not None
    stats, kind = forest.stats(), fitted.settings.element_type
    where = repr(columns.names[0]) if columns.is_list else counted(len(columns.names), "column")
    ids = "numbered from 0" if columns.id is None else f"with ids from {columns.id!r}"
    memory = stats["bytes"]
    each = memory["total"] / max(1, stats["examples_stored"])
    return {
        "rows": f"{count(counter.rows)} in {duration(counter.seconds)}, "
        f"{rate(counter.rows_per_s)} per second",
        "vectors": f"{count(stats['examples_stored'])} of {columns.width} {kind} from {where}, "
        f"{ids}",
        "index": f"{counted(forest.n_estimators, 'tree')}, {forest.metric}, beam {forest.beam}",
        "memory": f"{size(memory['total'])}, {size(each)} a vector",
    }


def _figures(forest: BoundaryForestNeighbors, left_out: int, save: Path) -> dict[str, Any]:
    stats = forest.stats()
    return {
        "indexed": stats["examples_stored"],
        "left_out": left_out,
        "bytes": stats["bytes"]["total"],
        "saved": str(save),
    }


def _table(said: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in said.items():
        table.add_row(name, Text(value))
    return table
