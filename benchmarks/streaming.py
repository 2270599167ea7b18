"""Test, then train: learners of ours, River's and MOA's on one stream, and what is kept of it.

A learner answers every row before it learns it. The first row counts as a mistake, as nothing was
known; of a target the first answer is 0.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks.data import Array
from benchmarks.drift import Stream
from benchmarks.harness import installed
from benchmarks.sections.prequential import as_dicts, slices

BATCH = 1_000
CURVE = 500  # rows for each point of accuracy over time

Say = Callable[[int], None]
Losses = tuple[Array, float]  # of each row, a mistake or an absolute error; and seconds


def by_forest(forest: Any, stream: Stream, say: Say) -> Losses:
    """Let one of our estimators answer and learn batches."""
    X, y = stream.X, stream.y
    start = time.process_time()
    forest.partial_fit(X[:1], y[:1])
    seconds = time.process_time() - start
    answers = [np.zeros(1)]
    for cut in slices(len(y) - 1, BATCH):
        say(cut.stop)
        start = time.process_time()
        answers.append(forest.predict_then_learn(X[1:][cut], y[1:][cut]))
        seconds += time.process_time() - start
    return losses_of(np.concatenate(answers), y), seconds


def by_river(model: Any, stream: Stream, say: Say) -> Losses:
    """Let one of River's models, or ours for River, answer and learn rows."""
    answers: list[Any] = []
    seconds = 0.0
    for cut in slices(len(stream.y), BATCH):
        say(cut.stop)
        rows = as_dicts(stream.X[cut], stream.y[cut])
        start = time.process_time()
        for x, y in rows:
            answers.append(model.predict_one(x))
            model.learn_one(x, y)
        seconds += time.process_time() - start
    known = np.array([0 if answer is None else answer for answer in answers])
    return losses_of(known, stream.y), seconds


def by_moa(name: str, seed: int, stream: Stream) -> Losses:
    """Let one of MOA's learners, by CapyMOA, answer and learn rows."""
    classifier: Any = installed("capymoa.classifier")
    evaluation: Any = installed("capymoa.evaluation")
    streams: Any = installed("capymoa.stream")
    codes = np.unique(stream.y, return_inverse=True)[1]
    rows = streams.NumpyStream(stream.X.astype(np.float64), codes, target_type="categorical")
    learner = getattr(classifier, name)(rows.get_schema(), ensemble_size=10, random_seed=seed)
    start = time.process_time()
    found = evaluation.prequential_evaluation(rows, learner, store_predictions=True)
    seconds = time.process_time() - start
    return losses_of(np.array(found.predictions()), codes), seconds


def losses_of(answers: Array, y: Array) -> Array:
    """Return mistakes, or absolute errors; the first row is a mistake, as nothing was known."""
    if y.dtype.kind == "f":
        return np.asarray(np.abs(answers - y))
    losses = np.asarray(answers != y, dtype=np.float64)
    losses[0] = 1.0
    return losses


def summary(runs: Iterable[Losses]) -> dict[str, Any]:
    """Return means over seeds, rows per second over all of them, and the first one's curve."""
    runs = list(runs)
    first = runs[0][0]
    return {
        "loss": float(np.mean([losses.mean() for losses, _ in runs])),
        "losses": [float(losses.mean()) for losses, _ in runs],
        "rows_s": sum(len(losses) for losses, _ in runs) / sum(seconds for _, seconds in runs),
        "curve": [float(first[cut].mean()) for cut in slices(len(first), CURVE)],
    }
