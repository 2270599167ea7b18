"""Which stored examples decided an answer, as far as that is certain.

A learning call answers each of its rows before it learns it, and learns the rest of the call before
it returns. What the call itself returns (answer, confidence, each class's share) is kept as it is.
The examples that each tree ended at are not among it; they are read from the trees right after the
call, while all that is newer than the row is the rest of its call. A tree only grows, and a child
is always newer than its parent, so this finds what the row's own descent found, or that it cannot:

- The row itself is on the path. It was added as a child of the example that its descent ended at.
- The path has only examples older than the row. Each step went to the nearest of a node and its
  children, and an older child that is the nearest of all is also the nearest of the older ones; the
  end is nearer than all its children. So it is the same path. (A step to a child that is farther
  than its parent happens only if the parent has ``max_children`` children. Whether it had them when
  the row was answered is not known, so such a path does not count.)
- Any other path has been changed by a newer example: what the tree found is not known.

None of it holds if the forest has decided something for itself since: it may have grown its trees
anew. Then nothing is certain.

Where every tree is certain, the weights of their ends must give the recorded answer; if they do
not (equal distances of 0 are decided by the number of examples seen), nothing is certain.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.estimators.explanation import Step

TOLERANCE = 1e-6  # relative; sums of weights in another order differ by far less


@dataclass(frozen=True)
class End:
    """A stored example that trees ended at.

    Parameters
    ----------
    arrival : int
        Its arrival number.
    label : object
        Its class or target.
    distance : float
        Its distance from the row.
    trees : int
        Number of trees that ended there.
    weight : float or None
        Its share of the answer, for all of these trees together; None if not all trees' ends are
        known, because then no share is.
    """

    arrival: int
    label: Any
    distance: float
    trees: int
    weight: float | None = None


@dataclass(frozen=True)
class Decision:
    """The stored examples that decided an answer.

    Parameters
    ----------
    ends : tuple of End
        Those that are known for certain, the weightiest or else the nearest first.
    trees : int
        Number of trees that the forest has; those whose end is not known are not among ``ends``.
    """

    ends: tuple[End, ...]
    trees: int

    @property
    def known(self) -> int:
        """Number of trees whose end is known."""
        return sum(end.trees for end in self.ends)

    @property
    def is_whole(self) -> bool:
        """Whether the ends of all trees are known, and so their weights."""
        return self.known == self.trees and self.known > 0


def decision_on(forest: Any, x: NDArray[Any], arrival: int, recorded: dict[Any, float]) -> Decision:
    """Return the stored examples that decided the answer to a row.

    Parameters
    ----------
    forest : estimator or DurableForest
        The forest, right after the call that learned the row.
    x : ndarray of shape (n_features,)
        The row's position.
    arrival : int
        The row's arrival number.
    recorded : dict
        What was recorded: each class's share; in regression, the answer under the key None.
    """
    paths = [tree.steps for tree in forest.explain(x).trees]
    if arrival < len(paths):  # answered from the buffer, before there were trees
        return Decision((), len(paths))
    if _decides(forest) and last_decision(forest.examples_seen) > arrival:
        return Decision((), len(paths))
    found = [end for steps in paths if (end := _end_of(steps, arrival)) is not None]
    if len(found) < len(paths):
        ends = sorted(_merged(found, [None] * len(found)), key=lambda e: (e.distance, e.arrival))
        return Decision(tuple(ends), len(paths))
    weights = _weights(np.array([step.distance for step in found]), forest.vote_power_)
    if not _agrees(found, weights, recorded):
        return Decision((), len(paths))
    ends = _merged(found, weights.tolist())
    ends.sort(key=lambda e: (-(e.weight or 0.0), e.arrival))
    return Decision(tuple(ends), len(paths))


def _decides(forest: Any) -> bool:
    """Whether the forest learns weights of features, or how its votes are weighed."""
    adaptive = forest.fitted.settings.adaptive
    return bool(adaptive["feature_weights"] == "learned" or adaptive["weights"] == "auto")


def _end_of(steps: Sequence[Step], arrival: int) -> Step | None:
    """Return what the row's own descent of a tree ended at, None if that is not certain."""
    older = [step for step in steps if step.arrival < arrival]
    if len(older) < len(steps):
        return older[-1] if steps[len(older)].arrival == arrival else None
    nearer = all(b.distance < a.distance for a, b in itertools.pairwise(older))
    return older[-1] if nearer else None


def _weights(distances: NDArray[np.float64], power: float) -> NDArray[np.float64]:
    """Return the weights of the trees' ends: 1 / distance ** power; those at 0 decide alone."""
    at_zero = distances == 0
    weights = at_zero.astype(np.float64) if at_zero.any() else distances**-power
    return np.asarray(weights / weights.sum())


def _agrees(found: list[Step], weights: NDArray[np.float64], recorded: dict[Any, float]) -> bool:
    """Whether these ends give what the engine answered."""
    if recorded.keys() == {None}:
        answer = float(weights @ np.array([step.label for step in found], dtype=np.float64))
        return bool(np.isclose(answer, recorded[None], rtol=TOLERANCE, atol=TOLERANCE))
    shares: dict[Any, float] = dict.fromkeys(recorded, 0.0)
    for step, weight in zip(found, weights.tolist(), strict=True):
        shares[step.label] = shares.get(step.label, 0.0) + weight
    return all(abs(share - recorded.get(label, 0.0)) < TOLERANCE for label, share in shares.items())


def _merged(found: list[Step], weights: Sequence[float | None]) -> list[End]:
    """Return the ends, trees that ended at the same example counted together."""
    together: dict[int, End] = {}
    for step, weight in zip(found, weights, strict=True):
        old = together.get(step.arrival)
        if old is None:
            together[step.arrival] = End(step.arrival, step.label, step.distance, 1, weight)
        else:
            both = None if weight is None or old.weight is None else old.weight + weight
            together[step.arrival] = replace(old, trees=old.trees + 1, weight=both)
    return list(together.values())
