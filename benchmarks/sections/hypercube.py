"""Retrieval in the 100-dimensional hypercube: how cost and memory grow with N.

One forest (n_T = 10, k = 50, float32) passes through all N. A second one stays at the smallest N
and is queried in the same turns, so that times at both ends are of the same minutes. Memory is
compared with what is promised: one copy of the rows, 20 bytes a node, 24 an example, and 5 % more.
"""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.data import Array
from benchmarks.harness import (
    MIB,
    Settings,
    Turn,
    check,
    limited,
    resident_bytes,
    take_turns,
    target,
)
from benchmarks.report import new_table, threads_text
from boundary_forest import BoundaryForestNeighbors
from paper.laws import judged
from paper.timing import plain_path, timed

D = 100
N_ESTIMATORS = 10
MAX_CHILDREN = 50
LEAST, MOST, N_POINTS = 10_000, 1_000_000, 9
SMOKE_LEAST, SMOKE_MOST = 1_000, 16_000
ALONE, BATCH = 1_000, 10_000  # queries one by one, and at once
LEARNED_AT_ONCE = 50_000
CHECKED = 100_000  # examples of the forest whose plain twin is built
# The process's growth is known to a few MiB only; that of a smaller forest is not judged.
JUDGED_FROM_MIB = 64


def measure(settings: Settings) -> dict[str, Any]:
    rng = np.random.default_rng(settings.seed)
    n_alone, n_batch = settings.size(ALONE, 50), settings.size(BATCH, 1_000)
    queries = rng.random((n_batch, D), dtype=np.float32)
    least, most = settings.size(LEAST, SMOKE_LEAST), settings.size(MOST, SMOKE_MOST)
    ends: list[int] = [round(n) for n in np.geomspace(least, most, N_POINTS).tolist()]
    threads = settings.threads[0]
    with limited(threads):
        small, grown = (_forest(threads, settings.seed) for _ in range(2))
        grow(small, 0, least, np.random.default_rng(settings.seed + 1))
        stream = np.random.default_rng(settings.seed + 1)
        points, all_full, before = [], False, resident_bytes()
        for seen, end in pairwise([0, *ends]):
            settings.say(f"hypercube: learning up to {end:,} examples")
            learn_s = grow(grown, seen, end, stream)
            memory = memory_of(grown, resident_bytes() - before)
            full = 1.0 if all_full else full_roots(grown)
            all_full = full == 1.0
            turns = take_turns(
                {
                    "small": _turn(small, queries, n_alone),
                    "grown": _turn(grown, queries, n_alone),
                },
                settings,
                f"hypercube, {end:,} examples",
            )
            points.append({"n": end, "learn_s": learn_s, "full_roots": full, **turns, **memory})
    checks = [memory_check(point) for point in points] + same_forest_checks(settings)
    summary = summed_up(points)
    return {
        "n_features": D,
        "n_estimators": N_ESTIMATORS,
        "max_children": MAX_CHILDREN,
        "threads": threads,
        "alone": n_alone,
        "batch": n_batch,
        "points": points,
        "summary": summary,
        "checks": checks,
        "targets": [] if settings.smoke else targets(summary),
    }


def _forest(threads: int, seed: int) -> BoundaryForestNeighbors:
    return BoundaryForestNeighbors(
        search="paper",
        n_estimators=N_ESTIMATORS,
        max_children=MAX_CHILDREN,
        n_jobs=threads,
        random_state=seed,
    )


def grow(
    learner: BoundaryForestNeighbors, seen: int, end: int, stream: np.random.Generator
) -> float:
    """Learn the stream's next rows, from N = seen to N = end; return the seconds."""
    seconds = 0.0
    for start in range(seen, end, LEARNED_AT_ONCE):
        n_rows = min(LEARNED_AT_ONCE, end - start)
        seconds += timed(learner.partial_fit, stream.random((n_rows, D), dtype=np.float32))[1]
    return seconds


def memory_of(learner: BoundaryForestNeighbors, resident_growth: int) -> dict[str, Any]:
    """Return bytes by the forest's own count and by the process's growth, and the promised ones."""
    stats = learner.stats()
    n = stats["examples_stored"]
    promised = 1.05 * (4 * D * n + 20 * sum(stats["nodes_per_tree"]) + 24 * n)
    return {
        "bytes": stats["bytes"],
        "resident_bytes": resident_growth,
        "promised_bytes": promised,
        "bytes_share": stats["bytes"]["total"] / promised,
        "resident_share": resident_growth / promised,
    }


def full_roots(learner: BoundaryForestNeighbors) -> float:
    """Return the share of the trees whose root has k children."""
    roots = [np.sum(parents == arrivals[0]) for arrivals, parents in learner.trees()]
    return float(np.mean([n_children >= MAX_CHILDREN for n_children in roots]))


def _turn(learner: BoundaryForestNeighbors, queries: Array, n_alone: int) -> Callable[[], Turn]:
    """Return a turn that queries the first rows one by one, then all at once."""

    def turn() -> Turn:
        rows = [queries[i : i + 1] for i in range(n_alone)]
        _, alone_s = timed(lambda: [learner.kneighbors(row, 1) for row in rows])
        before = learner.stats()["comparisons"]["query"]
        _, batch_s = timed(learner.kneighbors, queries, 1)
        made = learner.stats()["comparisons"]["query"] - before
        return {
            "us_alone": 1e6 * alone_s / n_alone,
            "us_in_batch": 1e6 * batch_s / len(queries),
            "comparisons": made / (len(queries) * N_ESTIMATORS),
        }

    return turn


