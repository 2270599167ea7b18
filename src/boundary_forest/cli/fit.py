"""``boundary-forest fit``: learn the rows of a file without predicting them, save the model."""

from pathlib import Path
from typing import Annotated

import typer

from boundary_forest.cli import options as o
from boundary_forest.cli.job import Job
from boundary_forest.session import SessionSettings


def fit(
    source: o.SourceArgument,
    save: Annotated[Path, typer.Option(help="Write the model to this file.", metavar="FILE")],
    target: o.Target = None,
    features: o.Features = None,
    drop: o.Drop = None,
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
    as_json: o.Json = False,
    plain: o.Plain = False,
    forgetting: o.Forgetting = None,
    max_stored: o.MaxStored = None,
    weights: o.Weights = None,
    trees: o.Trees = None,
    children: o.Children = None,
    metric: o.Metric = None,
    epsilon: o.Epsilon = None,
    offline: Annotated[
        bool,
        typer.Option(
            "--offline",
            help="Fit the paper's offline forest: read all rows first, then let each tree learn "
            "them in its own random order.",
        ),
    ] = False,
    seed: o.Seed = None,
    threads: o.Threads = 1,
) -> None:
    """Learn all rows without predicting them, and save the model."""
    settings = SessionSettings(
        target=target,
        features=o.listed(features),
        drop=o.listed(drop) or (),
        task=o.task_with(task, epsilon),
        warmup=warmup,
        scaling=scale,
        missing=missing,
        numbers=o.listed(numbers) or (),
        categories=o.listed(categories) or (),
        dialect=o.dialect(sep, header, encoding, decimal, thousands),
        parameters=o.forest_parameters(
            trees,
            children,
            metric,
            seed,
            epsilon=epsilon,
            offline=offline,
            forgetting=forgetting,
            max_stored=max_stored,
            weights=weights,
        ),
        plain=plain,
        threads=threads,
        predicting=False,
    )
    o.finish(Job(source, settings, format=format, on_error=on_error, save=save, as_json=as_json))
