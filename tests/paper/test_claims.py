"""Items of the claims in the text: each runs at a tiny size, and computes what is known by hand."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from sklearn.utils import Bunch

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from boundary_forest import BoundaryForestClassifier
from paper import forests, registry, runner, tasks
from paper.context import Context
from paper.datasets import DataAbsentError
from paper.item import DATA_ABSENT, DIFFERS, FAILED, MEASURED, REPRODUCED
from paper.items import (
    finite_k,
    near_boundaries,
    one_shot,
    regret,
    scale_invariance,
    storage,
    training_error,
)

CLAIMS = (
    *("finite-k", "near-boundaries", "one-shot", "regret"),
    *("scale-invariance", "storage", "training-error"),
)
ITEMS = registry.all_items()


@pytest.fixture
def context(tmp_path):
    return Context(tmp_path, "tiny")


@pytest.fixture
def no_data(monkeypatch):
    def load(self, name):
        raise DataAbsentError(name)

    monkeypatch.setattr(Context, "load", load)


@pytest.fixture
def two_sets(monkeypatch):
    """Two of the paper's names with a hundred rows of blobs, as bytes and as floats."""

    def load(self, name):
        if name not in ("dna", "letter"):
            raise DataAbsentError(name)
        rng = np.random.default_rng(len(name))
        y = rng.integers(0, 3, size=140)
        X = rng.normal(size=(140, 6)) + 2 * y[:, None]
        X = (20 * X + 100).clip(0, 255).astype(np.uint8) if name == "dna" else X
        return Bunch(X_train=X[:100], y_train=y[:100], X_test=X[100:], y_test=y[100:])

    monkeypatch.setattr(Context, "load", load)


def run(item, folder):
    (record,) = runner.run_items([item], runner.Settings(folder, "tiny"))
    assert record["verdict"] != FAILED, record["error"]
    return record


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_looked_at_on_digits_alone(name, tmp_path, no_data):
    record = run(ITEMS[name], tmp_path)
    judged = [row for row in record["rows"] if row["verdict"] != DATA_ABSENT]
    assert any("digits" in row["what"] for row in judged)
    assert len(record["plots"]) == len(ITEMS[name].plots)
    assert record["remark"]
    resumed = run(replace(ITEMS[name], plots={}), tmp_path)
    assert json.loads(json.dumps(resumed["rows"])) == record["rows"]


@pytest.mark.parametrize("name", CLAIMS)
def test_a_claim_is_looked_at_on_the_papers_sets_that_are_at_hand(name, tmp_path, two_sets):
    record = run(replace(ITEMS[name], plots={}), tmp_path)
    by_set = {set_: [] for set_ in ("dna", "letter", "mnist")}
    for row in record["rows"]:
        by_set.setdefault(row["what"].partition(":")[0], []).append(row["verdict"])
    for at_hand in ("dna", "letter"):
        assert set(by_set[at_hand]) & {REPRODUCED, DIFFERS}, "whole sets are judged"
    assert set(by_set["mnist"]) == {DATA_ABSENT}


def small(X, y, X_test=None, y_test=None):
    X_test, y_test = (X, y) if X_test is None else (X_test, y_test)
    return tasks.Task("toy", X, y, X_test, y_test, whole=True)


# --- trees ----------------------------------------------------------------------------------------


def test_trees_are_told_by_arrival_numbers():
    """A class in the second half alone, so that slots and arrival numbers part."""
    X = np.array([[0.0], [0.1], [0.2], [9.0], [0.3], [9.1], [5.0]])
    y = np.array([0, 0, 0, 1, 0, 1, 0])
    forest = BoundaryForestClassifier(n_estimators=1, random_state=0, shuffle=False).fit(X, y)
    ((arrivals, parents),) = forest.trees()
    assert arrivals.tolist() == [0, 3, 6]  # the others were named rightly
    assert parents.tolist() == [-1, 0, 3]
    assert forests.votes(forest, y, [[1.0], [8.0], [6.0]]).tolist() == [[0], [1], [0]]


# --- training error -------------------------------------------------------------------------------


def test_rows_that_contradict_each_other_must_be_wrong():
    X = np.array([[1], [1], [1], [2], [2], [3]])
    assert training_error.contradicted(X, np.array([0, 0, 1, 0, 1, 1])) == 2
    assert training_error.contradicted(X, np.zeros(6, dtype=int)) == 0


def test_what_no_tree_can_know_is_wrong_on_the_training_set(context):
    X, y = np.zeros((100, 2)), np.arange(100) % 2
    found = training_error.measured(context, small(X, y), 50)
    assert found["wrong"] == 50
    assert found["train"] == found["test"] == 50


