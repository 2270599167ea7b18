"""The demo and the README's example run as a newcomer would run them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from boundary_forest.cli import main

README = Path(__file__).parents[1] / "README.md"
SCRIPT = Path(sys.executable).with_name("boundary-forest")
N_DIGITS = 1797


def closing_table(text):
    """The last lines: what on the left, its value on the right."""
    lines = text.rstrip("\n").splitlines()[-8:]
    return dict(re.fullmatch(r"\s*(\S.*?)\s{2,}(\S.*?)\s*", line).groups() for line in lines)


@pytest.fixture(scope="module")
def demo():
    """The installed command, not on a terminal, though asked for colours."""
    return subprocess.run(
        [SCRIPT, "demo"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env={**os.environ, "FORCE_COLOR": "1", "COLUMNS": "80"},
        timeout=120,
        check=False,
    )


@pytest.fixture
def command(monkeypatch, capsys):
    """command("demo", ...): the exit code, and what was said on stdout and on stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["boundary-forest", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return run


def test_the_demo_succeeds_and_says_nothing_on_stderr(demo):
    assert demo.stderr == b""
    assert demo.returncode == 0


def test_the_demo_writes_plain_lines_where_there_is_no_terminal(demo):
    text = demo.stdout.decode()
    assert all(character == "\n" or character.isprintable() for character in text)


def test_the_demo_tells_a_running_error(demo):
    errors = re.findall(r"seen, running error +([\d.]+) %", demo.stdout.decode())
    assert len(errors) >= 5
    assert float(errors[0]) > 5  # seen: 10.70
    assert float(errors[-1]) < 4  # seen: 3.29


def test_the_demo_ends_with_what_was_learned_stored_and_how_fast(demo):
    table = closing_table(demo.stdout.decode())
    assert table["examples seen"] == f"{N_DIGITS:,}"
    assert 0 < int(table["examples stored"].replace(",", "")) < N_DIGITS
    assert int(table["bytes"].replace(",", "")) > 0
    assert float(table["comparisons per example and tree"]) > 1
    assert float(table["running error"].split()[0]) < 4  # seen: 3.29
    assert float(table["error over the last 500"].split()[0]) < 2.5  # seen: 1.40
    assert float(table["examples per second, asked and learned"].replace(",", "")) > 0


def test_the_demo_says_so_where_no_tree_was_planted(command):
    code, out, _ = command("demo", "--n-estimators", str(N_DIGITS + 1))
    assert code == 0
    assert closing_table(out)["nodes per tree"] == "no tree yet"
    assert closing_table(out)["comparisons per example and tree"] == "no tree yet"


@pytest.mark.parametrize(
    ("option", "value"),
    [("--n-estimators", "0"), ("--max-children", "1"), ("--seed", "-1"), ("--n-jobs", "0")],
)
def test_the_demo_refuses_a_bad_option_by_name(command, option, value):
    code, _, error = command("demo", option, value)
    assert code == 2
    assert option in error


def test_the_command_line_has_help(command):
    code, out, _ = command("--help")
    assert code == 0
    assert "demo" in out


def test_the_readmes_example_runs(capsys):
    blocks = re.findall(r"^```python\n(.*?)^```", README.read_text(), flags=re.M | re.S)
    assert blocks
    for block in blocks:
        exec(compile(block, str(README), "exec"), {"__name__": "example"})
    found = re.search(r"(\d+) of (\d+) answers were wrong", capsys.readouterr().out)
    assert int(found[1]) < 80  # seen: 58
    assert int(found[2]) == N_DIGITS - 1
