"""Why a forest answered as it did: each tree's path, and what its end weighed in the answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.adaptive import (
    importances_of,
    most_important,
    named_importances,
)
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.ids import names_of
from boundary_forest.estimators.labels import Endings


@dataclass(frozen=True)
class Step:
    """A stored example on the way down.

    Parameters
    ----------
    arrival : int
        Its arrival number: 0 for the first example ever learned.
    distance : float
        Its distance from the query.
    label : object
        Its class or target; None in retrieval.
    """

    arrival: int
    distance: float
    label: Any


@dataclass(frozen=True)
class TreePath:
    """One tree's way from its root to the locally closest example.

    Parameters
    ----------
    steps : tuple of Step
        The examples, the root first.
    weight : float
        The share of the answer that the last of them had; the weights of all trees sum to 1.
    """

    steps: tuple[Step, ...]
    weight: float


@dataclass(frozen=True)
class Explanation:
    """What :meth:`explain` returns. Print it, or take :meth:`to_dict`.

    Parameters
    ----------
    answer : object
        What the forest answers.
    confidence : float
        Agreement between the trees, in [0, 1]: the weight of those that agree with the answer.
    trees : tuple of TreePath
        Every tree's path.
    importances : tuple of (str, float)
        The few most important features of a forest that weighs them, with their shares of all
        importances, the largest first.
    """

    answer: Any
    confidence: float
    trees: tuple[TreePath, ...]
    importances: tuple[tuple[str, float], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the same as plain dicts, lists and numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> explained = forest.explain([8]).to_dict()
        >>> explained["answer"], explained["confidence"], len(explained["trees"])
        ('b', 1.0, 50)
        """
        return {
            "answer": self.answer,
            "confidence": self.confidence,
            "trees": [
                {"weight": tree.weight, "steps": [asdict(step) for step in tree.steps]}
                for tree in self.trees
            ],
            "importances": dict(self.importances),
        }

    def __str__(self) -> str:
        lines = [f"answer {self.answer!r}, confidence {self.confidence:.2f}"]
        if self.importances:
            shares = (f"{name} {share:.2f}" for name, share in self.importances)
            lines.append("most important: " + ", ".join(shares))
        for index, tree in enumerate(self.trees):
            path = " > ".join(
                f"#{step.arrival}"
                + ("" if step.label is None else f" {step.label!r}")
                + f" at {step.distance:.4g}"
                for step in tree.steps
            )
            lines.append(f"tree {index:>3}, weight {tree.weight:.3f}: {path}")
        return "\n".join(lines)


def explanation_of(fitted: Fitted, row: NDArray[Any]) -> Explanation:
    """Return how a fitted forest answers one query, of shape (1, n_features)."""
    trees, weights, estimate, examples = fitted.engine.paths(row)
    positions, labels, arrivals, ids = examples
    arrivals = arrivals.astype(np.int64)
    policy = fitted.labels
    weights, shown = policy.weighed(weights), policy.shown(labels)
    paths = [
        TreePath(
            tuple(
                Step(int(arrivals[place]), float(distance), shown[place])
                for place, distance in zip(places, distances, strict=True)
            ),
            float(weight),
        )
        for (places, distances), weight in zip(trees, weights, strict=True)
    ]
    ends = np.array([places[-1] for places, _ in trees])
    answer, confidence = policy.concluded(
        Endings(
            query=row[0],
            estimate=estimate,
            weights=weights,
            distances=np.array([distances[-1] for _, distances in trees]),
            arrivals=arrivals[ends],
            positions=positions[ends],
            labels=labels[ends],
            names=names_of(ids, arrivals)[ends],
            deviation=fitted.engine.label_deviation,
        )
    )
    return Explanation(
        answer, min(1.0, max(0.0, float(confidence))), tuple(paths), _importances(fitted)
    )


def _importances(fitted: Fitted) -> tuple[tuple[str, float], ...]:
    if fitted.settings.adaptive.get("feature_weights") is None:
        return ()
    importances = importances_of(*fitted.engine.features())
    return most_important(named_importances(fitted.feature_names, importances))
