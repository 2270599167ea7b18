"""What columns mean is inferred from their values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest.frames.arrow_columns import as_table
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.column_kinds import kinds_of
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import Columns
from boundary_forest.frames.description import describe, warnings_about
from boundary_forest.frames.features import Feature
from boundary_forest.frames.inference import choose


def decide(target, values, **options):
    table = pa.table({"a": np.arange(len(values)), target: pa.array(values)})
    return choose(table, ColumnOptions(target, **options))


@pytest.mark.parametrize(
    ("values", "task", "kind"),
    [
        (["a", "b", "a"], "classify", "text"),
        ([True, False, True], "classify", "boolean"),
        (["True", "false", ""], "classify", "boolean"),
        ([1, 2, 3], "classify", "integer"),
        ([1.0, 2.0, None], "classify", "integer"),
        (["1", "2", "NA"], "classify", "integer"),
        ([1.5, 2.0, 3.0], "regress", "number"),
        (["1.5", "2", "3"], "regress", "number"),
        (["1", "2", "x"], "classify", "text"),
        (list(range(100)), "classify", "integer"),
        (list(range(101)), "regress", "number"),
    ],
)
def test_the_task_follows_from_the_targets_values(values, task, kind):
    columns = decide("y", values)
    assert (columns.task, columns.target_kind) == (task, kind)


def test_the_task_can_be_said():
    assert decide("y", [1, 2, 3], task="regress").target_kind == "number"
    assert decide("y", list(range(500)), task="classify").target_kind == "integer"
    numbers = decide("y", [1.5, 2.5, 1.5], task="classify")
    labels = numbers.labels(pa.table({"y": ["1.50", "2.5"]}))
    assert labels.y.tolist() == ["1.5", "2.5"]
    with pytest.raises(ColumnError, match="regression requires numbers"):
        decide("y", ["a", "b"], task="regress")


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", " 2.5", "", "NA", "1e3"], "number"),
        (["true", "FALSE"], "boolean"),
        (["1", "b"], "text"),
        (["", ""], None),
        ([None], None),
    ],
)
def test_text_that_reads_as_something_else_is_that(values, kind):
    assert kinds_of([pa.array(values, pa.string())])[0][0] == kind


def table():
    return pa.table(
        {
            "n": [1.0, 2.0, 3.0, 6.0],
            "t": ["x", "y", "x", "x"],
            "b": [True, False, True, True],
            "y": [0, 1, 0, 1],
        }
    )


def test_numbers_are_scaled_and_the_others_one_hot():
    columns = choose(table(), ColumnOptions("y"))
    X = columns.positions(table()).X
    assert X.dtype == np.float32
    n = np.array([1.0, 2, 3, 6])
    np.testing.assert_allclose(X[:, 0], (n - 3) / n.std(), rtol=1e-6)
    assert X[:, 1:].tolist() == [[1, 0, 0, 1], [0, 1, 1, 0], [1, 0, 0, 1], [1, 0, 0, 1]]
    minmax = choose(table(), ColumnOptions("y", scaling="minmax")).positions(table()).X
    np.testing.assert_allclose(minmax[:, 0], (n - 1) / 5, rtol=1e-6)
    none = choose(table(), ColumnOptions("y", scaling="none")).positions(table()).X
    assert none.dtype == np.float64
    assert none[:, 0].tolist() == n.tolist()


def test_a_constant_column_and_huge_numbers_are_no_harm():
    odd = pa.table({"c": [5.0, 5.0], "h": [1e300, -1e300], "y": [0, 1]})
    columns = choose(odd, ColumnOptions("y"))
    positions = columns.positions(odd)
    assert np.isfinite(positions.X).all()
    assert not positions.problems


def test_numbers_at_the_end_of_the_range_are_no_harm():
    odd = pa.table({"h": [1.7e308, -1.7e308, 1.0], "y": [0, 1, 0]})
    for scaling in ("standard", "minmax"):
        feature = choose(odd, ColumnOptions("y", scaling=scaling)).features[0]
        assert np.isfinite([feature.shift, feature.scale, *feature.mean]).all()


def test_many_rows_are_read_in_blocks(monkeypatch):
    rows = [{"n": n, "t": t, "b": "true"} for n in (1, None, 9, "x", 1e300) for t in "xz"]
    columns = choose(table(), ColumnOptions("y"))
    whole = columns.positions(as_table(rows))
    monkeypatch.setattr("boundary_forest.frames.columns.VALUES_AT_ONCE", 9)
    blocks = columns.positions(as_table(rows))
    assert np.array_equal(blocks.X, whole.X)
    assert blocks.problems == whole.problems
    assert blocks.unseen.tolist() == whole.unseen.tolist()


def test_columns_that_nobody_asks_for_are_not_looked_at():
    """Here one whose dictionaries do not fit together; as a feature it is read all the same."""
    parts = [
        pa.array([f"{part}{i}" for i in range(100)])
        .dictionary_encode()
        .cast(pa.dictionary(pa.int8(), pa.string()))
        for part in "xt"
    ]
    rows = pa.table({"n": np.arange(200.0), "t": pa.chunked_array(parts), "y": np.arange(200) % 2})
    assert choose(rows, ColumnOptions("y", drop=("t",))).positions(rows).X.shape == (200, 1)
    assert choose(rows, ColumnOptions("y")).positions(rows).X.shape == (200, 201)


def test_a_category_first_seen_later_is_zeros_and_counted():
    columns = choose(table(), ColumnOptions("y"))
    later = columns.positions(pa.table({"n": [1.0], "t": ["new"], "b": [True]}))
    assert later.X[0, 1:3].tolist() == [0, 0]
    assert later.unseen.tolist() == [1]
    assert not later.problems


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ({"n": "abc", "t": "x", "b": True}, "column 'n' has 'abc', which is not a number"),
        ({"n": None, "t": "x", "b": True}, "column 'n' has no value"),
        ({"n": 1, "t": "", "b": True}, "column 't' has no value"),
        ({"n": 1, "t": "x", "b": "maybe"}, "column 'b' has 'maybe', which is neither"),
        ({"n": float("inf"), "t": "x", "b": True}, "column 'n' has inf, which is too large"),
        ({"n": 1e300, "t": "x", "b": True}, "column 'n' has 1e+300, which is too large"),
    ],
)
def test_what_cannot_be_used_is_told_with_its_column(row, why):
    columns = choose(table(), ColumnOptions("y"))
    positions = columns.positions(as_table([{"n": 1, "t": "x", "b": "true"}, row]))
    assert str(positions.problems[1]).startswith(why)
    assert 0 not in positions.problems


TEXTS = st.sampled_from(["1", " 2.5", "-3e2", "", "NA", "x", "true", "inf", "1e300"])
NUMBERS = st.sampled_from([1.0, -2.5, None, float("inf"), 1e300])


@settings(max_examples=150)
@given(data=st.data(), missing=st.sampled_from(["error", "mean"]))
def test_columns_of_numbers_are_read_together_as_one_by_one(data, missing):
    n = data.draw(st.integers(1, 4))
    kinds = data.draw(st.lists(st.sampled_from([TEXTS, NUMBERS]), min_size=1, max_size=4))
    rows = pa.table(
        {
            f"c{i}": pa.array(data.draw(st.lists(kind, min_size=n, max_size=n)))
            for i, kind in enumerate(kinds)
        }
    )
    features = tuple(
        Feature(f"c{i}", "number", (0.5,), shift=i, scale=i + 1) for i in range(len(kinds))
    )
    whole = Columns("classify", "y", "integer", features, "standard", missing, 1)
    together = whole.positions(rows)
    apart = [replace(whole, features=(feature,)).positions(rows) for feature in features]
    assert np.array_equal(together.X, np.hstack([one.X for one in apart]))
    first = {row: one.problems[row] for one in reversed(apart) for row in one.problems}
    assert together.problems == first


def test_a_missing_value_can_be_the_mean():
    columns = choose(table(), ColumnOptions("y", missing="mean"))
    positions = columns.positions(as_table([{"n": None, "t": None, "b": None}]))
    assert not positions.problems
    np.testing.assert_allclose(positions.X[0], [0, 0.75, 0.25, 0.25, 0.75], atol=1e-7)


@pytest.mark.parametrize(
    ("kind", "value"), [("integer", 2.5), ("integer", "x"), ("boolean", "maybe"), ("number", "x")]
)
def test_a_target_of_another_kind_than_the_first_ones_is_a_problem(kind, value):
    first = {"integer": [1, 2], "boolean": [True, False], "number": [1.5, 2.5]}[kind]
    columns = decide("y", first)
    labels = columns.labels(as_table([{"y": str(value)}, {"y": None}, {"y": first[0]}]))
    assert list(labels.problems) == [0]
    assert labels.known.tolist() == [False, False, True]


def test_columns_can_be_chosen_and_left_out():
    names = [f.name for f in choose(table(), ColumnOptions("y", features=("t", "n"))).features]
    assert names == ["t", "n"]
    names = [f.name for f in choose(table(), ColumnOptions("y", drop=("t",), id="b")).features]
    assert names == ["n"]
    with pytest.raises(ColumnError, match="no column is left to predict 'y' from"):
        choose(table(), ColumnOptions("y", drop=("t", "n", "b")))
    with pytest.raises(ColumnError, match="no column 'z'; the columns are"):
        ColumnOptions("y", drop=("z",)).check(table().column_names)


def test_lists_of_text_cannot_be_used_unless_they_are_dropped():
    nested = pa.table({"a": [1, 2], "l": [["x"], ["y"]], "y": [0, 1]})
    with pytest.raises(ColumnError, match="drop 'l'"):
        choose(nested, ColumnOptions("y"))
    assert choose(nested, ColumnOptions("y", drop=("l",))).width == 1


def test_the_decision_survives_json():
    columns = choose(table(), ColumnOptions("y", missing="mean", id="b"))
    assert Columns.from_json(columns.to_json()) == columns
    assert describe(columns)[0].startswith("classify 'y'")


def test_what_is_doubtful_is_told():
    assert "one value" in warnings_about(decide("y", [1, 1, 1]), pa.table({"y": [1, 1, 1]}))[0]
    names = [f"name {i}" for i in range(150)]
    many = pa.table({"a": names, "y": names})
    classes, categories = warnings_about(choose(many, ColumnOptions("y")), many)
    assert "150 classes" in classes
    assert "150 categories" in categories
