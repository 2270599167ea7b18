"""The forest that the paper's benchmarks are run with, and what its trees are made of."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import BoundaryForestClassifier
from boundary_forest.estimators.engine_state import trees_in
from boundary_forest.paper.context import Context

Tree = tuple[NDArray[np.int64], NDArray[np.int64]]


def classifier(context: Context, **params: Any) -> BoundaryForestClassifier:
    """BF: 50 trees of at most 50 children a node, unless ``params`` say otherwise."""
    return BoundaryForestClassifier(
        **{"n_jobs": context.n_jobs, "random_state": context.seed, **params}
    )


def trees(forest: Any) -> list[Tree]:
    """Arrival numbers of each tree's examples and of their parents, -1 for the root's."""
    state = forest._engine.state()
    found = []
    for slots, parents in trees_in(state):
        arrivals = state["arrivals"][slots].astype(np.int64)
        found.append((arrivals, np.concatenate([[-1], arrivals[parents[1:]]])))
    return found


def votes(forest: BoundaryForestClassifier, y_train: NDArray[Any], X: Any) -> NDArray[Any]:
    """The class of the example that each tree ends at, one column a tree."""
    found: NDArray[Any] = y_train[forest.apply(X)]
    return found
