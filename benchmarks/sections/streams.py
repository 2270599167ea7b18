"""Streams that drift: ``for_streams()`` beside never forgetting and River's adaptive random forest.

Every answer is given before its row is learned, from the first row on, which counts as a mistake;
one setting serves all streams, and no statistic comes from rows not yet seen. Rows come in batches
of 1,000 through ``predict_then_learn``; River's learners get dicts one by one. Rows per second are
of one core's process time, with what deciding costs. Generated streams are means over three seeds;
what gets dicts one by one takes most of the time, and is measured on the first of them.

The long run has a process of its own, so that its memory is not hidden in that of other parts.
"""

import multiprocessing
import time
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import psutil
from rich.console import Console

from benchmarks.drift import (
    FRIEDMAN,
    GENERATED,
    REAL,
    SQUARES,
    Stream,
    endless,
    friedman,
    generated,
    moving_squares,
    real,
)
from benchmarks.harness import Settings, check, installed, limited, target
from benchmarks.report import new_table
from benchmarks.sections.prequential import slices
from benchmarks.streaming import BATCH, Losses, Say, by_forest, by_moa, by_river, summary
from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

SEEDS = (1, 2, 3)
ROWS = 20_000
SQUARES_ROWS = 12_000
SMOKE_ROWS = 200
OURS, NEVER, ARF, RIVER = "for_streams()", "never forgetting", "River ARF(10)", "through River"
ONE_BY_ONE = (ARF, RIVER)  # get dicts
MOA = {  # with CapyMOA, which needs Java
    "MOA ARF(10)": "AdaptiveRandomForestClassifier",
    "MOA SRP(10)": "StreamingRandomPatches",
    "MOA LevBag(10)": "LeveragingBagging",
}

SHUFFLED = {"letter": 20_000, "mnist": 30_000}  # at most so many rows
BOUNDS = (None, 20_000, 5_000, 1_000)
BOUNDED = ("electricity", "covtype", "RBF")

LONG_ROWS = 2_000_000
LONG_BOUND = 50_000
LONG_POINTS = 100  # of memory and rows per second


def measure(settings: Settings) -> dict[str, Any]:
    with limited(1):
        result = {name: part(settings) for name, part in PARTS.items()}
    return {**result, "checks": checks(settings), "targets": targets(result, settings)}


# Learners


def for_streams(seed: int, **options: Any) -> BoundaryForestClassifier:
    return BoundaryForestClassifier.for_streams(random_state=seed, n_jobs=1, **options)


def for_river(seed: int) -> Any:
    from boundary_forest.river import BoundaryForestClassifier as RiverForest

    return RiverForest.for_streams(seed=seed)


def moa(name: str) -> Callable[[int, Stream, Say], Losses]:
    return lambda seed, stream, _: by_moa(name, seed, stream)


def said(settings: Settings, stream: Stream, title: str) -> Say:
    return lambda row: settings.say(f"{stream.name}, {title}, row {row:,}")


# The parts


def drifting_streams(settings: Settings) -> Iterable[tuple[str, bool, list[tuple[int, Stream]]]]:
    """Yield names, whether a stream is what the name says, and streams by the learners' seeds."""
    seeds = SEEDS[: settings.size(len(SEEDS), 1)]
    if installed("river") is not None:
        for name in GENERATED:
            n = settings.size(ROWS, SMOKE_ROWS)
            yield name, True, [(seed, generated(name, n, seed)) for seed in seeds]
    n = settings.size(SQUARES_ROWS, SMOKE_ROWS)
    yield SQUARES, True, [(seed, moving_squares(n, seed)) for seed in seeds]
    for name, n in REAL.items():
        stream = real(name, settings.size(n, SMOKE_ROWS), smoke=settings.smoke)
        yield name, stream.is_real, [(SEEDS[0], stream)]


def compared(settings: Settings) -> dict[str, Any]:
    """Return accuracies and rows per second of all learners on the drifting streams."""
    learners: dict[str, Callable[[int, Stream, Say], Losses]] = {
        OURS: lambda seed, stream, say: by_forest(for_streams(seed), stream, say),
        NEVER: lambda seed, stream, say: by_forest(for_streams(seed, forgetting=None), stream, say),
    }
    if installed("river") is not None:
        from river import forest

        learners[ARF] = lambda seed, stream, say: by_river(
            forest.ARFClassifier(n_models=10, seed=seed), stream, say
        )
        learners[RIVER] = lambda seed, stream, say: by_river(for_river(seed), stream, say)
    if installed("capymoa") is not None:
        learners |= {title: moa(name) for title, name in MOA.items()}
    parts = {}
    for name, is_what_it_says, streams in drifting_streams(settings):
        rows = {
            title: summary(
                learner(seed, stream, said(settings, stream, title))
                for seed, stream in (streams[:1] if title in ONE_BY_ONE else streams)
            )
            for title, learner in learners.items()
        }
        parts[name] = {"is_real": is_what_it_says and not settings.smoke, "rows": rows}
    return parts


