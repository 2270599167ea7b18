"""``verbose``: lines that tell how far a long learning call has come."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SHOWN_EVERY = 3.0  # seconds


@contextmanager
def shown_progress(name: str, engine: Any, n_rows: int) -> Iterator[None]:
    """Print every few seconds how many of ``n_rows`` the engine has published since now.

    A thread looks at what is published, so that nothing depends on how a call is learned: with a
    callable metric and in an offline ``fit``, everything is published at once, at the end.
    """
    before, begin, ended = engine.seen, time.monotonic(), threading.Event()

    def line() -> str:
        n, seconds = engine.seen - before, time.monotonic() - begin
        text = f"[{name}] {n:,} of {n_rows:,} rows, {seconds:,.0f} s"
        if 0 < n < n_rows:
            text += f", about {seconds * (n_rows - n) / n:,.0f} s left"
        return text if n else f"[{name}] learning {n_rows:,} rows, {seconds:,.0f} s"

    def show() -> None:
        is_shown = False
        while not ended.wait(SHOWN_EVERY):
            print(line(), flush=True)
            is_shown = True
        if is_shown:
            print(line(), flush=True)

    thread = threading.Thread(target=show, name="boundary-forest progress", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()
