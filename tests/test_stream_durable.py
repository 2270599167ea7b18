"""A durable stream that is killed goes on where it stopped, and learns no row twice.

BOUNDARY_FOREST_KILLS=20 kills as many runs; few are enough to notice a mistake.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import time

import pyarrow as pa
import pytest
from stream_rows import SCRIPT, TREES, answered, job, mixed_table, stream, write

from boundary_forest import JournalError, load
from boundary_forest.cli.job import Run, run
from boundary_forest.durable import reserve
from boundary_forest.session import Session, SessionSettings

KILLS = int(os.environ.get("BOUNDARY_FOREST_KILLS", "4"))


def some_unlabelled(n: int) -> pa.Table:
    table = mixed_table(n)
    labels = [None if i % 5 == 4 else label for i, label in enumerate(table["label"].to_pylist())]
    return table.set_column(4, "label", pa.array(labels))


def test_kill_9_at_any_moment_and_the_same_command_again_gives_the_same_forest(tmp_path):
    source = write(some_unlabelled(6000), tmp_path / "rows.csv")
    expected = stream(source, "label", tmp_path)[2].fingerprint()
    model, answers = tmp_path / "durable.bf", tmp_path / "durable.ndjson"
    expected_answers = answered(tmp_path / "answers.ndjson")
    arguments = ["--target", "label", "--trees", "8", "--warmup", "100", "--save", str(model)]
    rng = random.Random(0)
    kills = finished = 0
    while kills < KILLS or not finished:
        folder = tmp_path / f"folder{finished}"
        command = [SCRIPT, "stream", source, *arguments, "--durable", folder, "--json"]
        command += ["--predictions", answers]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
            wait = 1.0 + rng.random() * 1.5
            deadline = time.monotonic() + wait
            while kills < KILLS and child.poll() is None and time.monotonic() < deadline:
                if (folder / "journal.sqlite-wal").exists():  # it is past its warm-up
                    time.sleep(rng.random() * 0.3)
                    break
                time.sleep(0.005)
            if kills < KILLS and child.poll() is None:
                child.send_signal(signal.SIGKILL)
                kills += 1
            out, error = child.communicate(timeout=60)
            if child.returncode == 0:
                last = json.loads(out.splitlines()[-1])
                assert (last["rows"], last["learned"], last["unlabelled"]) == (6000, 4800, 1200)
                assert load(model).fingerprint() == expected
                assert answered(answers) == expected_answers
                finished += 1
            else:
                assert child.returncode == -signal.SIGKILL, error


def durable(source, folder, **settings) -> int:
    settings = {"target": "label", "quiet": True, **settings}
    return run(job(source, durable=folder / "kept", **settings))


def test_a_run_that_is_stopped_goes_on_after_its_last_row(tmp_path, monkeypatch):
    source = write(some_unlabelled(900), tmp_path / "rows.csv")
    expected = stream(source, "label", tmp_path)[2].fingerprint()
    stop_after(monkeypatch, 6)
    answers = tmp_path / "answers.ndjson"
    assert durable(source, tmp_path, predictions=str(answers)) == 130
    n = len(answered(answers))
    assert 100 <= n < 900
    monkeypatch.undo()
    assert durable(source, tmp_path, predictions=str(answers), save=tmp_path / "model.bf") == 0
    assert [record["row"] for record in answered(answers)] == list(range(1, 901))
    assert load(tmp_path / "model.bf").fingerprint() == expected
    # Once more: there is nothing left to do.
    assert durable(source, tmp_path, predictions=str(answers)) == 0
    assert len(answered(answers)) == 900


def stop_after(monkeypatch, n_events: int) -> None:
    handle, seen = Run._handle, []

    def counting(self, session, event):
        handle(self, session, event)
        seen.append(event)
        if session.model is not None and len(seen) > 20 + n_events:
            self.stopped.signal = signal.SIGINT

    monkeypatch.setattr(Run, "_handle", counting)


def test_a_live_source_skips_nothing(tmp_path):
    table = mixed_table(400)
    first = write(table.slice(0, 250), tmp_path / "first.csv")
    rest = write(table.slice(250), tmp_path / "rest.csv")
    expected = stream(write(table, tmp_path / "rows.csv"), "label", tmp_path)[2].fingerprint()
    assert durable(first, tmp_path, live=True) == 0
    assert durable(rest, tmp_path, live=True, save=tmp_path / "model.bf") == 0
    assert load(tmp_path / "model.bf").fingerprint() == expected


def test_a_saved_model_can_become_durable(tmp_path):
    table = mixed_table(400)
    first = write(table.slice(0, 250), tmp_path / "first.csv")
    rest = write(table.slice(250), tmp_path / "rest.csv")
    expected = stream(write(table, tmp_path / "rows.csv"), "label", tmp_path)[2].fingerprint()
    stream(first, "label", tmp_path)
    begun = tmp_path / "begun.bf"
    (tmp_path / "model.bf").rename(begun)
    for _ in range(2):  # the second time it is all there already
        assert durable(rest, tmp_path, load=begun, save=tmp_path / "model.bf") == 0
    assert load(tmp_path / "model.bf").fingerprint() == expected


def test_a_folder_belongs_to_one_stream_from_before_its_warm_up(tmp_path):
    """Else both would decide and learn, and the second add its warm-up to the first one's rows."""
    settings = SessionSettings(
        target="label", durable=tmp_path / "kept", warmup=100, parameters=TREES
    )
    rows = mixed_table(150).to_pylist()
    with Session(settings) as first:
        first.take_rows(rows[:50])
        with pytest.raises(JournalError, match="already open"):
            Session(settings)
        first.take_rows(rows[50:])
        with pytest.raises(JournalError, match="already open"):
            Session(settings)
    with Session(settings) as second:
        second.take_rows(rows[second.resumed :])
        assert second.model.forest.examples_seen == 150
    with Session(
        SessionSettings(target="label", durable=tmp_path / "other", warmup=100)
    ) as stopped:
        stopped.take_rows(rows[:50])
    with reserve(tmp_path / "other"):  # it is free again, though there was no forest yet
        pass
