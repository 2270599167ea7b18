"""Extensions of the paper: weights of features, sampling, and how trees' answers are weighted."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import Interval, RealNotInt, StrOptions

from boundary_forest.estimators.engine_constants import (
    EXPERTS,
    FIRST_DECISION,
    LARGEST_WEIGHT,
    LEAST_WEIGHT,
    MOST_STORED,
    PERIOD,
    STREAM_EXPERTS,
    STREAM_RULES,
    TABLE_RULES,
    VOTE_WEIGHTS,
)
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import AUTO_COLUMNS, checked_lifetimes
from boundary_forest.estimators.metrics import canonical

ADAPTIVE_CONSTRAINTS: dict[str, list[Any]] = {
    "feature_weights": ["array-like", StrOptions({"learned"}), None],
    "max_samples": [Interval(RealNotInt, 0, 1, closed="right"), None],
    "weights": [StrOptions(set(VOTE_WEIGHTS))],
    "shuffle": ["boolean"],
}

STREAM_CONSTRAINTS: dict[str, list[Any]] = {
    "columns": [StrOptions({AUTO_COLUMNS}), None],
    "forgetting": [list, tuple, np.ndarray, StrOptions({"auto"}), None],
    "max_stored": [Interval(Integral, 1, MOST_STORED, closed="both"), None],
}

# What measurement found best on streams that drift; `make bench SECTIONS=streams` measures it.
FOR_STREAMS: Mapping[str, Any] = {
    "n_estimators": 48,
    "feature_weights": "learned",
    "max_samples": 0.4,
    "weights": "mixture",
    "forgetting": "auto",
}

# What measurement found best on tables of all kinds; `make bench SECTIONS=learned` measures it.
FOR_TABLES: Mapping[str, Any] = {
    "n_estimators": 100,
    "feature_weights": "learned",
    "max_samples": 0.3,
    "weights": "mixture",
}


MOST_SHOWN = 5  # features, where few are


class AdaptiveMixin:
    """Attributes and checks of the parameters that go beyond the paper."""

    _attributes: Callable[[str], Fitted]  # what was learned, of a forest that has the attribute
    _can_mix: ClassVar[bool] = True  # whether weights="mixture" is available
    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    @classmethod
    def for_tables(cls, **overrides: Any) -> Self:
        """Return an estimator for tables with raw columns, of which some may be useless.

        It learns feature weights, its trees learn different samples of the examples, and a mixture
        of experts predicts from the examples that they find. One setting serves all tables. With
        ``forgetting``, or with another metric than the Euclidean one, ``weights`` is "auto".

        Parameters
        ----------
        **overrides
            Parameters that differ from this setting.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from boundary_forest import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_tables(random_state=0).max_samples
        0.3
        """
        columns = {"columns": AUTO_COLUMNS} if "columns" in cls._parameter_constraints else {}
        return cls(**{**columns, **table_parameters(overrides, can_mix=cls._can_mix)})

    @property
    def feature_weights_(self) -> NDArray[np.float64]:
        """The weights of the features, which multiply squared differences.

        With ``columns="auto"`` in the order of ``get_feature_names_out``.
        """
        fitted = self._attributes("feature_weights_")
        weights = np.asarray(fitted.engine.features()[0])
        return weights if fitted.encoder is None else weights[: fitted.encoder.n_features]

    @property
    def feature_importances_(self) -> NDArray[np.float64]:
        """Each column's weight times its variance, as shares that sum to 1."""
        fitted = self._attributes("feature_importances_")
        return column_importances(fitted, importances_of(*fitted.engine.features()))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Return the names of the features that columns are encoded as.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns; None is ``feature_names_in_``, or x0, x1, ...

        Returns
        -------
        names : ndarray of str objects
            In the order of ``feature_weights_``.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> forest = BoundaryForestClassifier(random_state=0).fit([[0, 3], [9, 4]], ["a", "b"])
        >>> forest.get_feature_names_out().tolist()
        ['x0', 'x1']
        """
        fitted = self._attributes("get_feature_names_out")
        names = fitted.feature_names if input_features is None else np.asarray(input_features)
        if names is None:
            names = np.array([f"x{i}" for i in range(fitted.n_columns)], dtype=object)
        if len(names) != fitted.n_columns:
            raise ValueError(f"input_features must have {fitted.n_columns} names, got {len(names)}")
        if fitted.encoder is not None:
            names = np.array(fitted.encoder.feature_names(names.tolist()), dtype=object)
        return names.astype(object)

    @property
    def vote_power_(self) -> float:
        """The power p in the current weights of the trees, 1 / distance ** p."""
        fitted = self._attributes("vote_power_")
        rule: int = fitted.engine.snapshot().state(with_positions=False)["vote_power"]
        forgets = fitted.settings.adaptive.get("forgetting") is not None
        return (STREAM_RULES if forgets else TABLE_RULES)[rule][0]

    @property
    def mixture_(self) -> dict[str, float]:
        """The weight of each expert that has one, by name, with ``weights="mixture"``."""
        return mixture_in(self._attributes("mixture_"))


class StreamsMixin:
    """Adds ``for_streams`` to an estimator."""

    _can_mix: ClassVar[bool] = True

    @classmethod
    def for_streams(cls, **overrides: Any) -> Self:
        """Return an estimator for streams that drift: its trees have lifetimes.

        Half of its trees have an unlimited lifetime; the others have lifetimes of 16 to 4,096
        examples. It learns feature weights from the latest examples. It combines the predictions of
        its trees, of the nearest of the latest rows, of linear models that forget, and of a ridge
        regression around the query. With another metric than the Euclidean one, ``weights`` is
        "auto". Its ``fit`` keeps the order of the rows. One setting serves all streams.

        Parameters
        ----------
        **overrides
            Parameters that differ from this setting.

        Examples
        --------
        >>> from boundary_forest import BoundaryForestClassifier
        >>> BoundaryForestClassifier.for_streams(random_state=0).forgetting
        'auto'
        """
        own = {"shuffle": False, "columns": AUTO_COLUMNS}
        return cls(**{**stream_parameters(overrides, can_mix=cls._can_mix), **own, **overrides})


def table_parameters(overrides: Mapping[str, Any], *, can_mix: bool = True) -> dict[str, Any]:
    """Return the parameters of ``for_tables``, without a mixture where there can be none."""
    if not can_mix or not _is_euclidean(overrides) or overrides.get("forgetting") is not None:
        overrides = {"weights": "auto", **overrides}
    return {**FOR_TABLES, **overrides}


def stream_parameters(overrides: Mapping[str, Any], *, can_mix: bool = True) -> dict[str, Any]:
    """Return the parameters of ``for_streams``, without a mixture where there can be none."""
    if not can_mix or not _is_euclidean(overrides):
        overrides = {"weights": "auto", **overrides}
    return {**FOR_STREAMS, **overrides}


def _is_euclidean(parameters: Mapping[str, Any]) -> bool:
    return bool(canonical(parameters.get("metric", "euclidean")) == "euclidean")


def mixture_in(fitted: Fitted) -> dict[str, float]:
    """Return the weight of each expert of a fitted forest that has one, by name."""
    if fitted.settings.adaptive.get("weights") != "mixture":
        return {}
    forgets = fitted.settings.adaptive.get("forgetting") is not None
    names = STREAM_EXPERTS if forgets else EXPERTS
    weights = fitted.engine.snapshot().state(with_positions=False)["mixture_weights"]
    named = zip(names, weights[: len(names)].tolist(), strict=True)
    return {name: weight for name, weight in named if weight > 0}


def importances_of(
    weights: NDArray[np.float64], variances: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return each feature's weight times its variance, as shares that sum to 1."""
    importances = np.where(variances > 0, weights * variances, 0.0)
    total = importances.sum()
    return importances / total if total > 0 else importances


