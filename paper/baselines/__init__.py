"""What the paper compares the forest with, behind one interface: fit, partial_fit, predict, stats.

The cover tree and the randomized kd trees learn one example at a time, as the forest does. k-NN and
the random forest are scikit-learn's, and are trained from scratch whenever there is more to learn.
"""

from paper.baselines.base import Baseline, NeighborsBaseline
from paper.baselines.cover_tree import CoverTree
from paper.baselines.factory import NAMES, make
from paper.baselines.kd_trees import RandomizedKDTrees
from paper.baselines.offline import KNearestNeighbors, RandomForest

__all__ = [
    "NAMES",
    "Baseline",
    "CoverTree",
    "KNearestNeighbors",
    "NeighborsBaseline",
    "RandomForest",
    "RandomizedKDTrees",
    "make",
]
