"""``boundary-forest predict``: answer the rows of a file with a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from boundary_forest.cli import options as o
from boundary_forest.session.settings import Settings


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.", metavar="MODEL")],
    source: o.SourceArgument,
    predictions: Annotated[
        str,
        typer.Option(
            help="Where answers go; - is standard output. NDJSON, or .csv.", metavar="FILE"
        ),
    ] = "-",
    id_column: o.Id = None,
    on_error: o.OnError = "stop",
    format: o.Format = None,
    as_json: o.Json = False,
    threads: o.Threads = 1,
) -> None:
    """Answer every row; a target that is there is only compared."""
    o.end_with(
        Settings(
            source=source,
            id=id_column,
            on_error=on_error,
            format=format,
            predictions=predictions,
            as_json=as_json,
            load=model,
            threads=threads,
            teaching=False,
        ),
        quiet=not as_json,
    )
