"""Tables on the terminal, or as plain text in a file."""

import sys
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

PLAIN_WIDTH = 120
NOTHING = "-"


def make_console(file: Any = None) -> Console:
    """Return a console that writes no control codes to files, and does not fold tables there."""
    file = sys.stdout if file is None else file
    on_terminal = file.isatty()
    width = None if on_terminal else PLAIN_WIDTH
    return Console(file=file, force_terminal=on_terminal, width=width, highlight=False)


def new_table(title: str) -> Table:
    """Return an empty table, wide enough not to fold its title."""
    return Table(
        title=title,
        title_justify="left",
        title_style="bold",
        box=box.SIMPLE_HEAD,
        min_width=min(len(title), PLAIN_WIDTH),
    )


def print_comparison(title: str, rows: list[dict[str, Any]], console: Console) -> None:
    """Print a line for each peer and number of threads; ratios are our time over theirs."""
    table = new_table(title)
    bases = next((list(row["ratio"]) for row in rows if row["installed"]), [])
    titles = {row["peer"]: row["title"] for row in rows}
    table.add_column("", no_wrap=True)
    headings = ["threads", "fit s", "predict s", "error %", "memory MiB"]
    for heading in (*headings, *(f"{titles[base]} / it" for base in bases)):
        table.add_column(heading, justify="right")
    for row in rows:
        threads = str(row["threads"])
        if not row["installed"]:
            table.add_row(row["title"], threads, "not installed")
            continue
        ratios = [ratio_text(row["ratio"][base]) for base in bases]
        table.add_row(
            row["title"],
            threads,
            seconds_text(row["fit_s"]),
            seconds_text(row["predict_s"]),
            f"{100 * row['error']:.2f}",
            f"{row['memory_mib']:.0f}",
            *ratios,
        )
    console.print(table)


def print_verdicts(result: dict[str, Any], console: Console) -> None:
    """Print the targets with what was reached, the number of checks, and each that failed."""
    if result["targets"]:
        table = new_table("targets")
        table.add_column("")
        for heading in ("reached", "wanted", "goal", ""):
            table.add_column(heading, justify="right")
        for aim in result["targets"]:
            goal = NOTHING if aim["goal"] is None else f"{aim['goal']:g}"
            wanted = (
                f"<= {aim['at_most']:g}" if aim["at_least"] is None else f">= {aim['at_least']:g}"
            )
            verdict = "met" if aim["met"] else "missed"
            table.add_row(aim["what"], f"{aim['value']:.3f}", wanted, goal, verdict)
        console.print(table)
    failed = [found for found in result["checks"] if not found["ok"]]
    for found in failed:
        console.print(f"WRONG: {found['what']}" + (f" ({found['seen']})" if found["seen"] else ""))
    console.print(f"{len(result['checks']) - len(failed)} of {len(result['checks'])} checks hold\n")


def threads_text(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def seconds_text(seconds: float) -> str:
    return f"{seconds:.2f}" if seconds >= 1 else f"{seconds:.4f}"


def ratio_text(ratio: float | None) -> str:
    return NOTHING if ratio is None else f"{ratio:.3f}"
