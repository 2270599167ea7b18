"""What labels mean: one policy per task, all of one form.

``policy.py`` says what a policy must offer; ``classes.py``, ``numbers.py`` and ``absent.py`` hold
the policies of classification, of regression and the general form, and of retrieval.
"""

from boundary_forest.estimators.labels.absent import NoLabels
from boundary_forest.estimators.labels.classes import ClassLabels
from boundary_forest.estimators.labels.label_vectors import LabelVectors, Node, Targets
from boundary_forest.estimators.labels.policy import Endings, LabelPolicy

__all__ = ["ClassLabels", "Endings", "LabelPolicy", "LabelVectors", "NoLabels", "Node", "Targets"]
