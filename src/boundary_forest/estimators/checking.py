"""What users give, checked: positions by scikit-learn's rules, threads by joblib's."""

from __future__ import annotations

import functools
from numbers import Integral
from typing import Any

import numpy as np
from joblib import effective_n_jobs
from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from boundary_forest.estimators.blocks import is_sparse, sound_sparse
from boundary_forest.estimators.columns import EncodedRows, RawRows
from boundary_forest.estimators.columns.reading import (
    is_frame,
    is_rows_of_dicts,
    names_in,
    read_dicts,
    read_frame,
    read_single,
)
from boundary_forest.estimators.element_type import is_checked
from boundary_forest.estimators.errors import raise_naming
from boundary_forest.estimators.fitted import Fitted
from boundary_forest.estimators.forest_settings import AUTO_COLUMNS
from boundary_forest.estimators.list_columns import as_matrix
from boundary_forest.estimators.lossless import check_exact
from boundary_forest.estimators.unusable_columns import check_columns, check_missing


def takes_any_columns(estimator: Any) -> bool:
    """Whether columns may be of any kind, and values missing."""
    auto = getattr(estimator, "columns", None) == AUTO_COLUMNS
    return auto and estimator.encodes_columns


def _remedy(estimator: Any) -> str:
    """Return what can be done about columns that are not numbers alone."""
    if not hasattr(estimator, "columns"):
        return ""
    takes_any = "columns='auto', which takes text, times and missing values"
    if not estimator.encodes_columns:
        return f", or learn in one process with {takes_any}"
    return f", or set {takes_any}" if estimator.columns is None else ""


def query_positions(estimator: Any, X: Any, fitted: Fitted) -> Any:
    """Return X as an array, a CSR matrix if it is sparse, or columns that become features."""
    encoder = fitted.encoder
    if encoder is None:
        return checked_positions(estimator, X, fitted)
    width = fitted.settings.n_features
    unnamed = fitted.feature_names is None and encoder.layout.is_plain
    if unnamed and is_checked(X) and X.shape[1] == width:
        return X
    rows = None
    if fitted.feature_names is not None:
        rows = read_single(X, fitted.feature_names.tolist(), encoder.layout.kinds)
    if rows is None:
        rows, _ = checked_rows(estimator, X, fitted, learning=False)
    return EncodedRows(rows, encoder, width)


def checked_positions(estimator: Any, X: Any, fitted: Fitted) -> Any:
    """Return X as an array, or as a CSR matrix if it is sparse, for a forest that has learned."""
    n_features = fitted.settings.n_features
    if fitted.feature_names is None and is_checked(X) and X.shape[1] == n_features:
        return X
    return _validated(_draft(estimator, fitted), X, reset=False)


def first_positions(estimator: Any, X: Any) -> tuple[Any, NDArray[Any] | None]:
    """Return the same for a forest that has learned nothing, and the names of its columns."""
    draft = _draft(estimator)
    return _validated(draft, X, reset=True), getattr(draft, "feature_names_in_", None)


def checked_rows(
    estimator: Any, X: Any, fitted: Fitted | None, *, learning: bool = True
) -> tuple[RawRows, NDArray[Any] | None]:
    """Return rows of columns of any kind, and the names of the columns.

    Parameters
    ----------
    estimator : object
        Whose call it is.
    X : frame, array-like, or list of dicts
        As the user passed it, not sparse unless the forest has learned from dense rows.
    fitted : Fitted or None
        What the estimator has learned, with an encoder.
    learning : bool
        Whether dicts may have columns that are not known.
    """
    encoder = None if fitted is None else fitted.encoder
    kinds = () if encoder is None else encoder.layout.kinds
    names = None if fitted is None else fitted.feature_names
    numeric = encoder is None or encoder.layout.is_numeric
    unnamed = encoder is not None and names is None and numeric and is_checked(X)
    if unnamed and encoder is not None and X.shape[1] == encoder.n_columns:
        return RawRows.of_numbers(X), None
    draft = _draft(estimator, fitted)
    if is_rows_of_dicts(X):
        if fitted is not None and names is None:
            raise ValueError("X has dicts, but the columns of the first call had no names")
        known = () if names is None else names.tolist()
        dicts = read_dicts(X, known, kinds, grows=learning)
        return dicts, _text_names(dicts.names)
    _check_table(X)
    X = _in_order(X, names)
    try:
        X = sound_sparse(X).toarray() if is_sparse(X) else as_matrix(X)
        rows: RawRows | None = None
        if not (numeric and is_checked(X)):
            shown = names_in(X) if is_frame(X) else None
            rows = read_frame(X, kinds, shown, numbers=not numeric)
        if rows is None:
            values = _numbers(draft, X, reset=fitted is None)
            rows = RawRows.of_numbers(values)
        else:
            validate_data(draft, X, reset=fitted is None, skip_check_array=True)
            _check_size(*rows.shape)
    except (TypeError, ValueError) as error:
        raise_naming("X", error)
    return rows, getattr(draft, "feature_names_in_", None)


