"""A missing number counts as what the other numbers of its row let expect."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest.estimators.columns import ColumnEncoder, LabelSlots, RawRows
from boundary_forest.estimators.columns.number_relations import MOST_COLUMNS, NumberRelations


def related_rows(n=600, n_columns=4, missing=0.15, seed=0):
    """Return numbers that share one cause, the same with holes, and labels that say nothing."""
    rng = np.random.default_rng(seed)
    whole = rng.normal(size=(n, 1)) + 0.3 * rng.normal(size=(n, n_columns))
    whole = 100.0 + whole * np.arange(1, n_columns + 1)
    X = np.where(rng.random(whole.shape) < missing, np.nan, whole)
    return whole, X, rng.normal(size=(n, 1))


def encoder_of(X, y, cuts=()):
    encoder = ColumnEncoder(LabelSlots(None, 1))
    for begin, end in zip([0, *cuts], [*cuts, len(X)], strict=True):
        encoder = encoder.learned(RawRows.of_numbers(X[begin:end]), y[begin:end])
    return encoder


def test_a_missing_number_is_expected_from_the_others():
    whole, X, y = related_rows()
    encoder = encoder_of(X[:500], y[:500])
    filled = encoder.query_rows(RawRows.of_numbers(X[500:]), 4)
    missing = np.isnan(X[500:])
    np.testing.assert_array_equal(filled[~missing], X[500:][~missing])
    errors = ((filled - whole[500:]) / np.arange(1, 5))[missing]
    assert np.sqrt(np.mean(errors**2)) < 0.55  # seen: 0.41; with means 1.04


def test_a_row_without_any_number_has_the_means():
    _, X, y = related_rows()
    encoder = encoder_of(X, y)
    row = encoder.query_rows(RawRows.of_numbers(np.full((1, 4), np.nan)), 4)
    np.testing.assert_allclose(row[0], np.nanmean(X, axis=0), atol=0.3)


@pytest.mark.parametrize("n_columns", [3, MOST_COLUMNS + 3])
def test_batches_and_single_rows_have_the_same_relations(n_columns):
    _, X, y = related_rows(300, n_columns)
    X[:40] = np.nan_to_num(X[:40])  # complete rows before the first missing number
    whole = encoder_of(X, y)
    for cuts in ([17, 40, 41, 125, 126, 251], list(range(1, 300))):
        assert encoder_of(X, y, cuts).described() == whole.described()
    assert len(whole.numbers.relations.unexplained) == min(n_columns, MOST_COLUMNS)


def test_rows_are_filled_alike_in_batches_and_alone():
    _, X, y = related_rows(300, 9)
    encoder = encoder_of(X, y)
    together = encoder.query_rows(RawRows.of_numbers(X), 9)
    for i in range(60):
        alone = encoder.query_rows(RawRows.of_numbers(X[i : i + 1]), 9)
        np.testing.assert_array_equal(alone[0], together[i])


def test_features_of_learned_rows_do_not_depend_on_batches():
    _, X, y = related_rows(300)
    encoder = ColumnEncoder(LabelSlots(None, 1))
    layout = encoder_of(X, y).layout
    together, _ = encoder.learned_rows(RawRows.of_numbers(X), y, layout, 4)
    for i in range(300):
        rows = RawRows.of_numbers(X[i : i + 1])
        alone, encoder = encoder.learned_rows(rows, y[i : i + 1], layout, 4)
        np.testing.assert_array_equal(alone[0], together[i])


def test_relations_of_pairs_that_do_not_fit_together_are_not_used():
    counts = np.full((3, 3), 1e6)
    products = 1e6 * np.array([[1, 0.99, -0.99], [0.99, 1, 0.99], [-0.99, 0.99, 1]])
    relations = NumberRelations(counts, products, np.ones((3, 3)), np.zeros(3)).refreshed()
    assert not relations.slopes.any()
    assert relations.unexplained.tolist() == [1, 1, 1]


@pytest.mark.parametrize("scale", [1e200, 1e-200, 0.0])
def test_numbers_of_any_size_are_filled_by_finite_ones(scale):
    _, X, y = related_rows(300)
    encoder = encoder_of(X * scale, y)
    assert np.isfinite(encoder.query_rows(RawRows.of_numbers(X * scale), 4)).all()
