"""The process and its terminal: Ctrl-C, consoles, warnings, and errors of the system."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

import pyarrow as pa
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from boundary_forest.report.formatting import printable


class StopSignal:
    """A context in which a signal is remembered; a second one ends the process at once."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *_: object) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)

    def __call__(self) -> bool:
        """Return whether the run should end."""
        return self.signal is not None

    def _remember(self, number: int, frame: FrameType | None) -> None:
        self.signal = number
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def stoppable() -> Iterator[StopSignal]:
    """Notice Ctrl-C between two pieces of work."""
    pa.enable_signal_handlers(False)  # else its readers take a signal for an error of their own
    try:
        with StopSignal() as stopped:
            yield stopped
    finally:
        pa.enable_signal_handlers(True)


class _SafeConsole(Console):
    """A console on which no text can do what only rich should: names are a user's data.

    What is laid out by its width is made printable before that; here is the guard for all text.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        if isinstance(renderable, Text) and printable(renderable.plain, lines=True) != (
            renderable.plain
        ):
            renderable = Text(printable(renderable.plain, lines=True), renderable.style)
        return super().render(renderable, options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(printable(text, lines=True), **options)


def console_on(stream: Any = None) -> Console:
    """Return a console; elsewhere than on a terminal, lines are as long as they need to be."""
    stream = sys.stdout if stream is None else stream
    width = None if stream.isatty() else 400
    return _SafeConsole(file=stream, width=width, force_terminal=stream.isatty(), highlight=False)


def warn(what: object) -> None:
    """Print a line to standard error."""
    print(f"boundary-forest: {printable(str(what))}", file=sys.stderr, flush=True)


def discard_output() -> None:
    """Discard what is still buffered for a reader that has gone, so that Python can end."""
    with suppress(OSError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def is_same_path(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths lead to one place, where there need not be anything yet."""
    # Path.resolve() raises RuntimeError if links go round in a circle; opening it tells more.
    return os.path.realpath(one) == os.path.realpath(other)


@contextmanager
def naming_file(path: str | os.PathLike[str]) -> Iterator[None]:
    """Put the file's name into errors of the system that do not have it, such as of a full disk."""
    try:
        yield
    except OSError as error:
        if error.filename is None and error.errno is not None:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise
