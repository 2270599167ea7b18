"""The forest in plain Python and numpy: the oracle that the compiled engine is held to.

``paper.py`` has the paper's two algorithms in its own names, ``metrics.py`` the distances. What
goes beyond the paper is beside them: ``weights.py``, weights of features that are learned, and
``votes.py``, how the trees' answers are weighed, and ``graph.py``, search over the trees as one
graph. ``randomness.py`` has the one hash behind it all.
"""

from boundary_forest.reference.metrics import always, euclidean_label_distance
from boundary_forest.reference.paper import BoundaryForest, BoundaryTree, Node
from boundary_forest.reference.randomness import hash64

__all__ = [
    "BoundaryForest",
    "BoundaryTree",
    "Node",
    "always",
    "euclidean_label_distance",
    "hash64",
]
