"""Why a forest answered as it did: each tree's path, and what its end weighed in the answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.base import BaseBoundaryForest


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
    """

    answer: Any
    confidence: float
    trees: tuple[TreePath, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain dicts, lists and numbers.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> told = forest.explain([8]).to_dict()
        >>> told["answer"], told["confidence"], len(told["trees"])
        ('b', 1.0, 50)
        """
        return {
            "answer": self.answer,
            "confidence": self.confidence,
            "trees": [
                {"weight": tree.weight, "steps": [asdict(step) for step in tree.steps]}
                for tree in self.trees
            ],
        }

    def __str__(self) -> str:
        lines = [f"answer {self.answer!r}, confidence {self.confidence:.2f}"]
        for index, tree in enumerate(self.trees):
            path = " > ".join(
                f"#{step.arrival}"
                + ("" if step.label is None else f" {step.label!r}")
                + f" at {step.distance:.4g}"
                for step in tree.steps
            )
            lines.append(f"tree {index:>3}, weight {tree.weight:.3f}: {path}")
        return "\n".join(lines)


class ExplainingForest(BaseBoundaryForest):
    """A forest that can say why."""

    def explain(self, x: Any) -> Explanation:
        """Why the forest answers as it does: the path that each tree takes for one query.

        Parameters
        ----------
        x : array-like of shape (n_features,) or (1, n_features)
            The query.

        Returns
        -------
        explanation : Explanation
            The answer, how far the trees agree (in [0, 1]), and for each tree the stored examples
            from its root to the locally closest one, with distances and labels, and the share that
            the last one had in the answer. It prints, and has ``to_dict()``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0], [9], [5]], ["a", "b", "a"])
        >>> print(forest.explain([8]))
        answer 'b', confidence 1.00
        tree   0, weight 0.500: #0 'a' at 8 > #1 'b' at 1
        tree   1, weight 0.500: #1 'b' at 1
        """
        view = self._view()
        engine, rows = view._ask(np.asarray(x)[None] if np.ndim(x) == 1 else x)
        if len(rows) != 1:
            raise ValueError(f"x must be one query, got {len(rows)}")
        paths, weights, estimate = engine.paths(rows)
        weights = view._weighed(weights)
        met = np.unique(np.concatenate([slots[0] for slots, _ in paths]))
        _, labels, arrivals = engine.examples(met)
        shown = view._shown(labels)
        trees = []
        ends = []
        for (slots, distances), weight in zip(paths, weights, strict=True):
            places = np.searchsorted(met, slots[0])
            steps = [
                Step(int(arrivals[i]), float(d), shown[i])
                for i, d in zip(places, distances[0], strict=True)
            ]
            trees.append(TreePath(tuple(steps), float(weight)))
            ends.append(places[-1])
        answer, confidence = view._concluded(rows, estimate, tuple(trees), labels[ends])
        return Explanation(answer, min(1.0, max(0.0, float(confidence))), tuple(trees))

    # What a subclass decides

    def _shown(self, labels: NDArray[np.float64]) -> list[Any]:
        """Labels as a reader should see them."""
        shown: list[Any] = (labels[:, 0] if labels.shape[1] == 1 else labels).tolist()
        return shown

    def _weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """What each tree's end weighs in the answer."""
        return weights

    def _concluded(
        self,
        rows: NDArray[Any],
        estimate: NDArray[np.float64],
        trees: tuple[TreePath, ...],
        labels: NDArray[np.float64],
    ) -> tuple[Any, float]:
        """The answer, and how far the trees agree on it.

        For numbers: 1 minus the deviation among the trees' labels over that of all labels seen.
        """
        weights = np.array([tree.weight for tree in trees])
        apart = np.sqrt(weights @ ((labels - weights @ labels) ** 2).sum(axis=1))
        usual = self._engine.label_deviation
        return self._answers(estimate)[0].tolist(), 1 - apart / usual if usual > 0 else 1.0
