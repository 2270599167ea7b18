"""The demo runs as a newcomer would run it."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pandas
import pytest

import boundary_forest

SCRIPT = Path(sys.executable).with_name("boundary-forest")
N_DIGITS = 1797


def closing_table(text):
    """The last lines: what on the left, its value on the right."""
    lines = text.rstrip("\n").splitlines()[-12:]
    return dict(re.fullmatch(r"\s*(\S.*?)\s{2,}(\S.*?)\s*", line).groups() for line in lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo")


@pytest.fixture(scope="module")
def demo(folder):
    """The installed command, not on a terminal, though asked for colours."""
    return subprocess.run(
        [SCRIPT, "demo"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "80"},
        timeout=120,
        check=False,
    )


def test_the_demo_succeeds_and_says_nothing_on_stderr(demo):
    assert demo.stderr == b""
    assert demo.returncode == 0


def test_the_demo_writes_plain_lines_where_there_is_no_terminal(demo):
    text = demo.stdout.decode()
    assert "examples" in text
    assert all(character == "\n" or character.isprintable() for character in text)


def test_the_demo_is_one_command_that_can_be_typed(demo, folder, told, monkeypatch):
    line = demo.stdout.decode().splitlines()[0]
    assert line.startswith("$ boundary-forest stream build/demo/digits.csv --target digit")
    monkeypatch.chdir(folder)
    code, out, error = told(*shlex.split(line)[2:])
    assert code == 0, error
    assert closing_table(out)["error"] == closing_table(demo.stdout.decode())["error"]


def test_the_demo_ends_with_what_was_learned_stored_and_how_fast(demo):
    table = closing_table(demo.stdout.decode())
    assert table["rows"].startswith(f"{N_DIGITS:,} in ")
    # The sample of all arrivals has room for all of them.
    assert int(table["stored"].split()[0].replace(",", "")) == N_DIGITS
    assert float(table["error"].split()[0]) < 4.5  # seen: 3.79
    assert float(table["error"].split()[2]) < 2.5  # seen: 1.20
    assert table["forest"].startswith("100 trees of ")


def test_the_demo_leaves_a_report_and_a_model(demo, folder):
    assert demo.returncode == 0
    page = (folder / "build/demo/report.html").read_text(encoding="utf-8")
    assert "pixel63" in page
    assert page.count('viewBox="0 0 8 8" class="picture"') > 100  # 20 digits, 5 beside each
    model = boundary_forest.load(folder / "build/demo/model.bf")
    rows = pandas.read_csv(folder / "build/demo/digits.csv")
    assert (model.predict(rows) == rows["digit"]).mean() > 0.99


def test_on_a_terminal_the_demo_is_paced_unless_it_is_to_be_fast(folder, monkeypatch):
    """Twice on a terminal, at 20 times the pace: as long as its rows take then, and the same."""
    told = {}
    monkeypatch.setenv("TERM", "xterm-256color")
    for flag in ("", "--fast"):
        program = (
            "from boundary_forest.cli import demo, main; demo.ROWS_PER_S *= 20;"
            f"import sys; sys.argv = ['boundary-forest', 'demo', *{flag.split()}]; main()"
        )
        head, tail = pty.openpty()
        with subprocess.Popen([sys.executable, "-c", program], cwd=folder, stdout=tail) as child:
            os.close(tail)
            parts = []
            with contextlib.suppress(OSError):  # the end of a terminal's output on Linux
                while part := os.read(head, 1 << 16):
                    parts.append(part)
        os.close(head)
        assert child.returncode == 0
        told[flag] = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", b"".join(parts).decode())
    assert re.search(r"paced\s+slowed down to 3,000 rows per second", told[""])
    assert "paced" not in told["--fast"]
    assert re.search(r"rows\s+1,797 in [\d.]+ s, [\d,]+ per second without waiting", told[""])
    assert all(text.count("64 numbers, not scaled") == 1 for text in told.values())
    errors = [re.findall(r"error\s+([\d.]+ %); [\d.]+ % recently", text) for text in told.values()]
    assert errors[0] == errors[1] != []
