"""Types of the compiled engine; bindings/core.cpp is the source."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

def instruction_set() -> str: ...

class Forest:
    def __init__(
        self,
        *,
        n_estimators: int,
        max_children: int | None,
        n_features: int,
        label_length: int,
        label_rule: str,
        estimator: str,
        epsilon: float | None,
        element_type: str,
        seed: int,
        metric: str | int | Callable[[NDArray[np.float64], NDArray[np.float64]], float],
        p: float,
    ) -> None: ...
    def learn(self, X: NDArray[Any], y: NDArray[np.float64], n_jobs: int) -> None: ...
    def learn_offline(self, X: NDArray[Any], y: NDArray[np.float64], n_jobs: int) -> None: ...
    def apply(self, X: NDArray[Any], n_jobs: int) -> NDArray[np.uint64]: ...
    def estimate(self, X: NDArray[Any], n_jobs: int) -> NDArray[np.float64]: ...
    def neighbors(
        self, X: NDArray[Any], n_neighbors: int, n_jobs: int
    ) -> tuple[NDArray[np.float64], NDArray[np.uint64]]: ...
    def stats(self) -> dict[str, Any]: ...
    def state(self) -> dict[str, Any]: ...
