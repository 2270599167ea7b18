"""The top of the page: what was streamed, the main figures, and what was unusual."""

from __future__ import annotations

from dataclasses import dataclass

from boundary_forest.report.formatting import (
    count,
    counted,
    duration,
    number,
    percent,
    rate,
    score,
    size,
)
from boundary_forest.session.history import SessionSnapshot


@dataclass(frozen=True)
class Tile:
    """A figure, its name, and what stands below it."""

    name: str
    value: str
    beside: str


@dataclass(frozen=True)
class Header:
    """The top of the page, as header.html writes it."""

    title: str
    sentence: str
    quality: list[Tile]
    costs: list[Tile]
    exceptions: str
    warns: bool


def header(last: SessionSnapshot) -> Header:
    """Return the top of the page of a session that ended in this state."""
    is_classification = last.task == "classify"
    task = "Classification" if is_classification else "Regression"
    return Header(
        title=last.source,
        sentence=f"{task} of a stream: {counted(last.rows, 'row')} in {duration(last.seconds)}, "
        "each predicted before it was learned.",
        quality=_of_classes(last) if is_classification else _of_numbers(last),
        costs=_costs(last),
        exceptions=_exceptions(last),
        warns=last.bad > 0,
    )


def _of_classes(last: SessionSnapshot) -> list[Tile]:
    majority, no_change = percent(last.majority_accuracy), percent(last.no_change_accuracy)
    return [
        Tile("error", percent(last.error), f"{percent(last.recent_error)} recently"),
        Tile("accuracy", percent(last.accuracy), f"majority {majority}, no change {no_change}"),
        Tile("Cohen's kappa", score(last.kappa), "0 is chance, 1 is perfect"),
        Tile("F1", score(last.macro_f1), "mean over all classes"),
        Tile("log-loss", number(last.log_loss, 3), f"{number(last.recent_log_loss, 3)} recently"),
        Tile("confidence", percent(last.confidence), f"{percent(last.recent_confidence)} recently"),
    ]


def _of_numbers(last: SessionSnapshot) -> list[Tile]:
    return [
        Tile("mean absolute error", number(last.mae), f"{number(last.recent_mae)} recently"),
        Tile("RMSE", number(last.rmse), "root mean squared error"),
        Tile("R²", score(last.r2), f"{score(last.recent_r2)} recently"),
    ]


def _costs(last: SessionSnapshot) -> list[Tile]:
    kept = f"{percent(last.stored / last.learned)} of the rows learned" if last.learned else ""
    nodes = f"{count(round(last.nodes_per_tree))} nodes each" if last.trees else "no trees yet"
    process = f"process peak {size(last.memory_bytes)}"
    speed = f"{rate(last.recent_rows_per_s)} recently"
    if last.pace is not None:
        speed = f"slowed down to {rate(last.pace)} to be watched"
    return [
        Tile("rows per second", rate(last.rows_per_s), speed),
        Tile("examples stored", count(last.stored), kept),
        Tile("trees", count(last.trees), nodes),
        Tile("forest", size(last.forest_bytes), process),
    ]


def _exceptions(last: SessionSnapshot) -> str:
    """Return what was unusual, if anything."""
    found = [
        f"{count(n)} {kind}"
        for n, kind in (
            (last.unlabelled, "rows without a label (predicted, but not learned)"),
            (last.bad, "bad rows (skipped)"),
            (last.unseen_categories, "values in categories that did not occur in the warm-up"),
        )
        if n
    ]
    return "; ".join(found) + "." if found else ""
