"""A runbook: inserts, deletes and searches interleaved, recall@10 at every checkpoint.

All sides carry out each step in turn, on one thread: a machine that gets busy slows all of them.
A run is long and its figures are sums over many steps: it is carried out once.
"""

import time
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import STAND_IN_SEED, Array, stored
from benchmarks.harness import MIB, Settings, check, installed, limited
from benchmarks.report import new_table, seconds_text
from benchmarks.runbook import NEIGHBORS, Forest, Hnswlib, Index, expiring, nearest, recall

FOREST, HNSWLIB, REUSING = "boundary forest", "hnswlib", "hnswlib, places reused"
BEAM = 100  # of every side
LEAST_RECALL = 0.9  # seen: 1.0 on the small data, at every checkpoint
SHOWN = 10  # checkpoints in the table


def measure(settings: Settings) -> dict[str, Any]:
    name, X, queries = rows(settings)
    n_steps = settings.size(50, 10)
    contestants: dict[str, Index] = {FOREST: Forest(settings.seed, BEAM, n_jobs=1)}
    if installed("hnswlib"):
        size = (X.shape[1], len(X))
        contestants[HNSWLIB] = Hnswlib(settings.seed, BEAM, *size)
        contestants[REUSING] = Hnswlib(settings.seed, BEAM, *size, reuse=True)
    live = np.zeros(len(X), dtype=bool)
    sides: dict[str, dict[str, Any]] = {
        side: {"insert_s": 0.0, "delete_s": 0.0, "search_s": 0.0, "checkpoints": []}
        for side in contestants
    }
    ghosts = 0  # answers that the forest should have forgotten
    with limited(1):
        for step in expiring(len(X), n_steps, settings.seed):
            settings.say(f"{name}, step {step.number + 1} of {n_steps}")
            live[step.insert], live[step.delete] = True, False
            kth = nearest(X, np.flatnonzero(live), queries)
            for side, index in contestants.items():
                figures = sides[side]
                figures["insert_s"] += clocked(index.insert, X[step.insert], step.insert)[1]
                if len(step.delete):
                    figures["delete_s"] += clocked(index.delete, step.delete)[1]
                names, seconds = clocked(index.search, queries, NEIGHBORS)
                figures["search_s"] += seconds
                figures["checkpoints"].append(
                    {
                        "step": step.number + 1,
                        "live": int(live.sum()),
                        "recall": recall(X, queries, names, kth),
                        "us": 1e6 * seconds / len(queries),
                        "bytes": index.bytes(),
                    }
                )
                if side == FOREST:
                    ghosts += int((~live[names]).sum())
    for figures in sides.values():
        figures["recall"] = float(np.mean([p["recall"] for p in figures["checkpoints"]]))
    least = min(point["recall"] for point in sides[FOREST]["checkpoints"])
    return {
        "name": name,
        "rows": list(X.shape),
        "queries": len(queries),
        "steps": n_steps,
        "beam": BEAM,
        "sides": sides,
        "installed": installed("hnswlib") is not None,
        "checks": [
            check(f"{name}: no row that was deleted is found", ghosts == 0, f"{ghosts}"),
            check(
                f"{name}: recall at least {LEAST_RECALL} at every checkpoint",
                least >= LEAST_RECALL,
                f"{least:.3f}",
            ),
        ],
        "targets": [],
    }


def rows(settings: Settings) -> tuple[str, Array, Array]:
    """Return GloVe, normalised, in a random order; or generated rows without it."""
    arrays = None if settings.smoke else stored("glove100")
    rng = np.random.default_rng(STAND_IN_SEED)
    if arrays is None:
        n, name = settings.size(20_000, 2_000), "generated-16"
        hidden = rng.normal(size=(n + 100, 6)) @ rng.normal(size=(6, 16))
        X = hidden + 0.3 * rng.normal(size=hidden.shape)
        return name, X[:n].astype(np.float32), X[n:].astype(np.float32)
    # GloVe's words come by frequency; streams drift in other sections.
    shuffled = arrays["X_train"][rng.permutation(len(arrays["X_train"]))]
    return "glove100", normalised(shuffled), normalised(arrays["X_test"][:500])


def normalised(X: Array) -> Array:
    lengths = np.linalg.norm(X, axis=1, keepdims=True)
    return np.asarray(X / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def clocked(work: Any, *arguments: Any) -> tuple[Any, float]:
    start = time.perf_counter()
    made = work(*arguments)
    return made, time.perf_counter() - start


def report(result: dict[str, Any], console: Console) -> None:
    n, width = result["rows"]
    title = (
        f"{result['name']}: {n:,} rows of {width}, {result['steps']} steps, beam {result['beam']}"
    )
    table = new_table(f"{title}, {result['queries']} queries a step; one thread, one run")
    for heading in ("", "insert s", "delete s", "search s", "mean recall@10", "least", "MiB, end"):
        table.add_column(heading, justify="right" if heading else "left")
    for side, figures in result["sides"].items():
        points = figures["checkpoints"]
        table.add_row(
            side,
            *(seconds_text(figures[key]) for key in ("insert_s", "delete_s", "search_s")),
            f"{figures['recall']:.4f}",
            f"{min(point['recall'] for point in points):.4f}",
            f"{points[-1]['bytes'] / MIB:.1f}",
        )
    if not result["installed"]:
        table.add_row(HNSWLIB, "not installed")
    console.print(table)
    console.print(checkpoints(result))


def checkpoints(result: dict[str, Any]) -> Any:
    """Return recall and time a query as the runbook goes on."""
    table = new_table("checkpoints: recall@10 at us a query, MiB")
    table.add_column("step", justify="right")
    table.add_column("live", justify="right")
    for side in result["sides"]:
        table.add_column(side, justify="right")
    every = max(1, result["steps"] // SHOWN)
    for place in range(every - 1, result["steps"], every):
        points = [figures["checkpoints"][place] for figures in result["sides"].values()]
        told = [f"{p['recall']:.4f} at {p['us']:.0f}, {p['bytes'] / MIB:.1f}" for p in points]
        table.add_row(str(points[0]["step"]), f"{points[0]['live']:,}", *told)
    return table
