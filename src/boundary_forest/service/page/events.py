"""Server-sent events: what is new is made once, and the same bytes go to all open pages.

Nothing is made while no page is open. Charts take longer than figures, so they come at intervals
that keep their share of a processor at 1 %. A page that reads slowly misses what is outdated
meanwhile: only the latest of each kind is kept.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable

from boundary_forest.service.errors import ServiceError
from boundary_forest.service.page.view import View
from boundary_forest.service.reader import Reader

MOST_PAGES = 200
FIGURES_SECONDS = 1.0
CHARTS_SECONDS = 2.0  # at least
CHARTS_SHARE = 0.01  # of a processor, at most
_logger = logging.getLogger("boundary_forest.service")


class Events:
    """The events of all open pages.

    Parameters
    ----------
    view : View
        What is shown.
    reader : Reader
        On whose thread it is made.

    Attributes
    ----------
    pages : int
        How many are open.
    """

    def __init__(self, view: View, reader: Reader) -> None:
        self._view = view
        self._reader = reader
        self._latest: dict[str, bytes] = {}
        self._news = asyncio.Event()
        self._making: asyncio.Task[None] | None = None
        self._stopped = False
        self.pages = 0

    def stop(self) -> None:
        """End all streams: a server that stops waits for its responses."""
        self._stopped = True
        if self._making is not None:
            self._making.cancel()
        self._news.set()

    async def stream(self, is_allowed: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yield events until the page is closed, may not read any more, or the service stops.

        Parameters
        ----------
        is_allowed : callable
            Whether the page may still read.
        """
        self.check_room()
        self.pages += 1
        seen: dict[str, bytes] = {}
        try:
            if self._making is None or self._making.done():
                self._latest.clear()
                self._making = asyncio.create_task(self._make())
            yield b"retry: 2000\n\n"
            while not self._stopped:
                news = self._news
                if not is_allowed():
                    yield b"event: expired\ndata: {}\n\n"
                    return
                new = {k: v for k, v in self._latest.items() if seen.get(k) is not v}
                seen |= new
                if new:
                    yield b"".join(new.values())
                await news.wait()
        finally:
            self.pages -= 1

    def check_room(self) -> None:
        """Raise ServiceError if too many pages are open."""
        if self._stopped or self.pages >= MOST_PAGES:
            raise ServiceError(503, "too_many_pages", f"{MOST_PAGES} pages are open: close some")

    async def _make(self) -> None:
        """Make events while pages are open."""
        charts_due = 0.0
        while self.pages and not self._stopped:
            begin = time.monotonic()
            try:
                self._latest["figures"] = await self._reader.query(self._figures)
                if begin >= charts_due:
                    self._latest["charts"], seconds = await self._reader.query(self._charts)
                    charts_due = begin + max(CHARTS_SECONDS, seconds / CHARTS_SHARE) - 0.01
            except RuntimeError:  # the reader has been closed
                return
            except Exception as error:
                _logger.error("page failed", extra={"data": {"error": type(error).__name__}})
            news, self._news = self._news, asyncio.Event()
            news.set()
            await asyncio.sleep(max(0.1, begin + FIGURES_SECONDS - time.monotonic()))

    def _figures(self) -> bytes:
        return _event("figures", self._view.figures())

    def _charts(self) -> tuple[bytes, float]:
        begin = time.thread_time()
        event = _event("charts", self._view.charts())
        return event, time.thread_time() - begin


def _event(name: str, value: object) -> bytes:
    return f"event: {name}\ndata: {json.dumps(value, separators=(',', ':'))}\n\n".encode()
