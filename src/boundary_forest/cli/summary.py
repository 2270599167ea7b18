"""A session in words: a line while it runs, and a summary when it has ended."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from boundary_forest.report.formatting import (
    count,
    counted,
    duration,
    number,
    percent,
    printable,
    rate,
    score,
    size,
)
from boundary_forest.session.class_measures import ClassScore
from boundary_forest.session.history import History, SessionSnapshot

LABEL, VALUE = "dim", "bold"
LONGEST = 40  # characters of a class


def plain_line(snapshot: SessionSnapshot) -> str:
    """Return the figures in one line, for files and pipes."""
    share, left = share_of_rows(snapshot), time_left(snapshot)
    done = "" if share is None else f", {100 * share:.0f} %" + (f", {left}" if left else "")
    parts = [
        f"{rows_of(snapshot)}{done}",
        *_quality(snapshot),
        f"{count(snapshot.stored)} stored",
        size(snapshot.memory_bytes),
        f"{rate(snapshot.recent_rows_per_s)} rows/s",
        *exceptions(snapshot),
    ]
    return "  ".join(parts)


def rows_of(snapshot: SessionSnapshot) -> str:
    """Return the number of rows, and of how many if that is known, or known about."""
    total = snapshot.total_rows
    of = "" if total is None else f" of {count(total)}"
    if total is None and snapshot.about_rows is not None:
        of = f" of about {rate(max(snapshot.about_rows, snapshot.rows))}"
    return f"{count(snapshot.rows)}{of} rows"


def share_of_rows(snapshot: SessionSnapshot) -> float | None:
    """Return the share of the rows that are done; None if their number is not known."""
    total = snapshot.total_rows or snapshot.about_rows
    return min(1.0, snapshot.rows / total) if total else None


def time_left(snapshot: SessionSnapshot) -> str:
    """Return the time left at the speed so far; empty at the end, or if it is not known."""
    total = snapshot.total_rows or snapshot.about_rows or 0
    speed = snapshot.pace or snapshot.rows_per_s
    if snapshot.rows >= total or speed <= 0:
        return ""
    return f"{duration((total - snapshot.rows) / speed)} left"


def _quality(snapshot: SessionSnapshot) -> list[str]:
    if not snapshot.predicting:
        return []
    if snapshot.task == "classify":
        return [
            f"error {percent(snapshot.error)}, recent {percent(snapshot.recent_error)}",
            f"kappa {score(snapshot.kappa)}",
        ]
    return [
        f"MAE {number(snapshot.mae)}, recent {number(snapshot.recent_mae)}",
        f"R2 {score(snapshot.r2)}, recent {score(snapshot.recent_r2)}",
    ]


def measures(snapshot: SessionSnapshot) -> dict[str, str]:
    """Return by name what answers are judged by besides the error, or besides MAE and R2."""
    if snapshot.error is not None:
        return {
            "accuracy": percent(snapshot.accuracy),
            "majority class": percent(snapshot.majority_accuracy),
            "no change": percent(snapshot.no_change_accuracy),
            "kappa": score(snapshot.kappa),
            "F1": score(snapshot.macro_f1),
            "log-loss": f"{number(snapshot.log_loss, 3)}, "
            f"recent {number(snapshot.recent_log_loss, 3)}",
            "confidence": percent(snapshot.confidence),
        }
    return {} if snapshot.rmse is None else {"RMSE": number(snapshot.rmse)}


def summary(console: Console, history: History, *, brief: bool = False) -> None:
    """Print the closing summary; a ``brief`` one tells how good the answers were, and no more."""
    if not history.snapshots:
        console.print("no rows")
        return
    last = history.snapshots[-1]
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(style=LABEL, no_wrap=True)
    table.add_column(overflow="fold")
    rows = summary_rows(last, history.by_class) | ({} if brief else _costs(last))
    for name, value in rows.items():
        table.add_row(name, Text(value, style=VALUE))
    for name, value in history.summary.items():
        table.add_row(Text(printable(str(name))), Text(printable(str(value))))
    if not console.is_terminal:
        console.print(table)
        return
    heading = cut(title(last), console.width - 8)
    console.print(
        Panel.fit(table, title=heading, title_align="left", border_style=LABEL, padding=(0, 1))
    )


def summary_rows(last: SessionSnapshot, by_class: Sequence[ClassScore] = ()) -> dict[str, str]:
    """Return by name how many rows there were, and how good their answers."""
    speed = f"{rate(last.rows_per_s)} per second{' without waiting' * (last.pace is not None)}"
    rows = {"rows": f"{count(last.rows)} in {duration(last.seconds)}, {speed}"}
    if last.error is not None:
        rows |= _of_classes(last, by_class)
    elif last.mae is not None:
        rows["MAE"] = f"{number(last.mae)}; {number(last.recent_mae)} recently"
        rows["RMSE"] = number(last.rmse)
        rows["R2"] = f"{score(last.r2)}; {score(last.recent_r2)} recently"
    if unusual := exceptions(last):
        rows["also"] = ", ".join(unusual)
    return rows


def _costs(last: SessionSnapshot) -> dict[str, str]:
    """Return by name how large the forest is."""
    share = f", {percent(last.stored / last.learned)} of the rows learned" if last.learned else ""
    rows = {
        "stored": f"{counted(last.stored, 'example')}{share}",
        "forest": forest(last),
        "memory": f"{size(last.forest_bytes)}; process peak {size(last.memory_bytes)}",
    }
    return rows if last.learned == last.rows else rows | {"learned": count(last.learned)}


def _of_classes(last: SessionSnapshot, by_class: Sequence[ClassScore]) -> dict[str, str]:
    majority, no_change = percent(last.majority_accuracy), percent(last.no_change_accuracy)
    rows = {
        "error": f"{percent(last.error)}; {percent(last.recent_error)} recently",
        "accuracy": f"{percent(last.accuracy)}; majority class {majority}, no change {no_change}",
        "kappa": score(last.kappa),
        "F1": score(last.macro_f1),
        "log-loss": f"{number(last.log_loss, 3)}; {number(last.recent_log_loss, 3)} recently",
        "confidence": f"{percent(last.confidence)}; {percent(last.recent_confidence)} recently",
    }
    if by_class:
        least = min(by_class, key=lambda scored: scored.f1)
        name = cut(Text(printable(least.name)), LONGEST).plain
        rows["F1"] += f" on average; lowest {score(least.f1)}, class {name}"
    return rows


def forest(snapshot: SessionSnapshot) -> str:
    """Return how many trees there are, and how large."""
    if not snapshot.trees:
        return "no trees yet"
    each = "" if snapshot.trees == 1 else " each"
    nodes = counted(round(snapshot.nodes_per_tree), "node")
    return f"{counted(snapshot.trees, 'tree')} of {nodes}{each}"


def exceptions(snapshot: SessionSnapshot) -> list[str]:
    """Return the counts of unusual rows, if any."""
    kinds = (
        (snapshot.unlabelled, "unlabelled"),
        (snapshot.bad, "bad"),
        (snapshot.unseen_categories, "unseen categories"),
    )
    return [f"{count(n)} {kind}" for n, kind in kinds if n]


def title(snapshot: SessionSnapshot) -> Text:
    """Return the source, and the task."""
    task = {"classify": "classification", "regress": "regression"}.get(snapshot.task, snapshot.task)
    return Text.assemble((printable(snapshot.source), "bold not dim"), (f" {task}", LABEL))


def cut(text: Text, width: int) -> Text:
    """Truncate the text to ``width`` cells, in one line."""
    text.truncate(max(1, width), overflow="ellipsis")
    text.no_wrap = True
    return text
