"""A fitted forest taken apart into plain values, and put together again; and its fingerprint.

A fingerprint is a hash of the settings, a digest of each tree, and a sum over the stored examples.
A tree's digest is of who came under whom, in order of creation; an example's is of its arrival
number, position and label. The engine makes both without copying a row, and a sum does not depend
on where examples lie, so that neither the layout of memory nor the number of machines matters.

Pickles, copies and model files all hold these values, and come back by ``unfilled`` and ``filled``,
which believe nothing: what does not fit together raises ValueError.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from boundary_forest.estimators.columns import ColumnEncoder
from boundary_forest.estimators.errors import plain
from boundary_forest.estimators.fitted import Fitted, new_engine
from boundary_forest.estimators.forest_settings import LATER_PARAMETERS, ForestSettings
from boundary_forest.estimators.labels import LabelPolicy
from boundary_forest.estimators.metrics import name_of


@dataclass(frozen=True)
class Parts:
    """What a fitted forest consists of.

    Parameters
    ----------
    settings : ForestSettings
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
    encoder : ColumnEncoder or None
        What is known about columns of any kind.
    """

    settings: ForestSettings
    parameters: Mapping[str, Any]
    labels: Mapping[str, Any]
    columns: Mapping[str, NDArray[Any]]
    feature_names: NDArray[Any] | None
    state: dict[str, Any]
    encoder: ColumnEncoder | None = None


def taken_apart(fitted: Fitted, state: dict[str, Any]) -> Parts:
    """Return the parts of a fitted forest, of whose engine ``state`` is a snapshot's."""
    labels, columns = fitted.labels.saved(state["n_classes"])
    return Parts(
        fitted.settings,
        fitted.parameters,
        labels,
        columns,
        fitted.feature_names,
        state,
        fitted.encoder,
    )


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
    engine = new_engine(parts.settings, labels)
    return Fitted(engine, parts.settings, labels, parts.feature_names, parts.encoder)


def filled(fitted: Fitted, state: dict[str, Any], *, positions: str) -> Fitted:
    """Return the same with the engine's state put back."""
    fitted.labels.check_state(state)
    fitted.engine.restore(state, positions)
    return fitted


def fingerprint_of(fitted: Fitted) -> str:
    """Return 32 hexadecimal digits."""
    settings = dict(vars(fitted.settings)) | fitted.labels.parameters | fitted.labels.rules
    settings["E"] = fitted.labels.parameters.get("estimator")
    params = fitted.settings.metric_params or {}
    settings["metric_params"] = sorted((key, plain(value)) for key, value in params.items())
    del settings["ids"]  # names of the user's own change no answer
    if not settings["order"][0]:
        del settings["order"]
    for name, value in settings.pop("adaptive").items():
        if value != LATER_PARAMETERS[name]:  # the paper's forest keeps the hash that it had
            settings[name] = value
    settings.pop("columns", None)  # it changes nothing but what columns are encoded as
    n_features = None
    if fitted.encoder is not None and fitted.encoder.described() is not None:
        settings["columns"] = fitted.encoder.described()
        n_features = settings["n_features"] = fitted.encoder.n_features  # without spare columns
    while (found := _digest(fitted, n_features)) is None:
        pass  # a class was published since
    trees, examples, adaptation, seen = found
    described = [(key, _described(value)) for key, value in sorted(settings.items())]
    text = repr((described, seen))
    digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
    digest.update(trees.tobytes())
    digest.update(examples.tobytes())
    if adaptation.any():
        digest.update(adaptation.tobytes())
    return digest.hexdigest()


def _digest(fitted: Fitted, n_features: int | None) -> Any:
    keys = fitted.labels.keys()
    if n_features is None:
        return fitted.engine.digest(keys)
    return fitted.engine.digest(keys, n_features=n_features)


def _described(value: Any) -> Any:
    return name_of(value) if callable(value) else value
