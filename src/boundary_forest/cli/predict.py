"""``boundary-forest predict``: predict the rows of a file with a saved model."""

from pathlib import Path
from typing import Annotated

import typer

from boundary_forest.cli import options as o
from boundary_forest.cli.job import Job
from boundary_forest.session import SessionSettings


def predict(
    model: Annotated[Path, typer.Argument(help="A model file.", metavar="MODEL")],
    source: o.SourceArgument,
    predictions: Annotated[
        str,
        typer.Option(
            help="Write the predictions to this file; - is standard output. NDJSON, or CSV if the "
            "name ends in .csv.",
            metavar="FILE",
        ),
    ] = "-",
    probabilities: o.Probabilities = False,
    id_column: o.Id = None,
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
    """Predict rows with a saved model, without learning them."""
    o.finish(
        Job(
            source,
            SessionSettings(
                id=id_column,
                load=model,
                threads=threads,
                learning=False,
                dialect=o.dialect(sep, header, encoding, decimal, thousands),
            ),
            format=format,
            on_error=on_error,
            predictions=predictions,
            probabilities=probabilities,
            as_json=as_json,
            quiet=not as_json,
        )
    )
