"""Regression and the general form: labels are numbers, one or many for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_array

from boundary_forest.estimators.engine_constants import LARGE_LABEL
from boundary_forest.estimators.labels.policy import Endings, LabelColumns
from boundary_forest.estimators.lossless import check_integers


def as_label_vectors(y: Any) -> NDArray[np.float64]:
    """Return ``y`` as float64, with as many dimensions as it was given (one or two)."""
    plain = type(y) is np.ndarray and y.dtype == np.float64 and y.ndim == 1
    if plain and len(y) > 0 and np.isfinite(y).all():  # nothing is left to check
        return np.asarray(y)
    if getattr(getattr(y, "dtype", None), "kind", None) in ("m", "M"):
        raise TypeError(f"y must be numeric, got dtype {y.dtype}")
    labels: NDArray[np.float64] = check_array(
        y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_features=1
    )
    check_integers(y, labels, "y")
    if labels.ndim > 2 or labels.shape[1:] == (0,):
        raise ValueError(
            f"y must have shape (n_samples,) or (n_samples, n_outputs), got {labels.shape}"
        )
    return labels


@dataclass(frozen=True)
class Node:
    """A locally closest example, as an estimator E is given it.

    Parameters
    ----------
    position : ndarray of shape (n_features,)
        The example's position x_i.
    label : ndarray of shape (n_labels,)
        Its label vector c(x_i).
    distance : float
        d(x_i, y).
    arrival : int
        Its arrival number.
    """

    position: NDArray[Any]
    label: NDArray[np.float64]
    distance: float
    arrival: int


@dataclass(frozen=True)
class Targets:
    """The policy of regression.

    Parameters
    ----------
    epsilon : float or "auto"
        The threshold in use.
    one_output : bool
        Whether targets are single numbers; vectors may have one number too.
    length : int or None
        Numbers of each target; None before the first batch.
    """

    epsilon: float | str
    one_output: bool = False
    length: int | None = None

    parameter_names: ClassVar[tuple[str, ...]] = ("epsilon",)

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the policy of an estimator with this epsilon."""
        return cls(_epsilon(parameters))

    @property
    def parameters(self) -> dict[str, Any]:
        """The threshold in use."""
        return {"epsilon": self.epsilon}

    @property
    def rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon."""
        return {
            "label_metric": "euclidean",
            "estimator": "shepard_mean",
            "epsilon": None if isinstance(self.epsilon, str) else self.epsilon,
        }

    def checked(self, y: Any, n_rows: int) -> NDArray[np.float64]:
        """Return the targets as finite numbers."""
        return as_label_vectors(y)

    def encoded(
        self, y: NDArray[Any] | None, classes: NDArray[Any] | None, n_rows: int, n_met: int
    ) -> tuple[NDArray[np.float64], Self]:
        """Return the targets as vectors, which must be as long as those of the first batch."""
        assert y is not None
        vectors = y.reshape(len(y), -1)
        if self.length is None:
            return vectors, replace(self, one_output=y.ndim == 1, length=vectors.shape[1])
        if vectors.shape[1] != self.length:
            raise ValueError(
                f"y has {vectors.shape[1]} numbers per row, but the first batch had {self.length}"
            )
        return vectors, self

    def ranks(self, n_met: int | None = None) -> None:
        """Return None: there are no classes."""
        return

    def answers(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return label vectors in the form that targets were given in."""
        return labels[:, 0] if self.one_output else labels

    def shown(self, labels: NDArray[np.float64]) -> list[Any]:
        """Return vectors of one number as that number, others as lists."""
        shown: list[Any] = (labels[:, 0] if labels.shape[1] == 1 else labels).tolist()
        return shown

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the weights: those of the mean."""
        return weights

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return the answer, and 1 minus the trees' deviation over that of all labels seen."""
        weights, labels, deviation = endings.weights, endings.labels, endings.deviation
        large = LARGE_LABEL
        if abs(labels).max() > large:
            labels, deviation = labels / large / large, deviation / large / large
        apart = np.sqrt(weights @ ((labels - weights @ labels) ** 2).sum(axis=1))
        agreement = 1 - apart / deviation if deviation > 0 else 1.0
        return self.answers(endings.estimate)[0].tolist(), agreement

    def keys(self) -> None:
        """Return None: numbers speak for themselves."""
        return

    def saved(self, n_met: int) -> tuple[dict[str, Any], LabelColumns]:
        """Return whether targets are single numbers."""
        return {"one_output": self.one_output}, {}

    def loaded(
        self, document: Mapping[str, Any], column: Callable[[str], NDArray[Any]], label_length: int
    ) -> Self:
        """Return the policy of a file or a copy."""
        one_output = document.get("one_output")
        if not isinstance(one_output, bool) or (one_output and label_length != 1):
            raise ValueError(
                f"one_output is {one_output!r}, but labels have {label_length} numbers"
            )
        return replace(self, one_output=one_output, length=label_length)

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Accept every state: the engine checks its own numbers."""


@dataclass(frozen=True)
class LabelVectors(Targets):
    """The policy of the general form: the user's d_c and E.

    Parameters
    ----------
    epsilon, one_output, length
        As for :class:`Targets`.
    label_metric : str or callable
        d_c in use.
    estimator : str or callable
        E in use.
    """

    label_metric: Any = "euclidean"
    estimator: Any = "shepard_mean"

    parameter_names: ClassVar[tuple[str, ...]] = ("epsilon", "estimator", "label_metric")

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the policy of an estimator with these d_c, epsilon and E."""
        return cls(
            _epsilon(parameters),
            label_metric=parameters["label_metric"],
            estimator=parameters["estimator"],
        )

    @property
    def parameters(self) -> dict[str, Any]:
        """The d_c, epsilon and E in use."""
        return {name: getattr(self, name) for name in self.parameter_names}

    @property
    def rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon; a callable E is called elsewhere."""
        estimator = "nearest" if callable(self.estimator) else self.estimator
        return {**super().rules, "label_metric": self.label_metric, "estimator": estimator}

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return equal weights for a callable E, because what it makes of its nodes is unknown."""
        if callable(self.estimator):
            return np.full(len(weights), 1 / len(weights))
        return weights

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return E's answer, and the trees' agreement as for targets."""
        answer, agreement = super().concluded(endings)
        if callable(self.estimator):
            nodes = [
                Node(*parts)
                for parts in zip(
                    endings.positions,
                    endings.labels,
                    endings.distances.tolist(),
                    endings.arrivals.tolist(),
                    strict=True,
                )
            ]
            answer = np.asarray([self.estimator(endings.query, nodes)])[0].tolist()
        return answer, agreement


def _epsilon(parameters: Mapping[str, Any]) -> float | str:
    epsilon: float | str = parameters["epsilon"]
    return epsilon if isinstance(epsilon, str) else float(epsilon)
