"""A session takes rows, answers, learns and keeps what was learned, without any terminal."""

from __future__ import annotations

import ast
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from stream_rows import TREES, mixed_table, numbers_table, stream, write

import boundary_forest
from boundary_forest import load
from boundary_forest.session import (
    Answered,
    Decided,
    Refused,
    Session,
    SessionSettings,
    StreamError,
)
from boundary_forest.session.history import Pace, Throughput
from boundary_forest.sources import open_source

FOLDER = Path(boundary_forest.__file__).parent / "session"
CLASSIFIED = {"target": "label", "parameters": TREES, "warmup": 100}


def rows_of(table):
    return table.to_pylist()


def test_rows_one_by_one_as_a_service_gets_them_give_the_forest_of_a_stream(tmp_path):
    """Each row is answered when it comes; the answers and the forest are those of a file."""
    table = mixed_table(300)
    _, expected, model = stream(write(table, tmp_path / "rows.ndjson"), "label", tmp_path)
    answers, kinds = [], set()
    with Session(SessionSettings(**CLASSIFIED)) as session:
        for row in rows_of(table):
            events = session.take_rows([row])
            kinds |= {type(event) for event in events}
            (answered,) = [event for event in events if isinstance(event, Answered)]
            answers.append(None if answered.answers is None else answered.answers[0])
        assert session.model.fingerprint() == model.fingerprint()
        assert answers == [record["answer"] for record in expected]
        assert session.snapshot().rows == session.snapshot().learned == session.consumed == 300
        assert session.scores.wrong == sum(
            a is not None and a != row["label"]
            for a, row in zip(answers, rows_of(table), strict=True)
        )
    assert kinds == {Answered, Decided}


def test_a_service_gets_every_rows_fate_and_goes_on():
    with Session(SessionSettings(target="y", warmup=20)) as session:
        session.take_rows([{"a": i, "y": i % 2} for i in range(50)])
        events = session.take_rows([{"a": 1, "y": 1}, {"a": "x", "y": 0}, {"a": None}, {"a": 2}])
        assert [type(event) for event in events] == [Answered, Refused, Refused, Answered]
        assert [event.number for event in events[1:3]] == [52, 53]
        assert [event.missing for event in events[1:3]] == [False, True]
        assert events[3].y is None
        assert session.snapshot().bad == 2
        assert session.snapshot().unlabelled == 1
        assert session.consumed == 54


def test_frames_of_pandas_are_rows_too():
    frame = mixed_table(150).to_pandas()
    with Session(SessionSettings(**CLASSIFIED)) as session:
        session.take_rows(frame)
        (event,) = session.take_rows(frame.drop(columns="label").head(3))
        assert event.answers.tolist() == session.model.predict(frame.head(3)).tolist()
        assert isinstance(frame, pd.DataFrame)


def test_it_stops_between_two_events_when_its_shell_says_so():
    stopping = threading.Event()
    with Session(SessionSettings(**CLASSIFIED), stopped=stopping.is_set) as session:
        session.take_rows(mixed_table(200))
        stopping.set()
        assert len(session.take_rows(mixed_table(1000))) == 1
        assert 200 < session.consumed < 1200


def test_a_durable_session_is_resumed_where_it_was(tmp_path):
    table = mixed_table(400)
    settings = SessionSettings(**CLASSIFIED, durable=tmp_path / "kept")
    with Session(SessionSettings(**CLASSIFIED)) as plain:
        plain.take_rows(table)
        expected = plain.model.fingerprint()
    with Session(settings) as session:
        session.take_rows(table.slice(0, 250))
        session.checkpoint()
    with Session(settings) as session:
        assert session.is_resumed
        assert session.resumed == session.consumed == session.scores.rows == 250
        session.take_rows(table.slice(250))
        assert session.model.fingerprint() == expected
        assert session.scores.rows == 400
    with pytest.raises(
        StreamError, match="was created with n_estimators=8, which cannot be changed to 9"
    ):
        Session(
            SessionSettings(
                target="label", parameters={"n_estimators": 9}, durable=settings.durable
            )
        )
    Session(settings).close()  # the one that was refused has not kept the folder


