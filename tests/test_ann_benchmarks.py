"""The adapter for ann-benchmarks, beside a stand-in of that package's base class."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

CONFIG = Path(__file__).parents[1] / "benchmarks" / "ann_benchmarks" / "config.yml"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(600, 8)).astype(np.float32)
QUERIES = RNG.normal(size=(20, 8)).astype(np.float32)


class BaseANN:
    """What ann-benchmarks' runner calls, as its description has it."""

    def done(self):
        raise NotImplementedError

    def fit(self, X):
        raise NotImplementedError

    def query(self, q, n):
        raise NotImplementedError

    def batch_query(self, X, n):
        raise NotImplementedError

    def get_batch_results(self):
        raise NotImplementedError

    def get_additional(self):
        return {}


@pytest.fixture
def adapter(monkeypatch):
    names = ["ann_benchmarks", "ann_benchmarks.algorithms", "ann_benchmarks.algorithms.base"]
    for name in names:
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    base = ModuleType("ann_benchmarks.algorithms.base.module")
    base.BaseANN = BaseANN
    monkeypatch.setitem(sys.modules, base.__name__, base)
    monkeypatch.delitem(sys.modules, "benchmarks.ann_benchmarks.module", raising=False)
    yield importlib.import_module("benchmarks.ann_benchmarks.module")
    sys.modules.pop("benchmarks.ann_benchmarks.module", None)


def nearest(metric, k=10):
    a, b = X.astype(float), QUERIES.astype(float)
    if metric == "angular":
        a, b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (a, b))
    far = np.linalg.norm(b[:, None] - a[None], axis=2)
    return np.argsort(far, axis=1)[:, :k]


@pytest.mark.parametrize("metric", ["euclidean", "angular"])
def test_the_runner_gets_true_neighbours_one_by_one_and_in_batches(adapter, metric):
    index = adapter.BoundaryForest(metric, {"n_estimators": 20})
    assert isinstance(index, BaseANN)
    index.fit(X)
    index.set_query_arguments(200)
    alone = np.array([index.query(query, 10) for query in QUERIES])
    assert np.mean(alone == nearest(metric)) > 0.98  # seen: 1
    index.batch_query(QUERIES, 10)
    assert np.array_equal(index.get_batch_results(), alone)
    index.done()


def test_a_wider_beam_computes_more_distances_and_is_named(adapter):
    index = adapter.BoundaryForest("euclidean", {"n_estimators": 5})
    index.fit(RNG.normal(size=(6000, 8)).astype(np.float32))
    computed = []
    for beam in (10, 40):
        index.set_query_arguments(beam)
        assert index.get_additional() == {"dist_comps": 0}
        index.batch_query(QUERIES, 10)
        computed.append(index.get_additional()["dist_comps"])
        assert str(index) == f"BoundaryForest(n_estimators=5, beam={beam})"
    assert 0 < computed[0] < computed[1]


def test_a_beam_below_the_neighbours_asked_for_still_answers(adapter):
    index = adapter.BoundaryForest("euclidean", {"n_estimators": 5})
    index.fit(X)
    index.set_query_arguments(1)
    assert len(index.query(QUERIES[0], 10)) == 10


def test_rows_of_length_zero_have_no_angle_and_break_nothing(adapter):
    index = adapter.BoundaryForest("angular", {"n_estimators": 5})
    index.fit(np.concatenate([X, np.zeros((1, 8), dtype=np.float32)]))
    assert len(index.query(np.zeros(8, dtype=np.float32), 3)) == 3


def test_other_distances_are_refused(adapter):
    with pytest.raises(NotImplementedError, match="must be one of euclidean, angular"):
        adapter.BoundaryForest("jaccard", {})


def test_the_configuration_builds_what_it_says(adapter):
    yaml = pytest.importorskip("yaml")
    (algorithm,) = yaml.safe_load(CONFIG.read_text())["float"]["any"]
    assert algorithm["base_args"] == ["@metric"]
    for group in algorithm["run_groups"].values():
        for parameters in group["args"]:
            index = getattr(adapter, algorithm["constructor"])("euclidean", parameters)
            index.fit(X[:50])
            (beams,) = group["query_args"]
            index.set_query_arguments(beams[0])
            assert len(index.query(X[0], 10)) == 10
