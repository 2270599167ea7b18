"""Boundary Forest: the online nearest-neighbour learner.

Classifies, regresses and retrieves with a forest of trees whose nodes are stored examples (Mathy,
Derbinsky, Bento, Rosenthal and Yedidia, AAAI 2015). It learns one example at a time, answers after
the first, and costs O(log N) per example.

Names are imported when they are first used: numpy, scipy and scikit-learn take a second, in which
the command line must be able to mind Ctrl-C already.
"""

import importlib

TYPE_CHECKING = False  # typing's own would have to be imported
if TYPE_CHECKING:
    from boundary_forest.client import Client, RequestError
    from boundary_forest.durable import DurableForest, open_durable
    from boundary_forest.estimators.classifier import BoundaryForestClassifier
    from boundary_forest.estimators.errors import JournalError
    from boundary_forest.estimators.forest import BoundaryForest
    from boundary_forest.estimators.neighbors import BoundaryForestNeighbors
    from boundary_forest.estimators.regressor import BoundaryForestRegressor
    from boundary_forest.files import ModelFileError, load

__version__ = "0.1.0"

__all__ = [
    "BoundaryForest",
    "BoundaryForestClassifier",
    "BoundaryForestNeighbors",
    "BoundaryForestRegressor",
    "Client",
    "DurableForest",
    "JournalError",
    "ModelFileError",
    "RequestError",
    "__version__",
    "load",
    "open_durable",
]

_HOMES = {
    "BoundaryForest": "boundary_forest.estimators.forest",
    "BoundaryForestClassifier": "boundary_forest.estimators.classifier",
    "BoundaryForestNeighbors": "boundary_forest.estimators.neighbors",
    "BoundaryForestRegressor": "boundary_forest.estimators.regressor",
    "Client": "boundary_forest.client",
    "DurableForest": "boundary_forest.durable",
    "JournalError": "boundary_forest.estimators.errors",
    "ModelFileError": "boundary_forest.files",
    "RequestError": "boundary_forest.client",
    "load": "boundary_forest.files",
    "open_durable": "boundary_forest.durable",
}
_PACKAGES = ("durable", "estimators", "files")


def __getattr__(name: str) -> object:
    if name in _PACKAGES:
        return importlib.import_module(f"boundary_forest.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'boundary_forest' has no attribute {name!r}")
    value: object = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
