"""The classifier: an example is kept where a tree would have named another class."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils import column_or_1d
from sklearn.utils.multiclass import check_classification_targets

from boundary_forest._base import BaseBoundaryForest, naming


class BoundaryForestClassifier(ClassifierMixin, BaseBoundaryForest):
    """Online nearest-neighbour classification with a Boundary Forest.

    Parameters
    ----------
    n_estimators : int, default=50
        Trees (the paper's n_T). Time and memory for nodes grow with it; so does accuracy, ever
        more slowly.
    max_children : int or None, default=50
        Most children a node may have (k). None is unlimited, and then a query costs a power of the
        number of examples instead of its logarithm.
    metric : str or callable, default="euclidean"
        "euclidean", "manhattan", "chebyshev", "minkowski" (with ``metric_params={"p": p}``),
        "cosine", "hamming" or "canberra"; a function of two float64 arrays; or a compiled function
        with an ``address``, such as numba's ``cfunc`` of signature
        ``float64(CPointer(float64), CPointer(float64), int64)``.
    metric_params : dict or None, default=None
        Further arguments of the metric.
    dtype : {"auto", "uint8", "float32", "float64"}, default="auto"
        What positions are kept as; "auto" lets the first batch's dtype decide.
    offline : bool, default=False
        Whether ``fit`` shows each tree its own shuffle of the data (the paper's OBF).
    n_jobs : int or None, default=None
        Threads; None is 1, -1 all cores. The answers do not depend on it.
    random_state : int, RandomState instance or None, default=None
        Seed of the forest; None draws one.

    Attributes
    ----------
    classes_ : ndarray
        The classes seen so far, sorted.
    seed_ : int
        The seed in use.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from boundary_forest import BoundaryForestClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> forest = BoundaryForestClassifier(random_state=0)
    >>> for start in range(0, 1500, 100):
    ...     forest = forest.partial_fit(X[start : start + 100], y[start : start + 100])
    >>> forest.score(X[1500:], y[1500:]) > 0.9
    True
    """

    classes_: NDArray[Any]

    def fit(self, X: Any, y: Any) -> Self:
        """Forget everything and learn from the beginning.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,)
            Their classes.

        Returns
        -------
        self : BoundaryForestClassifier
        """
        self._learn(X, y, reset=True)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Go on learning; new classes may appear at any time.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Positions, in the order in which they are learned.
        y : array-like of shape (n_samples,)
            Their classes.
        classes : array-like or None, default=None
            Classes that ``classes_`` should have even if none of their examples came yet.

        Returns
        -------
        self : BoundaryForestClassifier
        """
        self._learn(X, y, reset=False, classes=classes)
        return self

    def predict(self, X: Any) -> NDArray[Any]:
        """The class with the largest share of the votes; the first in ``classes_`` among equals.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        shares, classes = self._shares(X)
        answers: NDArray[Any] = classes[shares.argmax(axis=1)]
        return answers

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Each class's share of the Shepard-weighted votes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            The queries.

        Returns
        -------
        shares : ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        return self._shares(X)[0]

    def _shares(self, X: Any) -> tuple[NDArray[np.float64], NDArray[Any]]:
        engine, rows = self._ask(X)
        by_code = engine.estimate(rows, self._n_threads())
        classes, codes = self._class_table  # read after asking: it has every class that was met
        known = codes < max(by_code.shape[1], len(self.classes_))
        classes, codes = classes[known], codes[known]
        shares = np.zeros((len(rows), len(classes)))
        met = codes < by_code.shape[1]
        shares[:, met] = by_code[:, codes[met]]
        return shares, classes

    # Classes are coded in order of appearance, so that a new one changes no label already stored.
    # The table is (sorted classes, their codes), replaced as one so that queries see it whole.
    # While a batch is learned it may be ahead of classes_; the new ones count once they are met.

    def _encode(
        self, y: Any, n_rows: int, *, reset: bool, classes: Any = None
    ) -> NDArray[np.float64]:
        y = _as_labels(y)
        check_classification_targets(y)
        values, first, inverse = np.unique(y, return_index=True, return_inverse=True)
        if reset:
            self._class_table = (y[:0], np.zeros(0, dtype=np.int64))
        if classes is not None:
            with naming("classes"):
                declared = np.unique(_as_labels(classes))
                _check_one_kind(declared, values)
                self._add_classes(declared)
        self._add_classes(values[np.argsort(first)])
        table, codes = self._class_table
        self.classes_ = table
        return codes[np.searchsorted(table, values)][inverse].astype(np.float64)[:, None]

    def _add_classes(self, values: NDArray[Any]) -> None:
        table, codes = self._class_table
        _check_one_kind(table, values)
        new = values[~np.isin(values, table)]
        if len(new) == 0:
            return
        table = np.concatenate([table, new])
        codes = np.concatenate([codes, np.arange(len(codes), len(table))])
        order = np.argsort(table)
        self._class_table = (table[order], codes[order])

    def _announce(self, draft: Self) -> None:
        self._table_before = self._class_table
        self._class_table = draft._class_table

    def _withdraw(self) -> None:
        if hasattr(self, "_table_before"):
            self._class_table = self._table_before

    def _label_rules(self) -> dict[str, Any]:
        return {"label_rule": "classes_differ", "estimator": "shepard_vote", "epsilon": 0.0}

    def _label_names(self, labels: NDArray[np.float64]) -> list[Any]:
        classes, codes = self._class_table
        by_code = dict(zip(codes.tolist(), classes.tolist(), strict=True))
        return [by_code[int(code)] for code in labels[:, 0]]


def _as_labels(y: Any) -> NDArray[Any]:
    """One label a row, of a kind that can be sorted and told apart."""
    labels: NDArray[Any] = column_or_1d(y, warn=True)
    if len(labels) == 0:
        raise ValueError("there must be at least one label")
    if labels.dtype.kind not in "biufUSO":
        raise TypeError(f"labels must be text, integers or booleans, got dtype {labels.dtype}")
    if labels.dtype.kind in "fO" and any(label is None or label != label for label in labels):
        raise ValueError("labels must not be None or NaN")
    return labels


def _check_one_kind(*labels: NDArray[Any]) -> None:
    """Text beside numbers would be rewritten by numpy; it is refused instead."""
    samples = [some[0] for some in labels if len(some)]
    if len({isinstance(label, str | bytes) for label in samples}) > 1:
        raise TypeError(
            f"labels must be all text or all numbers, not {samples[0]!r} and {samples[-1]!r}"
        )
