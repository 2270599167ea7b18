"""columns="auto": frames as they are."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from boundary_forest.estimators.columns.category_means import MOST_SHOWN
from boundary_forest.estimators.columns.new_features import MOST_WITH_CATEGORIES
from boundary_forest.estimators.columns.reading import read_frame
from tests.column_tables import mixed_table


def tables(**more):
    return BoundaryForestClassifier.for_tables(**{"n_estimators": 20, "random_state": 0, **more})


def in_batches(frame, y, cuts, forest=None):
    forest = tables() if forest is None else forest
    for begin, end in zip([0, *cuts], [*cuts, len(y)], strict=True):
        if end > begin:
            forest.partial_fit(frame[begin:end], y[begin:end])
    return forest


def test_a_frame_of_all_kinds_is_learned_as_it_is():
    frame, y = mixed_table(1000)
    forest = tables(n_estimators=50).fit(frame[:800], y[:800])
    assert forest.score(frame[800:], y[800:]) > 0.85  # seen: 0.92; the most frequent class has 0.64
    assert forest.n_features_in_ == 6
    assert forest.feature_names_in_.tolist() == list(frame.columns)
    importances = dict(zip(frame.columns, forest.feature_importances_, strict=True))
    assert sum(importances.values()) == pytest.approx(1)
    assert min(importances["age"], importances["city"]) > max(
        importances[name] for name in ("member", "since", "colour", "visits")
    )


def test_targets_are_learned_from_a_frame_too():
    frame, _ = mixed_table(1000)
    levels = {"Rome": 3.0, "Oslo": 0.0, "Lima": -3.0, "Bern": 1.0}
    y = frame["city"].map(levels).fillna(0.0).to_numpy() + frame["age"].fillna(40).to_numpy() / 20
    forest = BoundaryForestRegressor.for_tables(random_state=0).fit(frame[:800], y[:800])
    assert forest.score(frame[800:], y[800:]) > 0.85  # seen: 0.94


@settings(max_examples=15, deadline=None)
@given(cuts=st.lists(st.integers(1, 299), max_size=6).map(sorted), seed=st.integers(0, 3))
def test_batches_do_not_matter(cuts, seed):
    frame, y = mixed_table(seed=seed)
    whole = in_batches(frame, y, [])
    assert in_batches(frame, y, cuts).fingerprint() == whole.fingerprint()


@pytest.mark.parametrize("columns", [7, 14])
def test_batches_do_not_matter_where_features_come_by_the_dozen(columns):
    """Some categories come before the first decision, and some after it."""
    rng = np.random.default_rng(0)
    codes = np.minimum(rng.geometric(0.2, (400, columns)), 15)
    frame = pd.DataFrame(codes).map(lambda code: f"c{code}").add_prefix("x")
    y = codes[:, 0] + codes[:, 1] > 9
    whole = in_batches(frame, y, [])
    assert len(whole.feature_weights_) == MOST_WITH_CATEGORIES
    assert len(whole.fitted.engine.snapshot().state()["linear_sums"])
    for cuts in ([*range(1, 40), 100, 200], range(7, 400, 7), range(77, 400, 77)):
        assert in_batches(frame, y, list(cuts)).fingerprint() == whole.fingerprint()


def test_batches_do_not_matter_in_regression_and_row_by_row():
    frame, _ = mixed_table(150)
    y = np.random.default_rng(1).normal(size=150)
    forests = [BoundaryForestRegressor.for_streams(random_state=0) for _ in range(2)]
    whole = in_batches(frame, y, [], forests[0])
    single = in_batches(frame, y, list(range(1, 150)), forests[1])
    assert whole.fingerprint() == single.fingerprint()


def test_predict_then_learn_is_predict_and_partial_fit_row_by_row():
    frame, y = mixed_table(200)
    y = np.where(frame["visits"].fillna(0) > 40, "maybe", y)  # a third class adds features
    together, one_by_one = tables(), tables()
    answers = together.predict_then_learn(frame, y)
    assert answers[0] is None
    for i in range(200):
        row = frame[i : i + 1]
        if i:
            assert one_by_one.predict(row)[0] == answers[i]
        one_by_one.partial_fit(row, y[i : i + 1])
    assert together.fingerprint() == one_by_one.fingerprint()


def test_ends_and_shares_of_rows_that_add_features():
    frame, y = mixed_table(200)
    y = np.where(np.arange(200) < 60, y, np.where(np.arange(200) % 7 == 0, "third", y))
    forest, other = tables(weights="auto"), tables(weights="auto")
    forest.partial_fit(frame[:50], y[:50])
    other.partial_fit(frame[:50], y[:50])
    answers, ends = forest.predict_then_learn(frame[50:], y[50:], return_ends=True)
    np.testing.assert_array_equal(answers, other.predict_then_learn(frame[50:], y[50:]))
    assert ends.labels.shape == (150, 20)
    np.testing.assert_allclose(ends.weights.sum(axis=1), 1)


def test_numbers_without_missing_values_give_the_forest_of_the_array():
    rng = np.random.default_rng(0)
    for dtype in (np.float64, np.float32, np.uint8):
        X = (rng.random((300, 5)) * 50).astype(dtype)
        y = X[:, 0] > X[:, 1]
        plain = tables(columns=None).fit(X, y)
        for given_ in (X, pd.DataFrame(X, columns=list("abcde"))):
            forest = tables().fit(given_, y)
            assert forest.fingerprint() == plain.fingerprint()
            assert forest.fitted.settings == plain.fitted.settings.__class__(
                **{**vars(plain.fitted.settings), "adaptive": forest.fitted.settings.adaptive}
            )


def test_missing_numbers_in_an_array_are_learned_and_predicted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    y = X[:, 0] + 0.3 * X[:, 1] > 0
    X[rng.random(X.shape) < 0.2] = np.nan
    forest = tables().fit(X[:500], y[:500])
    assert forest.score(X[500:], y[500:]) > 0.75  # seen: 0.85
    assert forest.n_features_in_ == 4
    all_missing = forest.predict(np.full((1, 4), np.nan))
    assert all_missing[0] in (False, True)


def test_values_missing_because_they_are_high_count_as_high():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1000, 2))
    y = X[:, 0] > 0.5
    X[(X[:, 0] > 0.7) & (rng.random(1000) < 0.6), 0] = np.nan
    forest = tables().partial_fit(X, y)
    moves = forest.fitted.encoder.numbers.missing.moves
    assert moves[0] > 0.5  # of about one standard deviation
    assert moves[1] == 0


def test_new_categories_may_appear_at_any_time():
    frame = pd.DataFrame({"word": ["a", "b"] * 40})
    forest = tables().partial_fit(frame, ["x", "y"] * 40)
    later = pd.DataFrame({"word": ["c", "a", "b"] * 40})
    forest.partial_fit(later, ["z", "x", "y"] * 40)
    assert forest.predict(pd.DataFrame({"word": ["a", "b", "c"]})).tolist() == ["x", "y", "z"]
    assert forest.predict(pd.DataFrame({"word": ["never seen"]}))[0] in ("x", "y", "z")


def test_few_examples_of_categories_are_told_apart():
    frame = pd.DataFrame({"word": ["a", "b", "c"] * 3})
    forest = BoundaryForestClassifier(columns="auto", random_state=0, shuffle=False)
    forest.fit(frame, ["x", "y", "z"] * 3)
    assert forest.predict(frame[:3]).tolist() == ["x", "y", "z"]


def test_many_categories_add_few_features():
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"zip": rng.integers(0, 20_000, 20_000).astype(str)})
    frame["id"] = np.arange(20_000).astype(str)
    forest = tables(n_estimators=5).fit(frame, rng.integers(0, 2, 20_000))
    assert len(forest.feature_weights_) == 2
    assert len(forest.fitted.encoder.texts.categories[0].places) <= 2**14


def test_categories_that_come_again_are_features():
    frame = pd.DataFrame({"word": ["a", None, "b", "a", "b", None, "c"]})
    forest = tables(shuffle=False).fit(frame, ["x", "y"] * 3 + ["x"])
    many = pd.DataFrame({"word": [f"w{i}" for i in range(MOST_SHOWN - 2)] * 2})
    forest.partial_fit(many, ["x", "y"] * (MOST_SHOWN - 2))  # one category too many
    names = ["word: mean label 0", "word: 'a'", "word: 'b'", "word: missing"]
    assert forest.get_feature_names_out().tolist() == names
    rows = forest.fitted.encoder.query_rows(read_frame(frame), 4)
    assert rows[:, 1:].tolist() == [
        [1, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]
    ]  # fmt: skip


def test_what_depends_on_pairs_of_categories_is_learned():
    """Seen 0.99 with the means alone 0.58."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, (1200, 3))
    frame = pd.DataFrame(codes).map(lambda code: f"c{code}")
    y = codes[:, 0] == codes[:, 1]
    forest = tables().fit(frame[:900], y[:900])
    assert forest.score(frame[900:], y[900:]) > 0.95


