"""Files as people have them: other separators, encodings, line ends, decimal points, slips."""

from __future__ import annotations

import json

import numpy as np
import pytest
from stream_rows import command, job, stream

from boundary_forest import load
from boundary_forest.cli.job import run
from boundary_forest.cli.options import listed
from boundary_forest.frames.dialect import Dialect
from boundary_forest.session import Session, SessionSettings, StreamError
from boundary_forest.sources import open_source, text_blocks

ROWS = [(1.5, "ä", 0), (-2.25, "b", 1), (1e3, 'say "x,y"', 0)]


def text(sep=",", end="\n", header=True, point="."):
    """The rows as CSV."""
    first = [sep.join(("n", "t", "y"))] if header else []
    cells = [(str(n).replace(".", point), '"' + t.replace('"', '""') + '"', y) for n, t, y in ROWS]
    return end.join([*first, *(sep.join(map(str, row)) for row in cells), ""])


def rows_of(path, dialect=None):
    source = open_source(str(path), dialect=dialect or Dialect())
    return [tuple(row.values()) for batch in source.batches for row in batch.table.to_pylist()]


EXPECTED = [tuple(map(str, row)) for row in ROWS]


@pytest.mark.parametrize(
    ("content", "dialect"),
    [
        (text("|").encode(), {}),
        (text("~").encode(), {"sep": "~"}),
        (text(end="\r").encode(), {}),
        (text(end="\r\n").encode(), {}),
        (text().encode("utf-16"), {}),
        (text().encode("utf-16-le"), {"encoding": "utf-16-le"}),
        (text(end="\r").encode("utf-16"), {}),
        (text().encode("latin-1"), {"encoding": "latin-1"}),
        (text(header=False).encode(), {"header": False}),
    ],
)
@pytest.mark.parametrize("block", [7, 1 << 20])
def test_rows_are_the_same_in_every_dialect(content, dialect, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert rows_of(path, Dialect(**dialect)) == EXPECTED


def test_columns_without_a_header_are_numbered(tmp_path):
    (tmp_path / "rows.csv").write_text(text(header=False))
    source = open_source(str(tmp_path / "rows.csv"), dialect=Dialect(header=False))
    assert source.names == ["c1", "c2", "c3"]
    (tmp_path / "rows.csv").write_text("0.5,0.5,a\n1,2,b\n")
    with pytest.raises(StreamError, match=r"two columns are named '0\.5'"):
        open_source(str(tmp_path / "rows.csv"))


def test_text_in_another_encoding_is_told_how_to_be_read(tmp_path):
    (tmp_path / "rows.csv").write_bytes(text().encode("latin-1"))
    with pytest.raises(StreamError, match="set the encoding"):
        open_source(str(tmp_path / "rows.csv"))
    with pytest.raises(StreamError, match="not valid utf-16"):
        rows_of(tmp_path / "rows.csv", Dialect(encoding="utf-16-be"))
    (tmp_path / "late.csv").write_bytes(b"a,b\n" + b"1,2\n" * 30000 + b"3,\xe4\n")
    with pytest.raises(StreamError, match="set the encoding"):
        rows_of(tmp_path / "late.csv")


OBJECTS = [{"a": 1, "t": "[x]\n, {é"}, {"a": 2.5, "t": None}, {"t": 'q"', "a": 3}]


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("block", [5, 1 << 20])
def test_a_json_array_is_read_as_its_objects(indent, block, tmp_path, monkeypatch):
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", block)
    (tmp_path / "rows.json").write_text(json.dumps(OBJECTS, indent=indent, ensure_ascii=False))
    batches = list(open_source(str(tmp_path / "rows.json")).batches)
    rows = [row for batch in batches for row in batch.table.to_pylist()]
    assert [(float(r["a"]), r.get("t")) for r in rows] == [(o["a"], o["t"]) for o in OBJECTS]
    assert [n for batch in batches for n in batch.numbers.tolist()] == [1, 2, 3]


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[1, 2]", "must be a JSON array of objects"),
        ('[{"a": 1}', "unexpected"),
        ('[{"a": 1}] x', "unexpected"),
    ],
)
def test_what_is_no_array_of_objects_is_told(content, why, tmp_path):
    (tmp_path / "rows.json").write_text(content)
    with pytest.raises(StreamError, match=why):
        rows_of(tmp_path / "rows.json")


def test_a_json_array_comes_through_a_pipe(tmp_path):
    rows = json.dumps([{"a": i % 7, "y": "odd" if i % 2 else "even"} for i in range(50)])
    told = command("stream", "-", "--target", "y", "--json", input=rows)
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout.splitlines()[-1])["rows"] == 50


# What is said of a file is kept with the model


def table(n=300):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 2)).round(3)
    return x, np.where(x.sum(axis=1) > 0, "up", "down")


def german(path, n=300, header=True):
    """Semicolons and decimal commas, in Latin-1, without names of columns."""
    x, y = table(n)
    cells = [
        [*(str(v).replace(".", ",") for v in row), label] for row, label in zip(x, y, strict=True)
    ]
    first = ["größe;b;y"] if header else []
    path.write_text("\n".join([*first, *map(";".join, cells), ""]), encoding="latin-1")
    return path


GERMAN = Dialect(sep=";", encoding="latin-1", decimal=",", header=False)


