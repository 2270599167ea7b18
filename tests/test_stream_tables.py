"""What stream and fit learn with: the setting for tables, unless the paper's forest is wanted."""

from __future__ import annotations

import shutil

import numpy as np
import pyarrow as pa
import pytest
from stream_rows import write

from boundary_forest import load
from boundary_forest.estimators.adaptive import FOR_TABLES
from boundary_forest.estimators.forest_settings import ADAPTIVE_PARAMETERS
from boundary_forest.frames import FrameModel
from boundary_forest.session import Session, SessionSettings
from boundary_forest.sources.row_batch import StreamError


def useless_columns(n=2500, seed=0):
    """A class that follows from one of eight columns of very different scales."""
    X = np.random.default_rng(seed).normal(size=(n, 8))
    columns = {f"c{i}": X[:, i] * 10.0**i for i in range(8)}
    return pa.table({**columns, "y": np.where(X[:, 3] > 0, "high", "low")})


def adaptive(model):
    return {name: model.forest.get_params()[name] for name in ADAPTIVE_PARAMETERS}


def error_of(settings, table):
    with Session(settings) as session:
        session.take_rows(table)
        return session.scores.measures("classify")["error"]


@pytest.mark.parametrize("command", ["stream", "fit"])
def test_a_new_model_has_the_setting_for_tables(told, command, tmp_path):
    source, model = write(useless_columns(200), tmp_path / "rows.csv"), tmp_path / "model.bf"
    assert told(command, source, "--target", "y", "--save", model)[0] == 0
    parameters = load(model).forest.get_params()
    assert {name: parameters[name] for name in FOR_TABLES} == dict(FOR_TABLES)


@pytest.mark.parametrize("command", ["stream", "fit"])
@pytest.mark.parametrize("options", [("--plain",), ("--metric", "manhattan")])
def test_a_plain_forest_is_an_option_and_what_other_metrics_have(told, command, options, tmp_path):
    source, model = write(useless_columns(200), tmp_path / "rows.csv"), tmp_path / "model.bf"
    assert told(command, source, "--target", "y", "--save", model, *options)[0] == 0
    assert adaptive(load(model)) == ADAPTIVE_PARAMETERS
    assert load(model).forest.n_estimators == 50


@pytest.mark.parametrize("command", ["stream", "fit"])
def test_experts_are_mixed(told, command, tmp_path):
    source, model = write(useless_columns(600), tmp_path / "rows.csv"), tmp_path / "model.bf"
    report = ("--report", tmp_path / "report.html") if command == "stream" else ()
    options = ("--save", model, "--warmup", "100", *report)
    assert told(command, source, "--target", "y", *options)[0] == 0
    assert len(load(model).forest.mixture_) > 1


def test_useless_columns_cost_a_plain_forest_more():
    # Seen: 0.085 and 0.166, the warm-up included.
    tables = error_of(SessionSettings(target="y"), useless_columns())
    plain = error_of(SessionSettings(target="y", plain=True), useless_columns())
    assert tables < 0.1 < 0.14 < plain


def test_parameters_that_are_given_override_the_setting():
    given = SessionSettings(
        parameters={"n_estimators": 7, "weights": "uniform"}
    ).forest_parameters()
    assert given["n_estimators"] == 7
    assert given["weights"] == "uniform"
    assert given["max_samples"] == FOR_TABLES["max_samples"]


def a_plain_folder(folder, rows):
    with Session(SessionSettings(target="y", warmup=100, durable=folder, plain=True)) as session:
        session.take_rows(rows)
        session.checkpoint()
        return session.model.forest.get_params()


def test_a_folder_of_a_plain_forest_stays_plain_when_it_is_resumed(tmp_path):
    rows = useless_columns(600)
    before = a_plain_folder(tmp_path / "kept", rows.slice(0, 300))
    copy = shutil.copytree(tmp_path / "kept", tmp_path / "copy")
    prints = []
    for folder, plain in ((tmp_path / "kept", False), (copy, True)):
        with Session(SessionSettings(durable=folder, live=True, plain=plain)) as session:
            session.take_rows(rows.slice(300))
            assert session.model.forest.get_params() == before
            prints.append(session.model.fingerprint())
    assert prints[0] == prints[1]


def test_a_saved_plain_model_stays_plain_when_it_goes_on(tmp_path):
    model = FrameModel.from_rows(useless_columns(200), "y", random_state=0, **ADAPTIVE_PARAMETERS)
    model.save(tmp_path / "model.bf")
    with Session(SessionSettings(load=tmp_path / "model.bf")) as session:
        session.take_rows(useless_columns(100, seed=1))
        assert adaptive(session.model) == ADAPTIVE_PARAMETERS
        assert session.model.examples_seen == 300


def test_plain_contradicts_a_model_that_is_not(tmp_path):
    with Session(SessionSettings(target="y", warmup=50)) as session:
        session.take_rows(useless_columns(200))
        session.save(tmp_path / "model.bf")
    with pytest.raises(
        StreamError, match="was created with feature_weights=learned, which cannot be changed"
    ):
        Session(SessionSettings(load=tmp_path / "model.bf", plain=True))