def without_drift(settings: Settings) -> dict[str, Any]:
    """Return errors on the last third of shuffled tables, and rows per second."""
    parts = {}
    for name, n in SHUFFLED.items():
        stream = real(name, settings.size(n, SMOKE_ROWS), smoke=settings.smoke)
        rows = {}
        for title, options in ((OURS, {}), (NEVER, {"forgetting": None})):
            shuffled = stream.shuffled(settings.seed)
            losses, seconds = by_forest(
                for_streams(settings.seed, **options), shuffled, said(settings, shuffled, title)
            )
            third = losses[2 * len(losses) // 3 :]
            rows[title] = {"loss": float(third.mean()), "rows_s": len(losses) / seconds}
        parts[name] = {"is_real": stream.is_real, "rows": rows}
    return parts


def regression(settings: Settings) -> dict[str, Any]:
    """Return mean absolute errors on River's FriedmanDrift."""
    if installed("river") is None:
        return {}
    from river import forest

    def ours(seed: int, **options: Any) -> Any:
        return BoundaryForestRegressor.for_streams(random_state=seed, n_jobs=1, **options)

    parts = {}
    seeds = SEEDS[: settings.size(len(SEEDS), 1)]
    for kind in FRIEDMAN:
        runs: dict[str, list[Losses]] = {OURS: [], NEVER: [], ARF: []}
        for seed in seeds:
            stream = friedman(kind, settings.size(ROWS, SMOKE_ROWS), seed)
            say = [said(settings, stream, title) for title in runs]
            runs[OURS].append(by_forest(ours(seed), stream, say[0]))
            runs[NEVER].append(by_forest(ours(seed, forgetting=None), stream, say[1]))
            if seed == seeds[0]:
                arf = forest.ARFRegressor(n_models=10, seed=seed)
                runs[ARF].append(by_river(arf, stream, say[2]))
        rows = {title: summary(of) for title, of in runs.items()}
        parts[f"FriedmanDrift {kind}"] = {"is_real": not settings.smoke, "rows": rows}
    return parts


def bounded(settings: Settings) -> dict[str, Any]:
    """Return accuracies and rows per second under bounds on stored examples."""
    parts = {}
    for name, is_what_it_says, streams in drifting_streams(settings):
        if name not in BOUNDED:
            continue
        rows = {}
        for bound in BOUNDS:
            title = "no bound" if bound is None else f"{bound:,}"
            stored, runs = 0, []
            for seed, stream in streams:
                forest = for_streams(seed, max_stored=bound)
                say = said(settings, stream, f"max_stored={bound}")
                runs.append(by_forest(forest, stream, say))
                stored = max(stored, forest.stats()["examples_stored"])
            rows[title] = {**summary(runs), "stored": stored}
        parts[name] = {"is_real": is_what_it_says, "rows": rows}
    return parts


def long_run(settings: Settings) -> dict[str, Any]:
    """Return memory and rows per second of a forest that has learned many rows."""
    n, bound = settings.size(LONG_ROWS, 1_000), settings.size(LONG_BOUND, 500)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=go_on, args=(n, bound, settings.seed, theirs), daemon=True)
    process.start()
    theirs.close()
    points: list[dict[str, float]] = []
    for _ in range(LONG_POINTS):
        points.append(ours.recv())
        settings.say(f"long run, row {points[-1]['row']:,} of {n:,}")
    process.join()
    tenth = LONG_POINTS // 10
    at, later = points[tenth - 1], points[tenth:]

    def rate(few: list[dict[str, float]]) -> float:
        return float(n / LONG_POINTS * len(few) / sum(point["seconds"] for point in few))

    return {
        "rows": n,
        "max_stored": bound,
        "points": points,
        "mib_at": at["bytes"] / 2**20,
        "mib_most": max(point["most_bytes"] for point in later) / 2**20,
        "growth": max(point["most_bytes"] for point in later) / at["bytes"] - 1,
        "rows_s_at": rate(points[tenth - 3 : tenth + 2]),
        "rows_s_end": rate(points[-5:]),
        "stored": max(point["stored"] for point in points),
    }


