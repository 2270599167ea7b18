"""The command line, ``boundary-forest``.

Each command is a file of this folder; :func:`main` puts them together. ``running.py`` is the shell
around a session that ``stream``, ``fit`` and ``predict`` share. The packages it needs are those of
the ``cli`` extra, so nothing here imports them before :func:`main` has looked for them.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys

TYPE_CHECKING = False  # typing's own would have to be imported, before Ctrl-C is minded
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType
    from typing import Any

INTERRUPTED = 128 + signal.SIGINT


def main() -> None:
    """Run the command that ``sys.argv`` names; Ctrl-C exits with code 130 and no traceback."""
    # The imports take a second, and nothing is to be kept yet. In a job that runs in the background
    # of a shell, Ctrl-C is ignored, and stays so.
    minds = signal.getsignal(signal.SIGINT) is signal.default_int_handler and _handle_by(_exit)
    app = _app()
    try:
        if minds:
            _handle_by(signal.default_int_handler)
            atexit.register(_handle_by, _exit)
        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


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


def _app() -> Any:
    """Return the commands as a callable."""
    try:
        import typer

        from boundary_forest.cli.demo import demo
        from boundary_forest.cli.fit import fit
        from boundary_forest.cli.info import info
        from boundary_forest.cli.paper import paper
        from boundary_forest.cli.predict import predict
        from boundary_forest.cli.stream import stream
        from boundary_forest.cli.verify import verify
    except ModuleNotFoundError as error:
        if error.name not in ("jinja2", "pyarrow", "rich", "typer"):
            raise
        print(
            f"boundary-forest: {error.name} is missing; pip install boundary-forest[cli]",
            file=sys.stderr,
        )
        sys.exit(2)

    app = typer.Typer(
        name="boundary-forest",
        help="Online nearest-neighbour learning with Boundary Forests.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
    )
    # Without a callback, an application of one command would not take the command's name.
    app.callback()(lambda: None)
    app.command()(stream)
    app.command()(fit)
    app.command()(predict)
    app.command()(demo)
    app.command()(info)
    app.command()(verify)
    app.add_typer(paper)
    return app
