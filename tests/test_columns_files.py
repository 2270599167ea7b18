"""columns="auto": files, folders, pickles and frame libraries give one forest."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

import boundary_forest
from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor, open_durable
from tests.column_tables import mixed_table


def learned(n=200, kind=BoundaryForestClassifier):
    frame, y = mixed_table(300)
    if kind is BoundaryForestRegressor:
        y = np.arange(300.0)
    forest = kind.for_tables(n_estimators=10, random_state=0)
    return forest.partial_fit(frame[:n], y[:n]), frame, y


def same_after(one, other, frame, y):
    assert one.fingerprint() == other.fingerprint()
    np.testing.assert_array_equal(one.predict(frame), other.predict(frame))
    one.partial_fit(frame[200:], y[200:])
    other.partial_fit(frame[200:], y[200:])
    assert one.fingerprint() == other.fingerprint()


@pytest.mark.parametrize("kind", [BoundaryForestClassifier, BoundaryForestRegressor])
@pytest.mark.parametrize("mmap", [False, True])
def test_a_file_brings_everything_back(tmp_path, mmap, kind):
    forest, frame, y = learned(kind=kind)
    forest.save(tmp_path / "model.bf")
    same_after(boundary_forest.load(tmp_path / "model.bf", mmap=mmap), forest, frame, y)


def test_a_file_of_numbers_alone(tmp_path):
    X = np.arange(20.0).reshape(10, 2)
    forest = BoundaryForestClassifier.for_tables(random_state=0).fit(X, X[:, 0] > 9)
    forest.save(tmp_path / "model.bf")
    again = boundary_forest.load(tmp_path / "model.bf")
    X[3, 0] = np.nan
    assert again.predict(X).tolist() == forest.predict(X).tolist()


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda f: pickle.loads(pickle.dumps(f))])
def test_copies_and_pickles(copied):
    forest, frame, y = learned()
    same_after(copied(forest), forest, frame, y)


def test_a_durable_folder_replays_its_journal(tmp_path):
    forest, frame, y = learned()
    model = BoundaryForestClassifier.for_tables(n_estimators=10, random_state=0)
    with open_durable(tmp_path / "folder", model) as durable:
        for begin in range(0, 200, 50):
            durable.partial_fit(frame[begin : begin + 50], y[begin : begin + 50])
    with open_durable(tmp_path / "folder") as durable:
        assert durable.fingerprint() == forest.fingerprint()
        durable.snapshot()
    with open_durable(tmp_path / "folder") as durable:
        same_after(durable, forest, frame, y)


def test_dicts_survive_a_folder(tmp_path):
    rows = [{"a": i % 3, "t": "xy"[i % 2], **({"late": i} if i > 20 else {})} for i in range(40)]
    labels = ["u" if i % 3 else "v" for i in range(40)]
    whole = BoundaryForestClassifier.for_streams(random_state=0).partial_fit(rows, labels)
    with open_durable(
        tmp_path / "folder", BoundaryForestClassifier.for_streams(random_state=0)
    ) as durable:
        durable.partial_fit(rows[:10], labels[:10])
        durable.partial_fit(rows[10:], labels[10:])
    with open_durable(tmp_path / "folder") as durable:
        assert durable.fingerprint() == whole.fingerprint()
        assert durable.feature_names_in_.tolist() == ["a", "t", "late"]


def frames_of(frame):
    pl, pa = pytest.importorskip("polars"), pytest.importorskip("pyarrow")
    table = pa.Table.from_pandas(frame, preserve_index=False)
    return {"polars": pl.from_arrow(table), "pyarrow": table}


def test_three_libraries_give_one_forest():
    frame, y = mixed_table()
    frame["zoned"] = pd.to_datetime(frame["since"]).dt.tz_localize("Europe/Berlin")
    frame["count"] = pd.array(np.arange(300) % 7, dtype="Int64")
    frame.loc[5, "count"] = pd.NA
    frame["took"] = pd.to_timedelta(np.arange(300), "min")
    forest = BoundaryForestClassifier.for_tables(n_estimators=10, random_state=0).fit(frame, y)
    for name, other in frames_of(frame).items():
        same = BoundaryForestClassifier.for_tables(n_estimators=10, random_state=0).fit(other, y)
        assert same.fingerprint() == forest.fingerprint(), name
        assert same.feature_names_in_.tolist() == list(frame.columns)
        np.testing.assert_array_equal(same.predict(other), forest.predict(frame))


def test_numbers_of_three_libraries_give_the_forest_of_the_array():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = X[:, 0] > 0
    plain = BoundaryForestClassifier.for_tables(random_state=0, columns=None).fit(X, y)
    frame = pd.DataFrame(X, columns=list("abc"))
    for other in (frame, *frames_of(frame).values()):
        forest = BoundaryForestClassifier.for_tables(random_state=0).fit(other, y)
        assert forest.fingerprint() == plain.fingerprint()


def test_damaged_columns_are_refused(tmp_path):
    from boundary_forest.estimators.columns import ColumnEncoder

    forest, _, _ = learned()
    encoder = forest.fitted.encoder
    arrays = encoder.saved()
    again = ColumnEncoder.loaded(arrays, "float64", 1)
    assert again.described() == encoder.described()
    for name, bad in {
        "feature_columns": arrays["feature_columns"] + 9,
        "feature_slots": arrays["feature_slots"] + 9,
        "category_texts": arrays["category_texts"][:-1],
        "column_first": arrays["column_first"][:-1],
        "category_counts": arrays["category_counts"] + 1,
        "category_sums": arrays["category_sums"] * np.nan,
        "missing_moves": arrays["missing_moves"][:1],
        "relation_slopes": arrays["relation_slopes"][:1],
        "column_labels": arrays["column_labels"][:1],
    }.items():
        with pytest.raises(ValueError, match=r"its|it has|each|a category"):
            ColumnEncoder.loaded({**arrays, name: bad}, "float64", 1)