def go_on(n: int, bound: int, seed: int, to: Connection) -> None:
    """Learn n rows, and send what it took after each hundredth of them; for another process."""
    forest = for_streams(seed, max_stored=bound)
    process = psutil.Process()
    batch = min(BATCH, n // LONG_POINTS)
    row, seconds, most, wrong = 0, 0.0, 0, 0
    for X, y in endless(seed, batch):
        start = time.process_time()
        if row == 0:
            forest.partial_fit(X, y)
        else:
            wrong += int((forest.predict_then_learn(X, y) != y).sum())
        seconds += time.process_time() - start
        row += batch
        now = process.memory_info().rss
        most = max(most, now)
        if row % (n // LONG_POINTS) == 0:
            stats = forest.stats()
            point = {"row": row, "seconds": seconds, "bytes": now, "most_bytes": most}
            point |= {"stored": stats["examples_stored"], "forest_bytes": stats["bytes"]["total"]}
            to.send({**point, "loss": wrong / (n // LONG_POINTS)})
            seconds, most, wrong = 0.0, 0, 0
        if row >= n:
            return


PARTS: dict[str, Callable[[Settings], dict[str, Any]]] = {
    "drifting": compared,
    "shuffled": without_drift,
    "regression": regression,
    "bounded": bounded,
    "long": long_run,
}


# What must hold, and what is wanted


def checks(settings: Settings) -> list[dict[str, Any]]:
    """Check that threads and batches change nothing, while trees come, go and are cut."""
    found = []
    X, y = next(endless(settings.seed, 1_200))
    for bound in (None, 300):
        once = for_streams(settings.seed, max_stored=bound).partial_fit(X[:1], y[:1])
        answers = once.predict_then_learn(X[1:], y[1:])
        cut = for_streams(settings.seed, max_stored=bound).set_params(n_jobs=2)
        cut.partial_fit(X[:1], y[:1])
        pieces = [
            cut.predict_then_learn(X[1:][part], y[1:][part]) for part in slices(len(y) - 1, 77)
        ]
        what = f"max_stored={bound}: two threads and small batches"
        found += [
            check(f"{what}: the same forest", once.fingerprint() == cut.fingerprint()),
            check(f"{what}: the same answers", np.array_equal(answers, np.concatenate(pieces))),
        ]
        if bound is not None:
            stored = once.stats()["examples_stored"]
            found.append(check(f"at most {bound} are stored", stored <= bound, f"{stored}"))
    return found


def targets(result: dict[str, Any], settings: Settings) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach, with River and on real data."""
    if settings.smoke:
        return []
    wanted = []
    rows = {name: part["rows"] for name, part in result["drifting"].items() if part["is_real"]}
    if len(rows) == len(GENERATED) + len(REAL) + 1:
        gains = [row[ARF]["loss"] - row[OURS]["loss"] for row in rows.values()]
        wanted += [
            target("mean accuracy - ARF's", float(np.mean(gains)), at_least=0.05),
            target("the same where it is least", min(gains), at_least=0.0),
        ]
        for title, factor in ((OURS, 15), (RIVER, 8)):
            least = min(row[title]["rows_s"] / row[ARF]["rows_s"] for row in rows.values())
            wanted.append(target(f"{title}: least rows/s / ARF's", least, at_least=factor))
    for name, least in (
        *(("SEA", 0.88), ("Hyperplane", 0.91), ("electricity", 0.91), ("covtype", 0.95)),
        (SQUARES, 0.98),
    ):
        if name in rows:
            accuracy = 1 - rows[name][OURS]["loss"]
            wanted.append(target(f"{name}: accuracy", accuracy, at_least=least))
    for name, part in result["shuffled"].items():
        if part["is_real"]:
            lost = 100 * (part["rows"][OURS]["loss"] - part["rows"][NEVER]["loss"])
            wanted.append(target(f"{name}, shuffled: points lost", lost, at_most=0.7, goal=0.5))
    for name, part in result["regression"].items():
        ratio = part["rows"][OURS]["loss"] / part["rows"][ARF]["loss"]
        wanted.append(target(f"{name}: MAE / ARFRegressor's", ratio, at_most=1.0))
    run = result["long"]
    ratio = run["rows_s_end"] / run["rows_s_at"]
    return [
        *wanted,
        target("long run: growth of memory", run["growth"], at_most=0.05),
        target("long run: rows/s, end / first tenth", ratio, at_least=0.9),
    ]


def report(result: dict[str, Any], console: Console) -> None:
    accuracy, error, rate = "accuracy", "MAE", "rows/s of one core"
    texts: dict[str, Callable[[dict[str, float]], str]] = {
        accuracy: lambda row: f"{1 - row['loss']:.4f}",
        error: lambda row: f"{row['loss']:.4f}",
        rate: lambda row: f"{row['rows_s']:,.0f}",
    }
    for key, title, shown in (
        ("drifting", "streams that drift", (accuracy, rate)),
        ("shuffled", "shuffled, last third", (accuracy, rate)),
        ("regression", "targets that drift", (error, rate)),
        ("bounded", "max_stored", (accuracy, rate)),
    ):
        parts = result[key]
        for what in shown:
            table = new_table(f"{title}: {what}")
            table.add_column("", no_wrap=True)
            titles = list(next(iter(parts.values()))["rows"]) if parts else []
            for column in titles:
                table.add_column(column, justify="right")
            for name, part in parts.items():
                table.add_row(name, *(texts[what](part["rows"][column]) for column in titles))
            console.print(table)
    run = result["long"]
    console.print(
        f"long run, {run['rows']:,} rows, max_stored={run['max_stored']:,}: at most "
        f"{run['stored']:,} stored; {run['mib_at']:.1f} MiB after a tenth, later at most "
        f"{run['mib_most']:.1f} ({100 * run['growth']:+.1f} %); {run['rows_s_at']:,.0f} rows/s "
        f"then, {run['rows_s_end']:,.0f} at the end\n"
    )