def test_values_of_objects_tell_the_kind():
    rows = [
        {"n": 1, "t": "a", "b": True, "d": datetime.date(2024, 2, 1), "none": None},
        {"n": 2.5, "t": None, "b": False, "d": datetime.datetime(2024, 2, 2, 12), "none": None},
    ]
    forest = BoundaryForestClassifier(columns="auto", random_state=0).fit(rows, ["x", "y"])
    assert forest.feature_names_in_.tolist() == ["b", "d", "n", "none", "t"]
    assert forest.fitted.encoder.layout.kinds == ("boolean", "date", "number", None, "text")
    assert forest.predict(rows).tolist() == ["x", "y"]
    forest.partial_fit([{"n": 3, "late": 7.0}], ["y"])  # a missing key is a missing value
    assert forest.n_features_in_ == 6
    assert forest.predict([{"n": 3, "late": 7.0}]).tolist() == ["y"]


def test_an_array_of_objects_has_columns_of_any_kind():
    X = [["a", 1.0], ["b", None], ["a", 3.0], ["b", 2.0]]
    forest = BoundaryForestClassifier(columns="auto", random_state=0).fit(X, [0, 1, 0, 1])
    assert forest.fitted.encoder.layout.kinds == ("text", "number")
    assert forest.predict(X).shape == (4,)


