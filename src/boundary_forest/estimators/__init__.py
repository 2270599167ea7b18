"""The estimators: what labels mean, and the calls that learn and answer."""

from boundary_forest.estimators.batch import Batch, Recorder
from boundary_forest.estimators.ends import Ends

__all__ = ["Batch", "Ends", "Recorder"]
