"""Streams that drift: River's generators, real streams in the order of time, and an endless one."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from benchmarks.data import Array, load_stream
from benchmarks.harness import installed

GENERATED = ("SEA", "LED", "Agrawal", "RBF", "Hyperplane")
REAL = {"electricity": 45_312, "covtype": 100_000}  # rows; electricity has no more
SQUARES = "moving squares"
FRIEDMAN = ("lea", "gra", "gsg")
AFTER = 100  # is added to the seed of the second of two concepts, so that no row repeats

LONG_FEATURES = 10
LONG_TURN = 2_000_000  # rows in which the hyperplane turns once


@dataclass(frozen=True)
class Stream:
    """Rows and labels or targets, in the order in which they arrive."""

    name: str
    X: Array
    y: Array
    is_real: bool = False

    def shuffled(self, seed: int) -> "Stream":
        """Return the same without drift, as the rows come in a random order."""
        order = np.random.default_rng(seed).permutation(len(self.y))
        return Stream(f"{self.name}, shuffled", self.X[order], self.y[order], self.is_real)


def real(name: str, n: int, *, smoke: bool) -> Stream:
    """Return the first rows of a data set in its order, or a substitute if it is absent."""
    found, X, y = load_stream(name, n, smoke=smoke)
    return Stream(found, X, y, is_real=found == name)


def generated(name: str, n: int, seed: int) -> Stream:
    """Return a stream of River's whose labels drift; one with two concepts changes half-way."""
    synth: Any = installed("river.datasets.synth")

    def two(first: Any, second: Any) -> Any:
        return synth.ConceptDriftStream(first, second, position=n // 2, width=n // 40, seed=seed)

    makers: dict[str, Callable[[], Any]] = {
        "SEA": lambda: two(
            synth.SEA(variant=0, noise=0.1, seed=seed),
            synth.SEA(variant=2, noise=0.1, seed=seed + AFTER),
        ),
        "LED": lambda: synth.LEDDrift(
            seed=seed, noise_percentage=0.1, irrelevant_features=True, n_drift_features=4
        ),
        "Agrawal": lambda: two(
            synth.Agrawal(classification_function=0, seed=seed),
            synth.Agrawal(classification_function=4, seed=seed + AFTER),
        ),
        "RBF": lambda: synth.RandomRBFDrift(
            seed_model=seed,
            seed_sample=seed,
            n_classes=5,
            n_features=10,
            n_centroids=50,
            change_speed=0.001,
        ),
        "Hyperplane": lambda: synth.Hyperplane(
            seed=seed, n_features=10, n_drift_features=5, mag_change=0.001
        ),
    }
    return _of_river(name, makers[name](), n)


def moving_squares(n: int, seed: int) -> Stream:
    """Return four uniform squares side by side, each a class, that move and turn at borders.

    As in the paper of SAM-kNN: after 120 rows a square begins to reach where the next one was, so
    that older rows mislead.
    """
    rng = np.random.default_rng(seed)
    y = rng.integers(4, size=n)
    step = (np.arange(n) / 120 + 6) % 24  # there and back again
    X = rng.uniform(size=(n, 2))
    X[:, 0] += 2 * y + np.minimum(step, 24 - step)
    return Stream(SQUARES, X, y)


def friedman(kind: str, n: int, seed: int) -> Stream:
    """Return River's FriedmanDrift: local and expanding, global and recurring, or gradual."""
    synth: Any = installed("river.datasets.synth")
    position = (n // 4, n // 2, 3 * n // 4) if kind == "lea" else (n // 3, 2 * n // 3)
    dataset = synth.FriedmanDrift(kind, position, transition_window=n // 10, seed=seed)
    return _of_river(f"FriedmanDrift {kind}", dataset, n)


def _of_river(name: str, dataset: Any, n: int) -> Stream:
    rows = list(islice(dataset, n))
    X = np.array([list(x.values()) for x, _ in rows], dtype=np.float64)
    y = np.array([label for _, label in rows])
    return Stream(name, X, y.astype(np.int64) if y.dtype == bool else y)


def endless(seed: int, batch: int) -> Iterator[tuple[Array, Array]]:
    """Yield batches whose classes a slowly turning hyperplane divides; 5 % of them are flipped."""
    rng = np.random.default_rng(seed)
    plane = np.linalg.qr(rng.normal(size=(LONG_FEATURES, 2)))[0]
    row = 0
    while True:
        angle = 2 * np.pi * (row + np.arange(batch)) / LONG_TURN
        normal = np.cos(angle)[:, None] * plane[:, 0] + np.sin(angle)[:, None] * plane[:, 1]
        X = rng.uniform(-1, 1, size=(batch, LONG_FEATURES))
        y = ((X * normal).sum(axis=1) > 0) ^ (rng.random(batch) < 0.05)
        yield X, y.astype(np.int64)
        row += batch
