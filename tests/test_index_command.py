"""``boundary-forest index`` and ``neighbors``: vectors of any format in, neighbours by id out."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from stream_rows import SCRIPT, write

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, load
from boundary_forest.cli import _command, index, neighbors
from boundary_forest.sources import binary_formats

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 6)).astype(np.float32)
QUERIES = RNG.normal(size=(30, 6)).astype(np.float32)
IDS = [f"v{i}" for i in range(len(X))]


def lists(rows, kind=None, fixed=False):
    kind = pa.float32() if kind is None else kind
    if fixed:
        return pa.FixedSizeListArray.from_arrays(pa.array(rows.ravel(), kind), rows.shape[1])
    return pa.array(rows.tolist(), pa.list_(kind))


def vectors(rows=X, ids=IDS, **options):
    titles = [f"row {i}" for i in range(len(rows))]
    return pa.table({"id": ids, "title": titles, "embedding": lists(rows, **options)})


def columns(rows, **more):
    return pa.table({**more, **{f"x{i}": rows[:, i] for i in range(rows.shape[1])}})


@pytest.fixture
def run(capsys):
    """Run a command in this process; return its exit code, and what it printed."""

    def run(name, *arguments):
        with pytest.raises(SystemExit) as end:
            _command(name).main([str(argument) for argument in arguments])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return run


def answers(text):
    return [json.loads(line) for line in text.splitlines()]


def true_neighbors(rows=X, queries=QUERIES, k=5):
    distances = np.linalg.norm(queries[:, None] - rows[None], axis=2)
    return np.argsort(distances, axis=1, kind="stable")[:, :k]


@pytest.mark.parametrize("name", ["v.parquet", "v.arrow", "v.ndjson"])
@pytest.mark.parametrize("fixed", [False, True])
def test_neighbours_of_lists_are_told_by_id(run, tmp_path, name, fixed):
    source = write(vectors(fixed=fixed), tmp_path / name)
    queries = write(vectors(QUERIES, list(range(30)), fixed=fixed), tmp_path / f"q{name[1:]}")
    code, out, _ = run("index", source, "--id", "id", "--save", tmp_path / "index.bf")
    assert code == 0
    assert "400 with 6 float" in out
    assert "from 'embedding', with ids from 'id'" in out
    code, out, _ = run("neighbors", tmp_path / "index.bf", queries, "-k", 5, "--id", "id")
    assert code == 0
    said = answers(out)
    assert [list(record) for record in said] == [["row", "id", "neighbors", "distances"]] * 30
    assert [record["row"] for record in said] == list(range(1, 31))
    assert [record["id"] for record in said] == list(range(30))
    true = [[IDS[i] for i in row] for row in true_neighbors()]
    assert np.mean([r["neighbors"] == t for r, t in zip(said, true, strict=True)]) > 0.9  # seen: 1


def test_the_index_is_that_of_python(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    options = ("--metric", "cosine", "--beam", 40, "--n-estimators", 7, "--children", 9)
    run("index", source, "--id", "id", "--save", tmp_path / "index.bf", *options, "--seed", 3)
    same = BoundaryForestNeighbors(
        metric="cosine", beam=40, n_estimators=7, max_children=9, random_state=3
    )
    found = load(tmp_path / "index.bf")
    assert found.fingerprint() == same.fit(X, ids=IDS).fingerprint()
    assert found.beam == 40
    _, out, _ = run("neighbors", tmp_path / "index.bf", source, "-k", 3, "--beam", 8)
    assert [r["neighbors"] for r in answers(out)] == same.kneighbors(X, 3, beam=8)[1].tolist()


def test_exact_answers_are_the_true_neighbours(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    queries = write(vectors(QUERIES, list(range(30))), tmp_path / "q.parquet")
    run("index", source, "--save", tmp_path / "index.bf", "--trees", 1)
    _, out, _ = run("neighbors", tmp_path / "index.bf", queries, "-k", 5, "--exact")
    assert [r["neighbors"] for r in answers(out)] == true_neighbors().tolist()


def test_columns_of_numbers_are_positions_whatever_their_order(run, tmp_path):
    table = columns(X, id=pa.array(range(400)))
    source = write(table, tmp_path / "v.parquet")
    code, out, _ = run("index", source, "--id", "id", "--save", tmp_path / "index.bf")
    assert code == 0
    assert "400 with 6 float32 values each, from 6 columns" in out
    turned = columns(QUERIES).select([f"x{i}" for i in reversed(range(6))])
    for name in ("q.parquet", "q.csv"):
        queries = write(turned, tmp_path / name)
        _, out, _ = run("neighbors", tmp_path / "index.bf", queries, "-k", 5, "--exact")
        assert [r["neighbors"] for r in answers(out)] == true_neighbors().tolist()


def test_columns_can_be_named(run, tmp_path):
    table = vectors().append_column("other", lists(X[:, :2]))
    source = write(table, tmp_path / "v.parquet")
    code, _, err = run("index", source, "--save", tmp_path / "index.bf")
    assert code == 2
    assert "columns 'embedding', 'other' contain lists: choose the one" in err
    assert "--vector" in err
    code, out, _ = run("index", source, "--save", tmp_path / "index.bf", "--vector", "other")
    assert code == 0
    assert "with 2 float32 values each, from 'other', numbered from 0" in out
    # The index knows its column: two of lists are no question for the queries.
    code, out, _ = run("neighbors", tmp_path / "index.bf", source, "-k", 1)
    assert [r["neighbors"] for r in answers(out)] == [[i] for i in range(400)]


@pytest.mark.parametrize(
    ("kind", "kept"),
    [("float16", "float32"), ("float64", "float64"), ("uint8", "uint8"), ("int8", "float32")],
)
def test_numbers_are_kept_as_the_source_has_them(run, tmp_path, kind, kept):
    rows = RNG.integers(0, 9, size=(50, 4)).astype(kind)
    values = pa.array(rows.ravel())
    table = pa.table({"v": pa.FixedSizeListArray.from_arrays(values, 4)})
    source = tmp_path / "v.parquet"
    pa.parquet.write_table(table, source)
    code, out, _ = run("index", source, "--save", tmp_path / "index.bf")
    assert code == 0
    assert f"50 with 4 {kept} values each, from" in out


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_floats_are_rounded_on_request(run, tmp_path, dtype):
    source = write(
        vectors(RNG.normal(size=(50, 4)), IDS[:50], kind=pa.float64()), tmp_path / "v.arrow"
    )
    _, out, _ = run("index", source, "--save", tmp_path / "index.bf", "--dtype", dtype)
    assert f"50 with 4 {dtype}" in out


def test_bytes_stay_bytes_on_request(run, tmp_path):
    rows = RNG.integers(-128, 128, size=(50, 4))
    source = write(vectors(rows, IDS[:50], kind=pa.int64()), tmp_path / "v.arrow")
    code, out, _ = run("index", source, "--save", tmp_path / "index.bf", "--dtype", "int8")
    assert code == 0
    assert "50 with 4 int8" in out
    source = write(vectors(rows + 0.5, IDS[:50], kind=pa.float64()), tmp_path / "v.arrow")
    code, _, err = run("index", source, "--save", tmp_path / "other.bf", "--dtype", "int8")
    assert code != 0
    assert "int8" in err


def test_csv_has_a_line_per_neighbour(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    run("index", source, "--id", "id", "--save", tmp_path / "index.bf")
    out = tmp_path / "out.csv"
    code, printed, _ = run(
        "neighbors", tmp_path / "index.bf", source, "-k", 2, "--id", "id", "-o", out
    )
    assert (code, printed) == (0, "")
    with out.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 800
    assert lines[2] == {
        "row": "2", "id": "v1", "rank": "1", "neighbor": "v1", "distance": "0.0", "error": "",
    }  # fmt: skip


BAD = {
    "ragged": ([[1.0, 2.0], [1.0], [3.0, 4.0]], "row 2: column 'v' has 1 numbers instead of 2"),
    "null": ([[1.0, 2.0], None, [3.0, 4.0]], "row 2: column 'v' has no value"),
    "a null within": (
        [[1.0, 2.0], [1.0, None], [3.0, 4.0]],
        "row 2: column 'v' has a missing number",
    ),
    "NaN": ([[1.0, 2.0], [1.0, float("nan")], [3.0, 4.0]], "row 2: column 'v' contains NaN or inf"),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_row_is_named_or_left_out(run, tmp_path, case):
    rows, said = BAD[case]
    source = tmp_path / "v.parquet"
    pa.parquet.write_table(pa.table({"v": rows, "n": ["a", "b", "c"]}), source)
    code, _, err = run("index", source, "--save", tmp_path / "index.bf")
    assert code == 2
    assert said in err
    assert "--on-error skip" in err
    assert not (tmp_path / "index.bf").exists()
    options = ("--save", tmp_path / "index.bf", "--on-error", "skip", "--id", "n")
    code, out, err = run("index", source, *options)
    assert code == 0
    assert "2 with 2 float64" in out
    assert "1 row" in out
    assert "is skipped" in err
    code, out, _ = run("neighbors", tmp_path / "index.bf", source, "-k", 1, "--on-error", "skip")
    assert code == 0
    by_row = {record["row"]: record["neighbors"] for record in answers(out)}
    assert by_row == {1: ["a"], 2: None, 3: ["c"]}


def test_mistakes_are_told_in_one_line(run, tmp_path):
    path, source = tmp_path / "index.bf", write(vectors(), tmp_path / "v.parquet")

    def refused(name, *arguments):
        code, _, err = run(name, *arguments)
        assert code == 2
        assert err.count("\n") == 1
        return err

    save = ("--save", path)
    assert "there is no column 'key' for the ids; the columns are 'id', 'title', 'embedding'" in (
        refused("index", source, "--id", "key", *save)
    )
    assert "there is no column 'w'" in refused("index", source, "--vector", "w", *save)
    assert "contains lists of string" in refused(
        "index", write(pa.table({"v": [["a"], ["b"]]}), tmp_path / "t.parquet"), *save
    )
    assert "column 'a' is not a number" in refused(
        "index", write(pa.table({"a": ["x", "y"], "b": [1, 2]}), tmp_path / "t.parquet"), *save
    )
    twice = vectors(X[:3], ["a", "b", "a"])
    assert "rows 1 to 3: ids must be unique, but 'a' occurs 2 times" in refused(
        "index", write(twice, tmp_path / "t.parquet"), "--id", "id", *save
    )
    assert "row 2: it has no id: column 'id' has no value" in refused(
        "index", write(vectors(X[:2], ["a", None]), tmp_path / "t.parquet"), "--id", "id", *save
    )
    assert "ids must be integers or text" in refused(
        "index", write(vectors(X[:2], [0.5, 1.5]), tmp_path / "t.parquet"), "--id", "id", *save
    )
    assert "v.parquet: this file is the source" in refused("index", source, "--save", source)
    assert "No such file" in refused("index", tmp_path / "none.parquet", *save)
    empty = write(vectors(X[:0], pa.array([], pa.string())), tmp_path / "t.parquet")
    assert "has no rows to index" in refused("index", empty, *save)
    np.savez(tmp_path / "v.npz", X=X, key=np.arange(400))
    assert "requires --id" in refused("index", tmp_path / "v.npz", *save)
    assert not path.exists()

    run("index", source, *save)
    narrow = write(vectors(X[:2, :4], ["a", "b"]), tmp_path / "q.parquet")
    assert "contains lists of 4 numbers, but vectors have 6" in refused("neighbors", path, narrow)
    few = write(columns(X[:2, :4]), tmp_path / "q2.parquet")
    assert "vectors have 6 numbers, but 4 columns are given" in refused("neighbors", path, few)
    assert "-k must be between 1 and 400, " in refused("neighbors", path, source, "-k", 401)
    assert "it is not a safetensors file" in refused("neighbors", source, source)
    assert "No such file" in refused("neighbors", tmp_path / "none.bf", source)
    BoundaryForestClassifier().fit(X, IDS).save(tmp_path / "model.bf")
    assert "is not an index but a BoundaryForestClassifier" in refused(
        "neighbors", tmp_path / "model.bf", source
    )
    BoundaryForestNeighbors().save(tmp_path / "model.bf")
    assert "is an empty index" in refused("neighbors", tmp_path / "model.bf", source)
    assert "this file is an input" in refused("neighbors", path, source, "--output", path)


def test_an_index_saved_from_python_is_searched_too(run, tmp_path):
    BoundaryForestNeighbors(random_state=0).fit(X, ids=IDS).save(tmp_path / "index.bf")
    source = write(vectors(), tmp_path / "v.parquet")
    code, out, _ = run("neighbors", tmp_path / "index.bf", source, "-k", 1)
    assert code == 0
    assert [r["neighbors"] for r in answers(out)] == [[name] for name in IDS]


def test_an_index_of_a_frame_finds_its_columns_by_name(run, tmp_path):
    frame = pd.DataFrame(X, columns=list("abcdef"))
    BoundaryForestNeighbors(random_state=0).fit(frame).save(tmp_path / "index.bf")
    turned = pa.table({name: frame[name].to_numpy() for name in "fedcba"})
    queries = write(turned, tmp_path / "q.parquet")
    code, out, err = run("neighbors", tmp_path / "index.bf", queries, "-k", 1)
    assert (code, err) == (0, "")
    assert [r["neighbors"] for r in answers(out)] == [[i] for i in range(400)]


def test_an_index_is_a_model_file(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    run("index", source, "--id", "id", "--save", tmp_path / "index.bf")
    assert run("verify", tmp_path / "index.bf")[0] == 0
    assert "400 seen, 400 stored, with ids" in run("info", tmp_path / "index.bf")[1]
    assert isinstance(load(tmp_path / "index.bf"), BoundaryForestNeighbors)


def test_progress_is_json_on_request(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    _, out, _ = run("index", source, "--save", tmp_path / "index.bf", "--json")
    (last,) = answers(out)
    assert (last["event"], last["rows"], last["indexed"], last["left_out"]) == ("end", 400, 400, 0)


def test_queries_come_through_a_pipe_and_readers_may_leave(tmp_path):
    saved = tmp_path / "index.bf"
    BoundaryForestNeighbors(random_state=0).fit(X, ids=IDS).save(saved)
    queries = write(vectors(), tmp_path / "q.ndjson").read_text()
    ended = subprocess.run(
        [SCRIPT, "neighbors", saved, "-", "-k", "1"],
        input=queries, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [r["neighbors"] for r in answers(ended.stdout)] == [[name] for name in IDS]
    many = write(vectors(np.repeat(X, 10, axis=0), list(range(4000))), tmp_path / "m.parquet")
    piped = f"{SCRIPT} neighbors {saved} {many} -k 100 | head -1"
    ended = subprocess.run(["bash", "-c", piped], capture_output=True, text=True, check=True)
    assert len(answers(ended.stdout)) == 1
    assert ended.stderr == ""


def test_an_interrupted_index_holds_the_rows_so_far(run, tmp_path, monkeypatch):
    source, save = write(vectors(), tmp_path / "v.parquet"), tmp_path / "index.bf"
    add = index._Adding.add

    def interrupted(*arguments):
        add(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(binary_formats, "BATCH_ROWS", 100)
    monkeypatch.setattr(index._Adding, "add", interrupted)
    code, out, _ = run("index", source, "--id", "id", "--save", save)
    assert code == 130
    assert "after row 100" in out
    assert load(save).n_samples_fit_ == 100


def test_an_interrupted_search_ends_with_what_it_has_answered(run, tmp_path, monkeypatch):
    neighbors_of = neighbors._neighbors_of
    BoundaryForestNeighbors(random_state=0).fit(X).save(tmp_path / "index.bf")
    source = write(vectors(), tmp_path / "v.parquet")

    def interrupted(*arguments, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return neighbors_of(*arguments, **options)

    monkeypatch.setattr(neighbors, "SEVERAL", 50)
    monkeypatch.setattr(neighbors, "_neighbors_of", interrupted)
    code, out, _ = run("neighbors", tmp_path / "index.bf", source)
    assert code == 130
    assert len(answers(out)) == 50


@pytest.mark.parametrize("name", ["out.ndjson", "out.csv"])
def test_a_search_that_is_refused_leaves_the_file_of_answers_alone(run, tmp_path, name):
    BoundaryForestNeighbors(random_state=0).fit(X).save(tmp_path / "index.bf")
    source = write(vectors(), tmp_path / "v.parquet")
    narrow = write(vectors(X[:2, :4], ["a", "b"]), tmp_path / "q.parquet")
    answered = tmp_path / name
    answered.write_text("of yesterday")
    for arguments in ((source, "-k", 401), (narrow,), (tmp_path / "none.parquet",)):
        code, _, _ = run("neighbors", tmp_path / "index.bf", *arguments, "-o", answered)
        assert code == 2
        assert answered.read_text() == "of yesterday"
    empty = write(vectors(X[:0], pa.array([], pa.string())), tmp_path / "e.parquet")
    assert run("neighbors", tmp_path / "index.bf", empty, "-o", answered)[0] == 0
    assert answered.read_text() == ("row,rank,neighbor,distance,error\n" if ".csv" in name else "")
