"""What users give, checked: positions by scikit-learn's rules, threads by joblib's."""

from __future__ import annotations

import functools
from numbers import Integral
from typing import Any

from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from boundary_forest.estimators.blocks import is_sparse, sound_sparse
from boundary_forest.estimators.element_type import is_checked
from boundary_forest.estimators.errors import raise_naming
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.list_columns import as_matrix
from boundary_forest.estimators.lossless import check_exact
from boundary_forest.estimators.unusable_columns import check_columns


def checked_positions(estimator: Any, X: Any, fitted: Fitted) -> Any:
    """Return X as an array, or as a CSR matrix if it is sparse, for a forest that has learned."""
    n_features = fitted.settings.n_features
    if fitted.feature_names is None and is_checked(X) and X.shape[1] == n_features:
        return X
    draft = _draft(estimator)
    draft.n_features_in_ = n_features
    if fitted.feature_names is not None:
        draft.feature_names_in_ = fitted.feature_names
    return _validated(draft, X, reset=False)


def first_positions(estimator: Any, X: Any) -> tuple[Any, NDArray[Any] | None]:
    """Return the same for a forest that has learned nothing, and the names of its columns."""
    draft = _draft(estimator)
    return _validated(draft, X, reset=True), getattr(draft, "feature_names_in_", None)


def n_threads(n_jobs: Any) -> int:
    """Return how many threads ``n_jobs`` stands for."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(f"n_jobs must be None or a non-zero integer, got {n_jobs!r}")
    return int(effective_n_jobs(n_jobs))


def _validated(draft: Any, X: Any, *, reset: bool) -> Any:
    try:
        X = sound_sparse(X) if is_sparse(X) else as_matrix(X)
        checked = validate_data(
            draft, X, reset=reset, dtype="numeric", order="C", accept_sparse="csr"
        )
        if checked.dtype.kind not in "biuf":  # frames whose types are not numpy's come through
            check_columns(X)
        if not is_sparse(checked):
            check_exact(X, checked)
    except (TypeError, ValueError) as error:
        check_columns(X)
        raise_naming("X", error)
    return checked


class _Draft:
    """What validate_data reads and sets attributes of, in place of the estimator."""

    def __init__(self, tags: Any) -> None:
        self._tags = tags

    def __sklearn_tags__(self) -> Any:
        return self._tags


@functools.lru_cache(maxsize=64)
def _drafts_named(name: str) -> type[_Draft]:
    """Return a class of this name: scikit-learn's messages tell it."""
    return type(name, (_Draft,), {})


def _draft(estimator: Any) -> Any:
    return _drafts_named(type(estimator).__name__)(estimator.__sklearn_tags__())
