"""Embeddings: angles and inner products searched by the graph, and the types that they come in."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors

pytestmark = pytest.mark.kernels

K = 10


def clustered(n, width=24, seed=0):
    """Rows about a few directions, of different lengths, as embeddings are."""
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(40, width))
    X = centres[rng.integers(40, size=n)] + 0.7 * rng.normal(size=(n, width))
    return (X * rng.uniform(0.5, 3, size=(n, 1))).astype(np.float32)


def of_length_one(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def recall(found, true):
    return np.mean([len(set(a) & set(b)) / K for a, b in zip(found, true, strict=True)])


@pytest.mark.parametrize(
    ("metric", "normalised", "least"),
    [  # seen: 0.999 of the first three, 1.0 of the others
        ("euclidean", True, 0.99),
        ("cosine", False, 0.99),
        ("inner_product", True, 0.99),
        ("inner_product", False, 0.99),
        ("euclidean", False, 0.99),
    ],
)
def test_the_graph_finds_nearly_all_neighbours(metric, normalised, least):
    X, queries = np.split(clustered(4200), [4000])
    if normalised:
        X, queries = of_length_one(X), of_length_one(queries)
    index = BoundaryForestNeighbors(n_estimators=20, metric=metric, random_state=0).fit(X)
    true = index.kneighbors(queries, K, return_distance=False, exact=True)
    assert recall(index.kneighbors(queries, K, return_distance=False), true) > least


def test_queries_unlike_all_rows_need_a_wider_beam():
    """Seen: 0.7865 with a beam of 20, 0.972 with 100, 0.999 with 400."""
    X, queries = of_length_one(clustered(4000)), of_length_one(clustered(200, seed=1))
    index = BoundaryForestNeighbors(n_estimators=20, random_state=0).fit(X)
    true = index.kneighbors(queries, K, return_distance=False, exact=True)
    found = {
        b: index.kneighbors(queries, K, return_distance=False, beam=b, exact=False)
        for b in (20, 400)
    }
    assert recall(found[20], true) < recall(found[400], true)
    assert recall(found[400], true) > 0.98


def test_three_ways_to_compare_angles_agree():
    X, queries = clustered(1500), clustered(50, seed=1)
    unit, unit_queries = of_length_one(X.astype(float)), of_length_one(queries.astype(float))
    by_angle = np.argsort(1 - unit_queries @ unit.T, axis=1, kind="stable")[:, :K]
    cases = {"cosine": (X, queries), "euclidean": (unit, unit_queries)}
    cases["inner_product"] = (unit, unit_queries)
    for metric, (rows, asked) in cases.items():
        index = BoundaryForestNeighbors(n_estimators=5, metric=metric, random_state=0).fit(rows)
        found = index.kneighbors(asked, K, return_distance=False, exact=True)
        assert np.array_equal(found, by_angle), metric


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_halves_and_signed_bytes_are_searched_as_the_float32_that_they_are(dtype):
    X = (20 * clustered(800)).clip(-128, 127).astype(dtype)
    one, other = (
        BoundaryForestNeighbors(n_estimators=5, random_state=0).fit(rows)
        for rows in (X, X.astype(np.float32))
    )
    assert one.fingerprint() == other.fingerprint()
    assert one.stats()["bytes"]["positions"] == other.stats()["bytes"]["positions"]
    for queries in (X[:20], X[:20].astype(np.float64)):
        assert one.kneighbors(queries, K)[1].tolist() == other.kneighbors(queries, K)[1].tolist()
    # A batch of float32 that a half could not hold is taken: float32 is what is stored.
    assert one.partial_fit(np.full((1, X.shape[1]), 0.1, dtype=np.float32)).n_samples_fit_ == 801


def test_angles_between_words_are_found(real_data):
    words = real_data("glove100")
    X, queries = words.X_train[:15_000], words.X_test[:200]
    index = BoundaryForestNeighbors(n_estimators=20, metric="cosine", random_state=0).fit(X)
    true = index.kneighbors(queries, K, return_distance=False, exact=True)
    found = index.kneighbors(queries, K, return_distance=False, beam=200, exact=False)
    assert recall(found, true) > 0.97  # seen: 1.0
