"""What the options of the command line do, and what help says of them."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pytest
from stream_rows import SCRIPT, TREES, answered, job, mixed_table, numbers_table, write

from boundary_forest import BoundaryForestClassifier, load
from boundary_forest.cli.job import run


@pytest.fixture
def wide(monkeypatch):
    """A terminal on which no line is broken."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setenv("TERM", "dumb")


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize("name", ["stream", "fit"])
def test_help_has_choices_defaults_and_metrics(told, name):
    text = " ".join(told(name, "--help")[1].split())
    for option, said in {
        "--task": "classify|regress",
        "--warmup": "[default: (1000)]",
        "--scale": "none|standard|minmax How numeric columns are scaled. [default: (standard)]",
        "--missing": "[default: (error)]",
        "--on-error": "stop|skip What to do with a bad row. [default: stop]",
        "--format": "csv|ndjson|parquet|arrow|libsvm|npz Format of the source. [default: (detec",
        "--trees": "[default: (100; 50 with --plain or another metric)]",
        "--children": "[default: (50)]",
        "--metric": "canberra, chebyshev, cosine, euclidean, hamming, l1, l2, manhattan.",
        "--epsilon": "[default: (auto)]",
        "--seed": "[default: (0)]",
        "--threads": "[default: 1]",
    }.items():
        begin = text.index(f"{option} ")
        end = re.search(r" --(?!plain)[a-z]", text[begin + 3 :])
        assert said in text[begin : begin + 3 + end.start()].replace("│ │ ", "")


@pytest.mark.usefixtures("wide")
def test_a_value_that_is_no_choice_is_refused_with_the_choices(told, tmp_path):
    source = write(numbers_table(50), tmp_path / "rows.csv")
    code, _, error = told("stream", source, "--target", "y", "--metric", "taxi")
    assert code == 2
    assert "must be one of angular, canberra, chebyshev, cosine" in error


