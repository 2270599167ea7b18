"""columns="auto" in River: dicts with values of any kind, and keys that are missing."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest

import boundary_forest
from boundary_forest import BoundaryForestClassifier as SklearnClassifier
from boundary_forest.estimators.columns import ColumnEncoder
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


# The models over all rows have products of some of 38 features, and no room for 248.
@pytest.mark.parametrize("columns", [None, "auto"])
@pytest.mark.parametrize("n_late", [30, 240])
def test_keys_that_come_late_give_the_same_mixture_in_batches_of_any_size(
    columns, n_late, tmp_path
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 8 + n_late))
    y = (X[:, 0] * X[:, 1] + X[:, 8] > 0).astype(int)
    n_keys = 8 + n_late * np.arange(400) // 399
    rows = [{f"k{j:03}": x[j] for j in range(n)} for x, n in zip(X.tolist(), n_keys, strict=True)]

    def fingerprint(size):
        model = BoundaryForestClassifier.for_tables(n_estimators=5, seed=0, columns=columns)
        for begin in range(0, 400, size):
            last = n_keys[min(begin + size, 400) - 1]
            frame = pd.DataFrame(rows[begin : begin + size], columns=sorted(rows[-1])[:last])
            if columns is None:
                frame = frame.fillna(0.0)
            labels = y[begin : begin + size].tolist()
            if size == 1:
                model.learn_one(rows[begin], labels[0])
            else:
                model.learn_many(frame, pd.Series(labels))
        model.save(tmp_path / f"{size}.bf")
        loaded = boundary_forest.load(tmp_path / f"{size}.bf")
        assert len(loaded.fitted.engine.snapshot().state()["linear_sums"])
        return loaded.fingerprint()

    assert len({fingerprint(size) for size in (1, 7, 77, 400)}) == 1


@pytest.mark.parametrize("columns", [1, 3, 20])
def test_rows_of_numbers_alone_are_learned_as_others_are(columns, tmp_path):
    rng = np.random.default_rng(columns)
    names = [f"x{i}" for i in range(columns)]
    model = BoundaryForestClassifier.for_tables(n_estimators=5, seed=0)
    rows, labels = [], []
    for i, row in enumerate(rng.normal(size=(1_300, columns)).tolist()):
        x = dict(zip(names, row, strict=True))
        if i % 200 == 7:
            x["x0"] = np.float64(x["x0"]) if i < 800 else int(i)
        if i in (1_150, 1_250):  # until then, no value is missing
            x["x0"] = None
        if i > 1_200:
            x["late"] = bool(i % 2)
        rows.append(x)
        labels.append(("a", "b", "c")[(row[0] > 0) + (i > 700 and row[0] > 1)])
        if i % 3 == 0:
            model.predict_one(x)
        if i % 500 == 499:
            with pytest.raises(TypeError):
                model.learn_one({**x, "x0": "no number"}, "a")
            model = pickle.loads(pickle.dumps(model))
        model.learn_one(x, labels[-1])
    model.save(tmp_path / "model.bf")
    same = SklearnClassifier.for_tables(n_estimators=5, random_state=0).partial_fit(rows, labels)
    assert boundary_forest.load(tmp_path / "model.bf").fingerprint() == same.fingerprint()
    assert same.predict(rows[:50]).tolist() == [model.predict_one(x) for x in rows[:50]]


def test_pickles_learn_on_the_same():
    rows, labels = rows_and_labels()
    model = learned(rows[:100], labels[:100])
    copied = pickle.loads(pickle.dumps(model))
    for forest in (model, copied):
        for x, y in zip(rows[100:], labels[100:], strict=True):
            forest.learn_one(x, y)
    assert [model.predict_one(x) for x in rows] == [copied.predict_one(x) for x in rows]


def test_an_interrupted_call_knows_the_columns_of_what_it_learned(monkeypatch):
    """Also if memory ends, so that this cannot be computed at once."""

    class Interrupted:
        def __init__(self, engine):
            self.engine = engine

        def __getattr__(self, name):
            return getattr(self.engine, name)

        def learn(self, rows, labels, *more):
            self.engine.learn(rows[:20], labels[:20], *more)
            patched.setattr(ColumnEncoder, "learned", fails)
            raise KeyboardInterrupt

    def fails(*_):
        raise MemoryError

    rows, labels = rows_and_labels()
    model = learned(rows[:100], labels[:100])
    forest = model._forest
    with monkeypatch.context() as patched:
        patched.setattr(forest, "_engine", Interrupted(forest._engine))
        with pytest.raises(KeyboardInterrupt):
            model.learn_many(pd.DataFrame(rows[100:]), pd.Series(labels[100:]))
    for x, label in zip(rows[120:], labels[120:], strict=True):
        model.learn_one(x, label)
    whole = learned(rows, labels)
    assert all(model.predict_proba_one(x) == whole.predict_proba_one(x) for x in rows)


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
