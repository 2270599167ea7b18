"""The process: it opens the model, listens, and ends in order on a signal."""

from __future__ import annotations

import asyncio
import functools
import gc
import logging
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import uvicorn

from boundary_forest.service.app import make_app
from boundary_forest.service.endpoints import Endpoints
from boundary_forest.service.guard import Guard
from boundary_forest.service.inference import InferenceProtocol
from boundary_forest.service.logs import log_to_stderr
from boundary_forest.service.metrics import Metrics
from boundary_forest.service.model import ServiceModel, open_model
from boundary_forest.service.page import LivePage
from boundary_forest.service.protocol import TimedProtocol
from boundary_forest.service.reader import Reader
from boundary_forest.service.recorder import Recorder
from boundary_forest.service.settings import CLASSIFICATION, REGRESSION, ServiceSettings
from boundary_forest.service.snapshots import Snapshots
from boundary_forest.service.tokens import Tokens
from boundary_forest.service.writer import Writer

GRACE = 30  # seconds that running requests have after SIGTERM
KEEP_ALIVE = 30  # seconds that an idle connection is kept
_logger = logging.getLogger("boundary_forest.service")


class _Server(uvicorn.Server):
    """A server that leaves signals to whoever runs it."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def serve(settings: ServiceSettings) -> int:
    """Serve a folder until SIGTERM or Ctrl-C; return the exit code.

    Parameters
    ----------
    settings : ServiceSettings
        What to serve, where and to whom.

    Returns
    -------
    code : int
        0 after an orderly end, 1 if the process must be started again.
    """
    settings.check()
    log_to_stderr()
    tokens = Tokens(settings.token_file)
    model = open_model(settings)
    try:
        listener = _listener(settings.host, settings.port)
        with listener, asyncio.Runner(loop_factory=_new_loop) as runner:
            failed = runner.run(_run(settings, model, tokens, listener))
        if failed is None:
            model.forest.snapshot()
            model.tables.empty_log()
        _logger.info("stopped", extra={"data": {"examples_seen": model.forest.examples_seen}})
        return 0 if failed is None else 1
    finally:
        model.forest.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop; asyncio's where there is none, as on Windows."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    return socket.create_server((host, port), family=family, backlog=1024)


class Service:
    """The parts of a service that answer requests; made on a running event loop.

    Parameters
    ----------
    settings : ServiceSettings
        Addresses and limits.
    model : ServiceModel
        What is served.
    tokens : Tokens
        Who may call.
    failed : callable
        Called, on another thread, if the process must start again.

    Attributes
    ----------
    app : Guard
        The ASGI application.
    recorder : Recorder
        What has happened since the start, for pages that show it.
    """

    def __init__(
        self,
        settings: ServiceSettings,
        model: ServiceModel,
        tokens: Tokens,
        failed: Callable[[Exception], None],
    ) -> None:
        limits, metrics = settings.limits, Metrics()
        snapshots = Snapshots(settings.folder, limits.snapshots)
        self._reader = Reader(model, limits)
        self.recorder = Recorder(model, metrics)
        self._writer = Writer(model, snapshots, self.recorder, limits, failed)
        endpoints = Endpoints(model, self._reader, self._writer, snapshots, tokens, metrics, limits)
        _show(metrics, model, self._reader, self._writer, self.recorder)
        app = make_app(model.task, endpoints, metrics)
        name = settings.folder.resolve().name
        InferenceProtocol(name, model, self._reader, tokens, limits).add_to(app.app, metrics)
        self._page = LivePage(settings.folder, model, self._reader, self.recorder, tokens, limits)
        self._page.add_to(app.app, metrics)
        self.app = Guard(app, settings, metrics)

    def end_streams(self) -> None:
        """End the responses that have no end of their own; called on the event loop."""
        self._page.events.stop()

    def stop(self) -> None:
        """Do what was accepted, and end the threads; called off the event loop."""
        self._writer.stop()
        self._reader.close()


async def _run(
    settings: ServiceSettings, model: ServiceModel, tokens: Tokens, listener: socket.socket
) -> Exception | None:
    """Serve; return what failed if the process must be started again."""
    failures: list[Exception] = []
    loop = asyncio.get_running_loop()

    def failed(error: Exception) -> None:
        failures.append(error)
        loop.call_soon_threadsafe(stop)

    def stop() -> None:
        service.end_streams()
        server.should_exit = True

    service = Service(settings, model, tokens, failed)
    config = uvicorn.Config(
        service.app,
        http=type("Protocol", (TimedProtocol,), {"limits": settings.limits}),
        ws="none",
        lifespan="off",
        loop="none",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=KEEP_ALIVE,
        timeout_graceful_shutdown=GRACE,
    )
    server = _Server(config)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop)
    loop.add_signal_handler(signal.SIGHUP, _reload, tokens)
    host, port = listener.getsockname()[:2]
    shown = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    about = {"address": shown, "task": model.task, "examples_seen": model.forest.examples_seen}
    _logger.info("listening", extra={"data": about})
    gc.freeze()  # what was imported stays, and need not be looked through while requests wait
    try:
        await server.serve([listener])
    finally:
        gc.unfreeze()
        await asyncio.to_thread(service.stop)
    return failures[0] if failures else None


def _reload(tokens: Tokens) -> None:
    try:
        tokens.reload()
    except (OSError, ValueError) as error:  # whose text may be a token
        _logger.error("tokens not reloaded", extra={"data": {"error": type(error).__name__}})
    else:
        _logger.info("tokens reloaded")


def _show(
    metrics: Metrics, model: ServiceModel, reader: Reader, writer: Writer, recorder: Recorder
) -> None:
    forest, tables = model.forest, model.tables
    metrics.gauge("examples_seen", "Rows learned.", lambda: forest.examples_seen)
    metrics.gauge("waiting_rows", "Rows that wait for labels.", lambda: len(tables.waiting))
    metrics.gauge("write_queue", "Requests that wait to be written.", lambda: len(writer))
    metrics.gauge("predict_queue", "Queries that wait.", lambda: len(reader))
    metrics.gauge("groups", "Commits since the start.", lambda: writer.groups)
    figures = [("stored_examples", "Rows that are stored.", "stored")]
    figures += [("forest_bytes", "Memory of the forest.", "forest_bytes")]
    if model.task == CLASSIFICATION:
        about = "Share of wrong predictions among the latest 1,000 whose labels came."
        figures.append(("recent_error", about, "recent_error"))
    elif model.task == REGRESSION:
        about = "Mean absolute error of the latest 1,000 predictions whose targets came."
        figures.append(("recent_mae", about, "recent_mae"))
    for name, about, field in figures:
        metrics.gauge(name, about, functools.partial(_recorded, recorder, field))
    metrics.gauge("journal_bytes", "Bytes since the snapshot.", lambda: forest.journal_bytes)


def _recorded(recorder: Recorder, field: str) -> float:
    """Return a figure of the latest moment; NaN if there is none."""
    moment = recorder.latest
    value = None if moment is None else getattr(moment.figures, field)
    return float("nan") if value is None else float(value)
