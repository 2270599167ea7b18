"""columns="auto" in River: dicts with values of any kind, and keys that are missing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import boundary_forest
from boundary_forest import BoundaryForestClassifier as SklearnClassifier
from boundary_forest.river import BoundaryForestClassifier, BoundaryForestRegressor
from tests.column_tables import mixed_table


def rows_and_labels(n=150):
    frame, y = mixed_table(n)
    rows = frame[["age", "city", "visits"]].to_dict("records")
    rows = [{k: v for k, v in row.items() if not pd.isna(v)} for row in rows]
    return rows, y.tolist()


def learned(rows, labels):
    model = BoundaryForestClassifier.for_tables(n_estimators=10, seed=0)
    for x, label in zip(rows, labels, strict=True):
        model.learn_one(x, label)
    return model


def test_dicts_are_learned_as_they_are():
    rows, labels = rows_and_labels(400)
    model = learned(rows[:300], labels[:300])
    right = [model.predict_one(x) == y for x, y in zip(rows[300:], labels[300:], strict=True)]
    assert np.mean(right) > 0.8  # seen: 0.89
    assert set(model.feature_importances_) == {"age", "city", "visits"}
    assert sum(model.feature_importances_.values()) == pytest.approx(1)
    assert model.predict_one({}) in ("yes", "no")
    assert "city" in str(model.explain(rows[0]))


def test_it_is_the_forest_of_the_scikit_learn_class(tmp_path):
    rows, labels = rows_and_labels()
    model = learned(rows, labels)
    model.save(tmp_path / "model.bf")
    loaded = boundary_forest.load(tmp_path / "model.bf")
    same = SklearnClassifier.for_tables(n_estimators=10, random_state=0).partial_fit(rows, labels)
    assert loaded.fingerprint() == same.fingerprint()
    assert loaded.predict(rows).tolist() == [model.predict_one(x) for x in rows]


def test_many_at_once_are_one_by_one():
    rows, labels = rows_and_labels()
    frame = pd.DataFrame(rows)
    frame = frame[sorted(frame.columns)]
    one = learned(frame.to_dict("records"), labels)
    many = BoundaryForestClassifier.for_tables(n_estimators=10, seed=0)
    many.learn_many(frame[:70], pd.Series(labels[:70]))
    many.learn_many(frame[70:], pd.Series(labels[70:]))
    assert many.predict_many(frame).tolist() == [
        one.predict_one(x) for x in frame.to_dict("records")
    ]
    shares = many.predict_proba_many(frame[:5])
    assert shares.iloc[0].to_dict() == one.predict_proba_one(frame.iloc[0].to_dict())


def test_pickles_learn_on_the_same():
    rows, labels = rows_and_labels()
    model = learned(rows[:100], labels[:100])
    copied = pickle.loads(pickle.dumps(model))
    for forest in (model, copied):
        for x, y in zip(rows[100:], labels[100:], strict=True):
            forest.learn_one(x, y)
    assert [model.predict_one(x) for x in rows] == [copied.predict_one(x) for x in rows]


def test_targets():
    model = BoundaryForestRegressor.for_streams(seed=0)
    for i in range(300):
        model.learn_one({"t": "ab"[i % 2], "x": i % 5}, 10.0 * (i % 2) + i % 5)
    assert model.predict_one({"t": "b", "x": 2}) == pytest.approx(12, abs=1.5)
    assert model.predict_one({"t": "a", "x": 2}) == pytest.approx(2, abs=1.5)


def test_without_columns_text_is_refused_as_before():
    with pytest.raises(TypeError, match="must be a number"):
        BoundaryForestClassifier(seed=0).learn_one({"t": "a"}, 1)


def test_a_refused_dict_changes_nothing():
    rows, labels = rows_and_labels(50)
    model = learned(rows, labels)
    with pytest.raises(TypeError, match="column 'age'"):
        model.learn_one({"age": "old", "new": 1}, "yes")
    assert model.stats()["examples_seen"] == 50
    model.learn_one({"age": 3.0}, "yes")
    assert set(model.feature_importances_) == {"age", "city", "visits"}
