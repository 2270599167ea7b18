"""Paths that cannot be read or written: a line that names them, exit code 1 or 2, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import time

import pytest
from stream_rows import SCRIPT, numbers_table, write

from boundary_forest.cli.terminal import is_same_path


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with rows, a model, an index, a folder, and a link that leads to itself."""
    folder = tmp_path_factory.mktemp("files")
    rows = write(numbers_table(40), folder / "rows.csv")
    for command in (
        ["fit", rows, "--target", "y", "--trees", "3", "--save", folder / "model.bf"],
        ["index", rows, "--save", folder / "index.bf"],
    ):
        subprocess.run([SCRIPT, *map(str, command)], check=True, capture_output=True)
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "folder").mkdir()
    return folder


INPUTS = {
    "stream": ["stream", "PATH", "--target", "y"],
    "fit": ["fit", "PATH", "--target", "y", "--save", "new.bf"],
    "predict": ["predict", "model.bf", "PATH"],
    "predict by": ["predict", "PATH", "rows.csv"],
    "load": ["stream", "rows.csv", "--target", "y", "--load", "PATH"],
    "index": ["index", "PATH", "--save", "new.bf"],
    "into": ["index", "rows.csv", "--into", "PATH"],
    "neighbors": ["neighbors", "index.bf", "PATH"],
    "neighbors in": ["neighbors", "PATH", "rows.csv"],
    "info": ["info", "PATH"],
    "verify": ["verify", "PATH"],
}
OUTPUTS = {
    "save": ["stream", "rows.csv", "--target", "y", "--save", "PATH"],
    "fit": ["fit", "rows.csv", "--target", "y", "--save", "PATH"],
    "report": ["stream", "rows.csv", "--target", "y", "--report", "PATH"],
    "predictions": ["stream", "rows.csv", "--target", "y", "--predictions", "PATH"],
    "predict": ["predict", "model.bf", "rows.csv", "--predictions", "PATH"],
    "index": ["index", "rows.csv", "--save", "PATH"],
    "neighbors": ["neighbors", "index.bf", "rows.csv", "--output", "PATH"],
}
FOLDERS = {
    "durable": ["stream", "rows.csv", "--target", "y", "--durable", "PATH"],
    "demo": ["demo", "--fast", "--out", "PATH"],
}
NEITHER = ["loop", "loop/x", "rows.csv/x", "x" * 300]
CASES = [
    *((arguments, path) for arguments in INPUTS.values() for path in [*NEITHER, "folder", "no/x"]),
    *((arguments, path) for arguments in OUTPUTS.values() for path in [*NEITHER, "folder", "no/x"]),
    *((arguments, path) for arguments in OUTPUTS.values() for path in ["/dev/full"]),
    *((arguments, path) for arguments in FOLDERS.values() for path in [*NEITHER, "/dev/full"]),
]


def refuses(told, arguments, path):
    code, _, error = told(*(path if word == "PATH" else word for word in arguments))
    assert code in (1, 2), error
    assert error.startswith("boundary-forest: "), error
    assert error.count("\n") == 1, error
    assert os.path.dirname(path) in error or os.path.basename(path) in error, error


@pytest.mark.parametrize(("arguments", "path"), CASES)
def test_a_path_that_cannot_be_used_gets_a_line(told, files, monkeypatch, arguments, path):
    monkeypatch.chdir(files)
    refuses(told, arguments, path)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read and write everything")
@pytest.mark.parametrize("arguments", [*INPUTS.values(), *OUTPUTS.values(), *FOLDERS.values()])
def test_a_path_without_permission_gets_a_line(told, files, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(files)
    secret = tmp_path / "secret"
    secret.write_bytes((files / "rows.csv").read_bytes())
    secret.chmod(0)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o555)
    refuses(told, arguments, str(secret if arguments in INPUTS.values() else locked / "x"))


def test_a_named_pipe_that_nobody_writes_to_can_be_left(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    command = [SCRIPT, "stream", pipe, "--target", "y"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        time.sleep(3)  # it has to be imported, and to wait
        process.send_signal(signal.SIGTERM)
        error = process.communicate(timeout=20)[1]
    assert process.returncode != 0
    assert "Traceback" not in error


def test_a_path_is_the_same_by_other_names_and_in_a_circle(tmp_path):
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    assert is_same_path(tmp_path / "link", tmp_path / "x" / ".." / "file")
    assert is_same_path(tmp_path / "loop", tmp_path / "loop")
    assert not is_same_path(tmp_path / "loop", tmp_path / "file")
