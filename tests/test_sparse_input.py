"""A sparse matrix whose indices do not fit its shape is refused, and teaches nothing."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from conftest import state, unchanged

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors


def rows(seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.round(rng.random((30, 6)), 2) * (rng.random((30, 6)) < 0.5)


def with_index(index):
    def spoil(X):
        if X.format == "coo":
            X.col[3] = index
        elif X.format == "lil":
            X.rows[2][-1] = index
        else:
            X.indices[3] = index

    return spoil


def with_pointer(place, pointer):
    def spoil(X):
        if X.format in ("coo", "lil"):
            with_index(6)(X)
        else:
            X.indptr[place] = pointer

    return spoil


def too_short(X):
    if X.format == "lil":
        X.data[2] = X.data[2][:-1]
    else:
        X.data = X.data[:-4]


SPOILT = {
    "an index far beyond": with_index(10**6),
    "an index just beyond": with_index(30),  # more than rows and columns
    "a negative index": with_index(-1),
    "rows beyond the end": with_pointer(5, 10**6),
    "the last row beyond the end": with_pointer(-1, 10**6),
    "rows that go back": with_pointer(5, 0),
    "too few values": too_short,
}
formats = pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil"])
kinds = pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix], ids=["array", "matrix"])


def spoilt(form, kind, spoil):
    X = kind(rows()).asformat(form)
    spoil(X)
    return X


@formats
@kinds
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_indices_that_do_not_fit_the_shape_teach_nothing(form, kind, spoil):
    y = np.arange(30) % 3
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0).fit(rows(1), y)
    for learn in (forest.fit, forest.partial_fit, forest.predict_then_learn):
        with (
            unchanged(forest, rows(2)),
            pytest.raises(ValueError, match="X is not a valid sparse matrix"),
        ):
            learn(spoilt(form, kind, spoil), y)


@formats
@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_queries_with_such_indices_are_refused(form, spoil):
    index = BoundaryForestNeighbors(n_neighbors=2, n_estimators=3, random_state=0).fit(rows(1))
    for query in (index.kneighbors, index.apply, index.transform, index.kneighbors_graph):
        with pytest.raises(ValueError, match="X is not a valid sparse matrix"):
            query(spoilt(form, sp.csr_array, spoil))


@pytest.mark.parametrize("form", ["csr", "csc", "bsr", "coo", "lil", "dok", "dia"])
@kinds
def test_a_sound_matrix_of_any_format_is_as_good_as_dense_rows_and_is_left_alone(form, kind):
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0)
    y, X = np.arange(30) % 3, kind(rows()).asformat(form)
    before = X.copy()
    assert state(forest.fit(X, y), rows(2)) == state(forest.fit(rows(), y), rows(2))
    assert (before != X).nnz == 0


@pytest.mark.parametrize("form", ["csr", "csc", "coo"])
def test_values_that_come_twice_are_added_before_they_are_checked(form):
    """Also in their own matrix, which keeps them apart."""
    parts = (np.array([1e308, 1e308, 1.0]), (np.array([0, 0, 1]), np.array([1, 1, 0])))
    X = sp.coo_array(parts, shape=(2, 2))
    if form != "coo":
        compressed = sp.csr_array if form == "csr" else sp.csc_array
        indices = np.array([1, 1, 0]) if form == "csr" else np.array([1, 0, 0])
        indptr = np.array([0, 2, 3]) if form == "csr" else np.array([0, 1, 3])
        data = np.array([1e308, 1e308, 1.0]) if form == "csr" else np.array([1.0, 1e308, 1e308])
        X = compressed((data, indices, indptr), shape=(2, 2))
    with pytest.raises(ValueError, match="X contains infinity"):
        BoundaryForestNeighbors(n_estimators=2).fit(X)
    assert X.nnz == 3
