"""Weights of features, sampling and votes in the River classes."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

pytest.importorskip("river")

import boundary_forest
from boundary_forest.estimators.adaptive import FOR_TABLES
from boundary_forest.river import (
    BoundaryForestClassifier,
    BoundaryForestRegressor,
)

CLASSES = pytest.mark.parametrize("kind", [BoundaryForestClassifier, BoundaryForestRegressor])


def stream(n=1200, width=6, seed=0):
    """The first of several features decides; the last has much the largest scale."""
    X = np.random.default_rng(seed).normal(size=(n, width))
    y = (X[:, 0] > 0).astype(int)
    X[:, -1] *= 1000
    return X, y


def dicts(X):
    return [{f"f{i}": value for i, value in enumerate(row)} for row in X.tolist()]


def with_late(X):
    """The same without the first feature, which comes as the last, at another scale."""
    return [{**x, "late": 50 * z} for x, z in zip(dicts(X[:, 1:]), X[:, 0].tolist(), strict=True)]


def learned(model, X, y):
    for x, label in zip(dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
    return model


@CLASSES
def test_for_tables_sets_what_it_sets_in_the_estimators(kind):
    model = kind.for_tables(seed=0, max_samples=0.5)
    assert {name: getattr(model, name) for name in FOR_TABLES} == {
        **FOR_TABLES,
        "max_samples": 0.5,
    }
    assert model.clone().feature_weights == "learned"


@CLASSES
@pytest.mark.parametrize("width", [6, 18])
@pytest.mark.parametrize("weights", ["auto", "mixture"])
def test_a_model_is_the_estimator_of_the_same_setting(kind, width, weights):
    X, y = stream(width=width)
    same = {"n_estimators": 20, "weights": weights}
    model = learned(kind.for_tables(seed=3, **same), X, y)
    twin = getattr(boundary_forest, kind.__name__).for_tables(random_state=3, **same)
    twin.partial_fit(X, y)
    assert model.mixture_ == twin.mixture_
    assert bool(twin.mixture_) == (weights == "mixture")
    queries, _ = stream(100, width, seed=1)
    assert [model.predict_one(x) for x in dicts(queries)] == twin.predict(queries).tolist()
    assert list(model.feature_weights_.values()) == twin.feature_weights_.tolist()
    assert list(model.feature_importances_.values()) == twin.feature_importances_.tolist()


def test_importances_have_the_features_names_and_find_the_one_that_decides():
    model = BoundaryForestClassifier.for_tables(seed=0, n_estimators=20)
    assert model.feature_importances_ == model.feature_weights_ == {}
    learned(model, *stream())
    importances = model.feature_importances_
    assert list(importances) == ["f0", "f1", "f2", "f3", "f4", "f5"]
    assert sum(importances.values()) == pytest.approx(1)
    assert importances["f0"] > 0.9


@pytest.mark.parametrize("many", [False, True], ids=["one", "many"])
def test_a_feature_that_appears_later_is_weighed_like_the_others(many):
    """It is the one that decides from then on: weights are learned anew at 2,000 and 4,000."""
    X, y = stream(4400)
    model = BoundaryForestClassifier.for_tables(seed=0, n_estimators=20)
    learned(model, X[:1100, 1:], y[:1100])
    later = with_late(X)
    if many:
        model.learn_many(pd.DataFrame(later[1100:]), pd.Series(y[1100:]))
    else:
        for x, label in zip(later[1100:], y[1100:].tolist(), strict=True):
            model.learn_one(x, label)
    assert list(model.feature_importances_) == ["f0", "f1", "f2", "f3", "f4", "late"]
    assert model.feature_importances_["late"] > 0.9
    queries, expected = stream(200, seed=1)
    wrong = sum(
        model.predict_one(x) != c
        for x, c in zip(with_late(queries), expected.tolist(), strict=True)
    )
    assert wrong < 20  # seen: 2


@pytest.mark.parametrize("weights", ["auto", "mixture"])
def test_features_that_appear_one_by_one_give_what_learn_many_gives(weights):
    X, y = stream(600)
    frame = pd.DataFrame(dicts(X))
    same = {"seed": 0, "n_estimators": 20, "weights": weights}
    one, many = (BoundaryForestClassifier.for_tables(**same) for _ in "12")
    for rows, columns in ((slice(0, 300), 4), (slice(300, 600), 6)):
        learned(one, X[rows, :columns], y[rows])
        many.learn_many(frame.iloc[rows, :columns], pd.Series(y[rows]))
    assert one.feature_weights_ == many.feature_weights_
    assert [one.predict_one(x) for x in dicts(X)] == many.predict_many(frame).tolist()


@CLASSES
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))])
def test_a_copy_goes_on_as_the_model_does(kind, copied):
    X, y = stream(700)
    model = learned(kind.for_tables(seed=0, n_estimators=20), X[:400], y[:400])
    other = copied(model)
    for each in (model, other):
        learned(each, X[400:], y[400:])
    assert other.feature_weights_ == model.feature_weights_
    queries = dicts(stream(100, seed=1)[0])
    assert [other.predict_one(x) for x in queries] == [model.predict_one(x) for x in queries]


@CLASSES
@pytest.mark.parametrize("weights", [[1.0, 2.0], {"f0": 1.0}, np.ones(2)])
def test_weights_of_ones_own_are_refused_with_a_way_out(kind, weights):
    with pytest.raises(ValueError, match="square roots of your weights"):
        kind(feature_weights=weights)


@CLASSES
@pytest.mark.parametrize(
    "bad", [{"max_samples": 0.0}, {"max_samples": 2}, {"weights": "x"}, {"feature_weights": "x"}]
)
def test_bad_parameters_are_refused(kind, bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        kind(**bad)
