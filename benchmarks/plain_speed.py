"""Plain speed: fit and predict of the forest beside FAISS' exhaustive search for the same queries.

Both run on one thread and take turns, so that a busy machine slows both. The ratio printed last
is (fit + predict) / (search): times differ from machine to machine, the ratio much less. Data:
MNIST from ``$BOUNDARY_FOREST_DATA/mnist.npz``, else scikit-learn's digits, which are too few to
judge speed by.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import faiss
import numpy as np
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from boundary_forest import BoundaryForestClassifier

N_ESTIMATORS = 50  # n_T and k of the paper's experiments
MAX_CHILDREN = 50


def load_data() -> tuple[str, Any, Any, Any, Any]:
    """MNIST if it is there, else digits: name, X_train, y_train, X_test, y_test; rows are uint8."""
    folder = os.environ.get("BOUNDARY_FOREST_DATA")
    path = Path(folder) / "mnist.npz" if folder else None
    if path is not None and path.exists():
        with np.load(path, allow_pickle=False) as data:
            return "mnist", data["X_train"], data["y_train"], data["X_test"], data["y_test"]
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    X, y = X[order].astype(np.uint8), y[order]
    return "digits", X[:-500], y[:-500], X[-500:], y[-500:]


def timed(call: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    """What the call returns, and the seconds it took."""
    start = time.perf_counter()
    result = call(*arguments)
    return result, time.perf_counter() - start


def measure(repeat: int) -> dict[str, Any]:
    """Time both ``repeat`` times, in turn; seconds are medians."""
    name, X_train, y_train, X_test, y_test = load_data()
    # FAISS knows float32 alone; the conversion is not timed.
    rows, queries = X_train.astype(np.float32), X_test.astype(np.float32)
    fit_s, predict_s, add_s, search_s = [], [], [], []
    for turn in range(repeat):
        forest = BoundaryForestClassifier(
            n_estimators=N_ESTIMATORS, max_children=MAX_CHILDREN, n_jobs=1, random_state=0
        )
        fit_s.append(timed(forest.fit, X_train, y_train)[1])
        predicted, seconds = timed(forest.predict, X_test)
        predict_s.append(seconds)

        index = faiss.IndexFlatL2(rows.shape[1])
        add_s.append(timed(index.add, rows)[1])
        (_, nearest), seconds = timed(index.search, queries, 1)
        search_s.append(seconds)
        print(
            f"turn {turn + 1} of {repeat}: forest {fit_s[-1]:.2f} + {predict_s[-1]:.2f} s, "
            f"FAISS {search_s[-1]:.2f} s",
            flush=True,
        )

    stats = forest.stats()
    return {
        "data": {"name": name, "train": list(X_train.shape), "test": list(X_test.shape)},
        "forest": {
            "n_estimators": N_ESTIMATORS,
            "max_children": MAX_CHILDREN,
            "instruction_set": stats["instruction_set"],
            "fit_s": median(fit_s),
            "predict_s": median(predict_s),
            "error": float(np.mean(predicted != y_test)),
            "comparisons_per_tree": {
                "learn": stats["comparisons"]["learn"] / (N_ESTIMATORS * len(y_train)),
                "query": stats["comparisons"]["query"] / (N_ESTIMATORS * len(y_test)),
            },
        },
        "faiss": {
            "version": faiss.__version__,
            "add_s": median(add_s),
            "search_s": median(search_s),
            "error": float(np.mean(y_train[nearest[:, 0]] != y_test)),
        },
        "ratio": (median(fit_s) + median(predict_s)) / median(search_s),
        "repeat": repeat,
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def report(result: dict[str, Any]) -> None:
    data, forest, exact = result["data"], result["forest"], result["faiss"]
    counts = forest["comparisons_per_tree"]
    print(
        f"\n{data['name']}: {data['train'][0]:,} to learn, {data['test'][0]:,} to ask, "
        f"{data['train'][1]} features; one thread, medians of {result['repeat']}"
    )
    print(f"{'':22}{'build s':>10}{'ask s':>10}{'error %':>10}")
    for title, build_s, ask_s, error in (
        ("boundary forest", forest["fit_s"], forest["predict_s"], forest["error"]),
        ("FAISS IndexFlatL2", exact["add_s"], exact["search_s"], exact["error"]),
    ):
        print(f"{title:22}{build_s:10.2f}{ask_s:10.2f}{100 * error:10.2f}")
    print(f"comparisons per tree: {counts['learn']:.1f} an example, {counts['query']:.1f} a query")
    print(f"instruction set: {forest['instruction_set']}")
    print(f"(fit + predict) / (FAISS search) = {result['ratio']:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--repeat", type=int, default=3, help="turns to take the median over")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    arguments = parser.parse_args()
    if arguments.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {arguments.repeat}")
    faiss.omp_set_num_threads(1)
    with threadpool_limits(limits=1):  # FAISS' BLAS has threads of its own
        result = measure(arguments.repeat)
    report(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
