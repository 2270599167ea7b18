"""MNIST with the paper's n_T = k = 50: fit 60,000 images and predict 10,000, beside every peer.

The forest stores the images as uint8 and, for users who have float32, as float32. It is compared
with FAISS's search alone: adding rows costs FAISS next to nothing.
"""

from typing import Any

from rich.console import Console

from benchmarks.contest import compare, forest_checks, row_of
from benchmarks.data import load
from benchmarks.harness import Settings, target
from benchmarks.report import print_comparison

PEERS = (
    "forest",
    "forest_f32",
    "faiss",
    "hnswlib",
    "usearch_i8",
    "usearch_f32",
    "random_forest",
    "knn_brute",
)
BASES = ("forest", "forest_f32")
# Seen: 2.25 % on MNIST in the order of the file (the paper: 2.24), 1.6 % on digits.
CEILINGS = {"mnist": 0.026, "digits": 0.035}


def measure(settings: Settings) -> dict[str, Any]:
    data = load("mnist", settings.seed, smoke=settings.smoke)
    rows = compare(PEERS, data, settings, bases=BASES)
    checks = [
        found
        for form in (data, data.as_float32())
        for found in forest_checks(form, settings, CEILINGS[data.name])
    ]
    return {
        "data": data.sizes(),
        "title": data.title,
        "rows": rows,
        "checks": checks,
        "targets": targets(rows) if data.is_real else [],
    }


def targets(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the figures that the project wants to reach on MNIST, if the peers were measured."""
    ours, faiss, hnswlib = (row_of(rows, key) for key in ("forest", "faiss", "hnswlib"))
    ours_f32, two = row_of(rows, "forest_f32"), row_of(rows, "forest", threads=2)
    wanted = []
    if ours and ours_f32 and faiss:
        search_s = faiss["predict_s"]
        wanted += [
            target(
                "uint8: (fit + predict) / FAISS search",
                ours["total_s"] / search_s,
                at_most=0.5,
                goal=0.2,
            ),
            target(
                "float32: (fit + predict) / FAISS search",
                ours_f32["total_s"] / search_s,
                at_most=1.0,
                goal=0.4,
            ),
            target("error / FAISS's error", ours["error"] / faiss["error"], at_most=1.0),
        ]
    if ours and hnswlib:
        wanted += [
            target("fit / hnswlib's build", ours["fit_s"] / hnswlib["fit_s"], at_most=0.15),
            target("error / hnswlib's error", ours["error"] / hnswlib["error"], at_most=1.0),
        ]
    if ours and two:
        wanted.append(
            target("fit: speed-up by two threads", ours["fit_s"] / two["fit_s"], at_least=1.7)
        )
    return wanted


def report(result: dict[str, Any], console: Console) -> None:
    print_comparison(result["title"], result["rows"], console)
