"""Columns as people have them: times, lists, money, slips, row numbers, many categories."""

from __future__ import annotations

import datetime as dt

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from boundary_forest.frames import FrameModel
from boundary_forest.frames.arrow_columns import as_plain
from boundary_forest.frames.column_errors import ColumnError
from boundary_forest.frames.column_kinds import as_numbers, as_times, kinds_of
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.columns import Columns
from boundary_forest.frames.description import describe, warnings_about
from boundary_forest.frames.dialect import Dialect
from boundary_forest.frames.features import Feature
from boundary_forest.frames.inference import MOST_CATEGORIES, choose

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
Y = np.where(X > 0, "up", "down")
START = dt.datetime(2024, 2, 28, 23, 30)
INSTANTS = [START + dt.timedelta(hours=float(h)) for h in (100 * X).round(3)]


def chosen(values, **options) -> tuple[Columns, pa.Table]:
    table = pa.table({"a": values, "y": Y[: len(values)]})
    return choose(table, ColumnOptions("y", **options)), table


# Times


@pytest.mark.parametrize(
    "values",
    [
        pa.array(INSTANTS, pa.timestamp("ns")),
        pa.array(INSTANTS, pa.timestamp("ms", "Europe/Berlin")),
        [instant.isoformat() for instant in INSTANTS],
        [instant.isoformat(" ") + "Z" for instant in INSTANTS],
        [(i + dt.timedelta(hours=2)).isoformat() + "+02:00" for i in INSTANTS],
    ],
)
def test_a_time_is_one_number_however_it_is_written(values):
    columns, table = chosen(values)
    assert [(f.kind, f.width) for f in columns.features] == [("time", 1)]
    np.testing.assert_allclose(
        columns.positions(table).X[:, 0], (X - X.mean()) / X.std(), atol=1e-3
    )
    assert "a (a time)" in describe(columns)[1]


def test_dates_and_times_of_day_are_times_too():
    days = ["2024-01-01", "2024-01-03", None]
    for values in (pa.array(days), pa.array(days).cast(pa.date32())):
        seconds, misfit = as_times(as_plain(values, "a"))
        assert misfit is None
        assert np.diff(seconds[:2]) == 2 * 86400
        assert np.isnan(seconds[2])
    clock = pa.array(["00:00:00", "01:30"])
    assert as_times(clock)[0].tolist() == [0, 5400]
    assert as_times(as_plain(pa.array([dt.time(1, 30)]), "a"))[0].tolist() == [5400]
    assert as_plain(pa.array([dt.timedelta(minutes=1)]), "a").to_pylist() == [60.0]


def test_what_is_no_time_is_told_and_a_year_is_a_number():
    seconds, misfit = as_times(pa.array(["2024-02-29", "2023-02-29", "soon", "2024-01-01T25:00"]))
    assert misfit.tolist() == [False, True, True, True]
    assert seconds[0] == dt.datetime(2024, 2, 29, tzinfo=dt.UTC).timestamp()
    assert kinds_of([pa.array(["2023", "2024"])])[0][0] == "number"
    columns, _ = chosen([instant.isoformat() for instant in INSTANTS])
    problems = columns.positions(pa.table({"a": ["soon"]})).problems
    assert (
        str(problems[0]) == "column 'a' has 'soon', which is not a time, but the earlier values "
        "are: write it as 2024-06-29 or 2024-06-29T12:30"
    )


# Slips


def test_one_slip_among_many_numbers_is_a_problem_of_its_row():
    values = [*map(str, X[1:].round(3)), "abc"]
    columns, table = chosen(values)
    assert columns.features[0].kind == "number"
    assert list(columns.positions(table).problems) == [N - 1]
    assert columns.positions(table).problems[N - 1].misfit
    assert chosen(values, categories=("a",))[0].features[0].kind == "text"
    assert chosen([*map(str, range(18)), "abc"])[0].features[0].kind == "text"


def test_numbers_and_categories_can_be_said():
    codes = [str(i % 4) for i in range(N)]
    assert chosen(codes, categories=("a",))[0].features[0].categories == ("0", "1", "2", "3")
    assert chosen([1, 2, 3, 4] * 15, categories=("a",))[0].features[0].categories == (
        "1",
        "2",
        "3",
        "4",
    )
    half = [str(i) if i % 2 else "none" for i in range(N)]
    columns, table = chosen(half, numbers=("a",))
    assert columns.features[0].kind == "number"
    assert len(columns.positions(table).problems) == N // 2
    with pytest.raises(ColumnError, match="as numbers and as categories"):
        ColumnOptions("y", numbers=("a",), categories=("a",)).check(["a", "y"])


# Numbers in other guises


