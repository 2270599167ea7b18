"""A durable stream that is resumed gives every answer once, of the source that it began with.

A process that is killed leaves what it has written; a machine that loses power leaves what was
synced, and anything after that. Here both are a run that ends in the middle and saves nothing.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from stream_rows import answered, job, mixed_table, stream, write

from boundary_forest import load
from boundary_forest.cli.job import Run, run
from boundary_forest.cli.prediction_file import PredictionFile
from boundary_forest.durable import DurableForest
from boundary_forest.session import Session, StreamError, stream_learner

ROWS = 1500
EVENTS = 25  # handled before the end; the warm-up has fewer


class LostPower(Exception):
    """The end of a process that has no time to save anything."""


def stream_durably(source, folder, **options) -> int:
    return run(job(source, target="label", quiet=True, durable=folder / "kept", **options))


def end_after(monkeypatch, n_events: int = EVENTS) -> list:
    """End the run after some events; return what was known to be on the disk, last of all."""
    handle, sync = Run._handle, PredictionFile.sync
    seen, synced = [], [None]

    def ending(self, session, event):
        handle(self, session, event)
        seen.append(event)
        if len(seen) == n_events:
            raise LostPower

    def noting(self):
        synced[0] = sync(self)
        return synced[0]

    monkeypatch.setattr(Run, "_handle", ending)
    monkeypatch.setattr(PredictionFile, "sync", noting)
    monkeypatch.setattr(Session, "checkpoint", lambda self: None)
    monkeypatch.setattr(stream_learner, "MOST_ROWS", 64)
    return synced


@pytest.fixture
def source(tmp_path) -> Path:
    return write(mixed_table(ROWS), tmp_path / "rows.csv")


@pytest.fixture(scope="module")
def expected(tmp_path_factory) -> tuple[list, str]:
    """What a run that is not interrupted answers, and its forest's fingerprint."""
    folder = tmp_path_factory.mktemp("whole")
    _, answers, model = stream(write(mixed_table(ROWS), folder / "rows.csv"), "label", folder)
    return answers, model.fingerprint()


@pytest.fixture
def ended(source, tmp_path, monkeypatch) -> Path:
    """The answers of a run that ended in the middle."""
    answers = tmp_path / "answers.ndjson"
    with monkeypatch.context() as patch:
        end_after(patch)
        with pytest.raises(LostPower):
            stream_durably(source, tmp_path, predictions=str(answers))
    assert 100 < len(answered(answers)) < ROWS
    return answers


def resumes_as(expected, source, folder, answers, **options) -> None:
    model = folder / "model.bf"
    assert stream_durably(source, folder, predictions=str(answers), save=model, **options) == 0
    assert answered(answers) == expected[0]
    assert load(model).fingerprint() == expected[1]


