"""``boundary-forest demo``: scikit-learn's digits as a stream, tested and then learned one by one.

Every image is first classified and only then learned, so the running error is one of images never
seen. On a terminal the error runs beside a progress bar; elsewhere it is told in plain lines,
without control codes.
"""

import sys
import time
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer
from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from sklearn.datasets import load_digits

from boundary_forest import BoundaryForestClassifier

LAST = 500  # how many of the latest answers the closing error is taken over
PLAIN_LINE_EVERY = 300  # examples between two lines where there is no progress bar


def _threads(n_jobs: int) -> int:
    if n_jobs == 0:
        raise typer.BadParameter("0 threads do no work; -1 is one per core")
    return n_jobs


def demo(
    n_estimators: Annotated[int, typer.Option(min=1, help="Number of trees.")] = 50,
    max_children: Annotated[int, typer.Option(min=2, help="Most children a node may have.")] = 50,
    seed: Annotated[int, typer.Option(min=0, help="Of the stream's order and the forest.")] = 0,
    n_jobs: Annotated[
        int, typer.Option(help="Threads; -1 for one per core.", callback=_threads)
    ] = 1,
) -> None:
    """Learn 1,797 handwritten digits one by one, each classified before it is learned."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    X, y = X[order].astype(np.uint8), y[order]
    forest = BoundaryForestClassifier(
        n_estimators=n_estimators, max_children=max_children, n_jobs=n_jobs, random_state=seed
    )
    on_terminal = sys.stdout.isatty()
    console = Console(force_terminal=on_terminal, highlight=False)
    console.print(f"{len(y)} handwritten digits, each classified before it is learned")

    start = time.perf_counter()
    show = _with_bar if on_terminal else _in_lines
    wrong = show(console, _test_then_train(forest, X, y), len(y))
    seconds = time.perf_counter() - start
    console.print(_summary(forest.stats(), wrong, seconds, on_terminal))


def _test_then_train(forest: BoundaryForestClassifier, X: Any, y: Any) -> Iterator[bool]:
    """Learn the rows in order; say of each but the first whether it was misclassified before."""
    forest.partial_fit(X[:1], y[:1])
    for i in range(1, len(y)):
        row, label = X[i : i + 1], y[i : i + 1]
        yield bool(forest.predict(row)[0] != label[0])
        forest.partial_fit(row, label)


def _with_bar(console: Console, answers: Iterator[bool], n_examples: int) -> list[bool]:
    wrong: list[bool] = []
    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("running error {task.fields[error]}"),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("", total=n_examples, completed=1, error="")
        for answer in answers:
            wrong.append(answer)
            progress.update(task, advance=1, error=_percent(wrong))
    return wrong


def _in_lines(console: Console, answers: Iterator[bool], n_examples: int) -> list[bool]:
    wrong: list[bool] = []
    for n_seen, answer in enumerate(answers, start=2):
        wrong.append(answer)
        if n_seen % PLAIN_LINE_EVERY == 0 or n_seen == n_examples:
            console.print(f"{n_seen:5d} of {n_examples} seen, running error {_percent(wrong)}")
    return wrong


def _summary(stats: dict[str, Any], wrong: list[bool], seconds: float, on_terminal: bool) -> Table:
    seen, nodes = stats["examples_seen"], stats["nodes_per_tree"]
    if any(nodes):
        size = f"{np.mean(nodes):,.0f} ({min(nodes):,} to {max(nodes):,})"
        comparisons = f"{stats['comparisons']['learn'] / (seen * len(nodes)):.1f}"
    else:  # fewer examples than trees: none has been planted
        size = comparisons = "no tree yet"
    rows = {
        "examples seen": f"{seen:,}",
        "examples stored": f"{stats['examples_stored']:,}",
        "nodes per tree": size,
        "comparisons per example and tree": comparisons,
        "bytes": f"{stats['bytes']['total']:,}",
        "running error": _percent(wrong),
        f"error over the last {min(LAST, len(wrong))}": _percent(wrong[-LAST:]),
        "examples per second, asked and learned": f"{seen / seconds:,.0f}",
    }
    table = Table(box=box.ROUNDED if on_terminal else None, show_header=False)
    table.add_column()
    table.add_column(justify="right")
    for what, value in rows.items():
        table.add_row(what, value)
    return table


def _percent(wrong: list[bool]) -> str:
    return f"{100 * sum(wrong) / len(wrong):.2f} %"
