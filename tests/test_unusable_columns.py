"""What X cannot hold is refused with its column, its value and what to do about it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors
from boundary_forest.frames import FrameModel

TIMES = pd.to_datetime(["2024-06-29", "2024-06-30", "2024-07-01"])
FRAMES = {
    "times": (TIMES, TypeError, "'b' contains 2024-06-29 00:00:00: convert times to numbers"),
    "categories": (
        pd.Categorical(["red", "blue", "red"]),
        ValueError,
        "'b' contains 'red': encode",
    ),
    "dates": (["1", "29/06/2024", ""], ValueError, "'b' contains '29/06/2024', which looks like a"),
    "nothing": (["1", "", "2"], ValueError, "'b' contains '', which is no value: fill it in"),
}


def forest():
    return BoundaryForestClassifier(n_estimators=3, random_state=0)


@pytest.mark.parametrize("as_frame", [pd.DataFrame, pl.from_pandas, pa.Table.from_pandas])
@pytest.mark.parametrize("values", FRAMES)
def test_frames(as_frame, values):
    column, error, message = FRAMES[values]
    frame = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": column})
    with pytest.raises(error, match=f"X must contain numbers, but column {message}"):
        forest().fit(as_frame(frame), [0, 1, 0])
    fitted = forest().fit(as_frame(pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})), [0, 1])
    with pytest.raises(error, match=f"X must contain numbers, but column {message}"):
        fitted.predict(as_frame(frame))


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (np.array([["2024-06-29"]] * 2, "M8[D]"), TypeError, "column 0 contains 2024-06-29: conv"),
        (np.array([[1.0, TIMES[0]], [2, None]], object), TypeError, "column 1 contains 2024-06-29"),
        ([[1.0, "red"], [2.0, "blue"]], ValueError, "column 1 contains 'red': encode text"),
        (
            np.array([["1", "2"], ["3", " "]]),
            ValueError,
            "column 1 contains ' ', which is no value",
        ),
    ],
)
def test_arrays_and_lists(rows, error, message):
    with pytest.raises(error, match=message):
        forest().fit(rows, [0, 1])


def test_errors_name_the_parameter_that_takes_any_columns():
    frame = pd.DataFrame({"a": [1.0, None, 3.0], "b": ["red", "blue", "red"]})
    takes_any = "or set columns='auto', which takes text, times and missing values$"
    for X in (frame, frame[["a"]], pd.DataFrame({"t": TIMES})):
        with pytest.raises((TypeError, ValueError), match=f"for example .*, {takes_any}"):
            forest().fit(X, [0, 1, 0])
        forest().set_params(columns="auto").fit(X, [0, 1, 0])
    with pytest.raises(ValueError, match=r"OneHotEncoder$"):  # retrieval has no such parameter
        BoundaryForestNeighbors().fit(frame)


def test_other_refusals_stay_as_they_are():
    for rows, message in (
        ([[1.0], [2.0, 3.0]], "X"),
        (np.array([[{"a": 1}], [2]], object), "argument must be a string or a real number"),
        ("text", "X"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            forest().fit(rows, [0, 1])


def test_a_row_with_names_is_explained_by_them():
    frame = pd.DataFrame({"a": [1.0, 5.0, 3.0], "b": [1.0, 2.0, 4.0]})
    fitted = forest().fit(frame, [0, 1, 0])
    expected = fitted.explain(frame[1:2]).to_dict()
    assert fitted.explain({"b": 2.0, "a": 5.0}).to_dict() == expected
    assert fitted.explain(frame.iloc[1][["b", "a"]]).to_dict() == expected
    with pytest.warns(UserWarning, match="valid feature names"):
        assert fitted.explain(pd.Series([5.0, 2.0])).to_dict() == expected  # it has no names
    with pytest.raises(TypeError, match="column 'b' contains 2024-06-29 00:00:00: convert times"):
        fitted.explain({"a": 1.0, "b": TIMES[0]})
    with pytest.raises(ValueError, match="has none for 'b'"):
        fitted.explain({"a": 1.0})
    with pytest.raises(ValueError, match="unknown columns: 'c'"):
        fitted.explain({"a": 1.0, "b": 2.0, "c": 3.0})
    unnamed = forest().fit(frame.to_numpy(), [0, 1, 0])
    with pytest.raises(TypeError, match="did not learn the names of its columns: pass a list of 2"):
        unnamed.explain({"a": 1.0, "b": 2.0})


def test_one_row_of_raw_columns_is_a_dict_or_has_names():
    frame = pd.DataFrame({"a": [1.0, 2.0], "when": TIMES[:2], "is": ["x", "y"]})
    model = FrameModel.from_rows(frame, target="is", random_state=0)
    row = {"a": 2.0, "when": TIMES[1]}
    assert model.predict(row).tolist() == model.predict(pd.Series(row)).tolist() == ["y"]
    assert model.explain(row).to_dict() == model.explain(frame[1:]).to_dict()
    with pytest.raises(ValueError, match=r"column 'a' has datetime.*, which is not a number"):
        model.explain({"a": TIMES[1], "when": TIMES[1]})
    with pytest.raises(ValueError, match=r"column 'a' has no value \('' counts as missing\)"):
        model.explain({"a": "", "when": TIMES[1]})
    with pytest.raises(TypeError, match=r"this Series has none: pass a dict, or .* frame.iloc\[0"):
        model.predict(pd.Series([2.0, TIMES[1]]))


@pytest.mark.parametrize("date", ["29/06/2024", "29.6.24", "2024/06/29", "6-29-2024 12:30"])
def test_dates_that_are_read_as_categories_are_named(told, tmp_path, date):
    lines = [f"{i},{date},{'xy'[i % 2]}\n" for i in range(0, 60, 3)]
    (tmp_path / "rows.csv").write_text("a,when,y\n" + "".join(lines))
    arguments = ("stream", tmp_path / "rows.csv", "--target", "y")
    code, _, error = told(*arguments)
    assert code == 0
    assert f"column 'when' has dates such as '{date}', which are read as categories" in error
    assert told(*arguments, "--categories", "when")[2] == ""


def test_a_date_in_a_column_of_times_is_refused_with_the_form_to_write(told, tmp_path):
    lines = [f"2024-06-{i:02d},{'xy'[i % 2]}\n" for i in range(1, 29)]
    (tmp_path / "rows.csv").write_text("when,y\n" + "".join(lines) + "29/06/2024,x\n")
    code, _, error = told("stream", tmp_path / "rows.csv", "--target", "y")
    assert code == 2
    assert "row 29: column 'when' has '29/06/2024', which is not a time" in error
    assert "write it as 2024-06-29" in error
