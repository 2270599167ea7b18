"""The same forests on a Ray cluster: each actor holds some of the trees.

For the same seed, forests and answers are those of the estimators in one process, by
``fingerprint``. It needs Ray: ``pip install "ray[data]"``.
"""

try:
    import ray as _ray  # noqa: F401
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    raise ModuleNotFoundError(
        "boundary_forest.ray requires Ray: pip install 'ray[data]'", name="ray"
    ) from error

from boundary_forest.ray.checkpoint import ForestLostError
from boundary_forest.ray.estimators import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

__all__ = [
    "BoundaryForestClassifier",
    "BoundaryForestNeighbors",
    "BoundaryForestRegressor",
    "ForestLostError",
]
