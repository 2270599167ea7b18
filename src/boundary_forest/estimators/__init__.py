"""The estimators: what labels mean, and the calls that learn and answer."""

from boundary_forest.estimators.batch import BatchRecorder, LearningBatch
from boundary_forest.estimators.ends import Ends

__all__ = ["BatchRecorder", "Ends", "LearningBatch"]