def test_a_saved_session_is_continued_from_its_file(tmp_path):
    table, path = numbers_table(300), tmp_path / "model.bf"
    with Session(SessionSettings(target="y", warmup=50)) as session:
        assert not session.save(path)
        session.take_rows(table.slice(0, 200))
        assert session.save(path)
    with Session(SessionSettings(load=path)) as session:
        assert session.target == "y"
        session.take_rows(table.slice(200))
        assert session.model.stats()["examples_seen"] == 300
    assert load(path).stats()["examples_seen"] == 200


def test_a_session_needs_a_target_and_columns_that_exist():
    with pytest.raises(StreamError, match=r"target \(the column to predict\) is required"):
        Session(SessionSettings()).take_rows([{"a": 1}])
    with pytest.raises(ValueError, match="no column 'z'"):
        Session(SessionSettings(target="z")).begin(["a", "y"])
    with pytest.raises(StreamError, match="all others are dropped"):
        Session(SessionSettings(target="y", drop=("a",))).begin(["a", "y"])


@pytest.mark.parametrize("recording", [False, True])
def test_its_history_is_there_at_any_time(recording, tmp_path):
    source = open_source(str(write(mixed_table(500), tmp_path / "rows.parquet")))
    with Session(SessionSettings(**CLASSIFIED), name="mixed", recording=recording) as session:
        session.begin(source.names)
        for batch in source.batches:
            for _ in session.take(batch):
                history = session.history()
                assert history.snapshots[-1].rows == session.scores.rows
    assert history.snapshots[-1].source == "mixed"
    assert history.parameters["n_estimators"] == 8
    assert bool(history.confusion) == recording
    if recording:
        assert sum(history.confusion.values()) == session.scores.classified
        assert len(history.tree_depths) == 8


def test_the_code_of_sessions_knows_no_terminal_no_signal_and_no_exit_code():
    """import-linter holds what is imported; this holds what every module has at hand."""
    found = []
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                name = f"{node.value.id}.{node.attr}"
                if name in ("sys.stdout", "sys.stderr", "sys.exit", "os._exit", "os.kill"):
                    found.append((path.name, name))
            if isinstance(node, ast.Name) and node.id in ("print", "input", "SystemExit"):
                found.append((path.name, node.id))
    assert found == []


def test_it_can_be_imported_without_what_only_shells_have():
    script = """
import sys
for name in ("rich", "typer", "jinja2"):
    sys.modules.pop(name, None)
    sys.modules[name] = None
from boundary_forest.session import Session, SessionSettings
with Session(SessionSettings(target="y", warmup=2)) as session:
    session.take_rows([{"a": i, "y": "no" if i < 5 else "yes"} for i in range(10)])
    print(session.take_rows([{"a": 9}])[0].answers[0])
"""
    out = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=False
    )
    assert out.stdout.split() == ["yes"], out.stderr


def test_events_have_what_predict_proba_said_before_the_rows_were_learned():
    table = mixed_table(400)
    with (
        Session(SessionSettings(**CLASSIFIED)) as session,
        Session(SessionSettings(**CLASSIFIED)) as behind,
    ):
        session.take_rows(table.slice(0, 200))
        behind.take_rows(table.slice(0, 200))
        rows = rows_of(table.slice(200))
        events = session.take_rows(table.slice(200))
        confidence = np.concatenate([event.confidence for event in events])
        for row, sure in zip(rows, confidence, strict=True):
            before = behind.model.predict_proba([row])[0]
            behind.take_rows([row])
            assert sure == before.max()


def test_time_spent_waiting_does_not_count_in_the_speed(monkeypatch):
    now = 100.0
    monkeypatch.setattr("boundary_forest.session.history.time.monotonic", lambda: now)
    pace = Pace(50.0)
    throughput = Throughput(pace=pace)
    now, pace.waited = 102.0, 1.5
    found = throughput.at(100)
    assert (found["seconds"], found["rows_per_s"], found["pace"]) == (2.0, 200.0, 50.0)
