"""The estimators on a cluster, made from those in one process.

A class here has the parameters of the local one, then those that are added, and its docstring
describes them all. Each is written once: where it is added.
"""

from __future__ import annotations

import inspect
import re
from functools import wraps
from typing import Any, TypeVar

from boundary_forest.estimators import classifier, neighbors, regressor
from boundary_forest.estimators.engine_constants import PAPER
from boundary_forest.ray.cluster_estimator import ClusterMixin

Kind = TypeVar("Kind", bound=type[ClusterMixin])

_VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


def made_from_local(kind: Kind) -> Kind:
    """Give a class the parameters of its local estimator, in its signature and its docstring."""
    added = [base for base in reversed(kind.__mro__) if issubclass(base, ClusterMixin)]
    parameters: dict[str, inspect.Parameter] = {}
    for base in (kind.local, *added):
        if "__init__" in vars(base):
            named = inspect.signature(vars(base)["__init__"]).parameters
            parameters |= {name: one for name, one in named.items() if one.kind not in _VARIADIC}
    init: Any = kind.__init__

    @wraps(init)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:
        init(self, *arguments, **options)

    # scikit-learn reads the parameters from here.
    __init__.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
    kind.__init__ = __init__  # type: ignore[method-assign]
    docs = [base.__doc__ for base in (kind.local, *added) if base.__doc__]
    if docs:  # there are none with python -OO
        kind.__doc__ = _joined(*map(_sections, docs))
    return kind


def _joined(local: dict[str, str], *added: dict[str, str]) -> str:
    """Return one docstring: of equal sections and parameters the last, and all notes."""
    sections = dict(local)
    for doc in added:
        entries = _entries(sections["Parameters"]) | _entries(doc.get("Parameters", ""))
        notes = [of["Notes"] for of in (doc, sections) if "Notes" in of]
        sections |= {**doc, "Parameters": "\n".join(entries.values()), "Notes": "\n\n".join(notes)}
    summary = sections.pop("")
    parts = [f"{name}\n{'-' * len(name)}\n{text}" for name, text in sections.items()]
    return "\n\n".join([summary, *parts]) + "\n"


def _sections(doc: str) -> dict[str, str]:
    """Return the sections of a docstring by name; that of the summary is empty."""
    parts = re.split(r"\n\n(\w+)\n-+\n", inspect.cleandoc(doc))
    return dict(zip(["", *parts[1::2]], parts[::2], strict=True))


def _entries(section: str) -> dict[str, str]:
    """Return what a section says of each parameter."""
    entries = re.split(r"\n(?=\S)", section) if section else []
    return {entry.partition(" :")[0]: entry for entry in entries}


class ShardingMixin(ClusterMixin):
    """Adds the choice of what actors divide among themselves.

    Parameters
    ----------
    shard_by : {"trees", "examples"}, default="trees"
        What actors divide among themselves. "trees" is the forest of one process. "examples" is
        another forest: each actor has all trees over every n-th example, which learns several times
        as fast and needs less memory, and is less accurate. What needs all examples in one place is
        refused then: ``checkpoint_dir``, ``offline``, ``feature_weights="learned"``,
        ``weights="auto"``, ``forgetting``, ``max_stored``, ``class_weight``,
        ``predict_then_learn``, ``apply``, ``explain`` and ``save``.
    """

    def __init__(self, *arguments: Any, shard_by: str = "trees", **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.shard_by = shard_by


@made_from_local
class BoundaryForestClassifier(ShardingMixin, classifier.BoundaryForestClassifier):
    """:class:`boundary_forest.BoundaryForestClassifier` on a Ray cluster.

    Examples
    --------
    >>> from boundary_forest.ray import BoundaryForestClassifier  # doctest: +SKIP
    >>> forest = BoundaryForestClassifier(n_actors=2, random_state=0)  # doctest: +SKIP
    >>> forest.partial_fit([[0], [9]], ["a", "b"]).predict([[8]]).tolist()  # doctest: +SKIP
    ['b']
    """

    local = classifier.BoundaryForestClassifier


@made_from_local
class BoundaryForestRegressor(ShardingMixin, regressor.BoundaryForestRegressor):
    """:class:`boundary_forest.BoundaryForestRegressor` on a Ray cluster.

    Examples
    --------
    >>> from boundary_forest.ray import BoundaryForestRegressor  # doctest: +SKIP
    >>> forest = BoundaryForestRegressor(n_actors=2, random_state=0)  # doctest: +SKIP
    >>> forest.partial_fit([[0], [9]], [1.5, 3.0]).predict([[8]]).tolist()  # doctest: +SKIP
    [3.0]
    """

    local = regressor.BoundaryForestRegressor


@made_from_local
class BoundaryForestNeighbors(ClusterMixin, neighbors.BoundaryForestNeighbors):
    """:class:`boundary_forest.BoundaryForestNeighbors` on a Ray cluster.

    Parameters
    ----------
    search : {"paper", "graph"}, default="paper"
        How neighbours are searched for. "paper" is the paper's rule, and gives the same answers as
        in one process. "graph" is sharded by examples: each actor has an index of its own over
        every n-th of them, and answers differ from those of one process. ``checkpoint_dir``,
        ``offline`` and ``upsert`` are not available then; ``save`` learns one new index.

    Examples
    --------
    >>> from boundary_forest.ray import BoundaryForestNeighbors  # doctest: +SKIP
    >>> index = BoundaryForestNeighbors(1, n_actors=2, random_state=0)  # doctest: +SKIP
    >>> index.fit([[0.0], [3.0]]).kneighbors([[2.0]])[1].tolist()  # doctest: +SKIP
    [[1]]
    """

    local = neighbors.BoundaryForestNeighbors

    def __init__(self, *arguments: Any, search: str = PAPER, **options: Any) -> None:
        super().__init__(*arguments, search=search, **options)
