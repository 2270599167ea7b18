"""Ctrl-C and the signal to terminate: a run notices them between two pieces of work."""

from __future__ import annotations

import signal
from types import FrameType
from typing import Any, Self


class Stopping:
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
