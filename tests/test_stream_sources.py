"""Rows are the same whichever format they come in, and however they are cut."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import dump_svmlight_file
from stream_rows import command, mixed_table, numbers_table, stream, write

from boundary_forest import load
from boundary_forest.frames.arrow_columns import as_plain
from boundary_forest.frames.column_kinds import as_numbers
from boundary_forest.session import StreamError
from boundary_forest.sources import open_source, text_blocks
from boundary_forest.sources.text_blocks import blocks_of


@pytest.fixture(scope="module")
def csv_run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("csv")
    return stream(write(mixed_table(), folder / "rows.csv"), "label", folder)


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.ndjson", "rows.parquet", "rows.feather"])
def test_every_format_gives_the_same_answers_and_the_same_forest(csv_run, name, tmp_path):
    code, answers, model = stream(write(mixed_table(), tmp_path / name), "label", tmp_path)
    assert code == csv_run[0] == 0
    assert answers == csv_run[1]
    assert model.fingerprint() == csv_run[2].fingerprint()


@pytest.mark.parametrize("name", ["rows.csv", "rows.ndjson"])
def test_a_pipe_gives_the_same_answers_and_the_same_forest(csv_run, name, tmp_path):
    rows = write(mixed_table(), tmp_path / name).read_bytes()
    model = tmp_path / "model.bf"
    arguments = ("--target", "label", "--trees", 8, "--warmup", 100, "--save", model)
    told = command("stream", "-", *arguments, "--predictions", "-", input=rows, text=False)
    assert told.returncode == 0, told.stderr
    assert load(model).fingerprint() == csv_run[2].fingerprint()
    assert len(told.stdout.splitlines()) == 600


@pytest.mark.parametrize("block", [200, 3000])
def test_how_a_file_is_cut_into_blocks_changes_nothing(csv_run, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    for name in ("rows.csv", "rows.ndjson"):
        _, answers, model = stream(write(mixed_table(), tmp_path / name), "label", tmp_path)
        assert answers == csv_run[1]
        assert model.fingerprint() == csv_run[2].fingerprint()


def test_libsvm_and_npz_give_the_same_forest_as_csv(tmp_path):
    table = numbers_table()
    X, y = np.column_stack([table[c].to_numpy() for c in "abc"]), table["y"].to_numpy()
    X, y = np.where(X < 0.2, 0, X).round(3), y.round(3)  # LIBSVM's writer keeps 16 digits
    plain = pa.table({"f1": X[:, 0], "f2": X[:, 1], "f3": X[:, 2], "target": y})
    expected = stream(write(plain, tmp_path / "rows.csv"), "target", tmp_path)[2]
    dump_svmlight_file(X, y, str(tmp_path / "rows.svm"), zero_based=False)
    np.savez(tmp_path / "rows.npz", X=X, y=y, other=np.zeros(3))
    libsvm = stream(tmp_path / "rows.svm", None, tmp_path)[2]
    npz = stream(tmp_path / "rows.npz", "y", tmp_path)[2]
    assert libsvm.fingerprint() == npz.fingerprint() == expected.fingerprint()


def test_a_value_in_quotes_may_hold_line_ends_wherever_a_block_is_cut(tmp_path, monkeypatch):
    text = b'a,b\n1,"x\ny ""z""\n"\n2,w\n3,"last"\n'
    (tmp_path / "rows.csv").write_bytes(text)
    for size in range(1, len(text) + 1):
        monkeypatch.setattr(text_blocks, "BLOCK_BYTES", size)
        rows = [r for b in open_source(str(tmp_path / "rows.csv")).batches for r in _rows(b)]
        assert [(r["a"], r["b"]) for r in rows] == [
            ("1", 'x\ny "z"\n'),
            ("2", "w"),
            ("3", "last"),
        ]


def _rows(batch):
    return batch.table.to_pylist()


def test_the_last_line_may_lack_its_end(tmp_path):
    (tmp_path / "rows.csv").write_bytes(b"a,b\n1,2\n3,4")
    assert b"".join(blocks_of(str(tmp_path / "rows.csv"), quoted=True)).endswith(b"3,4\n")


def test_a_line_that_never_ends_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "LONGEST_LINE", 100)
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 64)
    (tmp_path / "rows.csv").write_bytes(b"a,b\n" + b'1,"' + b"x" * 500)
    with pytest.raises(StreamError, match="does not end"):
        list(open_source(str(tmp_path / "rows.csv")).batches)


@pytest.mark.parametrize("delimiter", ["\t", ";"])
def test_tabs_and_semicolons_separate_values_too(tmp_path, delimiter):
    (tmp_path / "rows.csv").write_text(f"a{delimiter}b\n1{delimiter}2\n")
    assert open_source(str(tmp_path / "rows.csv")).names == ["a", "b"]


def test_bad_lines_are_told_by_their_number(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n1,2\n3\n4,5\n6,7,8\n")
    (batch,) = open_source(str(tmp_path / "rows.csv")).batches
    assert batch.numbers.tolist() == [1, 3]
    assert list(batch.bad) == [2, 4]
    (tmp_path / "rows.ndjson").write_text('{"a": 1}\n[1]\n\n{"a": "x"}\n{"a"\n')
    (batch,) = open_source(str(tmp_path / "rows.ndjson")).batches
    assert batch.numbers.tolist() == [1, 3]
    assert list(batch.bad) == [2, 4]
    assert batch.table["a"].to_pylist() == ["1", "x"]
    (tmp_path / "rows.svm").write_text("1 1:2 2:3\nnonsense\n0 3:1\n")
    (batch,) = open_source(str(tmp_path / "rows.svm")).batches
    assert batch.numbers.tolist() == [1, 3]
    assert list(batch.bad) == [2]


def test_what_looks_like_a_time_stays_text(tmp_path):
    (tmp_path / "rows.ndjson").write_text('{"t": "2020-01-01", "a": 1}\n')
    (batch,) = open_source(str(tmp_path / "rows.ndjson")).batches
    assert batch.table["t"].to_pylist() == ["2020-01-01"]


def test_numbers_are_read_the_same_fast_and_slow(tmp_path):
    (tmp_path / "rows.csv").write_text("a,b\n 1.5,x\n,y\nNA,z\n1e3,\n0.1,w\n")
    slow = open_source(str(tmp_path / "rows.csv"))
    fast = open_source(str(tmp_path / "rows.csv"))
    fast.expect_numbers(["a"])
    (one,), (two,) = list(slow.batches), list(fast.batches)
    assert two.table["a"].type == pa.float64()
    numbers = [as_numbers(as_plain(batch.table["a"], "a"))[0] for batch in (one, two)]
    np.testing.assert_array_equal(*numbers)
    assert one.table["b"].to_pylist() == two.table["b"].to_pylist()


def test_a_number_that_is_none_is_found_though_it_was_expected(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\nabc\n")
    source = open_source(str(tmp_path / "rows.csv"))
    source.expect_numbers(["a"])
    (batch,) = source.batches
    assert batch.table["a"].to_pylist() == ["1", "abc"]
