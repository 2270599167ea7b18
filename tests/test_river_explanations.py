"""River classes explain their answers, tell what they have learned, and save it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from river import base

from boundary_forest import BoundaryForestClassifier as SklearnClassifier
from boundary_forest import BoundaryForestRegressor as SklearnRegressor
from boundary_forest import load
from boundary_forest.river import BoundaryForestClassifier, BoundaryForestRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 20))  # more than 16 features: the engine has columns to spare
NAMES = [f"f{i}" for i in range(20)]
ROWS = [dict(zip(NAMES, row, strict=True)) for row in X.tolist()]
QUERY = RNG.normal(size=20)


def taught(model, y):
    for row, label in zip(ROWS, y, strict=True):
        model.learn_one(row, label)
    return model


def test_a_classifier_explains_with_its_own_labels():
    labels = [("odd", "even")[int(x > 0)] for x in X[:, 0]]
    river = taught(BoundaryForestClassifier(n_estimators=9, seed=0), labels)
    other = SklearnClassifier(n_estimators=9, random_state=0, dtype="float64")
    other.partial_fit(pd.DataFrame(X, columns=NAMES), labels)
    query = pd.DataFrame([QUERY], columns=NAMES)
    mine, theirs = river.explain(dict(zip(NAMES, QUERY, strict=True))), other.explain(query)
    assert str(mine) == str(theirs)
    mine, theirs = mine.to_dict(), theirs.to_dict()
    for one, other in zip(mine["examples"], theirs["examples"], strict=True):
        # The engine has columns to spare, so that sums are rounded in another order.
        assert one.pop("contributions") == pytest.approx(other.pop("contributions"))
    assert mine == theirs


def test_labels_need_not_sort():
    model = taught(BoundaryForestClassifier(seed=0), [(("a",), 1)[i % 2] for i in range(120)])
    explanation = model.explain(ROWS[0])
    assert explanation.answer == model.predict_one(ROWS[0]) == ("a",)
    assert {share.label for share in explanation.shares} <= {("a",), 1}


def test_a_regressor_explains_with_its_targets():
    y = X[:, 0] * 2
    river = taught(BoundaryForestRegressor(n_estimators=9, seed=0), y.tolist())
    other = SklearnRegressor(n_estimators=9, random_state=0, dtype="float64")
    other.partial_fit(pd.DataFrame(X, columns=NAMES), y)
    mine = river.explain(dict(zip(NAMES, QUERY, strict=True)))
    assert str(mine) == str(other.explain(pd.DataFrame([QUERY], columns=NAMES)))
    assert len(mine.query) == len(mine.examples[0].values) == 20
    assert mine.answer == river.predict_one(dict(zip(NAMES, QUERY, strict=True)))


def test_importances_are_by_name():
    model = taught(BoundaryForestClassifier.for_tables(seed=0), (X[:, 3] > 0).tolist())
    explanation = model.explain(ROWS[0])
    assert explanation.importances
    assert {name for name, _ in explanation.importances} <= set(NAMES)


@pytest.mark.parametrize("model", [BoundaryForestClassifier, BoundaryForestRegressor])
def test_before_the_first_example_there_is_nothing_to_tell(model: type[base.Estimator]):
    assert model().explain({"a": 1}) is None
    assert model().stats() == {}
    assert taught(model(seed=0), [1] * 120).stats()["examples_seen"] == 120


@pytest.mark.parametrize("make", [BoundaryForestClassifier, BoundaryForestClassifier.for_tables])
def test_a_saved_classifier_is_the_estimator_that_is_the_same_learner(make, tmp_path):
    labels = [("odd", "even")[int(x > 0)] for x in X[:, 0]]
    river = taught(make(seed=0), labels)
    river.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.feature_names_in_.tolist() == NAMES
    frame = pd.DataFrame(ROWS)
    assert other.predict(frame).tolist() == river.predict_many(frame).tolist()
    assert other.partial_fit(frame, labels).examples_seen == 240
    plain = SklearnClassifier(**{**other.get_params(), "dtype": "float64", "shuffle": False})
    assert load(tmp_path / "model.bf").fingerprint() == plain.fit(frame, labels).fingerprint()


def test_a_saved_regressor_answers_the_same(tmp_path):
    river = taught(BoundaryForestRegressor(seed=0), X[:, 0].tolist())
    river.save(tmp_path / "model.bf")
    frame = pd.DataFrame([dict(zip(NAMES, QUERY, strict=True))])
    assert load(tmp_path / "model.bf").predict(frame)[0] == river.predict_one(
        frame.iloc[0].to_dict()
    )


def test_what_cannot_be_saved_is_told(tmp_path):
    with pytest.raises(ValueError, match="nothing to save"):
        BoundaryForestClassifier().save(tmp_path / "model.bf")
    mixed = taught(BoundaryForestClassifier(seed=0), [("a", 1)[i % 2] for i in range(120)])
    with pytest.raises(TypeError, match="all text, all numbers"):
        mixed.save(tmp_path / "model.bf")
    assert not (tmp_path / "model.bf").exists()
