"""A fitted forest taken apart into plain values, and put together again.

Pickles, copies and model files all hold these values, and come back by ``unfilled`` and ``filled``,
which believe nothing: what does not fit together raises ValueError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from boundary_forest.estimators.fitted import Fitted, Settings, new_engine
from boundary_forest.estimators.labels import LabelPolicy


@dataclass(frozen=True)
class Parts:
    """What a fitted forest consists of.

    Parameters
    ----------
    settings : Settings
        What its trees are grown with.
    parameters : dict
        The parameters in use, by the names of the estimator's.
    labels : dict
        What labels mean, in JSON's values.
    columns : dict of ndarray
        What labels mean, as far as it takes arrays.
    feature_names : ndarray or None
        Names of the columns.
    state : dict
        The engine's.
    """

    settings: Settings
    parameters: Mapping[str, Any]
    labels: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]]
    feature_names: NDArray[Any] | None
    state: dict[str, Any]


def taken_apart(fitted: Fitted, state: dict[str, Any]) -> Parts:
    """Return the parts of a fitted forest, of whose engine ``state`` is a snapshot's."""
    labels, columns = fitted.labels.saved(state["n_classes"])
    return Parts(fitted.settings, fitted.parameters, labels, columns, fitted.feature_names, state)


def put_together(policy: type[LabelPolicy], parts: Parts) -> Fitted:
    """Return the fitted forest that these parts were taken from.

    Parameters
    ----------
    policy : type
        The policy of labels.
    parts : Parts
        From a pickle or a copy.
    """
    return filled(unfilled(policy, parts), parts.state, positions="copied")


def unfilled(policy: type[LabelPolicy], parts: Parts) -> Fitted:
    """Return the fitted forest of these parts, whose engine still has no state."""
    column: Callable[[str], NDArray[Any]] = parts.columns.__getitem__
    labels = policy.from_parameters(parts.parameters).loaded(
        parts.labels, column, parts.settings.label_length
    )
    return Fitted(new_engine(parts.settings, labels), parts.settings, labels, parts.feature_names)


def filled(fitted: Fitted, state: dict[str, Any], *, positions: str) -> Fitted:
    """Return the same with the engine's state put back."""
    fitted.labels.check_state(state)
    fitted.engine.restore(state, positions)
    return fitted
