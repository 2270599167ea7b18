"""The engine for River's own k-NN: exact at first, near enough later, copied with its model."""

from __future__ import annotations

import math
import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

from river import neighbors
from river.neighbors.base import FunctionWrapper

import boundary_forest
from boundary_forest.river import BoundaryForestEngine


def stream(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    names = ["a", "b", "c", "d"]
    return [
        (dict(zip(names, row, strict=True)), bool(row[0] + row[1] ** 2 > 0.5)) for row in X.tolist()
    ]


@pytest.mark.parametrize("weighted", [True, False])
def test_engine_is_exact_up_to_n_estimators_examples(weighted):
    lazy, forest = (
        neighbors.KNNClassifier(n_neighbors=5, engine=engine, weighted=weighted)
        for engine in (
            neighbors.LazySearch(window_size=200),
            BoundaryForestEngine(n_estimators=200, seed=0),
        )
    )
    for x, y in stream(200):
        assert forest.predict_proba_one(x) == pytest.approx(lazy.predict_proba_one(x))
        lazy.learn_one(x, y)
        forest.learn_one(x, y)


def test_engine_finds_most_neighbours_of_a_longer_stream():
    lazy = neighbors.LazySearch(window_size=3000)
    lazy.dist_func = FunctionWrapper(lazy.dist_func)  # as River's k-NN does
    forest = BoundaryForestEngine(n_estimators=10, seed=0)
    for item in stream(3000):
        lazy.append(item)
        forest.append(item)
    found = 0
    for item in stream(200, seed=1):
        items, distances = forest.search(item, n_neighbors=5)
        assert distances == sorted(distances)
        exact, _ = lazy.search(item, n_neighbors=5)
        found += sum(x in [near for near, _ in exact] for x, _ in items)
    assert found / 1000 > 0.78  # 0.815 to 0.818 over seeds


def test_engine_answers_with_what_it_has():
    engine = BoundaryForestEngine(seed=0)
    assert engine.search(({"a": 1.0}, None), n_neighbors=3) == ([], [])
    engine.append(({"a": 1.0}, "one"))
    engine.append(({"b": 2.0}, None))
    items, distances = engine.search(({"a": 1.0}, None), n_neighbors=3)
    assert items == [({"a": 1.0}, "one"), ({"b": 2.0}, None)]
    assert distances == pytest.approx([0.0, math.sqrt(5)])
    assert engine.refresh_targets() == {"one"}


def test_engine_serves_the_regressor_and_is_copied_with_its_model():
    model = neighbors.KNNRegressor(engine=BoundaryForestEngine(seed=0))
    rows = [(x, x["a"] + x["b"]) for x, _ in stream(400)]
    for x, y in rows[:300]:
        model.learn_one(x, y)
    other = pickle.loads(pickle.dumps(model))
    for x, y in rows[300:]:
        assert other.predict_one(x) == model.predict_one(x)
        model.learn_one(x, y)
        other.learn_one(x, y)
    assert model.clone().predict_one(rows[0][0]) == 0.0


def test_engine_says_that_it_measures_itself():
    with pytest.raises(TypeError, match="metric"):
        BoundaryForestEngine().dist_func(({"a": 1.0}, 0), ({"a": 1.0}, 0))


def test_hamming_counts_the_features_there_are():
    """A forest with columns to spare would divide by those too."""
    engine = BoundaryForestEngine(metric="hamming")
    engine.append(({f"x{i}": 0.0 for i in range(17)}, "label"))
    _, distances = engine.search(({f"x{i}": 1.0 for i in range(17)}, None), 1)
    assert distances == [1.0]


def test_an_engine_tells_of_itself_and_is_saved_as_an_index(tmp_path):
    engine = BoundaryForestEngine(n_estimators=4, seed=0)
    assert engine.stats() == {}
    assert engine.explain({"a": 1}) is None
    with pytest.raises(ValueError, match="nothing to save"):
        engine.save(tmp_path / "index.bf")
    rng = np.random.default_rng(0)
    rows = [dict(zip("abc", row, strict=True)) for row in rng.normal(size=(60, 3)).tolist()]
    for number, row in enumerate(rows):
        engine.append((row, number))
    assert engine.stats()["examples_seen"] == 60
    assert engine.explain(rows[20]).answer == 20
    engine.save(tmp_path / "index.bf")
    index = boundary_forest.load(tmp_path / "index.bf")
    assert index.feature_names_in_.tolist() == ["a", "b", "c"]
    for row in rows[:10]:
        items, distances = engine.search((row, None), 5)
        found = index.kneighbors(pd.DataFrame([row]), 5)
        assert found[1].ravel().tolist() == [label for _, label in items]
        assert found[0].ravel().tolist() == distances
