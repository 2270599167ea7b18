"""``python -m paper``: list the paper's items, run them, make one page of all results.

On a terminal a bar shows the steps of the current item; elsewhere each item prints one line.
"""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from paper import plots, registry
from paper.context import SCALES
from paper.item import FAILED, Item
from paper.page import NoResultsError
from paper.page import page as page_of
from paper.runner import Settings, Watcher, run_items

OUT = Path("build/paper")

app = typer.Typer(
    name="python -m paper",
    help="Reproduce the paper: every table, figure and claim by one command.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _threads(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("must be a non-zero integer; -1 is one thread per core")
    return n_jobs


def _scale(scale: str) -> str:
    if scale not in SCALES:
        raise typer.BadParameter(f"must be {', '.join(SCALES[:-1])} or {SCALES[-1]}, got {scale!r}")
    return scale


@app.command("list")
def list_items() -> None:
    """List the items: name, title, where in the paper, and the data sets they need."""
    on_terminal = sys.stdout.isatty()
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "what", "where in the paper", "data"):
        table.add_column(heading, no_wrap=not on_terminal)
    for item in registry.all_items().values():
        table.add_row(item.name, item.title, item.where, ", ".join(item.data) or "generated")
    # Elsewhere lines are not wrapped, so that other programs can read them.
    Console(width=None if on_terminal else 400, highlight=False).print(table)


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(help="Names of items, or all.", metavar="NAME...")],
    scale: Annotated[
        str,
        typer.Option(
            help="tiny shows that items run; quick takes minutes; full has the paper's sizes.",
            callback=_scale,
        ),
    ] = "quick",
    out: Annotated[
        Path | None, typer.Option(help=f"Folder for the results; default {OUT}/<scale>.")
    ] = None,
    n_jobs: Annotated[
        int, typer.Option(help="Number of threads; -1 for one per core.", callback=_threads)
    ] = 1,
    seed: Annotated[int, typer.Option(min=0, help="Seed of generated data and forests.")] = 0,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard the steps that earlier runs finished.")
    ] = False,
    download: Annotated[
        bool, typer.Option("--download", help="Download absent data sets.")
    ] = False,
) -> None:
    """Run items, and write JSON, Markdown and plots. An interrupted run can be resumed."""
    try:
        items = registry.chosen(names)
    except registry.UnknownItemError as error:
        _refuse(str(error))
    settings = Settings(out or OUT / scale, scale, n_jobs, seed, fresh, download)
    console = Console(force_terminal=sys.stdout.isatty(), highlight=False, soft_wrap=True)
    if not plots.is_installed():
        console.print("no plots: matplotlib is not installed; pip install matplotlib")
    watcher = Bars(console, len(items)) if sys.stdout.isatty() else Lines(console)
    try:
        with watcher:
            records = run_items(items, settings, watcher)
    except KeyboardInterrupt:
        console.print("stopped; the same command resumes from the steps that are done")
        raise typer.Exit(130) from None
    console.print(f"results are in {escape(str(settings.out))}")
    if any(record["verdict"] == FAILED for record in records):
        raise typer.Exit(1)


@app.command()
def page(
    results: Annotated[Path, typer.Argument(help="Folder with results.")] = Path("docs/paper"),
    to: Annotated[Path, typer.Option(help="The page to write.")] = Path("docs/paper.md"),
) -> None:
    """Make one page of all results."""
    try:
        text = page_of(results, to)
    except NoResultsError as error:
        _refuse(str(error))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text(text, encoding="utf-8")
    Console(highlight=False).print(f"wrote {escape(str(to))}")


def _refuse(message: str) -> Any:
    print(f"paper: {message}", file=sys.stderr)
    raise typer.Exit(2)


class Lines(Watcher):
    """Prints one line for each item when it has ended."""

    def __init__(self, console: Console) -> None:
        self.console = console

    def __enter__(self) -> "Lines":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def end(self, record: dict[str, Any]) -> None:
        """Print verdict and time, and the reason if there are no results."""
        # The first sentence says what is absent; the item's file has the rest.
        why = "" if record["figures"] else f" ({record['remark'].split('. ')[0]})"
        line = f"{record['name']}: {record['verdict']}, {record['seconds']:.0f} s{why}"
        self.console.print(escape(line))


class Bars(Lines):
    """Shows a bar with the steps of the current item, and what it does."""

    def __init__(self, console: Console, n_items: int) -> None:
        super().__init__(console)
        columns = (
            TextColumn("{task.fields[item]}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[doing]}"),
        )
        self.progress = Progress(*columns, console=console, transient=True)
        self.n_items, self.n_started = n_items, 0

    def __enter__(self) -> "Bars":
        self.progress.start()
        self.task = self.progress.add_task("", total=None, item="", doing="")
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def begin(self, item: Item) -> None:
        """Reset the bar."""
        self.n_started += 1
        name = f"{self.n_started}/{self.n_items} {item.name}"
        self.progress.reset(self.task, total=None, item=name, doing="")

    def say(self, text: str) -> None:
        """Show the text beside the bar."""
        self.progress.update(self.task, doing=escape(text))

    def expect(self, steps: int) -> None:
        """Set the bar's length."""
        self.progress.update(self.task, total=steps)

    def advance(self, steps: int) -> None:
        """Move the bar."""
        self.progress.advance(self.task, steps)
