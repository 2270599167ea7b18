"""Millions of generated rows with drift, while others predict: memory, journal and pauses.

Rows come in batches through npy, and every batch is acknowledged before the next is sent. One more
client predicts single rows all the time. A line per report shows how it stands; the last is the
result. ``--rows 10000000`` takes hours on a small machine.
"""

import argparse
import http.client
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from numpy.typing import NDArray

FOLDER = Path("build/bench")
BATCH = 1_000
N_FEATURES = 10
TURN = 200_000  # rows until the concept has turned once
PORT = 18_418
NPY = {"content-type": "application/x-npy"}


def batch(number: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    """Return rows and classes of a batch; the plane that parts them turns all the time."""
    rng = np.random.default_rng(number)
    X = rng.random((BATCH, N_FEATURES), dtype=np.float32)
    angle = 2 * np.pi * (number * BATCH + np.arange(BATCH)) / TURN
    score = np.cos(angle) * (X[:, 0] - 0.5) + np.sin(angle) * (X[:, 1] - 0.5)
    y = (score > 0).astype(np.int64) + 2 * (X[:, 2] > 0.5)
    return X, y


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Send the rows; return what was seen."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    command = [sys.executable, "-m", "boundary_forest", "serve", str(folder), "--port", str(PORT)]
    command += ["--seed", "0", "--max-stored", str(options.max_stored)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        return _measured(options, folder, process.pid)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)


def _measured(options: argparse.Namespace, folder: Path, pid: int) -> dict[str, Any]:
    connection = connect()
    watched = psutil.Process(pid)
    predicting = _Predicting()
    pauses: list[float] = []
    reports: list[dict[str, Any]] = []
    began = time.monotonic()
    sent, next_report, longest_journal = 0, options.report, 0
    while sent < options.rows and time.monotonic() - began < options.minutes * 60:
        X, y = batch(sent // BATCH)
        if sent == BATCH:
            predicting.start()
        start = time.perf_counter()
        answer = post(connection, "/v1/learn", npy(X, y), NPY)
        pauses.append(time.perf_counter() - start)
        sent += BATCH
        if answer["seen"] != sent:
            raise RuntimeError(f"{sent:,} rows were sent, and {answer['seen']:,} learned")
        size = sum(path.stat().st_size for path in folder.glob("journal*"))
        longest_journal = max(longest_journal, size)
        if sent >= next_report:
            next_report += options.report
            minutes = (time.monotonic() - began) / 60
            reports.append(
                {
                    "rows": sent,
                    "minutes": round(minutes, 2),
                    "memory_mb": round(watched.memory_info().rss / 2**20, 1),
                    "journal_mb": round(size / 2**20, 1),
                    "load": round(os.getloadavg()[0], 1),
                }
            )
            print(json.dumps(reports[-1]), flush=True)
    predicting.stop()
    late = [report["memory_mb"] for report in reports[len(reports) // 2 :]]
    seconds = time.monotonic() - began
    return {
        "rows": sent,
        "rows_per_second": sent / seconds,
        "memory_mb": {"second_half_least": min(late), "second_half_most": max(late)},
        "longest_journal_mb": longest_journal / 2**20,
        "learn_ms": _quantiles(pauses),
        "predict_ms": _quantiles(predicting.seconds),
        "predictions": len(predicting.seconds),
        "reports": reports,
    }


class _Predicting:
    """A client that predicts a row after the other, and keeps the times."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._stopping = False
        self._thread = threading.Thread(target=self._run)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping = True
        self._thread.join()

    def _run(self) -> None:
        connection = connect()
        rng = np.random.default_rng(0)
        headers = {"content-type": "application/json"}
        while not self._stopping:
            body = json.dumps({"rows": [rng.random(N_FEATURES).tolist()]}).encode()
            start = time.perf_counter()
            post(connection, "/v1/predict", body, headers)
            self.seconds.append(time.perf_counter() - start)
            time.sleep(0.01)


def _quantiles(seconds: list[float]) -> dict[str, float]:
    names = {"p50": 0.5, "p99": 0.99, "p999": 0.999, "longest": 1.0}
    return {name: float(np.quantile(seconds, q)) * 1e3 for name, q in names.items()}


def npy(*arrays: NDArray[Any]) -> bytes:
    body = io.BytesIO()
    for array in arrays:
        np.save(body, array)
    return body.getvalue()


def connect() -> http.client.HTTPConnection:
    """Return a connection, once the service listens."""
    for _ in range(600):
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=120)
        try:
            connection.connect()
        except OSError:
            time.sleep(0.1)
        else:
            return connection
    raise RuntimeError("the service did not answer")


def post(
    connection: http.client.HTTPConnection, path: str, body: bytes, headers: dict[str, str]
) -> dict[str, Any]:
    connection.request("POST", path, body, headers)
    response = connection.getresponse()
    content = response.read()
    if response.status != 200:
        raise RuntimeError(f"{path}: {response.status} {content[:200]!r}")
    answer: dict[str, Any] = json.loads(content)
    return answer


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this program."""
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--max-stored", type=int, default=20_000)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end after so many")
    parser.add_argument("--report", type=int, default=100_000, help="rows between two lines")
