"""Retrieval of ten neighbours: recall against time, build time and memory beside other indexes.

A picture and tables of it are written to ``build/bench/``; ``docs/draw_retrieval.py`` draws them
for the documentation.

One thread, and the process's own time, so that others on the machine matter less. Every index is
built once; then all take turns at every width, and a time is the median of an index's turns. Recall
is the share of the ten true neighbours, which exhaustive search finds.
Peers get float32 rows, as they are fastest with; GloVe's are normalised.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import Array, load, stored
from benchmarks.harness import Settings, check, installed, limited, take_turns, target
from benchmarks.indexes import CONTESTANTS, Contestant, Index
from benchmarks.recall_plot import RECALLS, time_at, write
from benchmarks.report import new_table
from boundary_forest import BoundaryForestNeighbors

N_NEIGHBORS = 10
N_QUERIES = 2_000
WIDTHS = (10, 20, 40, 60, 80, 120, 160, 240, 400)
PARTS = ("X_train", "X_test")
PICTURE = Path("build/bench/retrieval")


def measure(settings: Settings) -> dict[str, Any]:
    parts, checks, targets = [], [], []
    for name, X, queries in _data(settings):
        part = contest(name, X, queries, settings)
        parts.append(part)
        checks += answers_checks(name, X[: settings.size(20_000, 2_000)], queries[:100])
        if not settings.smoke:
            targets += _targets(part)
    return {"parts": parts, "checks": checks, "targets": targets}


def _data(settings: Settings) -> list[tuple[str, Array, Array]]:
    """Return names, rows and queries; in smoke runs, or without GloVe, generated ones."""
    data = load("mnist", settings.seed, smoke=settings.smoke)
    n, n_queries = settings.size(len(data.X_train), 2_000), settings.size(N_QUERIES, 100)
    found = [(data.name, data.X_train[:n], data.X_test[:n_queries])]
    normalised = None if settings.smoke else glove()
    if normalised is None:
        rng = np.random.default_rng(settings.seed)
        X = rng.normal(size=(settings.size(50_000, 2_000) + n_queries, 32)).astype(np.float32)
        return [*found, ("gaussian", X[n_queries:], X[:n_queries])]
    return [*found, ("glove100", *normalised)]


def glove() -> tuple[Array, Array] | None:
    """Return rows and queries of length 1, if they are there."""
    arrays = stored("glove100")
    if arrays is None:
        return None
    rows = [X / np.linalg.norm(X, axis=1, keepdims=True) for X in (arrays[part] for part in PARTS)]
    return rows[0], rows[1][:N_QUERIES]


def contest(name: str, X: Array, queries: Array, settings: Settings) -> dict[str, Any]:
    """Return each index's build time, bytes, and recalls with times."""
    built: dict[str, tuple[Contestant, Index, Array]] = {}
    rows: list[dict[str, Any]] = []
    with limited(1):
        for key, contestant in CONTESTANTS.items():
            if installed(contestant.module) is None:
                rows.append({"index": key, "title": contestant.title, "installed": False})
                continue
            settings.say(f"retrieval, {name}: building {key}")
            form = (lambda A: A) if contestant.as_bytes else as_float32
            index = contestant.make(1, settings.seed)
            _, build_s = timed(index.build, form(X))
            built[key] = (contestant, index, form(queries))
            rows.append(
                {
                    "index": key,
                    "title": contestant.title,
                    "installed": True,
                    "build_s": build_s,
                    "bytes": index.bytes_each(),
                    "curve": [],
                }
            )
        forest: Any = built["forest"][1]
        true = forest.forest.kneighbors(queries, N_NEIGHBORS, return_distance=False, exact=True)
        for width in WIDTHS:
            recalls: dict[str, float] = {}

            def turn(key: str, width: int = width, recalls: dict[str, float] = recalls) -> Any:
                _, index, asked = built[key]
                found, seconds = timed(index.search, asked, N_NEIGHBORS, width)
                recalls[key] = recall(found, true)
                return {"us": 1e6 * seconds / len(asked)}

            asked = [key for key, (it, _, _) in built.items() if it.has_widths or width == 10]
            turns = {key: (lambda key=key: turn(key)) for key in asked}
            times = take_turns(turns, settings, f"retrieval, {name}, width {width}")
            for row in rows:
                if row["index"] in times:
                    us = times[row["index"]]["us"]
                    row["curve"].append({"width": width, "recall": recalls[row["index"]], "us": us})
    return {"data": name, "shape": list(X.shape), "queries": len(queries), "indexes": rows}


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """Return what the call returns, and the processor time it took."""
    start = time.process_time()
    result = call(*arguments)
    return result, time.process_time() - start


