"""Why a forest answered as it did: each tree's path, and what its end weighed in the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest.estimators.explanation_html import as_html, as_list, shown_value
from boundary_forest.estimators.lifetime_stats import Lifetime, Turnover

MOST_EXAMPLES = 10  # that are printed
MOST_DIFFERENCES = 3  # that are printed of each


@dataclass(frozen=True)
class Step:
    """A stored example on the path of a tree.

    Parameters
    ----------
    arrival : int
        Its row number: 0 for the first row that was ever passed.
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
    """The path of one tree from its root to the locally closest example.

    Parameters
    ----------
    steps : tuple of Step
        The examples, the root first.
    weight : float
        The weight of the last of them in the prediction; the weights of all trees sum to 1. In a
        mixture it may be negative, and the models over all rows have the rest of the sum.
    lifetime : int or None
        Lifetime of the tree, in examples; None is unlimited.
    """

    steps: tuple[Step, ...]
    weight: float
    lifetime: int | None = None


@dataclass(frozen=True)
class Share:
    """A class and its share of the votes.

    Parameters
    ----------
    label : object
        The class.
    share : float
        Its share of the votes, in a mixture its probability; all shares sum to 1.
    trees : int
        Number of trees that end at an example of it.
    """

    label: Any
    share: float
    trees: int