def test_the_package_is_a_command_too():
    command = [sys.executable, "-m", "boundary_forest", "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, check=True)
    assert ended.stdout.startswith("boundary-forest ")


def test_shells_complete_options_and_their_values():
    env = {
        **os.environ,
        "_BOUNDARY_FOREST_COMPLETE": "complete_bash",
        "COMP_WORDS": "boundary-forest stream rows.csv --metric c",
        "COMP_CWORD": "4",
    }
    ended = subprocess.run([SCRIPT], env=env, capture_output=True, text=True, check=False)
    assert ended.stdout.split() == ["canberra", "chebyshev", "cosine"]


def test_predictions_have_the_share_of_every_class_on_request(tmp_path):
    source = write(mixed_table(300), tmp_path / "rows.csv")
    for name in ("answers.ndjson", "answers.csv"):
        options = {"target": "label", "quiet": True, "probabilities": True}
        run(job(source, predictions=str(tmp_path / name), **options))
    records = answered(tmp_path / "answers.ndjson")
    assert list(records[0]) == ["row", "answer", "confidence", "probabilities"]
    assert records[0]["probabilities"] is None  # nothing had been learned
    for record in records[1:]:
        shares = record["probabilities"]
        assert sum(shares.values()) == pytest.approx(1.0)
        assert shares[record["answer"]] == record["confidence"] == max(shares.values())
    assert records[-1]["probabilities"].keys() == {"red", "green", "blue"}
    with (tmp_path / "answers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [json.loads(row["probabilities"]) for row in rows] == [
        record["probabilities"] for record in records
    ]
    run(job(source, target="label", quiet=True, predictions=str(tmp_path / "plain.ndjson")))
    for record in records:
        del record["probabilities"]
    assert answered(tmp_path / "plain.ndjson") == records


def test_predict_has_shares_too_and_a_class_may_be_called_anything(told, tmp_path):
    names = np.array(["100 %", "%s \u00fc", 'a "b"'])[np.arange(200) % 3]
    table = pa.table({"a": np.arange(200) % 3, "kind": names})
    source, model = write(table, tmp_path / "rows.csv"), tmp_path / "model.bf"
    assert told("fit", source, "--target", "kind", "--save", model)[0] == 0
    _, out, _ = told("predict", model, source, "--probabilities")
    shares = json.loads(out.splitlines()[0])["probabilities"]
    assert shares.keys() == {"100 %", "%s \u00fc", 'a "b"'}
    assert shares["100 %"] > 0.99
    assert min(shares.values()) > 0  # a mixture rules nothing out


def test_numbers_have_no_shares(tmp_path):
    source, answers = write(numbers_table(200), tmp_path / "rows.csv"), tmp_path / "answers.ndjson"
    run(job(source, target="y", quiet=True, probabilities=True, predictions=str(answers)))
    assert {record["probabilities"] for record in answered(answers)} == {None}


def test_epsilon_is_that_of_the_regressor_and_implies_regression(told, tmp_path):
    table = numbers_table(300)
    table = table.set_column(3, "y", pa.array(np.round(10 * table["y"].to_numpy()).astype(int)))
    source, stored = write(table, tmp_path / "rows.csv"), {}
    for epsilon in ("0", "5", "auto"):
        model = tmp_path / "model.bf"
        options = ("--target", "y", "--save", model, "--epsilon", epsilon, "--plain")
        assert told("fit", source, *options)[0] == 0
        forest = load(model).forest
        assert forest.epsilon == (epsilon if epsilon == "auto" else float(epsilon))
        stored[epsilon] = forest.stats()["examples_stored"]
    assert stored["5"] < stored["auto"] <= stored["0"]


@pytest.mark.usefixtures("wide")
@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--epsilon", "-1"), "must be a number >= 0 or auto"),
        (("--epsilon", "x"), "must be a number >= 0 or auto"),
        (("--epsilon", "1", "--task", "classify"), "is for regression"),
    ],
)
def test_epsilons_that_make_no_sense_are_refused(told, tmp_path, options, said):
    source = write(numbers_table(50), tmp_path / "rows.csv")
    code, _, error = told("stream", source, "--target", "y", *options)
    assert code == 2
    assert said in error


def test_epsilon_does_not_fit_a_classifier_that_is_loaded(told, tmp_path):
    source, model = write(mixed_table(200), tmp_path / "rows.csv"), tmp_path / "model.bf"
    assert told("fit", source, "--target", "label", "--save", model)[0] == 0
    code, _, error = told("stream", source, "--load", model, "--epsilon", "1")
    assert code == 2
    assert "was created with epsilon=None, which cannot be changed to 1.0" in error


@pytest.mark.parametrize("warmup", [50, 1000])
def test_offline_fits_all_rows_at_once(told, tmp_path, warmup):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = (X[:, 0] + 0.3 * rng.normal(size=400) > 0).astype(int)
    table = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": y})
    source, model = write(table, tmp_path / "rows.csv"), tmp_path / "model.bf"
    options = ("--plain", "--scale", "none", "--warmup", warmup, "--trees", TREES["n_estimators"])
    code, out, error = told("fit", source, "--target", "y", "--save", model, "--offline", *options)
    assert code == 0, error
    assert "400 in" in out
    expected = BoundaryForestClassifier(**TREES, offline=True, random_state=0).fit(X, y)
    assert load(model).forest.fingerprint() == expected.fingerprint()


@pytest.mark.parametrize("option", ["--predictions", "--report"])
def test_a_full_disk_is_reported_with_the_file(told, tmp_path, option):
    if not os.path.exists("/dev/full"):
        pytest.skip("there is no /dev/full")
    source = write(mixed_table(200), tmp_path / "rows.csv")
    code, _, error = told("stream", source, "--target", "label", option, "/dev/full")
    assert code == 2
    assert error.splitlines()[-1] == "boundary-forest: /dev/full: No space left on device"