def memory_check(point: dict[str, Any]) -> dict[str, Any]:
    """Check the forest's own count, and the process's growth where it is large enough."""
    judge_growth = point["promised_bytes"] >= JUDGED_FROM_MIB * MIB
    shares = [point["bytes_share"], *([point["resident_share"]] if judge_growth else [])]
    seen = " and ".join(f"{share:.3f}" for share in shares)
    return check(
        f"hypercube, {point['n']:,} examples: memory is as promised", max(shares) <= 1, seen
    )


def same_forest_checks(settings: Settings) -> list[dict[str, Any]]:
    """Check that two threads and the plain path give the same forest and neighbours."""
    settings.say("hypercube: are the answers right?")
    rng = np.random.default_rng(settings.seed)
    X = rng.random((settings.size(CHECKED, 5_000), D), dtype=np.float32)
    queries = rng.random((1_000, D), dtype=np.float32)
    usual = _forest(1, settings.seed).fit(X)
    others = {"two threads": _forest(2, settings.seed).fit(X)}
    with plain_path():
        others["the plain path"] = _forest(1, settings.seed).fit(X)
    found = []
    for how, other in others.items():
        same = other.fingerprint() == usual.fingerprint()
        found.append(check(f"hypercube: the same forest by {how}", same))
        for n_neighbors in (1, 10):
            pairs = zip(
                other.kneighbors(queries, n_neighbors),
                usual.kneighbors(queries, n_neighbors),
                strict=True,
            )
            same = all(np.array_equal(one, two) for one, two in pairs)
            found.append(check(f"hypercube: the same {n_neighbors} nearest by {how}", same))
    return found


def summed_up(points: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the growth from end to end, and the laws from where most and all roots are full."""
    last = points[-1]
    comparisons = [point["grown"]["comparisons"] for point in points]
    laws = {}
    for which, share in (("most", 0.5), ("all", 1.0)):
        start = next((i for i, p in enumerate(points) if p["full_roots"] >= share), len(points))
        laws[which] = judged([point["n"] for point in points[start:]], comparisons[start:])
    return {
        "comparisons_growth": comparisons[-1] / comparisons[0],
        "alone_growth": last["grown"]["us_alone"] / last["small"]["us_alone"],
        "batch_growth": last["grown"]["us_in_batch"] / last["small"]["us_in_batch"],
        "bytes_share": last["bytes_share"],
        "resident_share": last["resident_share"],
        "laws": laws,
    }


def targets(summary: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach."""
    law = summary["laws"]["most"]
    wanted = [
        target("comparisons, from end to end", summary["comparisons_growth"], at_most=1.8),
        target("time a query one by one, end to end", summary["alone_growth"], at_most=6),
        target("time a query in batches, end to end", summary["batch_growth"], at_most=3),
        target("own count of bytes / promised", summary["bytes_share"], at_most=1),
        target("resident memory's growth / promised", summary["resident_share"], at_most=1),
    ]
    if law:
        wanted.append(target("power law's rms / logarithm's", law["factor"], at_least=2, goal=5))
    return wanted


def report(result: dict[str, Any], console: Console) -> None:
    table = new_table(
        f"hypercube, D = {result['n_features']}: n_T = {result['n_estimators']}, "
        f"k = {result['max_children']}, float32, {threads_text(result['threads'])}"
    )
    for heading in (
        "N",
        "learn us",
        "full roots",
        "compared a tree",
        "us alone",
        "/ least",
        "us in batch",
        "/ least",
        "MiB",
        "resident MiB",
        "promised MiB",
    ):
        table.add_column(heading, justify="right")
    learned = 0
    for point in result["points"]:
        small, grown = point["small"], point["grown"]
        table.add_row(
            f"{point['n']:,}",
            f"{1e6 * point['learn_s'] / (point['n'] - learned):.0f}",
            f"{point['full_roots']:.0%}",
            f"{grown['comparisons']:.1f}",
            f"{grown['us_alone']:.0f}",
            f"{grown['us_alone'] / small['us_alone']:.2f}",
            f"{grown['us_in_batch']:.1f}",
            f"{grown['us_in_batch'] / small['us_in_batch']:.2f}",
            f"{point['bytes']['total'] / MIB:.1f}",
            f"{point['resident_bytes'] / MIB:.1f}",
            f"{point['promised_bytes'] / MIB:.1f}",
        )
        learned = point["n"]
    console.print(table)
    for which, law in result["summary"]["laws"].items():
        console.print(f"from where {which} roots are full: {law_text(law)}")


def law_text(law: dict[str, Any] | None) -> str:
    if law is None:
        return "too few points to tell the laws apart"
    log, power = law["log"], law["power"]
    return (
        f"{log['a']:.2f} log N {log['b']:+.1f} errs by {log['rms']:.2f} (rms), "
        f"{power['c']:.2f} N^{power['p']:.3f} by {power['rms']:.2f}: {law['factor']:.1f} times; "
        f"fitted to the first {law['fitted']} of {law['points']} points"
    )
