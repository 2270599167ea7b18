"""River overhead: predict_one + learn_one of the forest beside River's k-NN, on one stream.

Both are shown the same dicts of six features, test-then-train, and take turns chunk by chunk, so
that a busy machine slows both. The ratio printed last is the forest's time per example over k-NN's;
the bar is 0.15, the goal 0.1. Only what comes after the warm-up is timed: by then k-NN's window of
1,000 is full. Data: electricity from ``$BOUNDARY_FOREST_DATA/electricity.npz``, else generated.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Hashable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from river import base, neighbors

from boundary_forest.river import BoundaryForestClassifier

N_ESTIMATORS = 10
WINDOW = 1000  # k-NN's
WARM_UP = 2000
CHUNK = 250  # examples a turn

Stream = list[tuple[dict[Hashable, Any], int]]


def load_stream(n: int) -> tuple[str, Stream]:
    """The first n examples of electricity if it is there, else of a made-up concept."""
    folder = os.environ.get("BOUNDARY_FOREST_DATA")
    path = Path(folder) / "electricity.npz" if folder else None
    if path is not None and path.exists():
        name = "electricity"
        with np.load(path, allow_pickle=False) as data:
            X = np.concatenate([data["X_train"], data["X_test"]])
            y = np.concatenate([data["y_train"], data["y_test"]])
    else:
        name = "generated"
        X = np.random.default_rng(0).uniform(size=(n, 6))
        y = (np.sin(6 * X[:, 0]) > 2 * X[:, 1] - 1).astype(np.int64)
    names: list[Hashable] = [f"x{column}" for column in range(X.shape[1])]
    rows = [dict(zip(names, row, strict=True)) for row in X[:n].tolist()]
    return name, list(zip(rows, y[:n].tolist(), strict=True))


def test_then_train(model: base.Classifier, stream: Stream) -> tuple[float, int]:
    """Seconds taken, and how many predictions were right."""
    right = 0
    start = time.perf_counter()
    for x, y in stream:
        right += model.predict_one(x) == y
        model.learn_one(x, y)
    return time.perf_counter() - start, right


def measure(n: int) -> dict[str, Any]:
    """Time both over n examples after the warm-up."""
    name, stream = load_stream(WARM_UP + n)
    models: dict[str, base.Classifier] = {
        "forest": BoundaryForestClassifier(n_estimators=N_ESTIMATORS, seed=0),
        "knn": neighbors.KNNClassifier(engine=neighbors.LazySearch(window_size=WINDOW)),
    }
    for model in models.values():
        for x, y in stream[:WARM_UP]:
            model.learn_one(x, y)
    seconds, right = dict.fromkeys(models, 0.0), dict.fromkeys(models, 0)
    n = len(stream) - WARM_UP
    for begin in range(WARM_UP, len(stream), CHUNK):
        for key, model in models.items():
            taken, hits = test_then_train(model, stream[begin : begin + CHUNK])
            seconds[key] += taken
            right[key] += hits
    return {
        "data": {"name": name, "features": len(stream[0][0]), "warm_up": WARM_UP, "timed": n},
        "us_per_example": {key: 1e6 * seconds[key] / n for key in models},
        "accuracy": {key: right[key] / n for key in models},
        "ratio": seconds["forest"] / seconds["knn"],
        "river": version("river"),
        "python": platform.python_version(),
        "machine": platform.machine(),
    }


def report(result: dict[str, Any]) -> None:
    data = result["data"]
    print(
        f"{data['name']}: {data['features']} features, {data['timed']:,} examples timed after "
        f"{data['warm_up']:,}; predict_one + learn_one"
    )
    print(f"{'':32}{'us/example':>12}{'accuracy %':>12}")
    for key, title in (
        ("forest", f"boundary forest, {N_ESTIMATORS} trees"),
        ("knn", f"River k-NN, window {WINDOW:,}"),
    ):
        accuracy = 100 * result["accuracy"][key]
        print(f"{title:32}{result['us_per_example'][key]:12.1f}{accuracy:12.2f}")
    print(f"forest / k-NN = {result['ratio']:.3f} (bar 0.15, goal 0.1)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--examples", type=int, default=5000, help="examples to time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the figures here")
    arguments = parser.parse_args()
    if arguments.examples < 1:
        parser.error(f"--examples must be at least 1, got {arguments.examples}")
    result = measure(arguments.examples)
    report(result)
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
