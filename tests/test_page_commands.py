"""Shell and curl commands of README and the pages: they run, and print what the pages show."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from test_pages import CODE, PAGES, ROOT, named

pytest.importorskip("typer", reason="the cli extra is not installed")
pytest.importorskip("uvicorn", reason="the serve extra is not installed")
pa = pytest.importorskip("pyarrow", reason="the cli extra is not installed")
parquet = pytest.importorskip("pyarrow.parquet")

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```", re.M | re.S)
# What starts a command, but for the prompt of a session.
COMMAND = re.compile(r"^(\$ |boundary-forest |\S*python |pip |make |curl )", re.M)
# Commands that need the network, hours, or the whole build; other steps of CI run make's targets.
ELSEWHERE = ("pip install", "make ", ".venv/bin/python -m paper run", ".venv/bin/python -m paper p")
SECONDS = 300  # a command may take on a busy machine


def blocks(page):
    """The blocks of commands: (whether it is a session with its output, text)."""
    found = FENCE.findall(page.read_text())
    return [(kind == "console", text) for kind, text in found if kind in ("sh", "console")]


def steps(session, text):
    """Commands with the output that is shown; a backslash continues a command."""
    if not session:
        lines = [re.sub(r"\s{2,}# .*", "", line) for line in text.splitlines()]
        return [(line, None) for line in lines if not line.startswith(ELSEWHERE)]
    return re.findall(r"^\$ ((?:.*\\\n)*.*\n)((?:(?!\$ ).*\n)*)", text, flags=re.M)


def alike(shown, printed):
    """Whether it is what was printed; "..." stands for anything, and made ids differ."""
    shown, printed = (
        re.sub(r'"[\w-]{16}"', '"an id"', " ".join(text.split())) for text in (shown, printed)
    )
    return re.fullmatch(re.escape(shown).replace(re.escape("..."), ".*"), printed) is not None


class Shell:
    """Runs commands in a folder; a service that is started goes on in the background."""

    def __init__(self, folder: Path) -> None:
        self.services: list[subprocess.Popen[str]] = []
        self._folder = folder
        self._address = ""
        places = [str(folder / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]]
        self._environment = {**os.environ, "PATH": os.pathsep.join(places)}

    def run(self, command: str) -> str:
        if command.startswith("boundary-forest serve"):
            return self._serve(command)
        if command.startswith(".venv/bin/python"):  # in a clone
            return self._run(command.replace(".venv/bin/python", sys.executable, 1), ROOT)
        local = command.replace("curl localhost:8000", f"curl -sS {self._address}")
        assert local == command or self._address, "no service is running"
        return self._run(local, self._folder)

    def _run(self, command: str, folder: Path) -> str:
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", command],
            cwd=folder,
            env=self._environment,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{command}: {done.stderr}"
        return done.stdout

    def _serve(self, command: str) -> str:
        """Start it on a free port, after the one before has stopped."""
        self.stop()
        service = subprocess.Popen(
            [*command.split(), "--port", "0"],
            cwd=self._folder,
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.services.append(service)
        self._address = json.loads(service.stderr.readline())["address"]
        return ""

    def stop(self) -> None:
        """Stop the service as Ctrl-C does."""
        for service in self.services:
            service.send_signal(signal.SIGINT)
            assert service.wait(SECONDS) == 0


@contextlib.contextmanager
def shell(folder: Path) -> Iterator[Shell]:
    opened = Shell(folder)
    try:
        yield opened
        opened.stop()
    finally:
        for service in opened.services:
            service.kill()
            service.stderr.close()


def executable(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def what_the_pages_presume(folder: Path) -> None:
    """Files of rows and vectors, and a sensor and an alarm at the ends of a pipe."""
    rng = np.random.default_rng(0)
    size, label = rng.normal(size=200).round(3), rng.choice(["a", "b"], 200)
    lines = [f"{s},{t}" for s, t in zip(size, label, strict=True)]
    (folder / "rows.csv").write_text("\n".join(["size,label", *lines, ""]))
    rows = pa.table({"size": size[:20], "label": label[:20]})
    rng = np.random.default_rng(0)
    ids = [f"v{i}" for i in range(1000)]
    vectors = pa.table({"id": ids, "vector": rng.normal(size=(1000, 16)).tolist()})
    queries = pa.table({"id": range(1), "vector": rng.normal(size=(1, 16)).tolist()})
    tables = {"more": rows, "vectors": vectors, "queries": queries, "new": vectors.slice(0, 10)}
    for name, table in tables.items():
        parquet.write_table(table, folder / f"{name}.parquet")
    (folder / "bin").mkdir()
    executable(folder / "bin" / "sensor", "cat rows.csv")
    executable(folder / "bin" / "alarm", "cat > alarms.ndjson")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)], ids=named)
def test_the_commands_of_a_page_run_and_print_what_it_shows(page, tmp_path, monkeypatch):
    wanted = [step for session, text in blocks(page) for step in steps(session, text)]
    if any(command.startswith("curl") for command, _ in wanted) and not shutil.which("curl"):
        pytest.skip("curl is not installed")
    monkeypatch.chdir(tmp_path)
    what_the_pages_presume(tmp_path)
    if "end-to-end" in page.name:  # its commands use the file that its code saves
        for block in CODE.findall(page.read_text()):
            exec(compile(block, str(page), "exec"), {"__name__": "example"})
    with shell(tmp_path) as opened:
        for command, shown in wanted:
            printed = opened.run(command)
            assert shown is None or alike(shown, printed), f"{command}\n{printed}"


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_no_command_stands_in_a_block_that_is_not_run(page):
    others = [text for kind, text in FENCE.findall(page.read_text()) if not kind]
    assert [text for text in others if COMMAND.search(text)] == []


def test_another_output_than_that_of_the_page_is_noticed():
    assert alike('{"ids": ["yrDmUvfJg2LxCwhu"]}', '{"ids": ["-rDmUvfJg2LxCw_u"]}\n')
    assert alike('{"neighbors": ["v1", ...]}', '{"neighbors": ["v1", "v2"]}')
    assert not alike('{"seen": 3}', '{"seen": 4}')