TAILS = {
    "all that was written": lambda whole, synced: whole,
    "what was synced": lambda whole, synced: whole[:synced],
    "a torn record": lambda whole, synced: whole[: (synced + len(whole)) // 2],
    "zeros in place of the rest": lambda whole, synced: whole[:synced] + bytes(len(whole) - synced),
    "zeros and a line end": lambda whole, synced: whole[:synced] + b"\0\0\0\n" + whole[synced:],
    "another order of blocks": lambda whole, synced: whole[:synced] + whole[-90:],
}


@pytest.mark.parametrize("tail", TAILS.values(), ids=TAILS.keys())
@pytest.mark.parametrize("n_events", [13, EVENTS])
def test_whatever_the_disk_has_after_what_was_synced_no_answer_is_missing(
    source, expected, tmp_path, monkeypatch, tail, n_events
):
    answers = tmp_path / "answers.ndjson"
    with monkeypatch.context() as patch:
        synced = end_after(patch, n_events)
        with pytest.raises(LostPower):
            stream_durably(source, tmp_path, predictions=str(answers))
    whole = answers.read_bytes()
    assert 0 < synced[0]["bytes"] < len(whole)
    answers.write_bytes(tail(whole, synced[0]["bytes"]))
    resumes_as(expected, source, tmp_path, answers)


def test_answers_that_could_not_be_written_are_given_again(source, expected, tmp_path, monkeypatch):
    answers = tmp_path / "answers.ndjson"
    with monkeypatch.context() as patch:
        patch.setattr(stream_learner, "MOST_ROWS", 64)
        add, seen = PredictionFile.add, []

        def full(self, rows):
            seen.append(rows)
            if len(seen) == EVENTS:
                raise OSError(28, "No space left on device")
            add(self, rows)

        patch.setattr(PredictionFile, "add", full)
        with pytest.raises(OSError, match="No space left"):
            stream_durably(source, tmp_path, predictions=str(answers))
    resumes_as(expected, source, tmp_path, answers)


def test_an_end_while_the_last_snapshot_is_saved_loses_no_row_and_learns_none_twice(
    source, expected, tmp_path, monkeypatch
):
    """The note of the end is on the disk then, but the snapshot is not."""
    answers = tmp_path / "answers.ndjson"

    def killed(self):
        raise LostPower

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(DurableForest, "snapshot", killed)
            with pytest.raises(LostPower):
                stream_durably(source, tmp_path, predictions=str(answers))
    resumes_as(expected, source, tmp_path, answers)


def test_a_snapshot_in_between_has_only_rows_whose_answers_were_delivered(
    source, expected, tmp_path, monkeypatch
):
    answers = tmp_path / "answers.ndjson"
    with monkeypatch.context() as patch:
        patch.setattr(stream_learner, "SNAPSHOT_BYTES", 1)
        checkpoint = Session.checkpoint
        end_after(patch)
        patch.setattr(Session, "checkpoint", checkpoint)
        with pytest.raises(LostPower):
            stream_durably(source, tmp_path, predictions=str(answers))
    resumes_as(expected, source, tmp_path, answers)


def other_value(table, row, column):
    values = table[column].to_pylist()
    values[row] = {"x": 7.5, "text": "plain!", "label": "yellow", "flag": not values[row]}[column]
    place = table.column_names.index(column)
    return table.set_column(place, column, pa.array(values))


CHANGED = {
    "a number in the warm-up": lambda table: other_value(table, 20, "x"),
    "a number later": lambda table: other_value(table, 150, "x"),
    "a text": lambda table: other_value(table, 150, "text"),
    "a boolean": lambda table: other_value(table, 150, "flag"),
    "a target": lambda table: other_value(table, 150, "label"),
    "a row less": lambda table: pa.concat_tables([table.slice(0, 120), table.slice(121)]),
    "a row more": lambda table: pa.concat_tables([table.slice(0, 1), table]),
    "another order": lambda table: pa.concat_tables([table.slice(60), table.slice(0, 60)]),
    "another source": lambda table: mixed_table(ROWS, seed=1),
    "too few rows": lambda table: table.slice(0, 110),
    "no rows": lambda table: table.slice(0, 0),
}


@pytest.mark.parametrize("change", CHANGED.values(), ids=CHANGED.keys())
def test_a_source_whose_rows_have_changed_is_refused(source, ended, expected, tmp_path, change):
    before = ended.read_bytes()
    write(change(mixed_table(ROWS)), source)
    with pytest.raises(StreamError, match="rows"):
        stream_durably(source, tmp_path, predictions=str(ended))
    assert len(ended.read_bytes()) <= len(before)
    write(mixed_table(ROWS), source)  # it can be resumed with the right one still
    resumes_as(expected, source, tmp_path, ended)


def test_later_rows_another_format_and_unused_columns_may_change(source, ended, expected, tmp_path):
    table = mixed_table(ROWS).append_column("more", pa.array(range(ROWS)))
    other = write(table.select(["label", *reversed(table.column_names[:4]), "more"]),
                  tmp_path / "rows.parquet")  # fmt: skip
    resumes_as(expected, other, tmp_path, ended)
    longer = pa.concat_tables([mixed_table(ROWS), mixed_table(50)])
    assert stream_durably(write(longer, source), tmp_path, predictions=str(ended)) == 0
    assert [record["row"] for record in answered(ended)] == list(range(1, ROWS + 51))


SPOILT = {
    "deleted": lambda path: path.unlink(),
    "another run's": lambda path: path.write_text('{"row": 1, "answer": "red"}\n' * 5000),
    "emptied": lambda path: path.write_text(""),
    "changed": lambda path: path.write_bytes(path.read_bytes().replace(b"red", b"der", 1)),
}


@pytest.mark.parametrize("spoil", SPOILT.values(), ids=SPOILT.keys())
def test_a_file_of_answers_that_is_not_the_runs_own_is_refused_and_left_alone(
    source, ended, expected, tmp_path, spoil
):
    own = ended.read_bytes()
    spoil(ended)
    before = ended.read_bytes() if ended.exists() else None
    with pytest.raises(
        StreamError, match=r"--predictions .*: this file (is missing|does not start)"
    ):
        stream_durably(source, tmp_path, predictions=str(ended))
    assert (ended.read_bytes() if ended.exists() else None) == before
    ended.write_bytes(own)
    resumes_as(expected, source, tmp_path, ended)


def test_a_run_that_wrote_no_answers_does_not_continue_anybodys_file(source, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        end_after(patch)
        with pytest.raises(LostPower):
            stream_durably(source, tmp_path)
    other = tmp_path / "other.ndjson"
    other.write_text("mine\n")
    with pytest.raises(StreamError, match="the interrupted run wrote no predictions"):
        stream_durably(source, tmp_path, predictions=str(other))
    assert other.read_text() == "mine\n"
    assert stream_durably(source, tmp_path, predictions=str(tmp_path / "new.ndjson")) == 0
    assert answered(tmp_path / "new.ndjson")[-1]["row"] == ROWS


def test_a_bad_row_that_ends_a_run_is_counted_once(source, tmp_path):
    lines = source.read_text().splitlines(keepends=True)
    bad = source.with_name("bad.csv")
    good = mixed_table(ROWS)
    write(pa.concat_tables([good.slice(0, 700), good.slice(0, 1), good.slice(700)]), bad)
    text = bad.read_text().splitlines(keepends=True)
    at = next(i for i, line in enumerate(text) if line not in lines or i > 900)
    text[at] = text[at].replace(text[at].split(",")[0], "seven", 1)
    bad.write_text("".join(text))
    for _ in range(2):
        with pytest.raises(StreamError, match="row"):
            stream_durably(bad, tmp_path)
    with Session(job(bad, target="label", durable=tmp_path / "kept").settings) as session:
        assert session.scores.rows == session.scores.learned == session.resumed
        assert session.scores.bad == 0
    assert stream_durably(bad, tmp_path, on_error="skip") == 0
    with Session(job(bad, target="label", durable=tmp_path / "kept").settings) as session:
        assert (session.scores.rows, session.scores.bad) == (ROWS + 1, 1)