def test_an_error_of_one_per_cent_is_not_below_it():
    one = {"title": "toy", "judged": True, "train": [9.0, 1.0]}
    assert training_error.row_of(one).verdict == DIFFERS
    assert training_error.row_of({**one, "train": [9.0, 0.99]}).verdict == REPRODUCED
    assert training_error.row_of({**one, "judged": False}).verdict == MEASURED


# --- regret ---------------------------------------------------------------------------------------


def test_regret_is_a_share_of_the_online_error():
    assert regret.regret(5.0, 4.0) == 20
    assert regret.regret(4.0, 5.0) == -25
    assert regret.regret(0.0, 1.0) == 0
    assert regret.regret(*regret.PAPER["dna"]) == pytest.approx(8.39, abs=0.01)


def test_the_mean_regret_is_held_against_ten_per_cent():
    errors = {"BF": {"error": [5.0, 4.0]}, "OBF": {"error": [4.0, 3.8]}}
    lines = [{k: {"error": of["error"][i]} for k, of in errors.items()} for i in range(2)]
    one = {"name": "dna", "title": "dna", **regret.summary(lines, small([], []))}
    assert one["regret"] == pytest.approx([20, 5])
    row = regret.row_of({**one, "judged": True})
    assert (row.ours, row.verdict) == ("12.5 ± 7.5 %", DIFFERS)
    assert regret.row_of({**one, "judged": True, "regret": [9.0, 10.0]}).verdict == REPRODUCED


def test_two_trees_make_the_same_mistake():
    said = np.array([[1, 1, 1], [0, 1, 1], [1, 2, 0]])
    # Of three pairs of trees a row: all, one (the other two trees say 1), none.
    assert regret.same_mistake(said, np.array([0, 0, 0])) == pytest.approx((1 + 1 / 3 + 0) / 3)
    assert regret.same_mistake(said, np.array([1, 1, 3])) == 0


# --- finite k -------------------------------------------------------------------------------------


def by_k(**changed):
    """As many for every k, but for those named k_50, k_2 and so on."""
    return [changed.get(f"k_{k}", changed["all"]) for k in finite_k.LIMITS]


@pytest.mark.parametrize(("error", "verdict"), [(11.9, REPRODUCED), (12.1, DIFFERS)])
def test_a_limit_may_cost_two_standard_errors(error, verdict):
    """10 % of 900 queries has a standard error of 1 point."""
    one = {
        "title": "toy",
        "queries": 900,
        "error": by_k(all=10.0, k_50=error),
        "comparisons": by_k(all=100.0, k_50=60.0),
    }
    assert finite_k.cost(one, 50) == pytest.approx((error - 10, 1))
    assert [row.verdict for row in finite_k.rows_of(one, saved=0.0)] == [verdict, REPRODUCED]
    assert finite_k.rows_of(one, saved=0.5)[1].verdict == DIFFERS
    assert finite_k.cheapest(one) == (50 if verdict == REPRODUCED else 2)


def test_comparisons_are_those_of_trees_walked_by_hand(context):
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(120, 2)), rng.integers(0, 2, size=120)
    task = small(X[:100], y[:100], X[100:], y[100:])
    forest = forests.classifier(context, max_children=5).fit(X[:100], y[:100])
    made = 0
    for ends in forest.apply(task.X_test):
        for v, (arrivals, parents) in zip(ends, forest.trees(), strict=True):
            parent_of = dict(zip(arrivals.tolist(), parents.tolist(), strict=True))
            made += 1
            while v != -1:
                made += np.sum(parents == v)
                v = parent_of[v]
    found = finite_k.classified(context, task, 5)
    assert found["comparisons"] == pytest.approx(made / (20 * 50))
    assert found["error"] == pytest.approx(100 * (1 - forest.score(task.X_test, task.y_test)))


# --- near boundaries ------------------------------------------------------------------------------


def test_margins_are_those_of_all_pairs():
    rng = np.random.default_rng(5)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 4, size=60)
    distances = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(distances, np.inf)
    for i, margin in enumerate(near_boundaries.margins(X, y)):
        same = distances[i, y == y[i]].min()
        assert margin == pytest.approx(distances[i, y != y[i]].min() / same)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_margins_on_a_line(dtype):
    X = np.array([[0], [1], [3], [4], [4], [9]], dtype=dtype)
    y = np.array([5, 5, 0, 0, 5, 7], dtype=np.uint8)
    found = near_boundaries.margins(X, y)
    # 4 has both classes; 9 is alone in its class.
    assert found.tolist() == pytest.approx([3, 2, 1, 0, 0, 0])


def test_equal_margins_are_not_ordered_by_arrival():
    margin = np.array([2.0, 1.0, *[3.0] * 98])
    found = near_boundaries.places(margin, np.random.default_rng(0))
    assert found[:2].tolist() == [1, 0]
    assert sorted(found) == list(range(100))
    assert found[2:].tolist() != list(range(2, 100))