@pytest.mark.parametrize(
    ("text", "number"),
    [("$3", 3), ("-$3.5", -3.5), ("€ 7", 7), ("7 €", 7), ("5%", 0.05), ("12.5 %", 0.125)],
)
def test_money_and_percent_are_numbers(text, number):
    numbers, misfit = as_numbers(pa.array([text, "1"]))
    assert misfit is None
    assert numbers.tolist() == [number, 1]


@pytest.mark.parametrize(
    ("dialect", "texts", "numbers"),
    [
        (Dialect(decimal=","), ["0,123", "-1,5e3", "7"], [0.123, -1500, 7]),
        (Dialect(thousands=","), ["1,234.56", "12", "1,000,000"], [1234.56, 12, 1e6]),
        (Dialect(decimal=",", thousands="."), ["1.234,5", "0,5"], [1234.5, 0.5]),
        (Dialect(thousands=" "), ["1 234", "$5 000"], [1234, 5000]),
    ],
)
def test_numbers_are_read_in_the_dialect_that_was_said(dialect, texts, numbers):
    read, misfit = as_numbers(pa.array(texts), dialect)
    assert misfit is None
    assert read.tolist() == numbers
    wrong = as_numbers(pa.array(["1,2,3", "12.34.5", "1,23", "x"]), Dialect(thousands=","))[1]
    assert wrong.all()


@pytest.mark.parametrize(
    ("texts", "hint"),
    [
        (["0,123", "1,5"], "set decimal to ','"),
        (["1,234.56", "900"], "set thousands to ','"),
        (["1.234,56", "0,5"], "set decimal to ',' and thousands to '.'"),
    ],
)
def test_a_dialect_that_was_not_said_is_hinted_at(texts, hint):
    columns, table = chosen(texts * 10)
    assert columns.features[0].kind == "text"
    assert hint in warnings_about(columns, table)[0]
    turned, table = chosen(texts[::-1] * 10)
    assert (
        f"such as {(texts[1] if ',' in texts[1] else texts[0])!r}"
        in warnings_about(turned, table)[0]
    )
    numeric, _ = chosen([*map(str, range(N))])
    assert hint in str(numeric.positions(pa.table({"a": texts[:1]})).problems[0])


def test_a_column_that_was_called_categories_is_not_hinted_to_be_numbers(told, tmp_path):
    rows = [f"0{i % 9},{100 + i % 7};{i};{'ab'[i % 2]}\n" for i in range(60)]
    (tmp_path / "rows.csv").write_text("zip;x;y\n" + "".join(rows))
    arguments = ("stream", tmp_path / "rows.csv", "--sep", ";", "--target", "y", "--drop", "x")
    assert "column 'zip' has categories such as '00,100'; set decimal" in told(*arguments)[2]
    code, out, error = told(*arguments, "--categories", "zip")
    assert (code, error) == (0, "")
    assert "one-hot encoded: zip" in out


def test_a_dialect_that_cannot_be_is_refused():
    for wrong in (
        {"decimal": ";"},
        {"thousands": "x"},
        {"decimal": ",", "thousands": ","},
        {"thousands": "."},
        {"sep": "ab"},
        {"encoding": "klingon"},
    ):
        with pytest.raises(ColumnError, match=next(iter(wrong))):
            Dialect(**wrong)


def test_the_dialect_is_kept_with_the_model():
    rows = {"a": [f"{x:.3f}".replace(".", ",") for x in X], "y": Y}
    columns = choose(pa.table(rows), ColumnOptions("y", dialect=Dialect(decimal=",", sep=";")))
    again = Columns.from_json(columns.to_json())
    assert again == columns
    assert again.dialect == Dialect(sep=";", decimal=",")
    np.testing.assert_array_equal(
        again.positions(pa.table({"a": ["0,5"]})).X, again.positions(pa.table({"a": [0.5]})).X
    )
    for damaged in ({"decimal": 5}, {"header": "yes"}, {"colour": "red"}, {"thousands": "."}):
        with pytest.raises((ValueError, TypeError)):
            Columns.from_json({**columns.to_json(), "dialect": damaged})
    without = {key: value for key, value in columns.to_json().items() if key != "dialect"}
    with pytest.raises(KeyError):
        Columns.from_json(without)


# Integers, lists, indices and many categories


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64(), pa.string()])
def test_integers_that_float64_would_round_are_refused(kind):
    ids = pa.array([str(2**60 + i) for i in range(N)]).cast(kind)
    columns, table = chosen(ids)
    why = "is beyond 2[*][*]53, so that float64 cannot represent it"
    assert len(columns.positions(table).problems) == N
    with pytest.raises(ValueError, match=why):
        FrameModel.from_rows(table, "y")
    assert len(chosen(ids, categories=("a",))[0].features[0].categories) == N
    assert as_plain(pa.array([2**53, -(2**53)]), "a").to_pylist() == [2.0**53, -(2.0**53)]
    with pytest.raises(ColumnError, match="integers beyond"):
        as_plain(pa.array([[2**53 + 1]]), "a")


