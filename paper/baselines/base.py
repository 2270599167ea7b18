"""The interface of the baselines, and what they share: checked rows, labels, the vote."""

from __future__ import annotations

from abc import ABC, abstractmethod
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data


class Baseline(ClassifierMixin, BaseEstimator, ABC):
    """A classifier that the forest is compared with.

    A subclass defines how rows are learned (``_begin``, ``_add``) and how a class is found
    (``_ranks_of``). Examples have arrival numbers: 0 for the first one learned.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    classes_: NDArray[Any]
    n_features_in_: int
    _codes: _Growing  # of the classes, by arrival number
    _code_of: dict[Any, int] | None  # by class, in order of appearance; None without labels

    @property
    @abstractmethod
    def name(self) -> str:
        """The name that the paper's tables have for it, with its parameters."""

    @abstractmethod
    def _begin(self, X: NDArray[Any]) -> None:
        """Forget everything, and prepare to learn rows like these."""

    @abstractmethod
    def _add(self, X: NDArray[Any]) -> None:
        """Learn rows; if this ends early, ``_n_learned`` says how many were learned."""

    @property
    @abstractmethod
    def _n_learned(self) -> int: ...

    @abstractmethod
    def _ranks_of(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the index in ``classes_`` of each row's class."""

    def fit(self, X: Any, y: Any = None) -> Self:
        """Forget everything learned before, and learn from these rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or None, default=None
            Their classes; None if only ``kneighbors`` will be used.

        Returns
        -------
        self : Baseline
        """
        self._learn(X, y, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue learning from these rows; new classes may appear at any time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,) or None, default=None
            Their classes; either every batch has them or none.

        Returns
        -------
        self : Baseline
        """
        self._learn(X, y, reset=not hasattr(self, "_codes"))
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """Predict the class of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        X = self._checked(X)
        if self._code_of is None:
            raise ValueError(
                f"{self.name} was fitted without y, so it has no classes to predict; fit it with y"
            )
        answers: NDArray[Any] = self.classes_[self._ranks_of(X)]
        return answers

    def stats(self) -> dict[str, Any]:
        """Return what was learned and what it cost.

        Returns
        -------
        stats : dict
            ``examples_seen``; ``comparisons``, the distances computed for ``learn`` and ``query``,
            or None where they are not counted.
        """
        check_is_fitted(self, "_codes")
        return {"examples_seen": self._n_learned, "comparisons": self._comparisons()}

    def _comparisons(self) -> dict[str, int] | None:
        return None

    def _learn(self, X: Any, y: Any, *, reset: bool) -> None:
        if reset:
            self._validate_params()
        code_of = None if reset else self._code_of
        if not reset and (y is None) != (code_of is None):
            raise ValueError("either every batch must have y or none; fit again to change that")
        if y is not None:
            codes, code_of = _encoded(y, code_of or {})
            classes = np.array(sorted(code_of))  # numbers and text do not sort: a TypeError
        X = self._checked(X, reset=reset)
        if y is None:
            codes = np.zeros(len(X), dtype=np.int64)
        if len(codes) != len(X):
            raise ValueError(f"X has {len(X)} rows but y has {len(codes)}")
        if reset:
            self._begin(X)
            self._codes = _Growing()
        self._code_of = code_of
        if code_of is not None:
            self.classes_ = classes
        before = self._n_learned
        try:
            self._add(X)
        finally:  # an interrupted call keeps the rows that it learned
            self._codes.extend(codes[: self._n_learned - before])

    def _checked(self, X: Any, *, reset: bool = False) -> NDArray[Any]:
        if not reset:
            check_is_fitted(self, "_codes")
        checked: NDArray[Any] = validate_data(self, X, reset=reset, dtype="numeric", order="C")
        return checked

    def _ranks(self, arrivals: Any = slice(None)) -> NDArray[np.intp]:
        """Return the index in ``classes_`` of the class of each of these examples."""
        codes: NDArray[np.intp] = self._codes.values[arrivals]
        if self._code_of is not None:
            codes = np.argsort([self._code_of[name] for name in self.classes_.tolist()])[codes]
        return codes


class NeighborsBaseline(Baseline):
    """A baseline that finds stored examples, and predicts the majority class of the nearest."""

    n_neighbors: int

    @abstractmethod
    def _nearest(self, X: NDArray[Any], n: int) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Return distances and arrival numbers of n examples for each row, nearest first."""

    def kneighbors(
        self, X: Any, n_neighbors: int | None = None, return_distance: bool = True
    ) -> Any:
        """Find stored examples close to each query, nearest first.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.
        n_neighbors : int or None, default=None
            How many; None is the parameter of that name.
        return_distance : bool, default=True
            Whether to return the distances too.

        Returns
        -------
        distances : ndarray of shape (n_samples, n_neighbors)
            Only if ``return_distance``.
        neighbors : ndarray of shape (n_samples, n_neighbors)
            Arrival numbers: 0 for the first example ever learned.
        """
        X = self._checked(X)
        n = self.n_neighbors if n_neighbors is None else n_neighbors
        if not isinstance(n, Integral) or not 1 <= n <= self._n_learned:
            raise ValueError(
                f"n_neighbors must be an integer between 1 and the {self._n_learned} examples "
                f"learned, got {n!r}"
            )
        distances, arrivals = self._nearest(X, int(n))
        return (distances, arrivals) if return_distance else arrivals

    def _ranks_of(self, X: NDArray[Any]) -> NDArray[np.intp]:
        """Return the majority's class; the first in ``classes_`` wins a tie.

        While fewer than ``n_neighbors`` examples were learned, all of them vote.
        """
        _, arrivals = self._nearest(X, min(self.n_neighbors, self._n_learned))
        votes = np.zeros((len(X), len(self.classes_)), dtype=np.intp)
        np.add.at(votes, (np.arange(len(X))[:, None], self._ranks(arrivals)), 1)
        most: NDArray[np.intp] = votes.argmax(axis=1)
        return most


class _Growing:
    """An array of integers that can be extended, and is seldom copied."""

    def __init__(self) -> None:
        self._room = np.empty(64, dtype=np.int64)
        self._n = 0

    def extend(self, values: NDArray[Any]) -> None:
        n = self._n + len(values)
        if n > len(self._room):
            self._room = np.concatenate([self.values, np.empty(n, dtype=np.int64)])
        self._room[self._n : n] = values
        self._n = n

    @property
    def values(self) -> NDArray[np.int64]:
        return self._room[: self._n]


def _encoded(y: Any, known: dict[Any, int]) -> tuple[NDArray[np.int64], dict[Any, int]]:
    """Return the code of each label, and the codes of all classes, new ones at the end."""
    labels = column_or_1d(y)
    check_classification_targets(labels)
    classes, inverse = np.unique(labels, return_inverse=True)
    code_of = dict(known)
    codes = [code_of.setdefault(name, len(code_of)) for name in classes.tolist()]
    return np.array(codes)[inverse], code_of


def element_type_of(dtype: np.dtype[Any]) -> str:
    """Return the type in which rows that arrive as ``dtype`` are kept, as the forest keeps them."""
    if dtype in (np.bool_, np.uint8):
        return "uint8"
    return str(np.result_type(dtype, np.float32))


def as_rows(X: NDArray[Any], element_type: str) -> NDArray[Any]:
    """Return X in this type; raise TypeError if a value would be rounded."""
    with np.errstate(invalid="ignore", over="ignore"):
        rows: NDArray[Any] = np.ascontiguousarray(X, dtype=element_type)
    if not np.can_cast(X.dtype, rows.dtype) and not np.array_equal(rows, X):
        raise TypeError(f"X of dtype {X.dtype} has values that {element_type} cannot hold")
    return rows
