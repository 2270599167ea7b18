"""``boundary-forest demo``: scikit-learn's digits, written as CSV, streamed to be watched."""

import csv
import shlex
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from sklearn.datasets import load_digits

from boundary_forest.cli.job import Job
from boundary_forest.cli.options import exit_with, finish
from boundary_forest.cli.terminal import console_on
from boundary_forest.session import SessionSettings

TARGET = "digit"
WARMUP = 200  # of 1,797 rows; the default would leave the forest little to show
ROWS_PER_S = 150  # on a terminal: 12 seconds, in which one sees the error fall


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the files that the demo writes.")] = Path(
        "build/demo"
    ),
    fast: Annotated[
        bool,
        typer.Option("--fast", help="Run at full speed, instead of at a pace that can be watched."),
    ] = False,
) -> None:
    """Predict and learn 1,797 handwritten digits one by one, and write a report."""
    source, report, model = out / "digits.csv", out / "report.html", out / "model.bf"
    exit_with(lambda: _write_digits(source))
    command = f"boundary-forest stream {shlex.quote(str(source))} --target {TARGET} --scale none"
    command += f" --warmup {WARMUP} --report {shlex.quote(str(report))}"
    command += f" --save {shlex.quote(str(model))}"
    console_on().print(f"$ {command}", markup=False, soft_wrap=True)
    watched = sys.stdout.isatty() and not fast
    finish(
        Job(
            str(source),
            SessionSettings(target=TARGET, scaling="none", warmup=WARMUP, threads=1),
            report=report,
            save=model,
            rows_per_s=ROWS_PER_S if watched else None,
        )
    )


def _write_digits(path: Path) -> int:
    """Write images of 8 x 8 pixels, in an order in which the writers are mixed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    with path.open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow([*(f"pixel{i}" for i in range(X.shape[1])), TARGET])
        pixels, digits = X[order].astype(int).tolist(), y[order].tolist()
        rows.writerows([*row, digit] for row, digit in zip(pixels, digits, strict=True))
    return 0
