"""Durable learning: batches beside plain learning and plain writing of the same bytes.

Three take turns, batch by batch: the plain forest learns; the batch's rows and labels are written
to a file and synced; the durable forest does both. One snapshot is taken at the end, and the folder
is opened again. Everything is in one folder under ``build/``.
"""

import os
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console

from benchmarks.data import load as load_data
from benchmarks.harness import Settings, check, target
from benchmarks.peers import forest
from benchmarks.report import new_table, ratio_text
from boundary_forest import open_durable
from paper.timing import timed

FOLDER = Path("build/bench")
BATCH = 1_000
PLAIN, WRITTEN, DURABLE = "learning", "writing + fsync", "durable learning"


def measure(settings: Settings) -> dict[str, Any]:
    data = load_data("mnist", settings.seed, smoke=settings.smoke)
    FOLDER.mkdir(parents=True, exist_ok=True)
    rounds = [one_round(data, settings, turn) for turn in range(settings.repeat)]
    ms = {name: median(of["ms"][name] for of in rounds) for name in rounds[0]["ms"]}
    ratio = median(of["ratio"] for of in rounds)
    targets = [target(f"{data.name}: durable / (learning + writing)", ratio, at_most=1.2)]
    return {
        "data": data.sizes(),
        "name": data.name,
        "batch": BATCH,
        "ms": ms,
        "ratio": ratio,
        "ratios": [of["ratio"] for of in rounds],
        "checks": [
            check(f"{data.name}: opened again, the same forest", all(of["same"] for of in rounds))
        ],
        "targets": targets if data.is_real else [],
    }


def one_round(data: Any, settings: Settings, turn: int) -> dict[str, Any]:
    """Return milliseconds per batch over all batches, and of opening and the snapshot."""
    plain = forest(1, settings.seed)
    seconds = {PLAIN: 0.0, WRITTEN: 0.0, DURABLE: 0.0}
    starts = range(0, len(data.X_train), BATCH)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        durable = open_durable(Path(folder) / "durable", forest(1, settings.seed))
        with open(Path(folder) / "raw", "wb") as file:
            for start in starts:
                settings.say(f"{data.name}, turn {turn + 1}: row {start:,}")
                X, y = (part[start : start + BATCH] for part in (data.X_train, data.y_train))
                seconds[PLAIN] += timed(plain.partial_fit, X, y)[1]
                seconds[WRITTEN] += timed(write, file, X, y)[1]
                seconds[DURABLE] += timed(durable.partial_fit, X, y)[1]
        opened_s = timed(reopened, durable)[1]
        with open_durable(durable.path) as again:
            same = again.fingerprint() == plain.fingerprint()
            snapshot_s = timed(again.snapshot)[1]
    ms = {name: 1e3 * s / len(starts) for name, s in seconds.items()}
    ms |= {"opening again, in all": 1e3 * opened_s, "a snapshot": 1e3 * snapshot_s}
    return {"ms": ms, "ratio": ms[DURABLE] / (ms[PLAIN] + ms[WRITTEN]), "same": same}


def write(file: Any, X: Any, y: Any) -> None:
    X.tofile(file)
    y.tofile(file)
    file.flush()
    os.fsync(file.fileno())


def reopened(durable: Any) -> None:
    """Open the folder as after a stop: everything is learned again from the journal."""
    durable.close()
    open_durable(durable.path).close()


def report(result: dict[str, Any], console: Console) -> None:
    table = new_table(f"{result['name']}: durable learning in batches of {result['batch']:,}, ms")
    for heading in ("", "ms"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, ms in result["ms"].items():
        table.add_row(name, f"{ms:,.2f}")
    table.add_row("durable / (learning + writing)", ratio_text(result["ratio"]))
    console.print(table)
