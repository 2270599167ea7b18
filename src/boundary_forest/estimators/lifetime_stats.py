"""Statistics of a forest whose trees have lifetimes: ages, renewals, recent accuracy, votes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from boundary_forest.estimators.engine_constants import STREAM_RULES
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import lifetimes_of
from boundary_forest.estimators.labels import ClassLabels


@dataclass(frozen=True)
class Lifetime:
    """The trees of a forest that have the same lifetime.

    Parameters
    ----------
    lifetime : int or None
        For how many examples each of them answers; None is unlimited.
    trees : int
        Their number.
    youngest, oldest : int
        Their ages: how many examples ago the oldest one came that a tree has stored.
    renewals : int
        How many trees have stood in their places before. Those of unlimited lifetime are rebuilt
        when weights of features change; ``max_stored`` cuts trees of any lifetime.
    recent_accuracy, recent_rmse : float or None
        The mean of the trees' own, each alone, over about the last 100 examples: of classes, or
        of targets (in standard deviations if there are several). None unless ``weights="auto"``.
    """

    lifetime: int | None
    trees: int
    youngest: int
    oldest: int
    renewals: int
    recent_accuracy: float | None
    recent_rmse: float | None

    @property
    def name(self) -> str:
        """The lifetime as text."""
        return "lifetime unlimited" if self.lifetime is None else f"lifetime {self.lifetime:,}"

    @property
    def details(self) -> str:
        """All else as text."""
        ages = f"{self.youngest:,}"
        if self.oldest > self.youngest:
            ages += f" to {self.oldest:,}"
        parts = [
            _counted(self.trees, "tree"),
            f"{ages} examples old",
            _counted(self.renewals, "renewal"),
        ]
        if self.recent_accuracy is not None:
            parts.append(f"recent accuracy {self.recent_accuracy:.3f}")
        if self.recent_rmse is not None:
            parts.append(f"recent RMSE {self.recent_rmse:.4g}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Turnover:
    """How the trees of a forest that forgets stand.

    Parameters
    ----------
    renewals : int
        How many trees were replaced by others so far.
    votes : str
        The rule by which the trees' answers are weighed now.
    rule : int
        Its number.
    lifetimes : tuple of Lifetime
        The shortest first; empty before there are trees.
    """

    renewals: int
    votes: str
    rule: int
    lifetimes: tuple[Lifetime, ...]


def vote_rule(rule: int, *, classes: bool) -> str:
    """Return a rule in words."""
    power, skill, lasting = STREAM_RULES[rule]
    text = "1 / distance" if power else "equal"
    if lasting:
        return f"{text}, for trees of unlimited lifetime only"
    if skill:
        return f"{text}, multiplied by recent {_skill(skill, classes)}"
    return text


def _skill(skill: int, classes: bool) -> str:
    if classes:
        return f"accuracy^{10 * skill}"
    return "1 / squared error" if skill == 1 else f"(1 / squared error)^{skill}"


def turnover_of(
    tree_stats: Mapping[str, Any], lifetimes: Sequence[int], *, classes: bool
) -> Turnover:
    """Return the engine's statistics of its trees, by lifetime.

    Parameters
    ----------
    tree_stats : dict
        ``generations``, ``ages`` and ``losses`` by place, and ``rule``.
    lifetimes : sequence of int
        Of each place; 0 is unlimited.
    classes : bool
        Whether labels are classes.
    """
    generations, ages, losses = tree_stats["generations"], tree_stats["ages"], tree_stats["losses"]

    def group(lifetime: int) -> Lifetime:
        places = [i for i, other in enumerate(lifetimes) if other == lifetime]
        loss = sum(losses[i] for i in places) / len(places) if len(losses) else None
        return Lifetime(
            lifetime or None,
            len(places),
            min(ages[i] for i in places),
            max(ages[i] for i in places),
            sum(generations[i] for i in places),
            None if loss is None or not classes else 1 - loss,
            None if loss is None or classes else math.sqrt(loss),
        )

    there_are = sorted(set(lifetimes), key=lambda lifetime: lifetime or math.inf)
    groups = tuple(map(group, there_are)) if len(ages) else ()
    return Turnover(
        sum(group.renewals for group in groups),
        vote_rule(tree_stats["rule"], classes=classes),
        tree_stats["rule"],
        groups,
    )


def turnover_in(fitted: Fitted) -> Turnover | None:
    """Return how the trees of a fitted forest stand; None if it does not forget."""
    return _turnover(fitted, fitted.engine.stats())


def forest_stats(fitted: Fitted) -> dict[str, Any]:
    """Return the engine's counts, and how the trees stand as plain numbers if it forgets."""
    stats = dict(fitted.engine.stats())
    turnover = _turnover(fitted, stats)
    if turnover is not None:
        stats["turnover"] = asdict(turnover)
    return stats


def _turnover(fitted: Fitted, stats: Mapping[str, Any]) -> Turnover | None:
    if "turnover" not in stats:
        return None
    settings = fitted.settings
    lifetimes = lifetimes_of(settings.adaptive["forgetting"], settings.n_estimators)
    return turnover_of(stats["turnover"], lifetimes, classes=isinstance(fitted.labels, ClassLabels))


def _counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"
