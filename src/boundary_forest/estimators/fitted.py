"""What a forest has learned, as one value, and the engine that it is made of.

An estimator replaces this value in a single assignment and never edits it, so that whoever has read
it once has parts that belong together. The engine alone changes: what it publishes counts, and
nothing else does.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from boundary_forest import _core
from boundary_forest.estimators.columns import ColumnEncoder
from boundary_forest.estimators.engine_constants import trees_in
from boundary_forest.estimators.forest_settings import (
    BALANCED,
    LATER_PARAMETERS,
    TREE_PARAMETERS,
    ForestSettings,
    lifetimes_of,
)
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.metrics import engine_metric

Forest = _core.Forest
Driver = _core.Driver
closest = _core.closest
Tree = tuple[NDArray[np.int64], NDArray[np.int64]]


def new_engine(
    settings: ForestSettings, labels: LabelPolicy, trees: tuple[int, int] | None = None
) -> Forest:
    """Return an engine that has learned nothing.

    Parameters
    ----------
    settings : ForestSettings
        What its trees are to be grown with.
    labels : LabelPolicy
        What its labels mean.
    trees : (int, int) or None, default=None
        The trees that it holds, from the first up to but not including the second, if other
        engines hold the others.
    """
    parts = dict(vars(settings))
    del parts["order"]
    parts["metric"], parts["p"] = engine_metric(settings.metric, parts.pop("metric_params"))
    adaptive = {**LATER_PARAMETERS, **parts.pop("adaptive")}
    weights, max_samples = adaptive["feature_weights"], adaptive["max_samples"]
    return Forest(
        **parts,
        **labels.rules,
        feature_weights=np.asarray(weights) if isinstance(weights, list) else weights,
        max_samples=1.0 if max_samples is None else max_samples,
        vote_weights=adaptive["weights"],
        lifetimes=lifetimes_of(adaptive["forgetting"], settings.n_estimators),
        max_stored=adaptive["max_stored"] or 0,
        search=adaptive["search"],
        trees=trees,
        balanced=adaptive["class_weight"] == BALANCED,
    )


def new_driver(settings: ForestSettings, labels: LabelPolicy) -> Driver:
    """Return what decides for engines that hold parts of the trees.

    Parameters
    ----------
    settings : ForestSettings
        Of the whole forest.
    labels : LabelPolicy
        What its labels mean.
    """
    adaptive = {**LATER_PARAMETERS, **settings.adaptive}
    return Driver(
        n_estimators=settings.n_estimators,
        label_length=settings.label_length,
        estimator=labels.rules["estimator"],
        vote_weights=adaptive["weights"],
        learns_weights=isinstance(adaptive["feature_weights"], str),
        lifetimes=lifetimes_of(adaptive["forgetting"], settings.n_estimators),
        max_stored=adaptive["max_stored"] or 0,
        balanced=adaptive["class_weight"] == BALANCED,
    )


@dataclass(frozen=True, eq=False)
class Fitted:
    """A forest that has learned something, or an index that has forgotten everything.

    Parameters
    ----------
    engine : Forest
        The compiled forest.
    settings : ForestSettings
        What its trees are grown with.
    labels : LabelPolicy
        What its labels mean.
    feature_names : ndarray of shape (n_columns,) or None
        Names of the columns, if the first batch had some.
    encoder : ColumnEncoder or None
        What is known about columns of any kind; None if columns are features.
    """

    engine: Forest
    settings: ForestSettings
    labels: LabelPolicy
    feature_names: NDArray[Any] | None = None
    encoder: ColumnEncoder | None = None

    @property
    def n_columns(self) -> int:
        """Number of columns of the rows that users pass."""
        return self.settings.n_features if self.encoder is None else self.encoder.n_columns

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters in use, by the names of the estimator's."""
        trees = {name: getattr(self.settings, name) for name in TREE_PARAMETERS}
        return {**trees, **self.settings.adaptive, **self.labels.parameters}

    def predicted(self, rows: NDArray[Any], n_threads: int) -> NDArray[np.float64]:
        """Return the engine's label vector for each row."""
        engine, labels = self.engine, self.labels
        while (found := engine.predict(rows, n_threads, labels.ranks(engine.n_classes))) is None:
            pass  # a class was published since
        return np.asarray(found)

    def rows(self, arrivals: Any) -> NDArray[np.int64]:
        """Return arrival numbers as users know them."""
        return self.settings.row_order.rows(arrivals)

    def trees(self) -> list[Tree]:
        """Return each tree's nodes and their parents, by row number."""
        snapshot = self.engine.snapshot()
        state = snapshot.state(with_positions=False)
        arrivals, trees = state["arrivals"].astype(np.int64), []
        living = None  # all
        if snapshot.size < len(arrivals):  # some were forgotten and not yet erased
            living = np.isin(arrivals, snapshot.arrivals(0, snapshot.size))
        rows = self.rows(arrivals)
        # Those that only grow come last, and do not answer yet.
        for examples, places in islice(trees_in(state), self.settings.n_estimators):
            nodes = rows[examples]
            parents = np.full(len(nodes), -1, dtype=np.int64)
            parents[1:] = nodes[places[1:]]
            tree = (nodes, parents)
            trees.append(tree if living is None else _living_tree(*tree, places, living[examples]))
        return trees


def _living_tree(
    nodes: NDArray[np.int64],
    parents: NDArray[np.int64],
    places: NDArray[Any],
    living: NDArray[np.bool_],
) -> Tree:
    """Return a tree without some nodes; the parent of another is its closest living ancestor."""
    for node, place in enumerate(places[1:].tolist(), 1):
        if not living[place]:
            parents[node] = parents[place]
    return nodes[living], parents[living]
