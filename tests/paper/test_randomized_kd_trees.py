"""FLANN's trees learn one by one, look at the share of points they may, and let go of nothing."""

from __future__ import annotations

import copy
import gc
import pickle
import sys

import numpy as np
import pytest
from conftest import REFUSED, names
from scipy.spatial.distance import cdist

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from paper.baselines import RandomizedKDTrees, make
from paper.baselines.kd_trees import CHUNK_ROWS


def test_where_flann_is_absent_an_error_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyflann_ibeis.flann_ctypes", None)
    monkeypatch.setitem(sys.modules, "pyflann_ibeis", None)
    trees = make("R-kd")  # can be made and named
    with pytest.raises(ImportError, match="pip install pyflann-ibeis"):
        trees.fit([[0.0]], [1])


@pytest.mark.parametrize(
    ("parameter", "value"),
    [("n_trees", 0), ("checks", 0), ("checks", 1.5), ("n_neighbors", 0), ("random_state", "x")],
)
def test_a_bad_parameter_is_refused_by_name(parameter, value):
    with pytest.raises(REFUSED, match=names(parameter)):
        RandomizedKDTrees(**{parameter: value}).fit([[0.0]], [1])


class TestWithFlann:
    @pytest.fixture(autouse=True)
    def flann(self):
        pytest.importorskip("pyflann_ibeis", reason="pyflann-ibeis is not installed")

    @pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
    def test_distances_and_numbers_belong_together(self, dtype):
        rng = np.random.default_rng(0)
        X = rng.integers(0, 200, size=(2 * CHUNK_ROWS + 100, 8)).astype(dtype)
        queries = rng.integers(0, 200, size=(50, 8)).astype(dtype)
        trees = RandomizedKDTrees(random_state=0)
        for piece in np.array_split(X, [1, 2, 3, 500]):
            trees.partial_fit(piece)
        distances, arrivals = trees.kneighbors(queries, 5)
        every = cdist(queries.astype(float), X.astype(float))
        np.testing.assert_allclose(
            distances, np.take_along_axis(every, arrivals, axis=1), rtol=1e-6
        )
        assert (np.diff(distances) >= 0).all()

    def test_a_tenth_of_the_points_finds_most_neighbours_and_fewer_find_less(self):
        """Seen: 100 % with a tenth of the points, 27 % with a thousandth."""
        rng = np.random.default_rng(1)
        X, queries = rng.random((3000, 10)), rng.random((200, 10))
        nearest = cdist(queries, X).argmin(axis=1)
        found = {
            checks: RandomizedKDTrees(checks=checks, random_state=0).fit(X).kneighbors(queries)[1]
            for checks in (0.1, 0.001)
        }
        recall = {checks: (some[:, 0] == nearest).mean() for checks, some in found.items()}
        assert recall[0.1] > 0.9
        assert recall[0.001] < recall[0.1] - 0.1

    def test_duplicates_are_kept_and_found(self):
        trees = RandomizedKDTrees(checks=1.0, random_state=0).fit(np.ones((50, 3)))
        distances, arrivals = trees.kneighbors(np.ones((1, 3)), 50)
        assert (distances == 0).all()
        assert sorted(arrivals[0]) == list(range(50))

    def test_queries_must_fit_the_type_that_was_learned(self):
        trees = RandomizedKDTrees().fit(np.array([[1], [2]], dtype=np.uint8))
        assert trees.kneighbors([[2.0]])[1].tolist() == [[1]]
        with pytest.raises(TypeError, match="uint8"):
            trees.kneighbors([[1.5]])

    def test_comparisons_are_not_counted(self):
        assert RandomizedKDTrees().fit([[0.0]]).stats()["comparisons"] is None

    def test_copies_are_refused_because_two_would_free_the_same_trees(self):
        trees = RandomizedKDTrees().fit([[0.0], [1.0]], [0, 1])
        for make_copy in (copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied"):
                make_copy(trees)
        del make_copy
        gc.collect()
        assert trees.predict([[0.9]]).tolist() == [1]
