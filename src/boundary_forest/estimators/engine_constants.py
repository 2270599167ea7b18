"""Numbers and names that the compiled engine decides, and the arrays that its state consists of.

The rest of the package reads them here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import _core

# Names that parameters may have.
ELEMENT_TYPES = tuple(_core.element_types())
METRICS = tuple(_core.metric_names())
LABEL_METRICS = tuple(_core.label_metrics())
VOTE_WEIGHTS = tuple(_core.vote_weights())
ID_KINDS = NONE, INT64, TEXT = tuple(_core.id_kinds())
SEARCHES = PAPER, GRAPH = tuple(_core.searches())

# Bounds of parameters, and a default.
MOST_TREES = _core.MOST_TREES
FEWEST_CHILDREN, MOST_CHILDREN = _core.FEWEST_CHILDREN, _core.MOST_CHILDREN
MOST_STORED = _core.MOST_STORED  # examples
SHORTEST_LIFETIME, LONGEST_LIFETIME = _core.SHORTEST_LIFETIME, _core.LONGEST_LIFETIME  # examples
LEAST_WEIGHT, LARGEST_WEIGHT = _core.LEAST_WEIGHT, _core.LARGEST_WEIGHT  # of a feature; or 0
LEAST_CLASS_WEIGHT = _core.LEAST_CLASS_WEIGHT  # what votes for a class are multiplied by
LARGEST_CLASS_WEIGHT = _core.LARGEST_CLASS_WEIGHT
BEAM = _core.BEAM  # by measurement: `make bench SECTIONS=retrieval`

# A forest that learns weights or chooses votes decides after FIRST_DECISION examples and at each
# doubling; one that forgets also learns weights after every PERIOD examples. Trees with new weights
# are then grown in GROWING_STEPS steps.
FIRST_DECISION, PERIOD, GROWING_STEPS = _core.FIRST_DECISION, _core.PERIOD, _core.GROWING_STEPS

# The rules by which votes may be weighed, by number: the power p of 1 / distance ** p, how much
# recent skill counts, and whether only trees of unlimited lifetime have a vote.
TABLE_RULES = tuple(_core.vote_rules(False))
STREAM_RULES = tuple(_core.vote_rules(True))  # of a forest that forgets

# The experts that a mixture weighs, by number.
EXPERTS = tuple(_core.experts())
STREAM_EXPERTS = tuple(_core.experts(forgets=True))
N_STREAM_MODELS = _core.N_STREAM_MODELS  # linear models of a stream's mixture
MOST_LINEAR_FEATURES, MOST_LINEAR_OUTPUTS = _core.MOST_LINEAR_FEATURES, _core.MOST_LINEAR_OUTPUTS
MOST_KNOTS = _core.MOST_KNOTS
MOST_TERMS = _core.MOST_TERMS

# What its state holds.
MOST_SEEN = _core.MOST_SEEN  # examples
LONGEST_WINDOW = _core.LONGEST_WINDOW  # examples
MOST_MEMBERS = _core.MOST_MEMBERS  # of the reservoir
LOG_WEIGHTS_PER_OCTAVE = _core.LOG_WEIGHTS_PER_OCTAVE
LARGE_LABEL = _core.LARGE_LABEL  # beyond it the square of a difference might overflow

NO_RANK = _core.NO_RANK  # where a class stands that was forgotten

# The numbers of its state.
NUMBERS = ("seen", "n_classes", "counts", "vote_power", "replays")
# The engine's arrays, each with its type and dimensions; positions have the forest's element type.
ELEMENT_TYPE = "element type"
STATE_ARRAYS = {
    "labels": ("float64", 2),
    "arrivals": ("uint64", 1),
    "spread": ("float64", 1),
    "tree_sizes": ("uint32", 1),
    "node_examples": ("uint32", 1),
    "node_parents": ("uint32", 1),
    "tree_places": ("uint32", 1),
    "tree_generations": ("uint32", 1),
    "log_weights": ("int32", 2),
    "tree_weights": ("uint32", 1),
    "window_positions": (ELEMENT_TYPE, 2),
    "window_labels": ("float64", 2),
    "window_arrivals": ("uint64", 1),
    "reservoir_arrivals": ("uint64", 1),
    "vote_errors": ("float64", 1),
    "tree_losses": ("float64", 1),
    "class_weights": ("float64", 1),
    "class_counts": ("float64", 1),
    "mixture_weights": ("float64", 1),
    "mixture_trial": ("float64", 1),
    "class_order": ("uint32", 1),
    "linear_map": ("float64", 1),
    "linear_sums": ("float64", 1),
    "linear_model": ("float64", 1),
}
VOTE_ARRAYS = ("vote_errors", "tree_losses", "class_weights", "class_counts")
ID_COLUMNS = ("ids", "window_ids")  # each None, an array of int64 or a list of str

NodeArrays = tuple[NDArray[np.uint32], NDArray[np.uint32]]


def trees_in(state: dict[str, Any]) -> Iterator[NodeArrays]:
    """For each tree, its nodes' examples and parents (the root's is no node), as created."""
    begin = 0
    for size in state["tree_sizes"].tolist():
        nodes = slice(begin, begin + size)
        yield state["node_examples"][nodes], state["node_parents"][nodes]
        begin += size
