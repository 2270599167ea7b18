"""Run items and write their results: JSON, Markdown and plots.

A failing item does not keep the others from running. Steps finished before an interruption are
reused by the next run; ``fresh`` discards them.
"""

import shutil
import traceback
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from joblib import effective_n_jobs
from threadpoolctl import threadpool_limits

from paper import plots
from paper.context import Context, write_json
from paper.datasets import DataAbsentError
from paper.item import (
    DATA_ABSENT,
    FAILED,
    PACKAGE_ABSENT,
    Item,
    Result,
    Row,
    summed_up,
)
from paper.machine import described, version_of
from paper.report import item_markdown

SCHEMA = 1
STEPS = ".steps"
SHARED = "shared"  # no item has this name


@dataclass(frozen=True)
class Settings:
    """How to run, and where the results are written."""

    out: Path
    scale: str = "quick"
    n_jobs: int = 1
    seed: int = 0
    fresh: bool = False
    download: bool = False

    def steps_dir(self, name: str) -> Path:
        """Return the folder of an item's steps, one for each scale, seed and version."""
        version = version_of("boundary-forest")
        return self.out / STEPS / name / f"{self.scale}-seed{self.seed}-{version}"


class Watcher:
    """Receives the progress of a run; this one ignores it."""

    def begin(self, item: Item) -> None:
        """Note that an item begins."""

    def say(self, text: str) -> None:
        """Note what is being done now."""

    def expect(self, steps: int) -> None:
        """Note the number of steps that the item will have."""

    def advance(self, steps: int) -> None:
        """Note the number of steps just done."""

    def end(self, record: dict[str, Any]) -> None:
        """Note that an item has ended and its files are written."""


def run_items(
    items: list[Item], settings: Settings, watcher: Watcher | None = None
) -> list[dict[str, Any]]:
    """Run the items in order; return the record of each, as its JSON file has it."""
    watcher = watcher or Watcher()
    machine = described()
    if settings.fresh:
        shutil.rmtree(settings.steps_dir(SHARED), ignore_errors=True)
    records = []
    for item in items:
        watcher.begin(item)
        record = run_item(item, settings, watcher, machine)
        watcher.end(record)
        records.append(record)
    return records


def run_item(
    item: Item, settings: Settings, watcher: Watcher, machine: dict[str, Any]
) -> dict[str, Any]:
    """Run one item and write its files."""
    steps_dir = settings.steps_dir(item.name)
    if settings.fresh:
        shutil.rmtree(steps_dir, ignore_errors=True)
    context = Context(
        steps_dir=steps_dir,
        shared_dir=settings.steps_dir(SHARED),
        scale=settings.scale,
        n_jobs=settings.n_jobs,
        seed=settings.seed,
        download=settings.download,
        say=watcher.say,
        expect=watcher.expect,
        advance=watcher.advance,
    )
    # All libraries keep to the number of threads that the record states.
    with threadpool_limits(limits=effective_n_jobs(settings.n_jobs)):
        result, error = _outcome(item, context)
    rows = [asdict(row) for row in result.rows]
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "name": item.name,
        "title": item.title,
        "where": item.where,
        "chapter": item.chapter,
        "rule": item.rule,
        "data": list(item.data),
        "verdict": summed_up(row["verdict"] for row in rows),
        "rows": rows,
        "tables": [asdict(table) for table in result.tables],
        "remark": result.remark,
        "figures": result.figures,
        "error": error,
        "scale": settings.scale,
        "seed": settings.seed,
        "n_jobs": settings.n_jobs,
        "seconds": context.seconds,
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "plots": _drawn(item, result, settings.out),
    }
    write_json(settings.out / f"{item.name}.json", record)
    text = item_markdown(record)
    (settings.out / f"{item.name}.md").write_text(text, encoding="utf-8")
    return record


def _outcome(item: Item, context: Context) -> tuple[Result, str]:
    """Run the item; return its result, or a row that says why there is none, and a traceback."""
    missing = [module for module in item.needs if find_spec(module) is None]
    if missing:
        return _not_run(PACKAGE_ABSENT, f"not installed: {', '.join(missing)}"), ""
    try:
        return item.run(context), ""
    except DataAbsentError as error:
        return _not_run(DATA_ABSENT, str(error)), ""
    except Exception as error:  # reported with the other results, and by the exit code
        return _not_run(FAILED, f"{type(error).__name__}: {error}"), traceback.format_exc()


def _not_run(verdict: str, why: str) -> Result:
    return Result(rows=[Row("all", None, None, verdict)], remark=why)


def _drawn(item: Item, result: Result, out: Path) -> list[str]:
    """Draw the plots, if matplotlib is installed; return their file names without suffix."""
    if not result.figures or not plots.is_installed():
        return []
    stems = []
    for name, draw in item.plots.items():
        stem = f"{item.name}-{name}" if name else item.name
        plots.save(draw, result.figures, out / stem)
        stems.append(stem)
    return stems
