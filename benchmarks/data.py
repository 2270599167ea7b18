"""Data sets: those of ``paper.datasets`` that are at hand, else digits or generated ones.

A substitute has its own name, never that of the data set it replaces.
"""

from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from paper import datasets

Array = NDArray[Any]

N_COVTYPE = (100_000, 20_000)  # training and test rows
N_SMOKE = (2_000, 500)
STAND_IN_SEED = 0  # whatever the run's, so that the error to expect is known


@dataclass(frozen=True)
class Data:
    """Training examples, in order, and test examples."""

    name: str
    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    is_real: bool

    @property
    def title(self) -> str:
        n, n_features = self.X_train.shape
        n_test = len(self.X_test)
        return f"{self.name}: {n:,} rows to fit, {n_test:,} to predict, {n_features} features"

    def sizes(self) -> dict[str, Any]:
        """Return the description that the JSON file has."""
        return {
            "name": self.name,
            "is_real": self.is_real,
            "train": list(self.X_train.shape),
            "test": list(self.X_test.shape),
            "dtype": str(self.X_train.dtype),
        }

    def first(self, n: int, n_test: int) -> Self:
        """Return the first n training examples and the first few test examples."""
        return replace(
            self,
            X_train=self.X_train[:n],
            y_train=self.y_train[:n],
            X_test=self.X_test[:n_test],
            y_test=self.y_test[:n_test],
        )

    def as_float32(self) -> Self:
        """Return the same rows as float32, under a name that says so."""
        X_train, X_test = (X.astype(np.float32) for X in (self.X_train, self.X_test))
        return replace(self, name=f"{self.name} as float32", X_train=X_train, X_test=X_test)

    def shuffled(self, seed: int) -> Self:
        """Return the same data with the training examples in another order."""
        order = np.random.default_rng(seed).permutation(len(self.y_train))
        return replace(self, X_train=self.X_train[order], y_train=self.y_train[order])


def load(name: str, seed: int, *, smoke: bool = False) -> Data:
    """Return the data set of this name, or its substitute if it is absent or ``smoke`` is set."""
    arrays = None if smoke else stored(name)
    if arrays is None:
        return _stand_in(name, N_SMOKE if smoke else N_COVTYPE)
    if name == "covtype":
        return standardised(name, *_joined(arrays), seed, N_COVTYPE)
    X_train, y_train, X_test, y_test = (
        arrays[part] for part in ("X_train", "y_train", "X_test", "y_test")
    )
    return Data(name, X_train, y_train, X_test, y_test, is_real=True)


def load_table(name: str, seed: int, *, smoke: bool = False) -> Data:
    """Return a table with its raw columns as float64, for classification or regression."""
    arrays = None if smoke else stored(name)
    if arrays is None:
        n, n_test = N_SMOKE
        return generated_table(n + n_test, n_useful=6, n_features=10, name=f"generated {name}")
    if name == "covtype":
        X, y = _joined(arrays)
        order = np.random.default_rng(seed).permutation(len(y))[: sum(N_COVTYPE)]
        X, y, n = X[order].astype(np.float64), y[order], N_COVTYPE[0]
        return Data(name, X[:n], y[:n], X[n:], y[n:], is_real=True)
    parts = [arrays[part] for part in ("X_train", "y_train", "X_test", "y_test")]
    X_train, y_train, X_test, y_test = parts
    return Data(name, X_train.astype(float), y_train, X_test.astype(float), y_test, is_real=True)


def generated_table(
    n: int, *, n_useful: int, n_features: int, name: str = "3 useful of 20"
) -> Data:
    """Return rows whose class is the parity of cells along a few features, on different scales."""
    rng = np.random.default_rng(STAND_IN_SEED)
    X = rng.uniform(size=(n, n_features))
    y = np.floor(2 * X[:, :n_useful]).sum(axis=1).astype(np.int64) % 2
    X *= 10.0 ** rng.integers(-3, 4, size=n_features)
    n_train = n * 4 // 5
    return Data(name, X[:n_train], y[:n_train], X[n_train:], y[n_train:], is_real=False)


def load_stream(name: str, n: int, *, smoke: bool = False) -> tuple[str, Array, Array]:
    """Return the name of a stream and its first n examples, in the order of time."""
    arrays = None if smoke else stored(name)
    if arrays is not None:
        X, y = _joined(arrays)
        return name, X[:n], y[:n]
    X = np.random.default_rng(STAND_IN_SEED).uniform(size=(n, 6))
    return "generated stream", X, (np.sin(6 * X[:, 0]) > 2 * X[:, 1] - 1).astype(np.int64)


def stored(name: str) -> dict[str, Array] | None:
    """Return the arrays of a data set, or None if it is not on this machine."""
    return dict(datasets.load(name, download=False)) if datasets.available(name) else None


def standardised(
    name: str, X: Array, y: Array, seed: int, sizes: tuple[int, int], *, is_real: bool = True
) -> Data:
    """Return shuffled rows as float32, standardised by the training rows."""
    n, n_test = sizes
    order = np.random.default_rng(seed).permutation(len(y))[: n + n_test]
    rows, y = X[order].astype(np.float64), y[order]
    deviation = rows[:n].std(axis=0)
    deviation[deviation == 0] = 1
    rows = ((rows - rows[:n].mean(axis=0)) / deviation).astype(np.float32)
    return Data(name, rows[:n], y[:n], rows[n:], y[n:], is_real)


def _joined(arrays: dict[str, Array]) -> tuple[Array, Array]:
    X = np.concatenate([arrays["X_train"], arrays["X_test"]])
    return X, np.concatenate([arrays["y_train"], arrays["y_test"]])


def _stand_in(name: str, sizes: tuple[int, int]) -> Data:
    if name in ("mnist", "pendigits"):
        return _digits()
    if name == "letter":
        small = (min(sizes[0], 10_000), min(sizes[1], 5_000))
        return _generated("generated-16", 16, 26, small)
    if name == "dna":
        data = _generated("generated-180-binary", 180, 3, N_SMOKE)
        X_train, X_test = ((X > 0).astype(np.uint8) for X in (data.X_train, data.X_test))
        return replace(data, X_train=X_train, X_test=X_test)
    if name == "covtype":
        return _generated("generated-54", 54, 7, sizes)
    raise ValueError(f"name must be one of mnist, letter, pendigits, dna, covtype; got {name!r}")


def _digits() -> Data:
    """Return scikit-learn's digits, too few to judge speed by."""
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(STAND_IN_SEED).permutation(len(y))
    X, y = X[order].astype(np.uint8), y[order]
    return Data("digits", X[:-500], y[:-500], X[-500:], y[-500:], is_real=False)


def _generated(name: str, n_features: int, n_classes: int, sizes: tuple[int, int]) -> Data:
    """Return three clouds per class; neighbouring clouds overlap, so that there is a boundary.

    The clouds lie in 8 dimensions and are embedded by a random map: in many dimensions they would
    be so far apart that there were no errors.
    """
    rng = np.random.default_rng(STAND_IN_SEED)
    centres = 2.0 * rng.normal(size=(3 * n_classes, 8))
    cloud = rng.integers(len(centres), size=sum(sizes))
    hidden = centres[cloud] + rng.normal(size=(len(cloud), 8))
    X = hidden @ rng.normal(size=(8, n_features)) + rng.normal(size=(len(cloud), n_features))
    return standardised(name, X, cloud % n_classes, STAND_IN_SEED, sizes, is_real=False)
