"""``boundary-forest serve``: predict and learn over HTTP."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from boundary_forest.cli.options import exit_with
from boundary_forest.service import TASKS, Limits, ServiceSettings
from boundary_forest.service import serve as run_service

# Under 64 clients on two processors, two threads answer 1.16 times as many requests as one, and the
# longest wait, while weights of features are decided, is .75 times as long.
THREADS = min(2, os.cpu_count() or 1)


def serve(
    folder: Annotated[
        Path,
        typer.Argument(
            help="Folder of the model; a new one begins empty. One process at a time can serve it.",
            metavar="DIR",
        ),
    ],
    task: Annotated[
        str | None,
        typer.Option(
            help="What a new model does; classification unless --load says otherwise.",
            metavar="classification|regression|retrieval",
        ),
    ] = None,
    load: Annotated[
        Path | None,
        typer.Option(help="Model file that a new folder starts with.", metavar="FILE"),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address; all but loopback addresses require --token-file.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 is any free one.", min=0, max=65535)] = 8000,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="File with lines 'read TOKEN' or 'write TOKEN', read again on SIGHUP.",
            metavar="FILE",
        ),
    ] = None,
    allowed_host: Annotated[
        list[str] | None,
        typer.Option(
            help="Further name of the service, such as a proxy's; may be repeated.",
            metavar="NAME",
        ),
    ] = None,
    max_stored: Annotated[
        int | None,
        typer.Option(help="Most examples that a new model stores; no limit by default.", min=1),
    ] = None,
    max_waiting: Annotated[
        int, typer.Option(help="Most predicted rows that wait for labels.", min=1)
    ] = Limits.waiting,
    waiting_hours: Annotated[
        float, typer.Option(help="How long predicted rows wait for labels.", min=0)
    ] = Limits.waiting_seconds / 3600,
    max_body: Annotated[
        int, typer.Option(help="Most bytes of a request's body.", min=1)
    ] = Limits.body_bytes,
    max_queue: Annotated[
        int, typer.Option(help="Most requests that wait to be written; one more is a 429.", min=1)
    ] = Limits.queue,
    log_requests: Annotated[
        bool, typer.Option("--log-requests", help="Log every request, not failing ones only.")
    ] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of a new model.", min=0)] = None,
    threads: Annotated[
        int, typer.Option(help="Threads per call of the engine.", min=1, show_default="at most 2")
    ] = THREADS,
) -> None:
    """Predict and learn over HTTP; what is acknowledged survives a crash."""
    if task is not None and task not in TASKS:
        raise typer.BadParameter(f"--task must be {', '.join(TASKS)}, got {task!r}")
    limits = replace(
        Limits(),
        waiting=max_waiting,
        waiting_seconds=3600 * waiting_hours,
        body_bytes=max_body,
        queue=max_queue,
    )
    settings = ServiceSettings(
        folder=folder,
        task=task,
        load=load,
        host=host,
        port=port,
        token_file=token_file,
        allowed_hosts=tuple(allowed_host or ()),
        max_stored=max_stored,
        seed=seed,
        threads=threads,
        log_requests=log_requests,
        limits=limits,
    )
    try:
        settings.check()
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    exit_with(lambda: run_service(settings))
