"""The command line, ``boundary-forest``.

Each command is a file of this folder, which is imported when the command is named: numpy, pyarrow
and scikit-learn take seconds, and ``--help`` needs none of them. ``job.py`` is the shell around
a session that ``stream``, ``fit`` and ``predict`` share. The packages it needs are those of the
``cli`` extra, so nothing here imports them before :func:`main` has looked for them.
"""

from __future__ import annotations

import atexit
import importlib
import os
import signal
import sys
from contextlib import contextmanager

from boundary_forest import __version__

TYPE_CHECKING = False  # typing's own would have to be imported, before Ctrl-C is minded
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType
    from typing import Any

INTERRUPTED = 128 + signal.SIGINT
EXTRA = ("jinja2", "pyarrow", "rich", "typer")  # the packages of the ``cli`` extra
SERVE_EXTRA = ("fastapi", "prometheus_client", "uvicorn")  # and further ones of ``serve``
COMMANDS = {  # and what they do, as their functions say
    "stream": "Predict each row of a stream, then learn it, and report the error.",
    "fit": "Learn all rows without predicting them, and save the model.",
    "predict": "Predict rows with a saved model, without learning them.",
    "index": "Build an index of vectors, or add vectors to an index.",
    "neighbors": "Find the nearest vectors in an index for each row.",
    "serve": "Predict and learn over HTTP; what is acknowledged survives a crash.",
    "demo": "Predict and learn 1,797 handwritten digits one by one, and write a report.",
    "info": "Show the estimator, parameters, examples, trees and sizes of a model file.",
    "verify": "Check a model file; exit code 0: intact, 1: damaged, 2: missing.",
}


def main() -> None:
    """Run the command that ``sys.argv`` names; Ctrl-C exits with code 130 and no traceback."""
    if sys.argv[1:] == ["--version"]:  # at once
        print(f"boundary-forest {__version__}")
        return
    # The imports take seconds, and nothing is to be kept yet. In a job that runs in the background
    # of a shell, Ctrl-C is ignored, and stays so.
    minds = signal.getsignal(signal.SIGINT) is signal.default_int_handler and _handle_by(_exit)

    def imported() -> None:
        if minds:
            _handle_by(signal.default_int_handler)
            atexit.register(_handle_by, _exit)

    try:
        _app(imported)()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        if minds:
            _handle_by(signal.default_int_handler)


def _handle_by(handler: Callable[[int, FrameType | None], Any]) -> bool:
    """Let Ctrl-C be handled so from now on; return False on a thread that gets no signals."""
    try:
        signal.signal(signal.SIGINT, handler)
    except ValueError:
        return False
    return True


def _exit(number: int, frame: FrameType | None) -> None:
    """Exit at once: what is imported, or ends, just now could swallow an exception or show it."""
    os._exit(INTERRUPTED)


def _app(imported: Callable[[], None]) -> Any:
    """Return the commands as a callable; it calls ``imported`` when all of a command is."""
    with _naming_the_extra():
        import typer
        from typer.core import TyperGroup

    class Group(TyperGroup):
        """Commands that know no more than their help until one of them is called."""

        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            name, command, rest = super().resolve_command(ctx, args)
            if name in COMMANDS:
                command = _command(name)
            imported()
            return name, command, rest

        def make_context(self, *args: Any, **options: Any) -> Any:
            with _visible_names():
                return super().make_context(*args, **options)

        def invoke(self, ctx: Any) -> Any:
            with _visible_names():
                return super().invoke(ctx)

    app = typer.Typer(
        name="boundary-forest",
        cls=Group,
        help="Online nearest-neighbour learning with Boundary Forests.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,  # rich takes as long to import as all else together
    )

    @app.callback()
    def version(
        version: bool = typer.Option(False, "--version", help="Show the version and exit."),
    ) -> None:
        if version:
            print(f"boundary-forest {__version__}")
            raise typer.Exit

    for name, help in COMMANDS.items():
        app.command(name, short_help=help)(lambda: None)
    return app


def _command(name: str) -> Any:
    """Import a command."""
    with _naming_the_extra():
        import typer

        found = getattr(importlib.import_module(f"boundary_forest.cli.{name}"), name)
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
    app.command(name)(found)
    command = typer.main.get_command(app)
    command.name = name
    return command


@contextmanager
def _visible_names() -> Iterator[None]:
    """Escape control characters in what typer says about arguments: they may be names of files."""
    try:
        yield
    except Exception as error:
        message = getattr(error, "message", None)
        if isinstance(message, str):
            from boundary_forest.report.formatting import printable

            error.message = printable(message, lines=True)  # type: ignore[attr-defined]
        raise


@contextmanager
def _naming_the_extra() -> Iterator[None]:
    """Say what to install if a package of the extra is missing."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in (*EXTRA, *SERVE_EXTRA):
            raise
        extra = SERVE_EXTRA if error.name in SERVE_EXTRA else EXTRA
        print(
            f"boundary-forest: {error.name} is not installed: pip install {' '.join(extra)}",
            file=sys.stderr,
        )
        sys.exit(2)