@dataclass(frozen=True)
class Example:
    """A stored example at which trees end.

    Parameters
    ----------
    arrival : int
        Its arrival number.
    id : object
        Its id; None if examples have none.
    label : object
        Its class or target; None in retrieval.
    distance : float
        Its distance from the query.
    share : float
        Its share in the answer; all shares sum to 1. In a mixture it is what its label is
        multiplied by, before experts are kept within the range of the labels: it may be negative,
        and the models over all rows have the rest of the sum.
    trees : int
        Number of trees that end at it.
    values : array-like of shape (n_features,)
        The stored row.
    contributions : ndarray of shape (n_features,) or None
        Each feature's share of the squared distance from the query, by the current weights of the
        features; of the distance itself if the metric is not Euclidean. They sum to 1, or are all 0
        at distance 0. None if the distance is no sum over features: "chebyshev", "inner_product"
        and functions.
    """

    arrival: int
    id: Any
    label: Any
    distance: float
    share: float
    trees: int
    values: Any = field(default=(), repr=False, compare=False)
    contributions: NDArray[np.float64] | None = field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the example as plain values."""
        plain = {part.name: getattr(self, part.name) for part in fields(self)}
        contributions = None if self.contributions is None else self.contributions.tolist()
        return {**plain, "values": as_list(self.values), "contributions": contributions}

    def __str__(self) -> str:
        name = f"#{self.arrival}" if self.id is None else f"id {self.id!r}"
        label = "" if self.label is None else f", label {self.label!r}"
        weight = f"weight {self.share:.2f}, {_trees(self.trees)}"
        return f"{name}{label}, distance {self.distance:.4g}: {weight}"


@dataclass(frozen=True)
class RecentRow:
    """A row that arrived lately, whether or not a tree stores it.

    Parameters
    ----------
    arrival : int
        Its arrival number.
    label : object
        Its class or target.
    distance : float
        Its distance from the query, by the current weights of the features.
    share : float
        What its label is multiplied by in the answer.
    """

    arrival: int
    label: Any
    distance: float
    share: float

    def __str__(self) -> str:
        place = f"#{self.arrival}, label {self.label!r}, distance {self.distance:.4g}"
        return f"{place}: weight {self.share:.2f}"


@dataclass(frozen=True)
class Explanation:
    """The explanation of one prediction. Print it, or use :meth:`paths` or :meth:`to_dict`.

    Parameters
    ----------
    answer : object
        The prediction; in retrieval, the nearest example.
    confidence : float
        Agreement between the trees, in [0, 1]: the weight of those that agree with the prediction.
    trees : tuple of TreePath
        Every tree's path.
    importances : tuple of (str, float)
        The few most important features of a forest that weighs them, with their shares of all
        importances, the largest first.
    shares : tuple of Share
        Of the classes that have votes, the largest first; empty unless the forest classifies.
    examples : tuple of Example
        Those that the trees end at, the largest share first.
    turnover : Turnover or None
        How the trees stand and are weighed now, by lifetime, if the forest forgets.
    query : array-like of shape (n_features,)
        The query.
    feature_names : tuple of str
        The names of the features; x0, x1, ... if they have none.
    recent : tuple of RecentRow
        The rows that arrived lately and that experts of a stream's mixture answer from, the largest
        share first.
    mixture : tuple of (str, float)
        The experts whose answers were mixed, with their weights; empty without
        ``weights="mixture"``.
    """

    answer: Any
    confidence: float
    trees: tuple[TreePath, ...]
    importances: tuple[tuple[str, float], ...] = ()
    shares: tuple[Share, ...] = ()
    examples: tuple[Example, ...] = ()
    turnover: Turnover | None = None
    query: Any = field(default=(), repr=False, compare=False)
    feature_names: tuple[str, ...] = field(default=(), repr=False)
    mixture: tuple[tuple[str, float], ...] = ()
    recent: tuple[RecentRow, ...] = ()

    @property
    def lifetimes(self) -> tuple[tuple[Lifetime, float], ...]:
        """The trees by lifetime, with their share of the answer; empty if none forgets."""
        groups = () if self.turnover is None else self.turnover.lifetimes
        return tuple(
            (group, sum(tree.weight for tree in self.trees if tree.lifetime == group.lifetime))
            for group in groups
        )

    @property
    def kind(self) -> str:
        """What the answer is: a "prediction", or the "nearest" example."""
        labelled = any(example.label is not None for example in self.examples)
        return "prediction" if labelled else "nearest"

    @property
    def deciding(self) -> tuple[Example, ...]:
        """The examples that have a share in the answer."""
        return tuple(example for example in self.examples if example.share != 0)

    def to_dict(self) -> dict[str, Any]:
        """Return the explanation as plain dicts, lists and numbers.

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
            "shares": [asdict(share) for share in self.shares],
            "feature_names": list(self.feature_names),
            "query": as_list(self.query),
            "examples": [example.to_dict() for example in self.examples],
            "trees": [
                {
                    "weight": tree.weight,
                    "lifetime": tree.lifetime,
                    "steps": [asdict(step) for step in tree.steps],
                }
                for tree in self.trees
            ],
            "importances": dict(self.importances),
            "mixture": dict(self.mixture),
            "recent": [asdict(row) for row in self.recent],
            "votes": None if self.turnover is None else self.turnover.votes,
            "lifetimes": [{**asdict(group), "share": share} for group, share in self.lifetimes],
        }

    def relabelled(self, label_of: Callable[[Any], Any]) -> Explanation:
        """Return the explanation with other names for the classes.

        Parameters
        ----------
        label_of : callable
            Takes a class, and returns its new name.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], [0, 1])
        >>> forest.explain([8]).relabelled(["small", "large"].__getitem__).answer
        'large'
        """
        trees = (
            replace(
                tree, steps=tuple(replace(step, label=label_of(step.label)) for step in tree.steps)
            )
            for tree in self.trees
        )
        return replace(
            self,
            answer=label_of(self.answer),
            trees=tuple(trees),
            shares=tuple(replace(share, label=label_of(share.label)) for share in self.shares),
            examples=tuple(replace(e, label=label_of(e.label)) for e in self.examples),
        )

    def in_columns(
        self,
        names: Sequence[str],
        column_of: Sequence[int] | NDArray[np.int64],
        decode: Callable[[NDArray[Any]], Any],
    ) -> Explanation:
        """Return the explanation in terms of the columns that the features were computed from.

        Parameters
        ----------
        names : sequence of str
            The columns.
        column_of : sequence of int
            The column of each feature. Further features are left out.
        decode : callable
            Takes a row of features, and returns the values of the columns.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[1, 0], [0, 1]], ["a", "b"])
        >>> explained = forest.explain([1, 0]).in_columns(
        ...     ["colour"], [0, 0], lambda row: ["red" if row[0] else "blue"]
        ... )
        >>> explained.query, explained.examples[0].values
        (['red'], ['red'])
        """

        def summed(shares: NDArray[np.float64] | None) -> NDArray[np.float64] | None:
            if shares is None or not len(column_of):
                return None
            own = np.bincount(column_of, shares[: len(column_of)], minlength=len(names))
            return own.astype(np.float64)

        examples = tuple(
            replace(e, values=decode(e.values), contributions=summed(e.contributions))
            for e in self.examples
        )
        return replace(
            self, query=decode(self.query), feature_names=tuple(names), examples=examples
        )

    def to_html(self, image_shape: tuple[int, ...] | None = None) -> str:
        """Return the explanation as HTML: the query and the stored rows, feature by feature.

        Notebooks show this. Cells are shaded by their contributions to the distance. Rows that look
        like images are drawn: those with a square number of features, at least 64, none of them
        negative, which have no names or are called pixels.

        Parameters
        ----------
        image_shape : tuple of int or None, default=None
            (height, width), or (height, width, 3) for colours, of rows that are images.

        Returns
        -------
        html : str
            Without scripts or links; names and labels are escaped.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0], [9]], ["a", "b"])
        >>> "prediction: <b>&#x27;b&#x27;</b>" in forest.explain([8]).to_html()
        True
        """
        return as_html(self, image_shape)

    def _repr_html_(self) -> str:
        return self.to_html()

    def paths(self) -> str:
        """Return one line per tree: the stored examples on its path.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
        >>> forest = forest.fit([[0], [9], [5]], ["a", "b", "a"])
        >>> print(forest.explain([8]).paths())
        tree   0, weight 0.500: #2 'a' at 3 > #1 'b' at 1
        tree   1, weight 0.500: #0 'a' at 8 > #1 'b' at 1
        """
        lines = []
        for index, tree in enumerate(self.trees):
            path = " > ".join(
                f"#{step.arrival}"
                + ("" if step.label is None else f" {step.label!r}")
                + f" at {step.distance:.4g}"
                for step in tree.steps
            )
            life = "" if tree.lifetime is None else f", lifetime {tree.lifetime:,}"
            lines.append(f"tree {index:>3}{life}, weight {tree.weight:.3f}: {path}")
        return "\n".join(lines)

    def __str__(self) -> str:
        lines = [f"{self.kind}: {self.answer!r}"]
        lines += [f"  {s.label!r}: weight {s.share:.2f}, {_trees(s.trees)}" for s in self.shares]
        deciding = self.deciding
        lines.append("from the stored examples")
        for example in deciding[:MOST_EXAMPLES]:
            lines.append(f"  {example}")
            lines += self._differences(example)
        if len(deciding) > MOST_EXAMPLES:
            lines.append(f"  and {len(deciding) - MOST_EXAMPLES} more")
        if self.recent:
            lines.append("from rows that arrived lately")
            lines += [f"  {row}" for row in self.recent[:MOST_EXAMPLES]]
            if len(self.recent) > MOST_EXAMPLES:
                lines.append(f"  and {len(self.recent) - MOST_EXAMPLES} more")
        if self.mixture:
            shares = (f"{name} {weight:.2f}" for name, weight in self.mixture)
            lines.append("mixture of " + ", ".join(shares))
        if self.importances:
            shares = (f"{name} {share:.2f}" for name, share in self.importances)
            lines.append("most important features: " + ", ".join(shares))
        if self.turnover is not None:
            lines.append(f"weights of the trees: {self.turnover.votes}")
            lines += [f"  {g.name}: weight {share:.2f}, {g.details}" for g, share in self.lifetimes]
        return "\n".join(lines)

    def _differences(self, example: Example) -> list[str]:
        """Return a line about the features in which an example differs most from the query."""
        if example.distance == 0:
            return ["    equal to the query"]
        if example.contributions is None:
            return []
        largest = np.argsort(-example.contributions, kind="stable")[:MOST_DIFFERENCES]
        parts = [
            f"{self.feature_names[i]} ({shown_value(example.values[i])}, "
            f"query {shown_value(self.query[i])}: "
            f"{example.contributions[i]:.0%})"
            for i in largest
            if example.contributions[i] > 0
        ]
        return ["    differs in " + ", ".join(parts)] if parts else []


def _trees(n: int) -> str:
    return "1 tree" if n == 1 else f"{n} trees"
