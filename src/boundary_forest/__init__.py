"""Boundary Forest: the online nearest-neighbour learner.

Classifies, regresses and retrieves with a forest of trees whose nodes are stored examples (Mathy,
Derbinsky, Bento, Rosenthal and Yedidia, AAAI 2015). It learns one example at a time, answers after
the first, and costs O(log N) per example.
"""

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
    "DurableForest",
    "JournalError",
    "ModelFileError",
    "__version__",
    "load",
    "open_durable",
]
