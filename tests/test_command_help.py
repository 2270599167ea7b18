"""Help and version come at once: no command is imported before it is named."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

import boundary_forest
from boundary_forest.cli import COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_said_of_a_command_is_what_it_says_itself(name):
    found = getattr(importlib.import_module(f"boundary_forest.cli.{name}"), name)
    assert found.__doc__ == COMMANDS[name]


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_neither_imports_what_takes_long(option):
    script = f"""
import sys
from boundary_forest.cli import main
sys.argv = ["boundary-forest", {option!r}]
try:
    main()
except SystemExit as end:
    assert not end.code
heavy = {{"numpy", "sklearn", "pyarrow", "rich", "boundary_forest.estimators"}} & sys.modules.keys()
assert not heavy, heavy
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    shown = boundary_forest.__version__ if option == "--version" else "stream"
    assert shown in done.stdout


def test_commands_are_found_and_offered(told):
    assert "Did you mean 'stream'" in told("strem")[2]
    assert "boundary-forest stream" in told("stream", "--help")[1]
    assert told("--version", "stream")[1].startswith("boundary-forest ")


def test_a_package_of_the_extra_that_is_missing_is_named():
    for name, arguments in (("typer", ["--help"]), ("pyarrow", ["stream", "--help"])):
        script = f"""
import sys
sys.modules[{name!r}] = None
from boundary_forest.cli import main
sys.argv = ["boundary-forest", *{arguments!r}]
main()
"""
        done = subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60
        )
        assert done.returncode == 2
        assert f"{name} is not installed: pip install jinja2 pyarrow rich typer" in done.stderr
