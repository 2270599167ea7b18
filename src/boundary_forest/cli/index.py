"""``boundary-forest index``: vectors of a file, with ids, as an index for ``neighbors``, or more
vectors for an index that is there.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.markup import escape
from rich.table import Table

from boundary_forest import BoundaryForestNeighbors
from boundary_forest.cli import options as o
from boundary_forest.cli.display import RowCounter
from boundary_forest.cli.index_io import (
    IndexFile,
    VectorBatch,
    VectorSource,
    save_index,
)
from boundary_forest.cli.job import Job
from boundary_forest.cli.terminal import console_on, is_same_path, stoppable
from boundary_forest.estimators.engine_constants import GRAPH
from boundary_forest.estimators.metrics import canonical
from boundary_forest.frames.vector_columns import VectorColumns
from boundary_forest.report.formatting import count, counted, duration, rate, size
from boundary_forest.session import SessionSettings
from boundary_forest.sources.row_batch import StreamError

_DEFAULTS = BoundaryForestNeighbors()


def index(
    source: o.SourceArgument,
    save: Annotated[
        Path | None,
        typer.Option(
            help="Write the index to this file.",
            metavar="FILE",
            show_default="the file given by --into",
        ),
    ] = None,
    into: Annotated[
        Path | None,
        typer.Option(
            help="Add the vectors to the index in this file; a vector with a known id replaces "
            "the old one.",
            metavar="INDEX",
        ),
    ] = None,
    id_column: Annotated[
        str | None,
        typer.Option(
            "--id",
            help="Column with the ids (integers or text) that searches return; if omitted, rows "
            "are numbered from 0.",
            metavar="COLUMN",
        ),
    ] = None,
    vector: o.Vector = None,
    metric: o.IndexMetric = None,
    beam: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Width of the search: a larger beam finds more of the true neighbours, but takes "
            "longer.",
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
    """Build an index of vectors, or add vectors to an index."""
    given = {
        "metric": canonical(metric),
        "beam": beam,
        "n_estimators": trees,
        "max_children": children,
        "dtype": dtype,
        "random_state": seed,
    }
    given = {name: value for name, value in given.items() if value is not None}
    dialect = o.dialect(sep, header, encoding, decimal, thousands)

    def work() -> int:
        to = save or into
        if to is None:
            raise StreamError("use --save FILE to create an index, or --into INDEX to add to one")
        Job(source, SessionSettings(), save=to).check()
        old = None if into is None else _opened(into, given, id_column)
        forest = (
            BoundaryForestNeighbors(**{"random_state": 0} | given) if old is None else old.forest
        )
        forest.set_params(n_jobs=threads)
        before = 0 if old is None else forest.stats()["examples_stored"]
        with stoppable() as stopped:
            rows = VectorSource(
                source,
                format,
                vector=o.listed(vector) or (),
                id=id_column,
                likely=None if old is None else old.columns,
                width=None if old is None else forest.n_features_in_,
                dialect=dialect,
                skip=on_error == "skip",
                stopped=stopped,
            )
            console, adding = console_on(), _Adding(forest, rows.name, dtype, is_new=old is None)
            with RowCounter(console, rows.total, "indexed", as_json=as_json) as counter:
                for batch in rows:
                    counter.add(len(batch.bad))
                    for part in batch.parts(len(batch.X)):
                        adding.add(part)
                        counter.add(len(part.numbers))
                        if stopped():
                            break
                    if stopped():
                        break
            if rows.columns is None or adding.n == 0:
                raise StreamError(f"{rows.name} has no rows to index")
            lines = _summary(forest, rows.columns, counter)
            added = forest.stats()["examples_stored"] - before
            if old is not None:
                lines["added"] = f"{count(added)}, {count(adding.n - added)} replaced"
                if into is not None and is_same_path(to, into):
                    old.check_unchanged()
            attachments = {} if old is None else old.attachments
            save_index(forest, to, rows.columns.names, attachments)
            if rows.left_out:
                lines["skipped"] = counted(rows.left_out, "row")
            lines["saved"] = f"{to}, {size(to.stat().st_size)}"
            if stopped():
                lines["stopped"] = f"after row {count(counter.rows)}"
            if as_json:
                figures = {"added": added, "replaced": adding.n - added, "left_out": rows.left_out}
                counter.say("end", _figures(forest, to) | figures, "")
            else:
                console.print(_table(lines))
            return 0 if stopped.signal is None else 128 + stopped.signal

    o.exit_with(work)


# What an index has been built with, and the options that say it.
_FIXED = {
    "metric": "--metric",
    "n_estimators": "--trees",
    "max_children": "--children",
    "random_state": "--seed",
}


def _opened(path: Path, given: dict[str, Any], id_column: str | None) -> IndexFile:
    """Return an index to add to; refuse what would not go together with it."""
    index = IndexFile.opened(path)
    forest, fitted = index.forest, index.forest.fitted
    assert fitted is not None
    kind = fitted.settings.element_type
    for name, option in _FIXED.items():
        if name in given:
            raise StreamError(
                f"{option} cannot be combined with --into: it was fixed when {path} was built"
            )
    if given.get("dtype", kind) != kind:
        raise StreamError(
            f"--dtype {given['dtype']}: the index in {path} stores {kind}, and all its vectors "
            "have the same type"
        )
    if index.has_ids and id_column is None:
        raise StreamError(f"the vectors in {path} have ids: give the column with the ids by --id")
    if not index.has_ids and id_column is not None:
        raise StreamError(f"the vectors in {path} have no ids: omit --id")
    if "beam" in given:
        forest.set_params(beam=given["beam"])
    return index


class _Adding:
    """Learns batches. Ids that the index had before are replaced, those of the source are new."""

    def __init__(
        self, forest: BoundaryForestNeighbors, name: str, dtype: str | None, *, is_new: bool
    ) -> None:
        self.n = 0
        self._forest, self._name, self._dtype = forest, name, dtype
        self._replaces = not is_new and forest.search == GRAPH
        self._ids: set[Any] = set()  # of the source so far, if it may have others' ids

    def add(self, batch: VectorBatch) -> None:
        X, ids = batch.X, batch.ids
        if self._dtype in ("float16", "float32") and X.dtype.kind == "f":
            with np.errstate(over="ignore"):  # what is too large for it is refused
                X = X.astype(self._dtype)  # whoever says so wants it rounded
        try:
            if ids is not None and self._replaces:
                self._check_new(ids)
                self._forest.upsert(X, ids)
            else:
                self._forest.partial_fit(X, ids=ids)
        except (TypeError, ValueError) as error:
            first, last = int(batch.numbers[0]), int(batch.numbers[-1])
            raise StreamError(f"{self._name}: rows {first} to {last}: {error}") from error
        self.n += len(X)

    def _check_new(self, ids: list[Any]) -> None:
        """Refuse an id that came in an earlier batch, as one in the same batch is refused."""
        for one in ids:
            if one in self._ids:
                raise ValueError(f"ids must be unique, but {one!r} occurs more than once")
        self._ids.update(ids)


def _summary(
    forest: BoundaryForestNeighbors, columns: VectorColumns, counter: RowCounter
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
        "vectors": f"{count(stats['examples_stored'])} with {columns.width} {kind} values each, "
        f"from {where}, {ids}",
        "index": f"{counted(forest.n_estimators, 'tree')}, {forest.metric}, beam {forest.beam}",
        "memory": f"{size(memory['total'])}, {size(each)} per vector",
    }


def _figures(forest: BoundaryForestNeighbors, save: Path) -> dict[str, Any]:
    stats = forest.stats()
    return {
        "indexed": stats["examples_stored"],
        "bytes": stats["bytes"]["total"],
        "saved": str(save),
    }


def _table(lines: dict[str, str]) -> Table:
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style="dim", no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in lines.items():
        table.add_row(name, escape(value))
    return table
