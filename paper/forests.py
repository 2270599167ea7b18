"""The forest that the paper's benchmarks are run with, and what its trees are made of."""

from typing import Any

from numpy.typing import NDArray

from boundary_forest import BoundaryForestClassifier
from paper.context import Context


def classifier(context: Context, **params: Any) -> BoundaryForestClassifier:
    """BF: 50 trees of at most 50 children a node, unless ``params`` say otherwise."""
    return BoundaryForestClassifier(
        shuffle=False, **{"n_jobs": context.n_jobs, "random_state": context.seed, **params}
    )


def votes(forest: BoundaryForestClassifier, y_train: NDArray[Any], X: Any) -> NDArray[Any]:
    """Return the class of the example that each tree ends at, one column a tree."""
    found: NDArray[Any] = y_train[forest.apply(X)]
    return found
