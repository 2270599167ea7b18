"""Every scaling item runs at a tiny size; what they compute is checked where it is known."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from sklearn.utils import Bunch

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from boundary_forest import BoundaryForestNeighbors
from paper import laws, registry, runner, streams
from paper.artificial import ArtificialTree
from paper.context import Context
from paper.growth import children, line
from paper.item import DATA_ABSENT, DIFFERS, FAILED, REPRODUCED
from paper.items import exponent, query_comparisons, retrieval, training_cost

SCALING = [name for name, item in registry.all_items().items() if item.chapter == "Scaling"]


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path, "tiny")


@pytest.fixture
def small_mnist(monkeypatch):
    """Random bytes in the shape of MNIST."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, size=(1600, 784), dtype=np.uint8)
    data = Bunch(X_train=X[:1500], X_test=X[1500:], y_train=None, y_test=None)
    monkeypatch.setattr(Context, "load", lambda self, name: data)


@pytest.mark.parametrize("name", SCALING)
def test_a_scaling_item_runs(name, tmp_path, small_mnist):
    item = registry.all_items()[name]
    (record,) = runner.run_items([item], runner.Settings(tmp_path, "tiny"))
    assert record["verdict"] != FAILED, record["error"]
    assert record["rows"]
    assert record["plots"] == [name]
    resumed = runner.run_items([item], runner.Settings(tmp_path, "tiny"))[0]
    assert json.loads(json.dumps(resumed["rows"])) == record["rows"]


def test_without_mnist_its_items_are_not_run(tmp_path, monkeypatch):
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    items = [i for i in registry.all_items().values() if i.data == ("mnist",)][:2]
    records = runner.run_items(items, runner.Settings(tmp_path / "out", "tiny"))
    assert [record["verdict"] for record in records] == [DATA_ABSENT] * 2


# --- laws -----------------------------------------------------------------------------------------

N = [round(n) for n in np.geomspace(1e2, 1e5, 13)]


def test_a_power_law_is_straight_in_logarithms():
    found = laws.straight_in_logs(N, [3 * n**-0.5 for n in N])
    assert (found["c"], found["p"], found["r2"]) == pytest.approx((3, -0.5, 1))


def test_points_evenly_spread_in_n_tell_the_same_law():
    assert laws.judged_evenly(N, [15 * math.log(n) - 40 for n in N])["factor"] > 100
    assert laws.judged_evenly(N[:3], [1.0, 2.0, 3.0]) is None


def test_a_straight_line_is_found():
    found = laws.linear([1, 2, 4], [5.0, 7.0, 11.0])
    assert (found["a"], found["b"], found["r2"]) == pytest.approx((2, 3, 1))


def test_a_sum_of_terms_is_found():
    n = np.array(N, dtype=float)
    found = laws.fitted_line([n * n, n, np.ones_like(n)], (2 * n * n + 3 * n + 5).tolist())
    assert found["parameters"] == pytest.approx([2, 3, 5], rel=1e-3)


# --- streams and growth ---------------------------------------------------------------------------


@pytest.mark.parametrize("make", [streams.hypercube, streams.gaussians])
def test_rows_of_a_stream_are_the_same_however_they_are_asked_for(context, make):
    stream, again = make(context, 3, 7), make(context, 3, 7)
    whole = stream.rows(0, 20_500)
    assert whole.shape == (20_500, 3)
    assert whole.dtype == np.float32
    np.testing.assert_array_equal(again.rows(9_990, 10_010), whole[9_990:10_010])
    assert stream.queries.shape == (7, 3)
    assert not np.isin(stream.queries, whole).all()


