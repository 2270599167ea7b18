"""Rows for the tests of streams, in every format, and ways to run the command on them."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from boundary_forest import load
from boundary_forest.cli.job import Job, run
from boundary_forest.session import SessionSettings

SCRIPT = Path(sys.executable).with_name("boundary-forest")
TREES = {"n_estimators": 8}


def mixed_table(n: int = 600, seed: int = 0) -> pa.Table:
    """Numbers, integers that turn fractional, text with quotes and line ends, booleans, a class."""
    rng = np.random.default_rng(seed)
    x, kind = rng.normal(size=n), rng.integers(0, 3, n)
    late = np.where(np.arange(n) < n // 2, kind, kind + 0.5)
    return pa.table(
        {
            "x": x,
            "late": late,
            "text": np.array(["plain", 'with "quotes"', "two\nlines, and a comma"])[kind],
            "flag": x > 0.3,
            "label": np.array(["red", "green", "blue"])[(kind + (x > 0)) % 3],
        }
    )


def numbers_table(n: int = 600) -> pa.Table:
    """Three numbers, and a target that follows from them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, 3))
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": X[:, 0] + X[:, 1] ** 2})


def write(table: pa.Table, path: Path) -> Path:
    """The table in the format that the path asks for."""
    if path.name.endswith(".csv.gz"):
        plain = write(table, path.with_suffix(""))
        path.write_bytes(gzip.compress(plain.read_bytes()))
    elif path.suffix == ".csv":
        pa.csv.write_csv(table, path)
    elif path.suffix == ".ndjson":
        lines = [json.dumps(row) + "\n" for row in table.to_pylist()]
        path.write_text("".join(lines), encoding="utf-8")
    elif path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=100)
    else:
        pa.feather.write_feather(table, path, compression="uncompressed")
    return path


def stream(source: Path | str, target: str, folder: Path, **settings):
    """Run in this process: the exit code, the answers, and the model."""
    answers, model = folder / "answers.ndjson", folder / "model.bf"
    code = run(job(source, target=target, predictions=str(answers), save=model, **settings))
    return code, answered(answers), load(model) if model.exists() else None


def job(source: Path | str, **options) -> Job:
    """A job of the shell: options that are not its own are the session's."""
    own = {f.name for f in fields(Job)} & options.keys()
    settings = {"parameters": TREES, "warmup": 100}
    settings |= {name: value for name, value in options.items() if name not in own}
    return Job(str(source), SessionSettings(**settings), **{name: options[name] for name in own})


def answered(path: Path) -> list[dict]:
    """The records of a file of answers."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def command(*arguments, **options):
    """Run the installed command, and wait for it."""
    options = {"capture_output": True, "text": True, "timeout": 120, "check": False, **options}
    return subprocess.run([SCRIPT, *map(str, arguments)], **options)
