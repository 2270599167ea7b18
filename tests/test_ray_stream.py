"""A stream on a cluster: the same answers and the same model as in one process."""

from __future__ import annotations

import sys

import pytest
from sklearn.datasets import load_iris

import boundary_forest

X, Y = load_iris(return_X_y=True)


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "iris.csv"
    lines = [",".join(map(str, [*x, f"kind {y}"])) for x, y in zip(X, Y, strict=True)]
    path.write_text("a,b,c,d,kind\n" + "\n".join(lines[::7] + lines[3::7] + lines[5::7]) + "\n")
    return path


@pytest.mark.xdist_group("ray")
def test_a_stream_on_a_cluster_answers_as_one_in_a_process(rows, tmp_path, told, ray_cluster):
    said = {}
    for where in ([], ["--ray", "local"]):
        model, answers = tmp_path / f"model{len(where)}.bf", tmp_path / f"said{len(where)}.csv"
        options = ["--target", "kind", "--warmup", 20, "--trees", 6, "--save", model]
        options += ["--weights", "auto"]  # what a cluster has
        code, _, err = told("stream", rows, *options, "--predictions", answers, *where)
        assert code == 0, err
        said[len(where)] = answers.read_text(), boundary_forest.load(model).fingerprint()
    assert said[0] == said[2]


def test_a_durable_folder_is_refused(rows, tmp_path, told):
    code, _, err = told("stream", rows, "--target", "kind", "--ray", "local", "--durable", tmp_path)
    assert code == 2
    assert "cannot be combined with a cluster" in err


def test_without_ray_the_message_says_what_to_install(rows, told, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    code, _, err = told("stream", rows, "--target", "kind", "--ray", "local")
    assert code == 2
    assert "pip install 'ray[data]'" in err


def test_ray_is_imported_by_its_own_package_alone(told):
    import subprocess

    code = (
        "import sys, boundary_forest.session, boundary_forest.cli.stream, boundary_forest.durable\n"
        "sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