def column_importances(fitted: Fitted, importances: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the importance of each column, from those of the features."""
    encoder = fitted.encoder
    if encoder is None:
        return importances
    of_features = importances[: encoder.n_features]
    sums = np.bincount(encoder.column_of, of_features, minlength=encoder.n_columns)
    return sums.astype(np.float64)


def most_important(importances: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """Return the features with the largest importances, and these, the largest first."""
    ranked = sorted(importances.items(), key=lambda item: -item[1])
    return tuple((name, share) for name, share in ranked[:MOST_SHOWN] if share > 0)


def named_importances(names: Iterable[Any] | None, importances: NDArray[Any]) -> dict[str, float]:
    """Return importances by the names of features; without names they are x0, x1, ..."""
    if names is None:
        names = (f"x{i}" for i in range(len(importances)))
    return dict(zip(map(str, names), importances.tolist(), strict=True))


def last_decision(examples_seen: int, *, forgets: bool = False) -> int:
    """Return after how many examples a forest that decides for itself last did so; 0 for never."""
    decision = 0
    following = FIRST_DECISION
    while following <= examples_seen:
        decision, following = following, 2 * following
    return max(decision, examples_seen // PERIOD * PERIOD) if forgets else decision


def check_open_columns(metric: Any, weights: Any) -> None:
    """Refuse what needs to know all features: with columns="auto" they may appear at any time."""
    if callable(metric) or canonical(metric) == "hamming":
        raise ValueError(
            f"columns='auto' cannot be combined with metric={metric!r}, which depends on the "
            "number of features: encode the columns yourself and use columns=None"
        )
    if weights is not None and not isinstance(weights, str):
        raise ValueError(
            "columns='auto' requires feature_weights to be None or 'learned', because categories "
            "may appear at any time: use columns=None, or multiply the columns by the square "
            "roots of your weights"
        )


def check_adaptive(parameters: Mapping[str, Any]) -> None:
    """Refuse weights of features and lifetimes that are none, and metrics that take no weights."""
    checked_lifetimes(parameters.get("forgetting"))
    weights = parameters.get("feature_weights")
    is_euclidean = canonical(parameters["metric"]) == "euclidean"
    if parameters.get("weights") == "mixture" and not is_euclidean:
        raise ValueError(
            f"weights='mixture' requires metric='euclidean', got {parameters['metric']!r}"
        )
    if parameters.get("columns") is not None:
        check_open_columns(parameters["metric"], weights)
    if weights is None:
        return
    if not is_euclidean:
        raise ValueError(
            f"feature_weights requires metric='euclidean', got {parameters['metric']!r}: scale "
            "the columns of X instead"
        )
    if isinstance(weights, str):
        return
    array = np.asarray(weights)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise ValueError(
            "feature_weights must be an array with one number per feature, got shape "
            f"{array.shape} and dtype {array.dtype}"
        )
    array = array.astype(np.float64)
    bad = array[~((array == 0) | ((array >= LEAST_WEIGHT) & (array <= LARGEST_WEIGHT)))]
    if len(bad):
        raise ValueError(
            f"feature_weights must be 0 or between {LEAST_WEIGHT} and {LARGEST_WEIGHT}, got "
            f"{float(bad[0])!r}"
        )
    if not (array > 0).any():
        raise ValueError("feature_weights must not all be 0: all rows would have distance 0")