def _numbers(draft: Any, X: Any, *, reset: bool) -> NDArray[Any]:
    """Return an array of numbers, of which some may be NaN."""
    options = {"dtype": "numeric", "order": "C", "ensure_all_finite": "allow-nan"}
    checked: NDArray[Any] = validate_data(draft, X, reset=reset, **options)
    if not np.isnan(checked).any():
        check_exact(X, checked)
    return checked


def _check_table(X: Any) -> None:
    """Raise if X is a single row of a frame, or a frame whose rows were not computed yet."""
    if hasattr(X, "collect") and not hasattr(X, "get_columns"):
        raise TypeError("X is a LazyFrame, whose rows were not computed yet: pass X.collect()")
    if hasattr(X, "to_frame") and getattr(getattr(X, "dtype", None), "kind", "") == "O":
        raise ValueError(
            "X is a Series, but must be 2D: for one row pass a frame of one row, such as "
            "frame[i : i + 1], or a list with one dict, [X.to_dict()]"
        )


def _check_size(n_rows: int, n_columns: int) -> None:
    if n_rows == 0 or n_columns == 0:
        what = "sample" if n_rows == 0 else "feature"
        raise ValueError(
            f"Found array with 0 {what}(s) (shape=({n_rows}, {n_columns})) while a minimum of 1 "
            "is required."
        )


def _text_names(names: tuple[Any, ...] | None) -> NDArray[Any]:
    other = [name for name in names or () if not isinstance(name, str)]
    if other:
        raise TypeError(f"X must have columns named by strings, got {other[0]!r}")
    return np.array(names, dtype=object)


def _in_order(X: Any, names: NDArray[Any] | None) -> Any:
    """Return a frame with its columns in the order of the first one, if it has the same."""
    if names is None or not is_frame(X):
        return X
    own, wanted = names_in(X), names.tolist()
    if own == wanted or sorted(map(str, own)) != sorted(wanted):
        return X
    return X[wanted] if hasattr(X, "iloc") else X.select(wanted)


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
            check_columns(X, draft.remedy)
        if not is_sparse(checked):
            check_exact(X, checked)
    except (TypeError, ValueError) as error:
        check_columns(X, draft.remedy)
        if not is_sparse(X):
            check_missing(error, draft.remedy)
        raise_naming("X", error)
    return checked


class _Draft:
    """What validate_data reads and sets attributes of, in place of the estimator."""

    def __init__(self, tags: Any, remedy: str) -> None:
        self._tags = tags
        self.remedy = remedy

    def __sklearn_tags__(self) -> Any:
        return self._tags


@functools.lru_cache(maxsize=64)
def _drafts_named(name: str) -> type[_Draft]:
    """Return a class of this name: scikit-learn's messages tell it."""
    return type(name, (_Draft,), {})


def _draft(estimator: Any, fitted: Fitted | None = None) -> Any:
    named = _drafts_named(type(estimator).__name__)
    draft: Any = named(estimator.__sklearn_tags__(), _remedy(estimator))
    if fitted is not None:
        draft.n_features_in_ = fitted.n_columns
        if fitted.feature_names is not None:
            draft.feature_names_in_ = fitted.feature_names
    return draft
