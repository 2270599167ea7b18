"""The forest for River: learners on dicts of features, and a search engine for River's k-NN.

Each class is one of the scikit-learn estimators behind River's methods: that estimator says what
its engine is made of, and ``named_forest.py`` turns dicts and frames into the engine's rows.
"""

try:
    import river as _river  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "boundary_forest.river needs River and pandas: pip install river pandas",
        name=error.name,
    ) from error

from boundary_forest.river.classifier import BoundaryForestClassifier
from boundary_forest.river.engine import BoundaryForestEngine
from boundary_forest.river.regressor import BoundaryForestRegressor

__all__ = ["BoundaryForestClassifier", "BoundaryForestEngine", "BoundaryForestRegressor"]
