"""Crossover: the number of examples from which the forest is quicker than exhaustive search.

N examples are learned and N / 5 queried, and both are counted. Exhaustive search takes a time that
grows with N times the number of queries, the forest one that grows little faster than their sum.
"""

import math
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks.contest import compare
from benchmarks.data import load
from benchmarks.harness import Settings, check
from benchmarks.report import new_table, ratio_text, threads_text

PEERS = ("forest", "knn_brute", "faiss")
EXHAUSTIVE = {"knn_brute": "k-NN, brute", "faiss": "FAISS IndexFlatL2"}
NAMES = ("mnist", "covtype")
LEAST = 500
N_POINTS = 8
QUERIES_A_ROW = 0.2


def measure(settings: Settings) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    checks = []
    for name in NAMES:
        data = load(name, settings.seed, smoke=settings.smoke)
        most = min(len(data.X_train), int(len(data.X_test) / QUERIES_A_ROW))
        points = []
        for n in sizes(min(LEAST, most), most, settings.size(N_POINTS, 3)):
            part = data.first(n, max(1, int(n * QUERIES_A_ROW)))
            points.append(
                {"n": n, "queries": len(part.X_test), "rows": compare(PEERS, part, settings)}
            )
        crossings = [
            {"peer": peer, "threads": threads, **crossing_of(points, peer, threads)}
            for peer in EXHAUSTIVE
            for threads in settings.threads
        ]
        parts[data.name] = {"data": data.sizes(), "points": points, "crossings": crossings}
        checks.append(errors_check(data.name, points))
    return {"parts": parts, "checks": checks, "targets": []}


def sizes(least: int, most: int, n_points: int) -> list[int]:
    """Return sizes from least to most, evenly spaced in their logarithms."""
    return sorted({round(n) for n in np.geomspace(least, most, n_points).tolist()})


def crossing_of(points: list[dict[str, Any]], peer: str, threads: int) -> dict[str, Any]:
    """Return the N from which the forest's time is smaller, interpolated between points."""
    measured = [
        (point["n"], row["ratio"]["forest"])
        for point in points
        for row in point["rows"]
        if row["installed"] and (row["peer"], row["threads"]) == (peer, threads)
    ]
    return {"installed": bool(measured), **crossing(measured)}


def crossing(measured: list[tuple[int, float]]) -> dict[str, Any]:
    """Return where the ratio falls below 1 for good; linear between points in log N and log ratio.

    ``n`` is None if it does not; ``exact`` is False if it did so before the first point.
    """
    below = len(measured)
    while below > 0 and measured[below - 1][1] < 1:
        below -= 1
    if below == len(measured):
        return {"n": None, "exact": False}
    if below == 0:
        return {"n": measured[0][0], "exact": False}
    (n_0, ratio_0), (n_1, ratio_1) = measured[below - 1 : below + 1]
    share = math.log(ratio_0) / (math.log(ratio_0) - math.log(ratio_1))
    return {"n": round(n_0 * (n_1 / n_0) ** share), "exact": True}


def errors_check(name: str, points: list[dict[str, Any]]) -> dict[str, Any]:
    """Check that the number of threads does not change an error."""
    forest = [[row["error"] for row in p["rows"] if row["peer"] == "forest"] for p in points]
    return check(
        f"{name}: at every N the same errors by any number of threads",
        all(len(set(errors)) == 1 for errors in forest),
    )


def report(result: dict[str, Any], console: Console) -> None:
    for name, part in result["parts"].items():
        table = new_table(f"{name}: N learned, N / 5 queried; forest's time over the other's")
        peers = [(c["peer"], c["threads"]) for c in part["crossings"]]
        for heading in (
            "N",
            *(f"{EXHAUSTIVE[peer]}, {threads_text(threads)}" for peer, threads in peers),
        ):
            table.add_column(heading, justify="right")
        for point in part["points"]:
            ratios = {(r["peer"], r["threads"]): r.get("ratio") for r in point["rows"]}
            cells = [ratio_text((ratios.get(key) or {}).get("forest")) for key in peers]
            table.add_row(f"{point['n']:,}", *cells)
        console.print(table)
        for found in part["crossings"]:
            who = f"{EXHAUSTIVE[found['peer']]}, {threads_text(found['threads'])}"
            console.print(f"{who}: {crossing_text(found, part['points'][-1]['n'])}")
        console.print()


def crossing_text(found: dict[str, Any], most: int) -> str:
    if not found["installed"]:
        return "not installed"
    if found["n"] is None:
        return f"the forest is not quicker at N = {most:,}, the largest"
    return f"the forest is quicker from N = {found['n']:,}" + ("" if found["exact"] else " or less")
