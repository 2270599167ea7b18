"""The forest in plain Python and numpy: the oracle that the compiled engine is held to.

``paper.py`` has the paper's two algorithms in its own names, ``metrics.py`` the distances and
``randomness.py`` the one hash. ``extended.py`` adds the parameters that the paper does not have; it
takes each from a module of its own. ``graph.py`` searches the trees as one graph.
"""

from boundary_forest.reference.extended import ExtendedForest
from boundary_forest.reference.metrics import always, euclidean_label_distance
from boundary_forest.reference.paper import BoundaryForest, BoundaryTree, Node
from boundary_forest.reference.randomness import hash64

__all__ = [
    "BoundaryForest",
    "BoundaryTree",
    "ExtendedForest",
    "Node",
    "always",
    "euclidean_label_distance",
    "hash64",
]
