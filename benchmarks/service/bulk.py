"""Rows per second of the service through npy, compared with the library's own.

Both learn the same rows of MNIST in batches of 1,000, with two threads, and predict others. They
take turns, batch by batch.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.data import load as load_data
from benchmarks.service.endurance import FOLDER, NPY, PORT, connect, npy, post
from boundary_forest import BoundaryForestClassifier

BATCH = 1_000


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Return rows per second of both, and their ratios."""
    data = load_data("mnist", 0, smoke=False)
    X, y = data.X_train.astype(np.float32), data.y_train
    threads = min(2, os.cpu_count() or 1)
    forest = BoundaryForestClassifier.for_streams(random_state=0, columns="auto", n_jobs=threads)
    FOLDER.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(dir=FOLDER))
    command = [sys.executable, "-m", "boundary_forest", "serve", str(folder), "--port", str(PORT)]
    process = subprocess.Popen([*command, "--seed", "0"], stderr=subprocess.DEVNULL)
    seconds = dict.fromkeys(("learn", "predict", "library learn", "library predict"), 0.0)

    def timed(name: str, call: Callable[..., Any], *arguments: Any) -> None:
        start = time.perf_counter()
        call(*arguments)
        seconds[name] += time.perf_counter() - start

    try:
        connection = connect()
        for begin in range(0, options.rows, BATCH):
            rows, targets = X[begin : begin + BATCH], y[begin : begin + BATCH]
            timed("library learn", forest.partial_fit, rows, targets)
            body = npy(rows, targets)
            timed("learn", post, connection, "/v1/learn", body, NPY)
        for begin in range(options.rows, 2 * options.rows, BATCH):
            rows = X[begin : begin + BATCH]
            timed("library predict", forest.predict_proba, rows)
            body = npy(rows)
            timed("predict", post, connection, "/v1/predict", body, NPY)
    finally:
        process.kill()
        process.wait()
        shutil.rmtree(folder)
    ratios = {name: seconds[f"library {name}"] / seconds[name] for name in ("learn", "predict")}
    return {
        "rows_per_second": {name: options.rows / taken for name, taken in seconds.items()},
        "ratios": ratios,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this program."""
    parser.add_argument("--rows", type=int, default=10_000, help="learned, and as many predicted")
