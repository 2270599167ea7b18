"""The paper's tables, and the claims that rest on them, run at a tiny size; verdicts by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.utils import Bunch

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from paper import contests, published, registry, runner
from paper.context import Context
from paper.datasets import DataAbsentError
from paper.item import BETTER, DATA_ABSENT, DIFFERS, FAILED, MEASURED, REPRODUCED
from paper.items import errors, many_cores, nearest_neighbours, times
from paper.tasks import Task

TABLES = [
    "errors",
    "training-times",
    "testing-times",
    "appendix-errors",
    "appendix-training-times",
    "appendix-testing-times",
    "data-sets",
    "fraction-of-knn",
    "random-forest",
    "many-cores",
]


@pytest.fixture(autouse=True)
def measured_once(monkeypatch):
    monkeypatch.setattr(contests, "TURNS", 1)
    monkeypatch.setattr(many_cores, "TURNS", 1)


@pytest.fixture
def two_sets(monkeypatch):
    """letter and mnist in small; the other sets are absent."""

    def load(self, name):
        if name not in ("letter", "mnist"):
            raise DataAbsentError(f"{name} is absent. It is published elsewhere.")
        rng = np.random.default_rng(len(name))
        X, y = rng.integers(0, 256, (120, 20), dtype=np.uint8), rng.integers(0, 3, 120)
        return Bunch(X_train=X[:80], y_train=y[:80], X_test=X[80:], y_test=y[80:])

    monkeypatch.setattr(Context, "load", load)


@pytest.fixture(scope="module")
def with_two_sets(tmp_path_factory):
    """A folder where tables find the runs of others."""
    return tmp_path_factory.mktemp("two sets")


@pytest.fixture(scope="module")
def without_sets(tmp_path_factory):
    return tmp_path_factory.mktemp("no sets")


def record_of(name, folder):
    """What a tiny run of the item writes."""
    item = registry.all_items()[name]
    (record,) = runner.run_items([item], runner.Settings(folder, "tiny"))
    assert record["verdict"] != FAILED, record["error"]
    return json.loads(json.dumps(record))


@pytest.mark.usefixtures("two_sets")
@pytest.mark.parametrize("name", TABLES)
def test_a_table_runs_with_some_sets_and_tells_which_are_absent(name, with_two_sets):
    record = record_of(name, with_two_sets)
    absent = {row["what"].split(",")[0] for row in record["rows"] if row["verdict"] == DATA_ABSENT}
    assert {"dna", "pendigits", "protein", "seismic"} <= absent
    present = " ".join(row["what"] for row in record["rows"] if row["ours"] is not None)
    assert all(set_ in present for set_ in ("letter", "mnist", "digits"))
    has_plot = bool(registry.all_items()[name].plots)
    assert record["plots"] == ([name] if has_plot else [])


@pytest.mark.parametrize("name", TABLES)
def test_a_table_runs_without_any_set(name, without_sets, tmp_path, monkeypatch):
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    record = record_of(name, without_sets)
    assert any("digits" in row["what"] and row["ours"] is not None for row in record["rows"])
    assert not any(row["verdict"] == DIFFERS for row in record["rows"] if "digits" in row["what"])


def test_the_tables_share_their_runs(tmp_path, two_sets, monkeypatch):
    held = []
    measured = contests.measured

    def counted(name, task, seed):
        held.append((name, task.name))
        return measured(name, task, seed)

    monkeypatch.setattr(contests, "measured", counted)
    items = [registry.all_items()[name] for name in ("training-times", "testing-times", "errors")]
    runner.run_items(items, runner.Settings(tmp_path, "tiny"))
    assert len(held) == len(set(held))
    assert ("BF", "letter") in held


def test_every_learner_of_the_tables_can_be_made():
    tables = (published.ERRORS, published.TESTING, published.APPENDIX_TESTING)
    for name in {name for table in tables for name in table} - {"BF-4"}:
        assert hasattr(contests.learner(name, 0), "fit")
    assert contests.learner("OBF", 0).offline
    assert not contests.learner("BF", 0).offline


def test_an_error_is_counted_and_time_is_positive():
    X = np.arange(40, dtype=np.float32)[:, None]
    y = (np.arange(40) >= 20).astype(int)
    flipped = y.copy()
    flipped[:4] = 1
    task = Task("line", X, y, X, flipped, whole=True)
    found = contests.measured("1-NN", task, seed=0)
    assert found["error"] == pytest.approx(10)
    assert found["train_s"] > 0
    assert found["test_s"] > 0


@pytest.mark.parametrize(
    ("ours", "whole", "verdict"),
    [(2.6, True, REPRODUCED), (1.7, True, BETTER), (2.8, True, DIFFERS), (9.0, False, MEASURED)],
)
def test_an_error_is_judged_against_the_papers(ours, whole, verdict):
    of = {"title": "mnist", "whole": whole, "tested": 10_000, "BF": {"error": ours}}
    assert errors.error_row(of, "mnist", "BF", published.ERRORS).verdict == verdict


@pytest.mark.parametrize(
    ("name", "seconds", "verdict"),
    [
        ("R-kd", 50.0, BETTER),  # the paper's R-kd is faster to train than its BF
        ("R-kd", 2.0, REPRODUCED),
        ("CT(1.3, 10)", 2.0, DIFFERS),  # the paper's is slower
        (contests.CORES, 2.0, REPRODUCED),
        (contests.CORES, 50.0, DIFFERS),
    ],
)
def test_a_time_is_judged_by_who_is_faster(name, seconds, verdict):
    of = {"title": "mnist", "whole": True, "BF": {"train_s": 10.0}, name: {"train_s": seconds}}
    row = times.ratio_row(of, "mnist", name, "train_s", published.TRAINING)
    assert row.ours == seconds / 10
    assert row.verdict == verdict


def test_testing_times_that_repeat_training_times_are_not_held_against_ours():
    of = {"title": "letter", "whole": True, "BF": {"test_s": 1.0}, "R-kd": {"test_s": 9.0}}
    row = times.ratio_row(of, "letter", "R-kd", "test_s", published.TESTING)
    assert (row.paper, row.verdict) == (None, MEASURED)
    assert nearest_neighbours.fraction("letter") is None
    assert nearest_neighbours.fraction("mnist") == pytest.approx((103.9 + 23.9) / 2900)


def test_a_core_after_the_first_gains_a_share():
    assert many_cores.gained(2.8, 4) == pytest.approx(0.6)
    slow = {"cores": [1, 2], "train_s": [10.0, 9.0], "test_s": [1.0, 0.5], "whole": True}
    training, testing = many_cores.speed_rows("mnist", {**slow, "paper": None})
    assert (training.verdict, testing.verdict) == (DIFFERS, REPRODUCED)
    assert testing.ours == "2.00 with 2"
