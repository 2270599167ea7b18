"""``boundary-forest stream``: predict each row of a stream, then learn it."""

from pathlib import Path
from typing import Annotated

import typer

from boundary_forest.cli import options as o
from boundary_forest.cli.job import Job
from boundary_forest.session import SessionSettings


def stream(
    source: o.SourceArgument,
    target: o.Target = None,
    features: o.Features = None,
    drop: o.Drop = None,
    id_column: o.Id = None,
    task: o.Task = None,
    warmup: o.Warmup = None,
    scale: o.Scale = None,
    missing: o.Missing = None,
    on_error: o.OnError = "stop",
    format: o.Format = None,
    numbers: o.Numbers = None,
    categories: o.Categories = None,
    sep: o.Sep = None,
    header: o.Header = None,
    encoding: o.Encoding = None,
    decimal: o.Decimal = None,
    thousands: o.Thousands = None,
    predictions: Annotated[
        str | None,
        typer.Option(
            help="Write each prediction to this file as soon as it is made; - is standard output. "
            "NDJSON, or CSV if the name ends in .csv.",
            metavar="FILE",
        ),
    ] = None,
    probabilities: o.Probabilities = False,
    as_json: o.Json = False,
    save: o.Save = None,
    load: Annotated[
        Path | None, typer.Option(help="Continue training this saved model.", metavar="FILE")
    ] = None,
    report: Annotated[
        Path | None,
        typer.Option(help="Write an HTML report to this file.", metavar="FILE"),
    ] = None,
    durable: Annotated[
        Path | None,
        typer.Option(
            help="Folder that keeps everything learned, so that the same command resumes after a "
            "crash.",
            metavar="FOLDER",
        ),
    ] = None,
    live: Annotated[
        bool,
        typer.Option(
            "--live",
            help=(
                "With --durable: the source contains only new rows, so read all of them when "
                "resuming."
            ),
        ),
    ] = False,
    ray: Annotated[
        str | None,
        typer.Option(
            help="Train on a Ray cluster; local starts Ray on this machine.",
            metavar="local|ADDRESS",
        ),
    ] = None,
    plain: o.Plain = False,
    forgetting: o.Forgetting = None,
    max_stored: o.MaxStored = None,
    weights: o.Weights = None,
    trees: o.Trees = None,
    children: o.Children = None,
    metric: o.Metric = None,
    epsilon: o.Epsilon = None,
    seed: o.Seed = None,
    threads: o.Threads = 1,
) -> None:
    """Predict each row of a stream, then learn it, and report the error."""
    settings = SessionSettings(
        target=target,
        features=o.listed(features),
        drop=o.listed(drop) or (),
        id=id_column,
        task=o.task_with(task, epsilon),
        warmup=warmup,
        scaling=scale,
        missing=missing,
        numbers=o.listed(numbers) or (),
        categories=o.listed(categories) or (),
        dialect=o.dialect(sep, header, encoding, decimal, thousands),
        load=load,
        durable=durable,
        live=live,
        cluster=ray,
        parameters=o.forest_parameters(
            trees,
            children,
            metric,
            seed,
            epsilon=epsilon,
            forgetting=forgetting,
            max_stored=max_stored,
            weights=weights,
        ),
        plain=plain,
        threads=threads,
    )
    o.finish(
        Job(
            source,
            settings,
            format=format,
            on_error=on_error,
            predictions=predictions,
            probabilities=probabilities,
            as_json=as_json,
            save=save,
            report=report,
        )
    )
