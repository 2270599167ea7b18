"""Test-then-train: predict_then_learn beside predict and partial_fit, and ours beside River's k-NN.

The first part has n_T = k = 50 and the same batches for both ways, after a first part of the stream
was learned. The second part learns dicts of six features one by one, chunk by chunk in turn, once
the k-NN window of 1,000 is full; k-NN is slow, so both get only the first rows of the stream.
"""

import time
from collections.abc import Callable, Hashable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import Array, Data, load, load_stream
from benchmarks.harness import (
    Settings,
    Turn,
    check,
    installed,
    limited,
    medians,
    take_turns,
    target,
)
from benchmarks.peers import forest
from benchmarks.report import new_table, ratio_text, threads_text
from boundary_forest import BoundaryForestClassifier
from paper.timing import plain_path

NAMES = ("mnist", "covtype")
# Batch size: rows of the stream. Small batches cost more per row, and need fewer rows to time.
ROWS = {1: 2_000, 100: 10_000, 1_000: 20_000}
SMOKE_ROWS = {1: 200, 100: 400, 1_000: 1_000}
BEFOREHAND = 1_000
RATIO = "predict_then_learn / (predict + partial_fit)"

RIVER_TREES = 10
WINDOW = 1_000  # of River's k-NN
WARM_UP = 2_000
RIVER_ROWS = 5_000
CHUNK = 250  # examples a turn

Way = Callable[[BoundaryForestClassifier, Array, Array], Array]
Stream = list[tuple[dict[Hashable, Any], int]]


def measure(settings: Settings) -> dict[str, Any]:
    batches: dict[str, Any] = {}
    checks, targets = [], []
    for name in NAMES:
        data = load(name, settings.seed, smoke=settings.smoke)
        rows = [
            ways_compared(data, size, n_rows, threads, settings)
            for threads in settings.threads
            for size, n_rows in (SMOKE_ROWS if settings.smoke else ROWS).items()
        ]
        batches[data.name] = {"data": data.sizes(), "beforehand": beforehand(data), "rows": rows}
        checks += ways_checks(data, settings)
        if data.is_real:
            targets += [
                target(f"{name}, batches of {row['batch']:,}: {RATIO}", row["ratio"], at_most=0.6)
                for row in rows
                if row["threads"] == 1
            ]
    river = river_compared(settings)
    if river["installed"] and river["data"]["is_real"]:
        targets.append(target("ours / River's k-NN", river["ratio"], at_most=0.15, goal=0.1))
    return {"batches": batches, "river": river, "checks": checks, "targets": targets}


# Two ways to the same forest


def in_one_call(learner: BoundaryForestClassifier, X: Array, y: Array) -> Array:
    return np.asarray(learner.predict_then_learn(X, y))


def in_two_calls(learner: BoundaryForestClassifier, X: Array, y: Array) -> Array:
    answers = np.asarray(learner.predict(X))
    learner.partial_fit(X, y)
    return answers


