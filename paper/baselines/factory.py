"""The paper's baselines by the names that its tables have for them."""

from __future__ import annotations

from typing import Any

from paper.baselines.base import Baseline
from paper.baselines.cover_tree import CoverTree
from paper.baselines.kd_trees import RandomizedKDTrees
from paper.baselines.offline import KNearestNeighbors, RandomForest

_Recipe = tuple[type[Baseline], dict[str, Any]]


def _cover_tree(base: float, epsilon: float) -> _Recipe:
    """Return a cover tree with the narrow insertion, as the paper's seems to have.

    With the wide one a smaller base is no quicker to train, and the paper finds that it is (mnist:
    18.8 s for base 1.1, 168.4 s for base 1.3).
    """
    return CoverTree, {"base": base, "epsilon": epsilon, "separated": False}


_MADE: dict[str, _Recipe] = {
    "1-NN": (KNearestNeighbors, {"n_neighbors": 1}),
    "3-NN": (KNearestNeighbors, {"n_neighbors": 3}),
    "10-NN": (KNearestNeighbors, {"n_neighbors": 10}),
    "RF-50": (RandomForest, {"n_estimators": 50, "max_features": 50}),
    "RF-100": (RandomForest, {"n_estimators": 100, "max_features": "sqrt"}),
    "R-kd": (RandomizedKDTrees, {"n_trees": 4, "checks": 0.1}),
    "CT(1.3, 10)": _cover_tree(1.3, 10.0),
    "CT(1.1, 10)": _cover_tree(1.1, 10.0),
    "CT(1.3, 0.1)": _cover_tree(1.3, 0.1),
    "CT(1.1, 0.1)": _cover_tree(1.1, 0.1),
}
NAMES = tuple(_MADE)
_SHORT = {"RF": "RF-50", "CT": "CT(1.3, 10)"}  # as the main tables have them


def make(name: str, **params: Any) -> Baseline:
    """Make an unfitted baseline by the paper's name for it.

    Parameters
    ----------
    name : str
        One of ``NAMES``, or "CT" or "RF" for those of the main tables.
    **params
        Further parameters, or other values of the named ones.

    Returns
    -------
    baseline : Baseline

    Examples
    --------
    >>> from paper.baselines import make
    >>> make("CT", epsilon=0.1).name
    'CT(1.3, 0.1)'
    """
    known = _SHORT.get(name, name)
    if known not in _MADE:
        raise ValueError(f"name must be one of {', '.join([*NAMES, *_SHORT])}, got {name!r}")
    kind, preset = _MADE[known]
    return kind(**{**preset, **params})
