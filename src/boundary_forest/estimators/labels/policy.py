"""What a task's policy of labels must offer.

A policy is a value: learning makes another one. It translates between what users call labels and
the engine's label vectors, in every place where that matters, so that estimators, files, journals,
explanations and fingerprints need not know which task they serve.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

LabelColumns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Endings:
    """Where the trees end for one query.

    Parameters
    ----------
    query : ndarray of shape (n_features,)
        The query.
    estimate : ndarray of shape (1, n_outputs) or (n_voted, 2)
        What the engine makes of the examples below: a label vector, or the code and the share of
        each class that has votes.
    weights, distances, arrivals : ndarray of shape (n_trees,)
        The share of each tree's example in the estimate, its distance and its arrival number.
    positions : ndarray of shape (n_trees, n_features)
        The examples' positions.
    labels : ndarray of shape (n_trees, label_length)
        The examples' label vectors.
    names : ndarray of shape (n_trees,)
        The examples' ids if they have some, else their arrival numbers.
    deviation : float
        The standard deviation of all labels seen.
    """

    query: NDArray[Any]
    estimate: NDArray[np.float64]
    weights: NDArray[np.float64]
    distances: NDArray[np.float64]
    arrivals: NDArray[np.int64]
    positions: NDArray[Any]
    labels: NDArray[np.float64]
    names: NDArray[Any]
    deviation: float


class LabelPolicy(Protocol):
    """What labels mean in one task.

    Attributes
    ----------
    parameter_names : tuple of str
        The estimator's parameters that the policy is made of.
    """

    parameter_names: ClassVar[tuple[str, ...]]

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any]) -> Self:
        """Return the policy of an estimator with these parameters that has learned nothing."""

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of ``parameter_names`` in use."""

    @property
    def rules(self) -> dict[str, Any]:
        """The engine's label_metric, estimator and epsilon."""

    # Learning

    def checked(self, y: Any, n_rows: int) -> NDArray[Any] | None:
        """Return labels as they were given, but checked: what a journal keeps of them."""

    def encoded(
        self, y: NDArray[Any] | None, classes: NDArray[Any] | None, n_rows: int, n_met: int
    ) -> tuple[NDArray[np.float64], Self]:
        """Return checked labels as the engine's label vectors, and the policy that knows them.

        ``n_met`` classes are known to the engine. What is new may be known to this policy at once,
        because answers may need it before the call is over, but it shows in no answer until the
        engine has published an example with it.
        """

    # Answering

    def ranks(self, n_met: int | None = None) -> NDArray[np.uint32] | None:
        """Return where the class of each code stands in the order of classes; None without classes.

        Of the classes to show where the engine has met ``n_met``, or of all that were named.
        """

    def answers(self, labels: NDArray[np.float64]) -> NDArray[Any]:
        """Return what the label vectors that the engine predicts mean."""

    def shown(self, labels: NDArray[np.float64]) -> list[Any]:
        """Return label vectors as a reader should see them."""

    def weighed(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return each tree's share in the answer, given its share in the engine's estimate."""

    def concluded(self, endings: Endings) -> tuple[Any, float]:
        """Return the answer, and how far the trees agree on it, in [0, 1]."""

    # Fingerprints, files and copies

    def keys(self) -> NDArray[np.uint64] | None:
        """Return a number for each class code that depends on the class alone.

        None if label vectors speak for themselves.
        """

    def saved(self, n_met: int) -> tuple[dict[str, Any], LabelColumns]:
        """Return what a file or a copy must hold: values for its document, and columns."""

    def loaded(
        self, document: Mapping[str, Any], column: Callable[[str], NDArray[Any]], label_length: int
    ) -> Self:
        """Return the policy from what ``saved`` gave; ValueError if it cannot be right."""

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Refuse an engine's state that does not belong to this policy."""
