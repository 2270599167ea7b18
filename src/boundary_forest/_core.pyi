"""Types of the compiled engine; bindings/core.cpp and bindings/baselines.cpp are the source."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

def instruction_set() -> str: ...

Metric = str | int | Callable[[NDArray[np.float64], NDArray[np.float64]], float]

class Forest:
    def __init__(
        self,
        *,
        n_estimators: int,
        max_children: int | None,
        n_features: int,
        label_length: int,
        label_metric: str | Callable[[NDArray[np.float64], NDArray[np.float64]], float],
        estimator: str,
        epsilon: float | None,
        element_type: str,
        seed: int,
        metric: Metric,
        p: float,
    ) -> None: ...
    def learn(self, X: NDArray[Any], y: NDArray[np.float64], n_jobs: int) -> None: ...
    def learn_offline(self, X: NDArray[Any], y: NDArray[np.float64], n_jobs: int) -> None: ...
    def predict_then_learn(
        self, X: NDArray[Any], y: NDArray[np.float64], n_jobs: int
    ) -> NDArray[np.float64]: ...
    def apply(self, X: NDArray[Any], n_jobs: int) -> NDArray[np.uint64]: ...
    def estimate(self, X: NDArray[Any], n_jobs: int) -> NDArray[np.float64]: ...
    def found(
        self, X: NDArray[Any], n_jobs: int
    ) -> tuple[NDArray[np.uint32], NDArray[np.float64]]: ...
    def paths(
        self, x: NDArray[Any]
    ) -> tuple[
        list[tuple[NDArray[np.uint32], NDArray[np.float64]]],
        NDArray[np.float64],
        NDArray[np.float64],
    ]: ...
    def examples(
        self, slots: NDArray[np.uint32]
    ) -> tuple[NDArray[Any], NDArray[np.float64], NDArray[np.uint64]]: ...
    def neighbors(
        self, X: NDArray[Any], n_neighbors: int, n_jobs: int
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]: ...
    @property
    def seen(self) -> int: ...
    @property
    def label_deviation(self) -> float: ...
    def widen(self, n_features: int) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def state(self, with_positions: bool = True) -> dict[str, Any]: ...
    def rows_from(self, first: int) -> NDArray[Any]: ...
    def restore(self, state: dict[str, Any], positions: str = "copied") -> None: ...

class CoverTree:
    def __init__(
        self,
        *,
        base: float,
        n_features: int,
        element_type: str,
        separated: bool,
        tight: bool,
        metric: Metric,
        p: float,
    ) -> None: ...
    def insert(self, X: NDArray[Any]) -> None: ...
    def neighbors(
        self, X: NDArray[Any], n_neighbors: int, epsilon: float
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]: ...
    @property
    def size(self) -> int: ...
    @property
    def comparisons(self) -> tuple[int, int]: ...
    @property
    def nodes(self) -> tuple[NDArray[np.int32], NDArray[np.uint32]]: ...
