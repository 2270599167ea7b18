"""Requests per second of the service beside bare FastAPI, under 64 clients of wrk.

Both parse HTTP with httptools on uvloop. They take turns, with the same requests: of four, one
predicts a row of MNIST, one learns one, one predicts one that waits for its label, and one labels
such a row. wrk shares the processors with them. After each turn everything that was acknowledged
must be there.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any
from urllib.request import urlopen

import psutil

from benchmarks.data import load as load_data

SCRIPT = Path(__file__).parent / "load.lua"
FOLDER = Path("build/bench")
N_ROWS = 2_000
SERVICE, BARE = "boundary-forest serve", "bare FastAPI"
PORT = 18_417


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return the figures of all turns, and the ratio of requests per second."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as name:
        folder = Path(name)
        _write_rows(folder / "rows.txt")
        turns: list[dict[str, Any]] = []
        for turn in range(options.turns):
            turns.append(
                {
                    BARE: _bare(folder, options, turn),
                    SERVICE: _service(folder, options, turn),
                }
            )
            print(json.dumps(turns[-1]), flush=True)
    ratios = [turn[SERVICE]["per_second"] / turn[BARE]["per_second"] for turn in turns]
    return {"turns": turns, "ratios": ratios, "ratio": median(ratios)}


def _write_rows(path: Path) -> None:
    data = load_data("mnist", 0, smoke=False)
    rows = zip(data.X_train[:N_ROWS].tolist(), data.y_train[:N_ROWS].tolist(), strict=True)
    path.write_text("".join(f"{json.dumps(row)}\t{json.dumps(y)}\n" for row, y in rows))


def _bare(folder: Path, options: argparse.Namespace, turn: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.service.bare", "--port", str(PORT)]
    command += ["--http", options.http, "--loop", options.loop]
    with _process(command, f"http://127.0.0.1:{PORT}/openapi.json") as process:
        return _loaded(folder, options, f"bare{turn}", process.pid)


def _service(folder: Path, options: argparse.Namespace, turn: int) -> dict[str, Any]:
    model = folder / f"model{turn}"
    command = [sys.executable, "-m", "boundary_forest", "serve", str(model)]
    command += ["--port", str(PORT), "--seed", "0"]
    ready = f"http://127.0.0.1:{PORT}/v2/health/ready"
    with _process(command, ready) as process:
        found = _loaded(folder, options, f"run{turn}", process.pid)
        stats = _settled()
        process.send_signal(signal.SIGKILL)
        process.wait()
    with _process(command, ready):
        again = _stats()
    found |= {"learned": stats["examples_seen"], "waiting": stats["waiting"]}
    found["kept"] = again == stats
    shutil.rmtree(model)
    return found


def _settled() -> dict[str, Any]:
    """Return the statistics once the requests that wrk has left behind are done."""
    stats: dict[str, Any] = {}
    while (latest := _stats()) != stats:
        stats = latest
        time.sleep(3.0)
    return stats


def _stats() -> dict[str, Any]:
    with urlopen(f"http://127.0.0.1:{PORT}/v1/stats", timeout=60) as response:
        stats: dict[str, Any] = json.load(response)
    names = ("examples_seen", "fingerprint")
    return {name: stats[name] for name in names} | {"waiting": stats["waiting"]["rows"]}


@contextmanager
def _process(command: list[str], ready: str) -> Iterator[subprocess.Popen[bytes]]:
    """Start a server, wait until it answers, and end it."""
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            try:
                urlopen(ready, timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        else:
            raise RuntimeError(f"{command} did not answer")
        yield process
    finally:
        process.kill()
        process.wait()


def _loaded(folder: Path, options: argparse.Namespace, name: str, pid: int) -> dict[str, Any]:
    """Let wrk send requests; return what it counted, and the processor time per request."""
    command = ["wrk", "-t2", f"-c{options.clients}", f"-d{options.seconds}s", "--timeout", "30s"]
    command += ["-s", str(SCRIPT), f"http://127.0.0.1:{PORT}", str(folder / "rows.txt"), name]
    watched = psutil.Process(pid)
    before = watched.cpu_times()
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    line = next(line for line in output.splitlines() if line.startswith("RESULT "))
    found: dict[str, Any] = json.loads(line.removeprefix("RESULT "))
    found["per_second"] = found["requests"] / found["seconds"]
    after = watched.cpu_times()
    cpu = after.user + after.system - before.user - before.system
    found["cpu_us"] = cpu / found["requests"] * 1e6
    found["load"] = os.getloadavg()[0]
    return found


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this program."""
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--http", default="httptools", help="bare FastAPI's: h11 or httptools")
    parser.add_argument("--loop", default="uvloop", help="bare FastAPI's: asyncio or uvloop")
