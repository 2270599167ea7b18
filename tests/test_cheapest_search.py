"""A search never costs more than a comparison with all stored examples, told by counts."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors

N, K = 5000, 10


@pytest.fixture(scope="module")
def clustered():
    """Rows in clusters of 100, queries among them, and an index of the rows."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.normal(size=(N // 100, 64))
    X = np.repeat(centres, 100, axis=0) + rng.normal(size=(N, 64))
    X = rng.permutation(X).astype(np.float32)
    queries = (centres[:20] + rng.normal(size=(20, 64))).astype(np.float32)
    return queries, BoundaryForestNeighbors(K, random_state=0).fit(X, ids=np.arange(N))


def evaluations(index, search):
    before = index.stats()["evaluations"]["query"]
    found = search()
    return index.stats()["evaluations"]["query"] - before, found


@pytest.mark.parametrize("beam", [10, 40, 100, 1000, 2**40])
def test_no_beam_costs_more_than_exact_search(clustered, beam):
    """Seen per query: 152 and 254 distances with beams of 10 and 40, and 5,000 with wider ones."""
    queries, index = clustered
    count, found = evaluations(index, lambda: index.kneighbors(queries, beam=beam))
    walked, _ = evaluations(index, lambda: index.kneighbors(queries, beam=beam, exact=False))
    if beam <= 40:
        assert count == walked < 0.1 * N * len(queries)
    else:
        assert count == N * len(queries)
        np.testing.assert_array_equal(found, index.kneighbors(queries, exact=True))


def test_many_neighbours_are_as_good_as_a_wide_beam(clustered):
    queries, index = clustered
    count, _ = evaluations(index, lambda: index.kneighbors(queries, 1000, beam=10))
    assert count == N * len(queries)


def test_one_row_is_searched_as_in_a_batch(clustered):
    queries, index = clustered
    for beam in (30, 1000):
        for radius in (8.0, 20.0, 100.0):
            together = index.radius_neighbors(queries, radius, beam=beam)[1]
            alone = [index.radius_neighbors(y[None], radius, beam=beam)[1][0] for y in queries]
            for one, other in zip(together, alone, strict=True):
                np.testing.assert_array_equal(one, other)


def test_a_radius_costs_at_most_twice_an_exact_search(clustered):
    """The beam is doubled until the radius is reached: unbounded, that took 33,000."""
    queries, index = clustered
    for radius in (1.0, 20.0, 100.0):
        count, found = evaluations(
            index, lambda r=radius: index.radius_neighbors(queries, r, beam=4)
        )
        assert count <= 2 * N * len(queries)
    assert all(len(its) == N for its in found[0])
    count, _ = evaluations(
        index, lambda: index.radius_neighbors(queries, 100.0, beam=4, exact=False)
    )
    assert count > 3 * N * len(queries)


def test_filters_and_forgotten_examples_count(clustered):
    """A graph's search passes through what it may not return, so it is dearer than without."""
    queries, index = clustered
    mask = np.arange(N) % 3 == 0
    count, found = evaluations(index, lambda: index.kneighbors(queries, beam=30, allowed=mask))
    assert count == mask.sum() * len(queries)
    assert mask[found[1]].all()


def test_a_function_of_the_user_is_called_at_most_once_per_example():
    calls = []

    def distance(a, b):
        calls.append(1)
        return float(np.abs(a - b).sum())

    rng = np.random.default_rng(0)
    index = BoundaryForestNeighbors(2, n_estimators=3, metric=distance, random_state=0)
    index.fit(rng.normal(size=(300, 3)))
    calls.clear()
    index.kneighbors(rng.normal(size=(1, 3)), beam=200)
    assert len(calls) == 300