def test_columns_are_matched_by_name():
    frame, y = mixed_table()
    forest = tables().fit(frame, y)
    np.testing.assert_array_equal(forest.predict(frame), forest.predict(frame[frame.columns[::-1]]))


def test_scikit_learn_tools_take_frames():
    frame, y = mixed_table(240)
    pipeline = make_pipeline(FunctionTransformer(), clone(tables()))
    assert cross_val_score(pipeline, frame, y, cv=3).mean() > 0.7
    search = GridSearchCV(tables(), {"max_samples": [0.3, 1.0]}, cv=2).fit(frame, y)
    assert search.best_estimator_.n_features_in_ == 6


def test_explanations_are_in_columns():
    frame, y = mixed_table()
    forest = tables().fit(frame, y)
    explained = forest.explain(frame.iloc[[0]])
    assert explained.feature_names == tuple(frame.columns)
    assert len(explained.query) == 6
    assert isinstance(explained.examples[0].values[3], datetime.datetime)
    assert {example.values[1] for example in explained.examples} <= {*frame["city"].dropna(), None}
    assert explained.examples[0].contributions.sum() == pytest.approx(1)
    assert "age" in str(forest.explain(frame.iloc[0]))
    assert str(forest.explain(frame.iloc[0].to_dict())).startswith("prediction")


def test_names_of_features():
    frame, y = mixed_table()
    texts = ("city", "colour")
    names = tables().fit(frame, y).get_feature_names_out()
    shown = [f"{name}: {text!r}" for name in texts for text in frame[name].dropna().unique()]
    others = [f"{name}: {what}" for name in texts for what in ("mean label 0", "missing")]
    assert sorted(names) == sorted(["age", "member", "since", "visits", *shown, *others])