@pytest.mark.parametrize("kind", [pa.list_(pa.int32()), pa.list_(pa.float64(), 3)])
def test_lists_of_numbers_are_one_feature_for_each_position(kind):
    lists = pa.array([[i, 2 * i, 5] for i in range(N)]).cast(kind)
    columns, table = chosen(lists, scaling="none")
    assert columns.features[0].width == 3
    assert columns.positions(table).X.tolist() == [[i, 2 * i, 5] for i in range(N)]
    assert "a (a list of 3)" in describe(columns)[1]
    assert Columns.from_json(columns.to_json()) == columns
    odd = columns.positions(pa.table({"a": [[1.0, 2, 3], [1.0], [1.0, None, 3], None]})).problems
    assert "has [1.0], which is not a list of 3 numbers" in str(odd[1])
    assert [odd[row].missing for row in (1, 2, 3)] == [False, True, True]
    filled, table = chosen(lists, missing="mean", scaling="none")
    assert filled.positions(
        pa.table({"a": [None]}).cast(table.select(["a"]).schema)
    ).X.tolist() == [[(N - 1) / 2, N - 1, 5]]
    with pytest.raises(ColumnError, match="lists, which cannot be predicted"):
        choose(table, ColumnOptions("a", features=("y",)))


def test_one_scale_serves_all_positions_of_a_list():
    columns, table = chosen([[float(i), 1000.0] for i in range(N)])
    positions = columns.positions(table).X
    assert np.ptp(positions[:, 0]) < 0.2
    assert abs(positions.mean()) < 1e-6
    assert positions.std() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("values", [range(7, 7 + N), RNG.permutation(N), range(2 * N, N, -1)])
def test_what_looks_like_a_row_number_is_told(values):
    columns, table = chosen(np.array(list(values)))
    assert "'a' looks like a row number" in warnings_about(columns, table)[0]


@pytest.mark.parametrize("values", [X, RNG.integers(0, 50, N), RNG.permutation(N) * 10])
def test_other_numbers_are_no_row_numbers(values):
    columns, table = chosen(values)
    assert warnings_about(columns, table) == []


def test_the_index_of_a_pandas_frame_is_no_feature():
    frame = pd.DataFrame({"a": X, "y": Y}).sample(frac=1, random_state=0)
    table = pa.Table.from_pandas(frame)
    assert "__index_level_0__" in table.column_names
    assert [f.name for f in choose(table, ColumnOptions("y")).features] == ["a"]
    named = ColumnOptions("y", features=("__index_level_0__",))
    assert [f.name for f in choose(table, named).features] == ["__index_level_0__"]


def test_rare_categories_beyond_the_most_frequent_are_one():
    n = MOST_CATEGORIES + 50
    values = [f"v{i}" for i in range(n)] + [f"v{i}" for i in range(10, n)]
    table = pa.table({"a": values, "y": [i % 2 for i in range(len(values))]})
    columns = choose(table, ColumnOptions("y", missing="mean"))
    (feature,) = columns.features
    assert (len(feature.categories), feature.other, feature.width) == (
        MOST_CATEGORIES,
        True,
        MOST_CATEGORIES + 1,
    )
    assert "v0" not in feature.categories
    assert sum(feature.mean) == pytest.approx(1)
    positions = columns.positions(pa.table({"a": ["v0", "new", feature.categories[0], None]}))
    assert positions.X[:2, -1].tolist() == [1, 1]
    assert positions.X[2, 0] == 1
    assert positions.X.sum(axis=1) == pytest.approx([1, 1, 1, 1])
    assert not positions.unseen.any()
    assert Columns.from_json(columns.to_json()) == columns
    assert f"a ({MOST_CATEGORIES} and other)" in describe(columns)[1]
    assert f"{n} categories, and only the" in warnings_about(columns, table)[0]
    with pytest.raises(ValueError, match="neither true nor false"):
        Feature.from_json({**feature.to_json(), "other": 1})


# Names


def test_a_name_that_is_nearly_right_is_offered():
    with pytest.raises(ColumnError, match="no column 'digits'; did you mean 'digit'"):
        ColumnOptions("digits").check(["pixel0", "digit"])
    with pytest.raises(ColumnError, match="did you mean ' Size'"):
        ColumnOptions("size").check(["label", " Size"])


def test_a_long_list_of_columns_shows_both_ends():
    names = [f"pixel{i}" for i in range(784)]
    with pytest.raises(ColumnError, match=r"pixel0, .*, \.\.\. .*, pixel783 \(784 in all\)"):
        ColumnOptions("zzz").check(names)
    with pytest.raises(ColumnError, match="--no-header"):
        ColumnOptions("y").check(["5.1", "3.5", "1.4", "setosa"])
