"""``python -m benchmarks [SECTION ...]``: run sections, print their tables, write a JSON file."""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from benchmarks.harness import Settings, installed
from benchmarks.peers import PEERS
from benchmarks.report import make_console, print_verdicts
from benchmarks.sections import (
    answers,
    crossover,
    durable,
    frames,
    hypercube,
    learned,
    mnist,
    online,
    persistence,
    prequential,
    retrieval,
    runbook,
    streams,
    tables,
)
from paper.machine import described

SECTIONS: dict[str, Any] = {
    "mnist": mnist,
    "tables": tables,
    "learned": learned,
    "answers": answers,
    "frames": frames,
    "crossover": crossover,
    "prequential": prequential,
    "streams": streams,
    "hypercube": hypercube,
    "retrieval": retrieval,
    "online": online,
    "runbook": runbook,
    "persistence": persistence,
    "durable": durable,
}
OUT = Path("build/bench")
PLAIN_LINE_EVERY = 5.0  # seconds between lines where there is no bar


def main(arguments: list[str] | None = None) -> int:
    """Run the command line; return 0 if every answer was right, whatever the times."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.splitlines()[0] if __doc__ else None
    )
    parser.add_argument(
        "sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; default: all"
    )
    parser.add_argument("--smoke", action="store_true", help="small generated data, one turn")
    parser.add_argument(
        "--repeat", type=int, help="rounds to take the median over; default 3, with --smoke 1"
    )
    parser.add_argument(
        "--threads", type=threads_of, default=(1, 2), help="numbers of threads, such as 1,2"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of data, forests and peers")
    parser.add_argument(
        "--out", type=Path, help=f"JSON file to write; default {OUT}/<sections>-<time>.json"
    )
    given = parser.parse_args(arguments)
    names = given.sections or list(SECTIONS)
    for name in names:
        if name not in SECTIONS:
            parser.error(f"no section is called {name!r}; choose from {', '.join(SECTIONS)}")
    if given.repeat is not None and given.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {given.repeat}")
    if given.seed < 0:
        parser.error(f"--seed must be at least 0, got {given.seed}")
    repeat = given.repeat or (1 if given.smoke else 3)
    out = given.out or default_out(given.sections, smoke=given.smoke)
    return run(names, Settings(given.smoke, repeat, given.threads, given.seed), out)


def threads_of(text: str) -> tuple[int, ...]:
    try:
        threads = tuple(int(part) for part in text.split(","))
    except ValueError:
        threads = ()
    if not threads or min(threads) < 1:
        raise argparse.ArgumentTypeError(f"must be numbers such as 1,2, got {text!r}")
    return threads


def default_out(sections: list[str], *, smoke: bool) -> Path:
    parts = [*(sections or ["all"]), *(["smoke"] if smoke else [])]
    return OUT / f"{'-'.join(parts)}-{datetime.now():%Y%m%d-%H%M%S}.json"


def run(names: list[str], settings: Settings, out: Path) -> int:
    """Run the sections one after the other; add each to the JSON file as soon as it is done."""
    for peer in PEERS.values():
        installed(peer.module)  # imported now, so that limits on threads apply to it
    console = make_console()
    document: dict[str, Any] = {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "commit": commit(),
        "machine": described(),
        "settings": {
            "smoke": settings.smoke,
            "repeat": settings.repeat,
            "threads": list(settings.threads),
            "seed": settings.seed,
        },
        "sections": {},
    }
    machine = document["machine"]
    console.print(
        f"{machine['cpu']}, instruction set {machine['instruction_set']}; medians of at least "
        f"{settings.repeat}\n"
    )
    n_wrong = 0
    out.parent.mkdir(parents=True, exist_ok=True)
    for done, name in enumerate(names):
        start = time.perf_counter()
        with shown_progress(name, done, len(names)) as say:
            result = SECTIONS[name].measure(replace(settings, say=say))
        result["seconds"] = time.perf_counter() - start
        SECTIONS[name].report(result, console)
        print_verdicts(result, console)
        n_wrong += sum(not found["ok"] for found in result["checks"])
        document["sections"][name] = result
        out.write_text(json.dumps(document, indent=2) + "\n")
    console.print(f"figures: {out}")
    if n_wrong:
        console.print(f"{n_wrong} answers were wrong")
    return 1 if n_wrong else 0


def commit() -> str:
    """Return the commit that is measured, marked if files differ from it."""
    described = ("git", "describe", "--always", "--dirty", "--exclude=*")
    found = subprocess.run(described, capture_output=True, text=True, check=False)
    return found.stdout.strip() or "unknown"


@contextmanager
def shown_progress(name: str, done: int, n_sections: int) -> Iterator[Callable[[str], None]]:
    """Show a bar on a terminal, else a line every few seconds; on standard error."""
    console = Console(stderr=True, highlight=False)
    if console.is_terminal:
        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
        )
        with Progress(*columns, console=console, transient=True) as progress:
            task = progress.add_task(name, total=n_sections, completed=done)
            yield lambda text: progress.update(task, description=escape(f"{name}: {text}"))
        return
    last = -PLAIN_LINE_EVERY

    def say(text: str) -> None:
        nonlocal last
        if time.perf_counter() - last >= PLAIN_LINE_EVERY:
            last = time.perf_counter()
            print(f"{name}: {text}", file=sys.stderr, flush=True)

    yield say


if __name__ == "__main__":
    sys.exit(main())