def beforehand(data: Data) -> int:
    return min(BEFOREHAND, len(data.y_train) // 4)


def streamed(
    way: Way, data: Data, size: int, n_rows: int, threads: int, seed: int
) -> tuple[BoundaryForestClassifier, Array, float]:
    """Return the forest after the stream, its answers, and the seconds it took."""
    first = beforehand(data)
    learner = forest(threads, seed).fit(data.X_train[:first], data.y_train[:first])
    X, y = data.X_train[first : first + n_rows], data.y_train[first : first + n_rows]
    start = time.perf_counter()
    answers = [way(learner, X[cut], y[cut]) for cut in slices(len(y), size)]
    return learner, np.concatenate(answers), time.perf_counter() - start


def slices(n: int, size: int) -> Iterator[slice]:
    """Yield the slices that cut n rows into batches."""
    yield from (slice(start, stop) for start, stop in pairwise([*range(0, n, size), n]))


def ways_compared(
    data: Data, size: int, n_rows: int, threads: int, settings: Settings
) -> dict[str, Any]:
    """Time both ways in turn, for one batch size."""
    n_rows = min(n_rows, len(data.y_train) - beforehand(data))

    def turn(way: Way) -> Callable[[], Turn]:
        return lambda: {"s": streamed(way, data, size, n_rows, threads, settings.seed)[2]}

    ways = {"predict_then_learn": turn(in_one_call), "predict + partial_fit": turn(in_two_calls)}
    with limited(threads):
        measured = take_turns(
            ways, settings, f"{data.name}, batches of {size:,}, {threads_text(threads)}"
        )
    one, two = (1e6 * turns["s"] / n_rows for turns in measured.values())
    return {
        "batch": size,
        "threads": threads,
        "n_rows": n_rows,
        "turns": measured["predict_then_learn"]["turns"],
        "us_one_call": one,
        "us_two_calls": two,
        "ratio": one / two,
    }


def ways_checks(data: Data, settings: Settings) -> list[dict[str, Any]]:
    """Check that both ways give the same answers row by row, and always the same forest."""
    settings.say(f"{data.name}: are the answers right?")
    n_rows = min(SMOKE_ROWS[1_000], len(data.y_train) - beforehand(data))
    usual, answers, _ = streamed(in_two_calls, data, 1, n_rows, 1, settings.seed)
    others = {
        f"predict_then_learn, batches of {size:,}, {threads_text(threads)}": streamed(
            in_one_call, data, size, n_rows, threads, settings.seed
        )
        for size in (1, 100, 1_000)
        for threads in (1, 2)
    }
    with plain_path():
        others["predict_then_learn, the plain path"] = streamed(
            in_one_call, data, 100, n_rows, 1, settings.seed
        )
    found = []
    for how, (other, given, _) in others.items():
        same_forest = other.fingerprint() == usual.fingerprint()
        found += [
            check(f"{data.name}: {how}: the same forest", same_forest),
            check(f"{data.name}: {how}: the same answers", np.array_equal(given, answers)),
        ]
    return found


# River


def river_compared(settings: Settings) -> dict[str, Any]:
    """Return the time per example of predict_one and learn_one, and accuracies."""
    if installed("river") is None:
        return {"installed": False}
    from river import neighbors

    from boundary_forest.river import BoundaryForestClassifier as RiverForest

    warm_up, n = settings.size(WARM_UP, 200), settings.size(RIVER_ROWS, 500)
    name, X, y = load_stream("electricity", warm_up + n, smoke=settings.smoke)
    stream = as_dicts(X, y)
    models: dict[str, Any] = {
        "forest": RiverForest(n_estimators=RIVER_TREES, seed=settings.seed),
        "knn": neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=WINDOW)),
    }
    for model in models.values():
        for x, label in stream[:warm_up]:
            model.learn_one(x, label)
    turns: dict[str, list[Turn]] = {key: [] for key in models}
    for cut in slices(n, CHUNK):
        for key, model in models.items():
            settings.say(f"{name}, River, {cut.stop:,} of {n:,} rows: {key}")
            turns[key].append(test_then_train(model, stream[warm_up:][cut]))
    us = {key: medians(of)["us"] for key, of in turns.items()}
    return {
        "installed": True,
        "data": {"name": name, "is_real": name == "electricity", "features": X.shape[1]},
        "warm_up": warm_up,
        "timed": n,
        "us_per_example": us,
        "accuracy": {key: sum(turn["right"] for turn in of) / n for key, of in turns.items()},
        "ratio": us["forest"] / us["knn"],
    }


def as_dicts(X: Array, y: Array) -> Stream:
    names: list[Hashable] = [f"x{column}" for column in range(X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in X.tolist()]
    return list(zip(rows, y.tolist(), strict=True))


def test_then_train(model: Any, stream: Stream) -> Turn:
    """Return microseconds per example, and the number of right predictions."""
    right = 0
    start = time.perf_counter()
    for x, y in stream:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return {"us": 1e6 * (time.perf_counter() - start) / len(stream), "right": right}


def report(result: dict[str, Any], console: Console) -> None:
    for name, part in result["batches"].items():
        table = new_table(f"{name}: test-then-train after {part['beforehand']:,} rows, us a row")
        for heading in ("batch", "threads", "rows", "predict_then_learn", "predict + partial_fit"):
            table.add_column(heading, justify="right")
        table.add_column("ratio", justify="right")
        for row in part["rows"]:
            table.add_row(
                *(f"{row[name]:,}" for name in ("batch", "threads", "n_rows")),
                f"{row['us_one_call']:.1f}",
                f"{row['us_two_calls']:.1f}",
                ratio_text(row["ratio"]),
            )
        console.print(table)
    river = result["river"]
    if not river["installed"]:
        console.print("River's k-NN: not installed")
        return
    rows_text = f"rows {river['warm_up']:,} to {river['warm_up'] + river['timed']:,} of the stream"
    table = new_table(f"{river['data']['name']}: predict_one + learn_one, {rows_text}")
    for heading in ("", "us an example", "right %", "forest / it"):
        table.add_column(heading, justify="right" if heading else "left")
    for key, title in (
        ("forest", f"boundary forest, {RIVER_TREES} trees"),
        ("knn", f"River k-NN, window {WINDOW:,}"),
    ):
        us = river["us_per_example"]
        table.add_row(
            title,
            f"{us[key]:.1f}",
            f"{100 * river['accuracy'][key]:.2f}",
            ratio_text(us["forest"] / us[key]),
        )
    console.print(table)
