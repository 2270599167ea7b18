"""``verbose``: lines that tell how far a long call has come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

SHOWN_EVERY = 3.0  # seconds


def shown_learning(estimator: Any, engine: Any, n_rows: int) -> AbstractContextManager[None]:
    """Return a context that prints how many of ``n_rows`` the engine has published, if verbose.

    A thread looks at what is published, so that nothing depends on how a call is learned: with a
    callable metric and in an offline ``fit``, everything is published at once, at the end.
    """
    before, name = engine.seen, type(estimator).__name__

    def line(seconds: float) -> str:
        n = engine.seen - before
        text = f"[{name}] {n:,} of {n_rows:,} rows, {seconds:,.0f} s"
        if 0 < n < n_rows:
            text += f", about {seconds * (n_rows - n) / n:,.0f} s left"
        return text if n else f"[{name}] learning {n_rows:,} rows, {seconds:,.0f} s"

    return _shown(line) if estimator.verbose else nullcontext()


def shown_erasing(estimator: Any) -> AbstractContextManager[None]:
    """Return a context that prints for how long forgotten examples are being erased, if verbose.

    What was stored below them is learned again: of an index that has forgotten 30 %, nearly all.
    """
    name = type(estimator).__name__
    erasing = f"[{name}] erasing what was forgotten from the trees"
    return _shown(lambda s: f"{erasing}, {s:,.0f} s") if estimator.verbose else nullcontext()


@contextmanager
def _shown(line: Callable[[float], str]) -> Iterator[None]:
    """Print a line every few seconds, and at the end if there was one; it is given the seconds."""
    begin, ended = time.monotonic(), threading.Event()

    def show() -> None:
        is_shown = False
        while not ended.wait(SHOWN_EVERY):
            print(line(time.monotonic() - begin), flush=True)
            is_shown = True
        if is_shown:
            print(line(time.monotonic() - begin), flush=True)

    thread = threading.Thread(target=show, name="boundary-forest progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