def test_the_share_of_nodes_near_a_boundary():
    place = np.arange(20)[::-1]  # the last examples are the nearest to a boundary
    nodes = np.array([19, 18, 17, 0, 19, 10])  # of two trees
    found = near_boundaries.where(place, nodes, n_T=2)
    assert found["near"] == pytest.approx(4 / 6)
    assert found["late"] == pytest.approx(4 / 5)
    assert found["kept"] == pytest.approx(6 / 40)
    assert found["often"].tolist() == pytest.approx([3 / 4, 1 / 4, 0, 0, 1 / 4, 0, 0, 0, 0, 1 / 4])


def test_every_edge_of_the_picture_crosses_a_boundary(context):
    plane = near_boundaries.picture(context, 300)
    y, nodes, parents = plane["y"], plane["nodes"], plane["parents"]
    assert len(nodes) > 10
    assert np.all(y[nodes[1:]] != y[parents[1:]])
    assert set(y.tolist()) == {0, 1, 2}


# --- storage --------------------------------------------------------------------------------------


def test_a_power_is_taken_over_the_last_decade():
    N = [10, 30, 100, 300, 1000]
    stored = [10, 30, 50, 50 * 3**0.5, 50 * 10**0.5]
    one = {"N": N, "against_N": [{"stored": s} for s in stored]}
    assert storage.power(one, "stored") == pytest.approx(0.5, abs=0.001)


def test_copies_of_positions_are_counted():
    X = np.random.default_rng(0).integers(0, 256, size=(4_000, 300), dtype=np.uint8)
    forest = BoundaryForestClassifier(n_estimators=3, random_state=0).fit(X, np.arange(4_000) % 2)
    found = storage.figures_of(forest, 300)
    assert found["stored"] == forest.stats()["examples_stored"]
    assert found["nodes"] < found["stored"]
    assert found["one_copy"]
    assert 1 <= found["copies"] < 1.2
    assert not storage.figures_of(forest, 150)["one_copy"]
    assert not storage.figures_of(forest, 600)["one_copy"]


# --- scale invariance -----------------------------------------------------------------------------


def test_a_power_of_two_changes_nothing_without_ties_and_something_with_them(context):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, size=(200, 3)).astype(np.uint8)
    task = small(X, rng.integers(0, 3, size=200))
    found = scale_invariance.compared(context, task, scale_invariance.UNTIED)
    assert scale_invariance.is_same(found["factors"]["0.125"])
    assert scale_invariance.is_same(found["factors"]["32"])
    tied = scale_invariance.compared(context, task, scale_invariance.TIED)
    assert not scale_invariance.is_same(tied["factors"]["32"])


def test_trees_with_another_parent_are_not_the_same():
    tree = (np.array([0, 2, 5]), np.array([-1, 0, 0]))
    other = (np.array([0, 2, 5]), np.array([-1, 0, 2]))
    shorter = (np.array([0, 2]), np.array([-1, 0]))
    assert scale_invariance.same_trees([tree] * 3, [tree, other, shorter]) == 1


def test_the_cover_tree_changes_with_the_scale_but_hardly_by_whole_levels(context):
    X = np.random.default_rng(0).normal(size=(400, 5))
    task = small(X, np.arange(400) % 2)
    found = scale_invariance.along_factors(context, task, 400, "cover tree")
    assert scale_invariance.changed(found, "1", "learn") == 0
    assert scale_invariance.changed(found, "2", "learn") != 0
    assert abs(scale_invariance.changed(found, "2.197", "learn")) < 0.01
    forest = scale_invariance.along_factors(context, task, 400, "forest")
    assert {scale_invariance.changed(forest, factor, "learn") for factor in forest} == {0}


# --- one shot -------------------------------------------------------------------------------------


def test_a_row_that_came_with_another_class_is_left_out():
    X = np.array([[1], [1], [1], [2], [1]])
    found = one_shot.contradict(X, np.array([0, 0, 1, 1, 0]))
    assert found == [False, False, True, False, True]


def test_what_was_just_shown_is_known_and_was_not_before(context):
    """Every example is alone in its class: nothing can be known before."""
    rng = np.random.default_rng(0)
    X = np.vstack([rng.normal(size=(80, 2)), [[0.0, 0.0], [0.0, 0.0]]])
    found = one_shot.streamed(context, small(X, np.arange(82)))
    assert (found["n"], found["judged"]) == (82, 81)
    assert (found["before"], found["right"]) == (0, 81)
    assert found["wrong_before"] == [100.0] * len(found["ends"])


def test_one_wrong_answer_is_enough():
    one = {"title": "toy", "judged": 100, "right": 99, "before": 3}
    assert one_shot.row_of(one).verdict == DIFFERS
    assert one_shot.row_of({**one, "right": 100}).verdict == REPRODUCED
