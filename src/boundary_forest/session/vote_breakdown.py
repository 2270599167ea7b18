"""Which stored examples decided an answer, and with what weight.

The engine returns what each tree ended at together with the answer, so that all of it is what the
forest had when it answered, whatever it has learned since. Here it is merged for a reader: trees
that ended at the same example count together.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, Self

from boundary_forest.estimators import Ends
from boundary_forest.estimators.explanation import Explanation


@dataclass(frozen=True)
class VotingExample:
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
        Number of trees that ended there; 0 if there was none yet.
    weight : float
        Its share of the answer, for all of these trees together. In a mixture it is what its
        label is multiplied by, which may be negative, and models over all rows may have the rest.
    """

    arrival: int
    label: Any
    distance: float
    trees: int
    weight: float


@dataclass(frozen=True)
class VoteBreakdown:
    """The stored examples that decided an answer.

    Parameters
    ----------
    examples : tuple of VotingExample
        The examples that the trees ended at, those that count most first. Before there were
        trees, the nearest one; none if that is not known.
    """

    examples: tuple[VotingExample, ...]

    @classmethod
    def of_row(cls, ends: Ends, row: int) -> Self:
        """Return what decided the answer to a row that was learned then."""
        one = ends[row : row + 1]
        columns = (one.arrivals, one.labels, one.distances, one.weights)
        found = zip(*(column[0].tolist() for column in columns), strict=True)
        return cls._of_trees(VotingExample(a, label, d, 1, w) for a, label, d, w in found)

    @classmethod
    def of_explanation(cls, explanation: Explanation) -> Self:
        """Return what decided the answer of a forest that has learned nothing since."""
        found = ((tree.steps[-1], tree.weight) for tree in explanation.trees)
        return cls._of_trees(VotingExample(e.arrival, e.label, e.distance, 1, w) for e, w in found)

    def without_trees(self) -> VoteBreakdown:
        """Return the same of a forest that had no trees yet, where each of them has the nearest."""
        return VoteBreakdown(tuple(replace(end, trees=0) for end in self.examples))

    @classmethod
    def _of_trees(cls, found: Iterable[VotingExample]) -> Self:
        """Merge the ends of single trees."""
        merged: dict[int, VotingExample] = {}
        for end in found:
            old = merged.setdefault(end.arrival, replace(end, trees=0, weight=0.0))
            merged[end.arrival] = replace(
                old, trees=old.trees + end.trees, weight=old.weight + end.weight
            )
        return cls(tuple(sorted(merged.values(), key=lambda end: (-abs(end.weight), end.arrival))))
