"""boundary_forest.plot: what is drawn is what the forest says."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

pytest.importorskip("matplotlib")
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from boundary_forest import plot


@pytest.fixture
def ax():
    return Figure().subplots()


@pytest.fixture(scope="module")
def moons():
    return make_moons(300, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def forest(moons):
    return BoundaryForestClassifier(n_estimators=8, random_state=0).fit(*moons)


def offsets(ax):
    return np.concatenate(
        [p.get_offsets() for p in ax.collections if isinstance(p, PathCollection)]
    )


def test_a_tree_in_the_plane_stands_where_its_examples_are(forest, moons, ax):
    X, y = moons
    assert plot.plot_tree(forest, 2, X=X, y=y, ax=ax) is ax
    arrivals, _ = forest.trees()[2]
    drawn = {tuple(point) for point in offsets(ax).tolist()}
    assert drawn >= {tuple(point) for point in X[arrivals].tolist()}
    n_edges = len(ax.collections[0].get_segments())
    assert n_edges == len(arrivals) - 1
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["0", "1"]


def test_a_tree_by_levels_puts_children_one_below_their_parents(forest, ax):
    plot.plot_tree(forest, ax=ax)
    edges = np.array(ax.collections[0].get_segments())
    assert (edges[:, 1, 1] - edges[:, 0, 1] == 1).all()
    points = [tuple(p) for p in offsets(ax)[:-1].tolist()]
    assert len(set(points)) == len(forest.trees()[0][0])  # no two nodes at one place


def test_a_tree_is_cut_at_a_depth(forest, ax):
    plot.plot_tree(forest, max_depth=1, ax=ax)
    assert offsets(ax)[:, 1].max() == 1


def test_a_tree_of_an_index_is_drawn(moons, ax):
    index = BoundaryForestNeighbors(n_estimators=4, random_state=0).fit(moons[0])
    plot.plot_tree(index, X=moons[0], ax=ax)
    assert len(offsets(ax)) == 301  # all rows, and the mark of the root


def test_rows_that_are_too_few_are_refused(forest, moons, ax):
    with pytest.raises(ValueError, match="X must have all rows that the forest has learned"):
        plot.plot_tree(forest, X=moons[0][:3], ax=ax)
    with pytest.raises(ValueError, match="number of trees, 8; got 8"):
        plot.plot_tree(forest, 8, ax=ax)


def test_a_forest_without_trees_says_so(ax):
    with pytest.raises(ValueError, match="not built yet"):
        plot.plot_tree(BoundaryForestClassifier().fit([[0.0, 1]], ["a"]), ax=ax)


def test_the_decision_boundary_is_that_of_predict(forest, moons, ax):
    X, y = moons
    assert plot.plot_decision_boundary(forest, X, y, grid_resolution=20, ax=ax) is ax
    assert len(offsets(ax)) == len(X)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("feature 0", "feature 1")


def test_a_boundary_of_a_frame_has_its_names_and_keeps_other_columns(ax):
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = BoundaryForestClassifier.for_tables(random_state=0).fit(X, y)
    plot.plot_decision_boundary(forest, X, y, features=(2, 3), grid_resolution=10, ax=ax)
    assert ax.get_xlabel() == "petal length (cm)"


def test_a_regressors_surface_is_its_predictions(moons, ax):
    X, _ = moons
    forest = BoundaryForestRegressor(random_state=0).fit(X, X[:, 0])
    plot.plot_decision_boundary(forest, X, grid_resolution=5, ax=ax)
    drawn = ax.collections[0].get_array().ravel()
    assert len(drawn) == 25
    assert drawn.min() >= X[:, 0].min()


def test_a_path_ends_at_the_distance_of_the_example_that_apply_returns(forest, moons, ax):
    X, _ = moons
    x = np.array([0.4, 0.3])
    assert plot.plot_path(forest, x, trees=[3], ax=ax) is ax
    path = ax.lines[0].get_ydata()
    end = X[forest.apply([x])[0, 3]]
    assert path[-1] == pytest.approx(np.linalg.norm(end - x))
    assert (np.diff(path) <= 0).all()


def test_a_stream_is_the_mean_of_each_window(ax):
    y = np.array(["a", "b", "b", "a", "a"])
    predicted = np.array([None, "b", "a", "a", "a"], dtype=object)
    assert plot.plot_stream(y, predicted, window=2, label="it", ax=ax) is ax
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), [3, 4, 5])
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5, 0.5, 1])


def test_a_stream_of_numbers_is_its_error(ax):
    plot.plot_stream(np.array([1.0, 2, 4]), np.array([np.nan, 2.5, 3]), window=1, ax=ax)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [0.5, 1])
    assert "error" in ax.get_ylabel()


def test_importances_are_sorted_and_named(ax):
    X, y = load_iris(return_X_y=True, as_frame=True)
    forest = BoundaryForestClassifier.for_tables(random_state=0).fit(X, y)
    assert plot.plot_importances(forest, max_features=3, ax=ax) is ax
    widths = [bar.get_width() for bar in ax.patches]
    assert widths == sorted(forest.feature_importances_, reverse=True)[:3]
    assert ax.get_yticklabels()[0].get_text() in X.columns


def test_calibration_is_the_share_of_right_rows_in_each_bin(ax):
    proba = [[0.9, 0.1], [0.6, 0.4], [0.2, 0.8], [0.3, 0.7]]
    assert plot.plot_calibration(["x", "y", "y", "y"], proba, n_bins=2, ax=ax) is ax
    line = ax.lines[1]
    np.testing.assert_allclose(line.get_xdata(), [0.65, 0.85])
    np.testing.assert_allclose(line.get_ydata(), [0.5, 1])


@pytest.mark.parametrize(
    "call",
    [
        lambda ax: plot.plot_stream([1, 2], [1], ax=ax),
        lambda ax: plot.plot_stream(["a"], [None], ax=ax),
        lambda ax: plot.plot_stream(["a", "b"], ["a", "b"], window=3, ax=ax),
        lambda ax: plot.plot_calibration(["a", "b"], [[1.0], [1.0]], ax=ax),
    ],
)
def test_bad_arguments_are_refused(call, ax):
    with pytest.raises(ValueError, match=r"must be|no predictions"):
        call(ax)


def test_importing_it_needs_no_matplotlib():
    """Only drawing does; and importing it chooses no backend."""
    code = "import boundary_forest.plot, sys; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