def test_a_line_counts_as_the_paper_does(context):
    """Against trees walked by hand."""
    stream = streams.hypercube(context, 4, 20)
    found = line(stream, [50, 300], k=5, n_trees=3)
    forest = BoundaryForestNeighbors(n_estimators=3, max_children=5, random_state=0)
    forest.fit(stream.rows(0, 300))
    trees = forest.trees()
    made = 0
    for query in stream.queries:
        for ended, (arrivals, parents) in zip(forest.apply([query])[0], trees, strict=True):
            parent_of = dict(zip(arrivals.tolist(), parents.tolist(), strict=True))
            made, v = made + 1, ended
            while v != -1:
                made += np.sum(parents == v)
                v = parent_of[v]
    assert found["query"][-1] == pytest.approx(made / 60)
    assert found["learn"][-1] == pytest.approx(forest.stats()["comparisons"]["learn"] / 3)
    assert children(forest, 5)["most"] == 5
    assert found["full"][-1] == 1.0


def test_ranks_are_those_of_a_full_sort(context):
    stream = streams.hypercube(context, 5, 30)
    X = stream.rows(0, 500)
    distances = np.linalg.norm(stream.queries[:, None].astype(float) - X, axis=2)
    order = np.argsort(distances, axis=1)
    wanted = np.array([1, 2, 17, 500])
    found = order[:, wanted - 1]
    np.testing.assert_array_equal(
        retrieval.ranks(stream, 500, found), np.tile(wanted, (len(stream.queries), 1))
    )


def test_the_integral_of_a_logarithm_is_known():
    n = [round(x) for x in np.geomspace(100, 100_000, 33)]
    found = training_cost.integral(n, [math.log(x) for x in n])[-1]
    exact = 100_000 * (math.log(100_000) - 1) - 100 * (math.log(100) - 1)
    assert found == pytest.approx(exact, rel=0.01)


def test_a_line_departs_where_it_is_5_percent_below():
    lines = {"none": {"query": [10, 20, 30, 40]}, "10": {"query": [10, 20, 29, 30]}}
    figures = {"N": [1, 2, 3, 4], "lines": lines}
    assert query_comparisons.departure(figures, 10) == 4
    assert (
        query_comparisons.departure({**figures, "lines": {**lines, "10": lines["none"]}}, 10)
        is None
    )


# --- the artificial tree --------------------------------------------------------------------------


def test_the_artificial_trees_cost_is_the_mean_over_queries():
    tree = ArtificialTree(k=3, seed=0)
    tree.grow(40)
    rng = np.random.default_rng(0)

    def one_query():
        v, cost = 0, 1
        while True:
            below = tree.children[v]
            cost += len(below)
            pick = rng.integers(len(below) + (len(below) < 3))
            if pick == len(below):
                return cost
            v = below[pick]

    costs = [one_query() for _ in range(20_000)]
    assert tree.query_cost() == pytest.approx(np.mean(costs), rel=0.01)


def test_the_artificial_tree_keeps_its_limit():
    tree = ArtificialTree(k=4, seed=1)
    tree.grow(2_000)
    assert max(map(len, tree.children)) == 4
    assert tree.root_children() == 4
    assert len(tree.parents) == 2_000


def test_the_root_of_an_unlimited_artificial_tree_has_as_many_children_as_argued():
    roots = []
    for seed in range(30):
        tree = ArtificialTree(k=None, seed=seed)
        tree.grow(5_000)
        roots.append(tree.root_children())
    assert np.mean(roots) == pytest.approx(math.sqrt(2 * 5_000), rel=0.05)  # seen: 98.5 of 100


# --- the power against D --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("alpha", "wrong"),
    [
        ([0.2, 0.4, 0.49], set()),
        ([0.2, 0.4, 0.51], set()),  # within two standard errors of 0.5
        ([0.2, 0.4, 0.53], {0}),
        ([0.2, 0.51, 0.47], {1}),
        ([0.2, 0.3, 0.4], {2}),
    ],
)
def test_powers_are_judged_within_two_standard_errors(alpha, wrong):
    rows = exponent.judged([1, 10, 100], alpha, [0.01] * 3, 0.47)[:3]
    expected = [DIFFERS if i in wrong else REPRODUCED for i in range(3)]
    assert [row.verdict for row in rows] == expected


def test_the_error_of_a_mean_power_is_that_of_the_forests():
    alpha, error = exponent.means([[0.4, 0.5], [0.3, 0.3]])
    assert alpha == pytest.approx([0.45, 0.3])
    assert error == pytest.approx([0.05, 0])