def as_float32(X: Array) -> Array:
    return np.ascontiguousarray(X, dtype=np.float32)


def recall(found: Array, true: Array) -> float:
    shared = [len(np.intersect1d(a, b)) for a, b in zip(found, true, strict=True)]
    return float(np.mean(shared) / true.shape[1])


def answers_checks(name: str, X: Array, queries: Array) -> list[dict[str, Any]]:
    """Check that threads change nothing, and that exhaustive search agrees with numpy."""
    one, two = (
        BoundaryForestNeighbors(n_estimators=10, n_jobs=jobs, random_state=0).fit(X)
        for jobs in (1, 2)
    )
    pairs = [(a.kneighbors(queries, 5), b.kneighbors(queries, 5)) for a, b in [(one, two)]]
    same = all(np.array_equal(p, q) for a, b in pairs for p, q in zip(a, b, strict=True))
    apart = ((queries[:, None].astype(np.float64) - X[None, :2000].astype(np.float64)) ** 2).sum(-1)
    index = BoundaryForestNeighbors(n_estimators=5, random_state=0).fit(X[:2000])
    exact = index.kneighbors(queries, 5, exact=True)[0]
    true = np.sqrt(np.sort(apart, axis=1)[:, :5])
    return [
        check(f"retrieval, {name}: the same neighbours with two threads", same),
        check(f"retrieval, {name}: exact is exact", np.allclose(exact, true, rtol=1e-4, atol=1e-4)),
    ]


def _targets(part: dict[str, Any]) -> list[dict[str, Any]]:
    rows = {row["index"]: row for row in part["indexes"] if row["installed"]}
    if "hnswlib" not in rows:
        return []
    ours, theirs = rows["forest"], rows["hnswlib"]
    name = part["data"]
    ratio = ours["build_s"] / theirs["build_s"]
    found = [target(f"{name}: build time over hnswlib's", ratio, at_most=0.2)]
    for wanted in (0.95, 0.99):
        one, other = time_at(ours["curve"], wanted), time_at(theirs["curve"], wanted)
        if one is not None and other is not None:
            what = f"{name}: query time over hnswlib's at recall {wanted}"
            found.append(target(what, one / other, at_most=0.8, goal=0.5))
            better = [
                key
                for key, row in rows.items()
                if key.startswith("hnswlib")
                and row["build_s"] < ours["build_s"]
                and (time_at(row["curve"], wanted) or np.inf) < one
            ]
            what = f"{name}: hnswlib's indexes better in build and query at {wanted} {better}"
            found.append(target(what, len(better), at_most=0))
    return found


def report(result: dict[str, Any], console: Console) -> None:
    for part in result["parts"]:
        n, n_features = part["shape"]
        table = new_table(f"{part['data']}: {n:,} rows of {n_features}, us a query at recall@10")
        table.add_column("", no_wrap=True)
        for heading in ("build s", "bytes", *(f"{wanted:.2f}" for wanted in RECALLS), "best"):
            table.add_column(heading, justify="right")
        for row in part["indexes"]:
            if not row["installed"]:
                table.add_row(row["title"], "not installed")
                continue
            times = [time_at(row["curve"], wanted) for wanted in RECALLS]
            best = max(point["recall"] for point in row["curve"])
            table.add_row(
                row["title"],
                f"{row['build_s']:.2f}",
                f"{row['bytes']:.0f}",
                *("-" if us is None else f"{us:.0f}" for us in times),
                f"{best:.4f}",
            )
        console.print(table)
    console.print(f"pictures and tables: {', '.join(map(str, write(result, PICTURE)))}\n")
