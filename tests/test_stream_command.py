"""``boundary-forest stream``, ``fit`` and ``predict``: what they write, and how they refuse."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from stream_rows import answered, command, mixed_table, numbers_table, stream, write

from boundary_forest import load
from boundary_forest.frames import FrameModel


@pytest.fixture
def rows(tmp_path):
    return write(mixed_table(), tmp_path / "rows.csv")


def test_it_tells_what_was_decided_and_what_it_came_to(told, rows, tmp_path):
    report, model = tmp_path / "report.html", tmp_path / "model.bf"
    arguments = ("--target", "label", "--report", report, "--save", model, "--trees", 8)
    code, out, error = told("stream", rows, *arguments)
    assert (code, error) == (0, "")
    assert "classify 'label': text" in out
    assert "2 columns one-hot encoded: text (3), flag (2)" in out
    assert "600 in" in out
    assert all(character == "\n" or character.isprintable() for character in out)
    assert "<html" in report.read_text(encoding="utf-8").lower()
    assert load(model).stats()["examples_seen"] == 600


def test_reports_can_be_json(told, rows):
    _, out, _ = told("stream", rows, "--target", "label", "--json")
    last = json.loads(out.splitlines()[-1])
    assert last["event"] == "end"
    assert last["rows"] == last["learned"] == 600
    assert 0 < last["error"] < 0.5
    assert last["choices"][0] == "classify 'label': text"


def test_answers_have_ids_and_can_be_csv(told, tmp_path):
    table = numbers_table(50).append_column("name", pa.array([f"n{i}" for i in range(50)]))
    answers = tmp_path / "answers.csv"
    source = write(table, tmp_path / "rows.parquet")
    told("stream", source, "--target", "y", "--id", "name", "--predictions", answers)
    frame = pd.read_csv(answers)
    assert frame.columns.tolist() == ["row", "id", "answer", "confidence", "error"]
    assert frame["id"].tolist() == [f"n{i}" for i in range(50)]
    assert frame["answer"].notna().sum() == 49


def test_a_saved_model_answers_raw_frames(rows, tmp_path):
    _, _, model = stream(rows, "label", tmp_path)
    frame = mixed_table(50, seed=1).to_pandas()
    assert isinstance(model, FrameModel)
    answers = model.predict(frame)
    assert (answers == frame["label"]).mean() > 0.8
    assert model.predict(frame.to_dict("records")).tolist() == answers.tolist()
    assert model.predict(pa.Table.from_pandas(frame)).tolist() == answers.tolist()
    assert model.predict_proba(frame).argmax(axis=1).tolist() == [
        model.classes_.tolist().index(answer) for answer in answers
    ]


def test_going_on_from_a_model_is_as_if_it_had_not_stopped(rows, tmp_path):
    whole = stream(rows, "label", tmp_path)[2]
    first = write(mixed_table().slice(0, 350), tmp_path / "first.csv")
    rest = write(mixed_table().slice(350), tmp_path / "rest.csv")
    half = stream(first, "label", tmp_path)[2]
    half.save(tmp_path / "half.bf")
    _, answers, both = stream(rest, None, tmp_path, load=tmp_path / "half.bf")
    assert both.fingerprint() == whole.fingerprint()
    assert answers[0]["answer"] is not None


def test_fit_learns_what_stream_learns_and_predict_answers(told, rows, tmp_path):
    expected = stream(rows, "label", tmp_path)[2]
    arguments = ("--target", "label", "--save", tmp_path / "fit.bf", "--trees", 8, "--warmup", 100)
    code, _, error = told("fit", rows, *arguments)
    assert (code, error) == (0, "")
    assert load(tmp_path / "fit.bf").fingerprint() == expected.fingerprint()
    more = mixed_table(30, seed=2).drop_columns("label")
    code, out, error = told("predict", tmp_path / "fit.bf", write(more, tmp_path / "more.ndjson"))
    assert (code, error) == (0, "")
    answers = [json.loads(line)["answer"] for line in out.splitlines()]
    assert answers == expected.predict(more).tolist()


def test_predict_learns_nothing_and_says_so(told, rows, tmp_path):
    expected = stream(rows, "label", tmp_path)[2]
    more = mixed_table(30, seed=2)
    options = ("--predictions", tmp_path / "answers.csv")
    source = write(more, tmp_path / "more.csv")
    code, out, error = told("predict", tmp_path / "model.bf", source, *options, "--json")
    assert (code, error) == (0, "")
    last = json.loads(out.splitlines()[-1])
    assert (last["rows"], last["learned"]) == (30, 0)
    right = expected.predict(more) == np.array(more["label"].to_pylist())
    assert last["accuracy"] == pytest.approx(right.mean())
    assert told("predict", tmp_path / "model.bf", source, *options) == (0, "", "")


def test_info_and_verify_know_what_it_saved(told, rows, tmp_path):
    stream(rows, "label", tmp_path)
    assert told("verify", tmp_path / "model.bf")[0] == 0
    code, out, _ = told("info", tmp_path / "model.bf")
    assert code == 0
    assert "classify 'label': text" in out


@pytest.mark.parametrize(
    ("contents", "arguments", "why"),
    [
        (None, ("--target", "y"), "No such file"),
        ("", ("--target", "y"), "is empty"),
        ("a,y\n", ("--target", "y"), "has no rows"),
        ("a,y\n1,2\n", (), "target (the column to predict) is required; the columns are a, y"),
        ("a,y\n1,2\n", ("--target", "z"), "there is no column 'z'; the columns are a, y"),
        ("a,y\n1,2\n", ("--target", "y", "--drop", "b"), "there is no column 'b'"),
        ("a,a\n1,2\n", ("--target", "a"), "two columns are named 'a'"),
        (
            "a,y\n1,2\n",
            ("--target", "y", "--drop", "a"),
            "no column is left to predict 'y' from: all",
        ),
        ("a,y\n1,\n2,\n", ("--target", "y"), "the task cannot be inferred"),
        ("a,y\n1,u\n", ("--target", "y", "--task", "regress"), "regression requires numbers"),
        (
            "a,b,y\n1,2,3\n4,,5\n",
            ("--target", "y"),
            "row 2: column 'b' has no value ('' counts as missing) (use --missing",
        ),
        ("a,y\n1,2\n3\n", ("--target", "y"), "row 2: it has 1 values instead of 2"),
        ("a,y\n1,2\n", ("--target", "y", "--save", "no/model.bf"), "/no does not exist"),
        ("a,y\n1,2\n", ("--target", "y", "--load", "rows.csv"), "not a safetensors file"),
        (b"\x00\x01\xff" * 999, ("--target", "y"), "is neither UTF-8 text"),
        (b"PAR1" + b"x" * 99, ("--target", "y"), "Parquet magic bytes"),
        (b"\x1f\x8b" + b"x" * 99, ("--target", "y"), "is damaged"),
        (b"PK\x03\x04" + b"x" * 99, ("--target", "y"), "not a zip file"),
        (b"ARROW1" + b"x" * 99, ("--target", "y"), "rows.csv"),
    ],
)
def test_usage_errors_print_one_line_and_exit_with_2(
    told, tmp_path, monkeypatch, contents, arguments, why
):
    monkeypatch.chdir(tmp_path)
    if contents is not None:
        data = contents if isinstance(contents, bytes) else contents.encode()
        (tmp_path / "rows.csv").write_bytes(data)
    code, out, error = told("stream", "rows.csv", *arguments)
    assert (code, out) == (2, "")
    assert why in error
    assert error.startswith("boundary-forest: ")
    assert error.count("\n") == 1


def test_an_empty_standard_input_is_one_line_and_exit_code_2():
    told = command("stream", "-", "--target", "y", input="")
    assert (told.returncode, told.stdout) == (2, "")
    assert told.stderr == "boundary-forest: standard input was empty\n"


def test_when_all_rows_are_bad_it_says_so(told, tmp_path):
    (tmp_path / "rows.csv").write_text("a,y\n" + ",1\n" * 9)
    code, _, error = told("stream", tmp_path / "rows.csv", "--target", "y", "--on-error", "skip")
    assert code == 2
    last = error.splitlines()[-1]
    assert "all 9 rows were skipped; row 1: it has no values" in last
    assert len(error.splitlines()) == 7  # five rows, that there are more, and this


def test_bad_rows_can_be_skipped(told, tmp_path):
    good = "".join(f"{i},{i % 2}\n" for i in range(300))
    (tmp_path / "rows.csv").write_text("a,y\n" + good + "oops,1\n7\n8,1\n9,x\n")
    answers = tmp_path / "answers.ndjson"
    arguments = ("--target", "y", "--warmup", 50, "--predictions", answers)
    code, _, error = told("stream", tmp_path / "rows.csv", *arguments)
    assert code == 2
    assert "row 301: column 'a' has 'oops', which is not a number" in error
    assert len(answered(answers)) == 301
    code, out, error = told("stream", tmp_path / "rows.csv", *arguments, "--on-error", "skip")
    assert code == 0
    assert "3 bad" in out
    assert error.count("is skipped") == 3
    last = answered(answers)[-4:]
    assert [("error" in record) for record in last] == [True, True, False, True]


def test_missing_values_can_be_dropped_or_the_mean(told, tmp_path):
    lines = [f"{i % 5},{'' if i % 10 == 3 else i},{i % 2}\n" for i in range(200)]
    (tmp_path / "rows.csv").write_text("a,b,y\n" + "".join(lines))
    for missing, learned in (("drop", 180), ("mean", 200)):
        _, out, _ = told(
            "stream", tmp_path / "rows.csv", "--target", "y", "--missing", missing, "--json"
        )
        assert json.loads(out.splitlines()[-1])["learned"] == learned


def test_a_constant_target_and_very_many_classes_warn_and_go_on(told, tmp_path):
    (tmp_path / "same.csv").write_text("a,y\n" + "".join(f"{i},5\n" for i in range(20)))
    code, _, error = told("stream", tmp_path / "same.csv", "--target", "y")
    assert code == 0
    assert "has only one value" in error
    names = "".join(f"{i},name{i}\n" for i in range(300))
    (tmp_path / "many.csv").write_text("a,y\n" + names)
    code, _, error = told("stream", tmp_path / "many.csv", "--target", "y")
    assert code == 0
    assert "300 classes" in error


def test_unlike_options_of_a_model_that_there_is_are_refused(told, rows, tmp_path):
    stream(rows, "label", tmp_path)
    model = tmp_path / "model.bf"
    for option, value, why in (
        ("--target", "x", "was created with target 'label', which cannot be changed to 'x'"),
        (
            "--scale",
            "none",
            "was created with scaling 'standard', which cannot be changed to 'none'",
        ),
        ("--trees", "9", "was created with n_estimators=8, which cannot be changed to 9"),
    ):
        code, _, error = told("stream", rows, "--load", model, option, value)
        assert code == 2
        assert why in error


def test_regression_has_residuals_in_its_report(told, tmp_path):
    report = tmp_path / "report.html"
    source = write(numbers_table(), tmp_path / "rows.parquet")
    code, out, _ = told("stream", source, "--target", "y", "--report", report, "--warmup", 50)
    assert code == 0
    assert "R2" in out
    assert report.stat().st_size > 10_000


def test_integers_that_turn_fractional_in_a_target_do_not_change_the_answers_before(tmp_path):
    values = [*range(40), *np.arange(40) + 0.5]
    table = pa.table({"a": np.arange(80.0), "y": pa.array(values, pa.float64())})
    _, answers, model = stream(write(table, tmp_path / "rows.csv"), "y", tmp_path)
    assert model.columns.task == "regress"
    assert len(answers) == 80
