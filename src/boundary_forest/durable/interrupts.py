"""Ctrl-C, put off while something must not be left half done."""

from __future__ import annotations

import inspect
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self

Handler = Callable[[int, FrameType | None], Any]


class Interrupts:
    """A context inside which SIGINT is remembered, and handled when it ends.

    Python runs signal handlers on the main thread, between two bytecodes of whatever it executes
    there; on any other thread this does nothing. A SIGINT that Python does not handle itself
    (ignored, or left to end the process) is left alone. Contexts may be nested: the inner one hands
    what it has remembered to the outer one.
    """

    def __init__(self) -> None:
        self._handler: Handler | None = None  # what is called in the end; None: nothing is put off
        self._ours: Handler = self._remember
        self._remembered = False

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            handler = signal.getsignal(signal.SIGINT)
            if callable(handler):
                self._handler = handler
                self.hold()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def hold(self) -> None:
        """Put interrupts off, again if they were released."""
        if self._handler is not None:
            try:
                signal.signal(signal.SIGINT, self._ours)
            except ValueError:  # not the main interpreter, which gets no signals
                self._handler = None

    def release(self) -> None:
        """Let interrupts come when they come, and handle one that was remembered."""
        if self._handler is None:
            return
        if signal.getsignal(signal.SIGINT) == self._ours:  # unless somebody else has set another
            signal.signal(signal.SIGINT, self._handler)
        self.handle()

    def handle(self) -> None:
        """Handle an interrupt that was remembered: by default, raise KeyboardInterrupt."""
        if self._remembered and self._handler is not None:
            self._remembered = False
            self._handler(signal.SIGINT, inspect.currentframe())

    def _remember(self, signal_number: int, frame: FrameType | None) -> None:
        self._remembered = True
