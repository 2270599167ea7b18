"""Models that take raw rows: files of them load or raise, and ask nothing of other models."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pandas as pd
import polars
import pytest
from stream_rows import mixed_table

from boundary_forest import BoundaryForestClassifier, ModelFileError, load
from boundary_forest.files import write_model
from boundary_forest.files.loading import describe, verify
from boundary_forest.files.saving import contents_of
from boundary_forest.frames import FrameModel
from boundary_forest.frames.dialect import Dialect


@pytest.fixture
def model():
    return FrameModel.from_rows(mixed_table(200), "label", n_estimators=5, random_state=0)


def test_it_comes_back_from_a_file_and_goes_on(model, tmp_path):
    path = tmp_path / "model.bf"
    model.save(path)
    verify(path)
    other = load(path)
    assert other.columns == model.columns
    more = mixed_table(100, seed=1)
    assert other.predict(more).tolist() == model.predict(more).tolist()
    model.partial_fit(more)
    other.partial_fit(more)
    assert other.fingerprint() == model.fingerprint()
    assert describe(path)["frame"]["target"] == "label"


def test_frames_of_every_kind_are_taken(model):
    table = mixed_table(20, seed=3)
    expected = model.predict(table).tolist()
    rows = table.to_pylist()
    for frame in (table.to_pandas(), polars.from_arrow(table), rows, table.to_pydict()):
        assert model.predict(frame).tolist() == expected
    assert str(model.explain(rows[:1])).startswith(f"prediction: {expected[0]!r}")
    with pytest.raises(TypeError, match="rows must be a pandas"):
        model.predict(np.zeros((2, 3)))


def test_an_objection_names_row_and_column(model):
    frame = mixed_table(3).to_pandas()
    frame.loc[1, "x"] = np.nan
    with pytest.raises(ValueError, match="row 1: column 'x' has no value"):
        model.predict(frame)
    with pytest.raises(ValueError, match="no column 'flag'"):
        model.predict(frame.drop(columns="flag"))
    assert len(model.predict(pd.concat([frame.iloc[[0]], frame.iloc[[2]]]))) == 2


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"task": "dance"}, "is not one of classify, regress"),
        ({"task": "regress"}, "regression requires numbers"),
        ({"target": 5}, "not text"),
        ({"features": []}, "empty or not unique"),
        ({"features": None}, "frame"),
        ({"missing": "guess"}, "is not one of error, mean, drop"),
        ({"warmup": "many"}, "not a finite number"),
    ],
)
def test_a_file_whose_columns_are_damaged_is_refused(model, tmp_path, change, what):
    path = tmp_path / "model.bf"
    frame = {**model.columns.to_json(), **change}
    model.forest.save(path, attachments={"frame": frame})
    for read in (load, verify):
        with pytest.raises(ModelFileError, match=what) as raised:
            read(path)
        assert "frame" in str(raised.value)


def test_columns_that_do_not_give_the_forests_features_are_refused(model, tmp_path):
    frame = model.columns.to_json()
    frame["features"] = frame["features"][:1]
    model.forest.save(tmp_path / "model.bf", attachments={"frame": frame})
    with pytest.raises(ModelFileError, match="its columns are encoded as 1 numbers"):
        load(tmp_path / "model.bf")


def test_an_array_that_is_not_json_is_refused(model, tmp_path):
    document, arrays = contents_of(model.forest, model.attachments)
    for bad in (b"{", b"[]", b"\xff"):
        arrays["frame"] = np.frombuffer(bad, dtype=np.uint8)
        write_model(tmp_path / "model.bf", document, arrays)
        with pytest.raises(ModelFileError, match="frame"):
            load(tmp_path / "model.bf")


def test_an_ordinary_model_loads_without_pyarrow_and_others_say_what_they_need(model, tmp_path):
    BoundaryForestClassifier().fit([[0], [9]], ["a", "b"]).save(tmp_path / "plain.bf")
    model.save(tmp_path / "model.bf")
    script = """
import sys
sys.modules["pyarrow"] = None
import boundary_forest
print(boundary_forest.load(sys.argv[1]).predict([[8]])[0])
try:
    boundary_forest.load(sys.argv[2])
except ModuleNotFoundError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", script, tmp_path / "plain.bf", tmp_path / "model.bf"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    ).stdout.splitlines()
    assert out[0] == "b"
    assert out[1].endswith("requires pyarrow: pip install pyarrow")


def test_a_model_shows_what_it_predicts_and_from_how_much(model):
    shown = "<FrameModel to classify 'label' from 4 columns, 200 rows learned, BoundaryForest"
    assert repr(model).startswith(shown)


def test_without_pyarrow_raw_rows_name_it():
    script = """
import sys
sys.modules["pyarrow"] = None
try:
    from boundary_forest.frames import FrameModel
except ModuleNotFoundError as error:
    print(error)
"""
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True
    ).stdout
    assert out == "raw rows need pyarrow: pip install pyarrow\n"


@pytest.mark.parametrize(
    "content", ["x", [], 3, None, {"sep": 3}, {"header": "no"}, {"speed": "x"}]
)
def test_a_dialect_that_is_none_is_refused(content):
    with pytest.raises((TypeError, ValueError)):
        Dialect.from_json(content)
