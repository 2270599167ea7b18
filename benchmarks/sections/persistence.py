"""Model files: load and save beside numpy on the same bytes, and opening by mmap.

The bytes are those of the model file itself: numpy reads them with ``fromfile``, from the page
cache as the forest does, and writes them with ``tofile`` and fsync. Opening by mmap is compared
with loading a forest of the same trees that has one feature. All is in one folder under ``build/``.
"""

import os
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import load as load_data
from benchmarks.harness import Settings, Turn, check, take_turns, target
from benchmarks.peers import forest
from benchmarks.report import new_table, ratio_text
from boundary_forest import BoundaryForestClassifier, load
from boundary_forest.estimators.copying import put_together, taken_apart
from boundary_forest.files import ModelFile

FOLDER = Path("build/bench")
READ, WRITE = "numpy: fromfile", "numpy: tofile + fsync"
SAVE, LOAD, MAP, NARROW = "save", "load", "load(mmap=True)", "load, one feature"
RATIOS = {  # what is divided by what, and the limit
    "load / numpy's read": (LOAD, READ, 5.0),
    "save / numpy's write + fsync": (SAVE, WRITE, 2.0),
    "mmap / load of one feature": (MAP, NARROW, 1.5),
}


def measure(settings: Settings) -> dict[str, Any]:
    data = load_data("mnist", settings.seed, smoke=settings.smoke)
    settings.say(f"{data.name}: learning")
    learner = forest(1, settings.seed).fit(data.X_train, data.y_train)
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        path, narrow = Path(folder) / "model.bf", Path(folder) / "narrow.bf"
        learner.save(path)
        narrowed(path).save(narrow)
        content = np.fromfile(path, dtype=np.uint8)
        contestants = {
            READ: timed(lambda: np.fromfile(path, dtype=np.uint8)),
            LOAD: timed(lambda: load(path)),
            MAP: timed(lambda: load(path, mmap=True)),
            NARROW: timed(lambda: load(narrow)),
            WRITE: timed(lambda: write(content, Path(folder) / "numpy")),
            SAVE: timed(lambda: learner.save(Path(folder) / "saved.bf")),
        }
        turns = take_turns(contestants, settings, data.name)
        sound = {
            how: load(path, mmap=how == MAP).fingerprint() == learner.fingerprint()
            for how in (LOAD, MAP)
        }
    ms = {name: 1e3 * turn["s"] for name, turn in turns.items()}
    ratios = {name: ms[one] / ms[other] for name, (one, other, _) in RATIOS.items()}
    return {
        "data": data.sizes(),
        "name": data.name,
        "file_bytes": len(content),
        "nodes": sum(learner.stats()["nodes_per_tree"]),
        "ms": ms,
        "turns": turns[LOAD]["turns"],
        "ratios": ratios,
        "checks": [check(f"{data.name}: {how}: the same forest", ok) for how, ok in sound.items()],
        "targets": [
            target(f"{data.name}: {name}", ratios[name], at_most=limit)
            for name, (_, _, limit) in RATIOS.items()
            if data.is_real
        ],
    }


def timed(work: Callable[[], Any]) -> Callable[[], Turn]:
    """Return a turn that times the work; what it returns is freed after the clock has stopped."""

    def turn() -> Turn:
        start = time.perf_counter()
        made = work()
        seconds = time.perf_counter() - start
        del made
        return {"s": seconds}

    return turn


def write(content: Any, path: Path) -> None:
    with path.open("wb") as file:
        content.tofile(file)
        file.flush()
        os.fsync(file.fileno())


def narrowed(path: Path) -> BoundaryForestClassifier:
    """Return a forest of the same trees over the first feature alone."""
    with ModelFile(path) as file:
        positions = file.array("positions", file.entry("positions").dtype.name, 2)
    other: BoundaryForestClassifier = load(path)
    fitted = other.fitted
    assert fitted is not None
    state = fitted.engine.snapshot().state(with_positions=False)
    state["positions"] = np.ascontiguousarray(positions[:, :1])
    parts = taken_apart(fitted, state)
    parts = replace(parts, settings=replace(parts.settings, n_features=1))
    other.fitted = put_together(other.label_policy, parts)
    return other


def report(result: dict[str, Any], console: Console) -> None:
    size = f"{result['file_bytes'] / 1e6:,.1f} MB, {result['nodes']:,} nodes"
    table = new_table(f"{result['name']}: a model file of {size}, ms")
    for heading in ("", "ms"):
        table.add_column(heading, justify="right" if heading else "left")
    for name, ms in result["ms"].items():
        table.add_row(name, f"{ms:.1f}")
    for name, ratio in result["ratios"].items():
        table.add_row(name, ratio_text(ratio))
    console.print(table)
