"""Time fit and predict of all peers on one data set, and check the forest's own answers."""

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.data import Array, Data
from benchmarks.harness import (
    MIB,
    Settings,
    Turn,
    check,
    installed,
    limited,
    resident_bytes,
    take_turns,
)
from benchmarks.peers import PEERS, Peer, forest
from benchmarks.report import threads_text
from boundary_forest import BoundaryForestClassifier
from paper.timing import plain_path, timed

QUERIED_ALONE = 100  # rows that are also predicted one by one, when answers are checked


def compare(
    keys: tuple[str, ...], data: Data, settings: Settings, *, bases: tuple[str, ...] = ("forest",)
) -> list[dict[str, Any]]:
    """Let the peers take turns on the data, for each number of threads; return one row per peer.

    A row has ``ratio``: the time of each of ``bases``, fit and predict together, over the peer's.
    """
    here = [key for key in keys if installed(PEERS[key].module)]
    forms = {PEERS[key].form: None for key in here}
    rows_of = {form: (form(data.X_train), form(data.X_test)) for form in forms}
    rows: list[dict[str, Any]] = []
    for threads in settings.threads:
        with limited(threads):
            contestants = {
                key: _contestant(PEERS[key], rows_of[PEERS[key].form], data, threads, settings.seed)
                for key in here
            }
            title = f"{data.name}, {len(data.y_train):,} rows, {threads_text(threads)}"
            measured = take_turns(contestants, settings, title)
        totals = {key: turn["fit_s"] + turn["predict_s"] for key, turn in measured.items()}
        for key in keys:
            row: dict[str, Any] = {"peer": key, "title": PEERS[key].title, "threads": threads}
            if key in measured:
                ratio = {base: totals[base] / totals[key] for base in bases}
                row |= {**measured[key], "total_s": totals[key], "ratio": ratio}
            rows.append(row | {"installed": key in measured})
    return rows


def row_of(rows: list[dict[str, Any]], peer: str, threads: int = 1) -> dict[str, Any] | None:
    """Return the peer's row, or None if it was not measured."""
    for row in rows:
        if row["installed"] and (row["peer"], row["threads"]) == (peer, threads):
            return row
    return None


def _contestant(
    peer: Peer, rows: tuple[Array, Array], data: Data, threads: int, seed: int
) -> Callable[[], Turn]:
    def turn() -> Turn:
        before = resident_bytes()
        learner = peer.make(threads, seed)
        _, fit_s = timed(learner.fit, rows[0], data.y_train)
        grown = resident_bytes() - before
        answers, predict_s = timed(learner.predict, rows[1])
        error = float(np.mean(answers != data.y_test))
        return {
            "fit_s": fit_s,
            "predict_s": predict_s,
            "error": error,
            "memory_mib": max(grown, 0) / MIB,
        }

    return turn


def forest_checks(data: Data, settings: Settings, ceiling: float) -> list[dict[str, Any]]:
    """Check that threads, batches and accelerations change neither the forest nor its answers.

    ``ceiling`` is the largest error that is accepted.
    """
    settings.say(f"{data.name}: are the answers right?")
    usual = forest(1, settings.seed).fit(data.X_train, data.y_train)
    answers = usual.predict_proba(data.X_test)
    few = data.X_test[:QUERIED_ALONE]
    alone = [usual.predict_proba(few[i : i + 1])[0] for i in range(len(few))]
    error = float(np.mean(usual.predict(data.X_test) != data.y_test))
    checks = [
        check(f"{data.name}: error at most {ceiling:.1%}", error <= ceiling, f"{error:.2%}"),
        check(
            f"{data.name}: rows predicted alone get the same answers",
            np.array_equal(alone, answers[: len(few)]),
        ),
    ]
    others = {
        "two threads": forest(2, settings.seed).fit(data.X_train, data.y_train),
        "uneven batches": _learned_in_batches(forest(1, settings.seed), data),
    }
    with plain_path():
        others["the plain path"] = forest(1, settings.seed).fit(data.X_train, data.y_train)
    print_usual = usual.fingerprint()
    for how, other in others.items():
        print_other = other.fingerprint()
        checks += [
            check(
                f"{data.name}: the same forest by {how}",
                print_other == print_usual,
                f"{print_other} and {print_usual}",
            ),
            check(
                f"{data.name}: the same answers by {how}",
                np.array_equal(other.predict_proba(data.X_test), answers),
            ),
        ]
    return checks


def _learned_in_batches(learner: BoundaryForestClassifier, data: Data) -> BoundaryForestClassifier:
    """Learn in batches of 1, 2, 4 ... 4,096 rows, and again from 1."""
    start, size = 0, 1
    while start < len(data.y_train):
        stop = start + size
        learner.partial_fit(data.X_train[start:stop], data.y_train[start:stop])
        start, size = stop, size * 2 if size < 4096 else 1
    return learner