def test_a_model_remembers_how_its_file_was_written(tmp_path):
    source = german(tmp_path / "rows.csv", header=False)
    code, _, model = stream(source, "c3", tmp_path, dialect=GERMAN)
    assert code == 0
    assert [f.kind for f in model.columns.features] == ["number", "number"]
    assert model.columns.dialect == GERMAN
    answers = tmp_path / "again.ndjson"
    again = job(source, load=tmp_path / "model.bf", learning=False, predictions=str(answers))
    assert run(again) == 0
    expected = model.predict([{"c1": a, "c2": b} for a, b in table()[0].tolist()])
    assert [json.loads(line)["answer"] for line in answers.read_text().splitlines()] == list(
        expected
    )
    english = tmp_path / "english.csv"
    english.write_text("c1,c2\n0.5,1.5\n")
    plain = Dialect(sep=",", header=True, decimal=".", encoding="utf-8")
    other = job(english, load=tmp_path / "model.bf", learning=False, dialect=plain)
    with Session(other.settings) as session:
        assert session.dialect == plain
    assert run(other) == 0


def test_a_durable_stream_goes_on_in_its_dialect(tmp_path):
    kept = tmp_path / "kept"
    first = german(tmp_path / "rows.csv", 200, header=False)
    assert run(job(first, target="c3", dialect=GERMAN, durable=kept)) == 0
    assert run(job(german(first, 300, header=False), durable=kept)) == 0
    whole = stream(first, "c3", tmp_path, dialect=GERMAN)[2]
    with Session(SessionSettings(durable=kept, live=True)) as session:
        assert session.model.fingerprint() == whole.fingerprint()


def test_the_kinds_of_an_existing_model_are_not_changed(tmp_path):
    source = german(tmp_path / "rows.csv")
    stream(source, "y", tmp_path, dialect=Dialect(encoding="latin-1", decimal=","))
    with pytest.raises(StreamError, match="column 'b' as number, which cannot be changed to text"):
        run(job(source, load=tmp_path / "model.bf", categories=("b",)))


# Slips


@pytest.mark.parametrize("at", [3, 40, 90, 200])
def test_a_slip_costs_its_row_and_not_its_column(at, tmp_path):
    x, y = table()
    cells = [[str(v) for v in row] for row in x]
    cells[at][0] = "abc"
    content = "\n".join(
        ["a,b,y", *(",".join([*c, label]) for c, label in zip(cells, y, strict=True))]
    )
    (tmp_path / "rows.csv").write_text(content + "\n")
    (tmp_path / "good.csv").write_text(
        "\n".join(line for line in content.split("\n") if "abc" not in line) + "\n"
    )
    with pytest.raises(
        StreamError, match=f"row {at + 1}: column 'a' has 'abc', .* or --categories a"
    ):
        run(job(tmp_path / "rows.csv", target="y"))
    _, answers, model = stream(tmp_path / "rows.csv", "y", tmp_path, on_error="skip")
    assert [f.kind for f in model.columns.features] == ["number", "number"]
    expected = stream(tmp_path / "good.csv", "y", tmp_path)[2]
    assert model.examples_seen == expected.examples_seen == len(x) - 1
    assert answers[at].get("error") or at == 3  # it was answered, when little was known


def test_a_column_that_turns_out_to_be_categories_becomes_that(tmp_path):
    """At first one value in many is no number; those that were refused still count."""
    n = 100
    codes = [*map(str, range(40)), *("A1", "B2") * 30]
    body = "\n".join(f"{code},{i % 2}" for i, code in enumerate(codes))
    (tmp_path / "rows.csv").write_text(f"a,y\n{body}\n")
    model = stream(tmp_path / "rows.csv", "y", tmp_path, on_error="skip", warmup=n)[2]
    assert model.columns.features[0].kind == "text"
    assert model.examples_seen >= n - 3


def test_predict_hints_at_no_option_that_it_lacks(tmp_path):
    x, y = table()
    rows = "a,b,y\n" + "".join(f"{a},{b},{c}\n" for (a, b), c in zip(x, y, strict=True))
    (tmp_path / "rows.csv").write_text(rows)
    (tmp_path / "hole.csv").write_text("a,b\n1,2\n,3\n")
    model = tmp_path / "model.bf"
    assert run(job(tmp_path / "rows.csv", target="y", save=model, predicting=False)) == 0
    with pytest.raises(StreamError, match="row 2: column 'a' has no value") as raised:
        run(job(tmp_path / "hole.csv", load=model, learning=False))
    assert "(use --on-error skip; only a model created with --missing" in str(raised.value)
    (tmp_path / "hole.csv").write_text("a,b,y\n1,2,up\n,3,up\n")
    with pytest.raises(
        StreamError, match="use --missing mean or --missing drop or --on-error skip"
    ):
        run(job(tmp_path / "hole.csv", target="y"))


def test_integers_that_would_be_rounded_are_found_after_the_warm_up_too(tmp_path):
    body = "".join(f"{i},{i % 2}\n" for i in range(150))
    (tmp_path / "rows.csv").write_text(f"a,y\n{body}9007199254740993,1\n")
    with pytest.raises(StreamError, match=r"row 151: .* is beyond 2"):
        run(job(tmp_path / "rows.csv", target="y"))


# Names


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["a, b,c"], ("a", "b", "c")),
        (["a", "b,"], ("a", "b")),
        (['" b","x,y",c d'], (" b", "x,y", "c d")),
        (['"say ""hi"""'], ('say "hi"',)),
    ],
)
def test_names_with_commas_and_spaces_can_be_given(given, names):
    assert listed(given) == names


def test_the_command_takes_all_of_it(told, tmp_path):
    source = german(tmp_path / "rows.csv")
    options = ("--encoding", "latin-1", "--decimal", ",", "--sep", ";", "--categories", "b")
    model = tmp_path / "model.bf"
    code, _, error = told("fit", source, "--target", "y", *options, "--save", model)
    assert code == 0, error
    assert [(f.name, f.kind) for f in load(model).columns.features] == [
        ("größe", "number"),
        ("b", "text"),
    ]
    assert told("fit", source, "--target", "y", "--decimal", ";", "--save", model)[0] == 2
