"""What the estimators on a cluster have beyond those in one process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

from sklearn.utils._param_validation import Interval

from boundary_forest.estimators.base import BaseBoundaryForest
from boundary_forest.estimators.fitted import Fitted, Forest, Settings
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.lifetimes import lifetimes_of
from boundary_forest.ray.actors import Cluster
from boundary_forest.ray.engine import SpreadForest

CLUSTER_CONSTRAINTS: dict[str, list[Any]] = {
    "n_actors": [Interval(Integral, 1, None, closed="left"), None],
    "num_cpus": [Interval(Real, 0, None, closed="left")],
    "resources": [dict, None],
}
CLUSTER_PARAMETERS = tuple(CLUSTER_CONSTRAINTS)


class ClusterMixin(BaseBoundaryForest):
    """Adds actors to an estimator: its engine is a :class:`SpreadForest`.

    Attributes
    ----------
    local : type
        The estimator in one process.
    """

    local: ClassVar[type[BaseBoundaryForest]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._parameter_constraints = {**cls._parameter_constraints, **CLUSTER_CONSTRAINTS}

    n_actors: int | None
    num_cpus: float
    resources: dict[str, float] | None

    def check_params(self) -> None:
        """Raise the error that ``fit`` would raise for a parameter that cannot be used."""
        super().check_params()
        if callable(self.metric):
            raise ValueError(
                f"metric must be the name of a metric on a cluster, got {self.metric!r}: other "
                "processes cannot be trusted to have the same function"
            )
        n = self.n_actors
        if n is None:
            return
        if n > self.n_estimators:
            raise ValueError(
                f"n_actors={n} is more than n_estimators={self.n_estimators}, and an actor holds "
                "at least one tree"
            )

    def to_local(self) -> Any:
        """Return the same forest in this process.

        Returns
        -------
        forest : estimator
            The estimator of the same name of ``boundary_forest``, with the same fingerprint.
        """
        parameters = self.get_params(deep=False)
        for name in CLUSTER_PARAMETERS:
            del parameters[name]
        forest = self.local(**parameters)
        with self.learning_paused():
            fitted = self._fitted
            if fitted is not None:
                engine = spread_engine(fitted).gathered()
                forest.fitted = replace(fitted, engine=engine)
        return forest

    @classmethod
    def from_local(
        cls,
        forest: Any,
        *,
        n_actors: int | None = None,
        num_cpus: float = 1,
        resources: dict[str, float] | None = None,
    ) -> Self:
        """Return the same forest on a cluster.

        Parameters
        ----------
        forest : estimator
            The estimator of the same name of ``boundary_forest``, fitted or not; it is not changed.
        n_actors, num_cpus, resources
            As for the class.
        """
        if type(forest) is not cls.local:
            raise TypeError(
                f"forest must be a {cls.local.__module__.partition('.')[0]}.{cls.local.__name__}, "
                f"got {type(forest).__name__}"
            )
        actors = {"n_actors": n_actors, "num_cpus": num_cpus, "resources": resources}
        parameters: dict[str, Any] = {**forest.get_params(deep=False), **actors}
        spread = cls(**parameters)
        spread.check_params()
        with forest.learning_paused():
            fitted: Fitted | None = forest.fitted
            if fitted is not None:
                spread._spread(fitted)
        return spread

    def save(
        self, path: str | os.PathLike[str], *, attachments: Mapping[str, Any] | None = None
    ) -> None:
        """Gather the forest, and save it to one file that ``boundary_forest.load`` opens.

        Parameters
        ----------
        path, attachments
            As for the estimator in one process.
        """
        self.to_local().save(path, attachments=attachments)

    def _cluster(self) -> Cluster:
        return Cluster(self.n_actors, self.num_cpus, self.resources)

    def _new_engine(self, settings: Settings, labels: LabelPolicy) -> Forest:
        return self._spread_engine(settings, labels, None)

    def _spread_engine(
        self, settings: Settings, labels: LabelPolicy, state: dict[str, Any] | None
    ) -> Forest:
        cluster = self._cluster()
        _check_lasting(settings, cluster)
        # It has the methods of the compiled engine that estimators call.
        return cast(Forest, SpreadForest(settings, labels, cluster, state))

    def _spread(self, fitted: Fitted) -> None:
        """Take over what an estimator in one process has learned."""
        state = fitted.engine.snapshot().state()
        engine = self._spread_engine(fitted.settings, fitted.labels, state)
        self._fitted = replace(fitted, engine=engine)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if self._fitted is not None:
            self._spread(self._fitted)


def spread_engine(fitted: Fitted) -> SpreadForest:
    """Return the engine of a fitted estimator on a cluster."""
    return cast(SpreadForest, fitted.engine)


def _check_lasting(settings: Settings, cluster: Cluster) -> None:
    """Refuse actors none of whose trees lives for ever, where weights are learned for such trees.

    Weights are learned beginning with those that these trees have.
    """
    if not isinstance(settings.adaptive.get("feature_weights"), str):
        return
    lifetimes = lifetimes_of(settings.adaptive.get("forgetting"), settings.n_estimators)
    for first, end in cluster.ranges(settings.n_estimators) if 0 in lifetimes else ():
        if 0 not in lifetimes[first:end]:
            raise ValueError(
                f"of the trees {first} to {end - 1} none lives for ever, and with "
                "feature_weights='learned' every actor needs one that does: choose a smaller "
                "n_actors"
            )
