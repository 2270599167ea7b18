"""Nothing is rounded in silence, also where libraries bring several types to one."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from conftest import unchanged

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from boundary_forest.frames import FrameModel

ODD = 2**53 + 1  # the first integer that float64 does not have

FRAMES = {
    "pandas, int64 beside float64": lambda n: pd.DataFrame({"a": [n, 1], "b": [0.5, 1.0]}),
    "pandas, uint64 beside int64": lambda n: pd.DataFrame(
        {"a": np.array([n, 1], dtype=np.uint64), "b": [1, -2]}
    ),
    "pandas, nullable": lambda n: pd.DataFrame({"a": pd.array([n, 1], dtype="Int64"), "b": [1, 2]}),
    "pandas, nullable beside floats": lambda n: pd.DataFrame(
        {"a": pd.array([n, 1], dtype="Int64"), "b": pd.array([0.5, 1], dtype="Float64")}
    ),
    "pandas, arrow": lambda n: pd.DataFrame(
        {"a": pd.array([n, 1], dtype="int64[pyarrow]"), "b": [0.5, 1.0]}
    ),
    "pandas, objects": lambda n: pd.DataFrame(
        {"a": pd.Series([n, 1], dtype=object), "b": [0.5, 1.0]}
    ),
    "polars, int64 beside float64": lambda n: pl.DataFrame({"a": [n, 1], "b": [0.5, 1.0]}),
    "polars, uint64 beside int64": lambda n: pl.DataFrame(
        {"a": pl.Series([n, 1], dtype=pl.UInt64), "b": [1, -2]}
    ),
    "polars, int128": lambda n: pl.DataFrame(
        {"a": pl.Series([n, 1], dtype=pl.Int128), "b": [0.5, 1.0]}
    ),
    "pyarrow": lambda n: pa.table({"a": [n, 1], "b": [0.5, 1.0]}),
    "lists": lambda n: [[n, 0.5], [1, 2]],
    "lists of numpy's numbers": lambda n: [[np.int64(n), 0.5], [1, 2]],
    "tuples": lambda n: ((n, 0.5), (1, 2)),
    "a list of arrays": lambda n: [np.array([n, 1]), np.array([0.5, 2])],
    "objects of numpy's numbers": lambda n: np.array([[np.int64(n), 0.5], [1, 2]], dtype=object),
}
frames = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES.keys())
ignore_names = pytest.mark.filterwarnings("ignore:X has feature names")


@frames
@ignore_names
@pytest.mark.parametrize("number", [ODD, 2**60])
def test_an_integer_beyond_2_53_is_refused_beside_any_other_type(frame, number):
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.fit([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 3.0]], list("abcd"))
    for call in (
        lambda: forest.fit(frame(number), ["a", "b"]),
        lambda: forest.partial_fit(frame(number), ["a", "b"]),
        lambda: forest.predict_then_learn(frame(number), ["a", "b"]),
        lambda: forest.predict(frame(number)),
        lambda: forest.kneighbors(frame(number), 1),
    ):
        with (
            unchanged(forest, [[0.0, 1.0]]),
            pytest.raises(ValueError, match="X contains the integer"),
        ):
            call()


@frames
@ignore_names
def test_the_largest_integer_that_is_allowed_is_learned_as_it_is(frame):
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.fit(frame(2**53), ["a", "b"])
    other = np.asarray(frame(2**53), dtype=np.float64)
    assert forest.kneighbors(other, 1)[0].tolist() == [[0.0], [0.0]]


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
@ignore_names
def test_decimals_of_a_frame_must_be_those_of_float64(library):
    def frame(text):
        return library.DataFrame({"a": [Decimal(text), Decimal("1.0")], "b": [0.5, 1.0]})

    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    with pytest.raises(
        ValueError, match=r"X contains Decimal\('0.1'\), which float64 cannot represent"
    ):
        forest.fit(frame("0.1"), ["a", "b"])
    assert forest.fit(frame("0.5"), ["a", "b"]).examples_seen == 2


TARGETS = {
    "int64": np.array([ODD, 1]),
    "uint64": np.array([2**63 + 1, 1], dtype=np.uint64),
    "a list beside floats": [ODD, 0.5],
    "nullable": pd.Series([ODD, 2], dtype="Int64"),
    "vectors": [[ODD, 0.5], [1, 2]],
    "a frame": pd.DataFrame({"a": [ODD, 1], "b": [0.5, 1.0]}),
}


@pytest.mark.parametrize("y", TARGETS.values(), ids=TARGETS.keys())
def test_targets_beyond_2_53_are_refused(y):
    forest = BoundaryForestRegressor(n_estimators=2, random_state=0, epsilon=0)
    with pytest.raises(ValueError, match="y contains the integer"):
        forest.fit([[0.0], [1.0]], y)
    assert forest.examples_seen == 0


LABELS = {
    "an integer beside a float": [ODD, 2.0**53],
    "numpy's integer beside a float": [np.int64(ODD), 2.0**53],
    "beyond int64": [2**63 + 1, 2**63 + 1.5e9],
    "text that ends in a zero": ["a", "a\0"],
    "bytes that end in a zero": [b"a", b"a\0"],
    "a tuple": ("a", "a\0"),
}


@pytest.mark.parametrize("y", LABELS.values(), ids=LABELS.keys())
def test_labels_of_a_list_stay_apart_and_come_back(y, tmp_path):
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0).fit([[0.0], [1.0]], y)
    assert forest.predict([[0.0], [1.0]]).tolist() == list(y)
    forest.partial_fit([[2.0]], y[1:], classes=y)
    assert len(forest.classes_) == 2
    assert forest.predict([[2.0]]).tolist() == list(y[1:])


@pytest.mark.parametrize("y", [[1, "a"], [True, "a"]])
def test_numbers_beside_text_are_not_rewritten_as_text(y):
    with pytest.raises(TypeError, match="y cannot be used: labels must be all text"):
        BoundaryForestClassifier().fit([[0.0], [1.0]], y)


def test_text_targets_of_raw_rows_keep_a_zero_at_their_end():
    rows = [{"size": 1.0, "is": "a"}, {"size": 9.0, "is": "a\0"}]
    model = FrameModel.from_rows(rows, target="is")
    assert model.predict(rows).tolist() == ["a", "a\0"]
