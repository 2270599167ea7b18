"""Ctrl-C ends a command quietly and with code 130, also while Python still imports, or exits."""

from __future__ import annotations

import subprocess
import sys

import pytest
from stream_rows import mixed_table, write

IMPORTING = """
import os, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == {name!r}:
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Interrupting())
from boundary_forest.cli import main
sys.argv = ["boundary-forest", *sys.argv[1:]]
main()
"""

EXITING = """
import atexit, os, signal, sys
from boundary_forest.cli import main
atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
sys.argv = ["boundary-forest", *sys.argv[1:]]
main()
"""

ASKING = """
import os, signal, sys
from boundary_forest.cli import main
from boundary_forest.files import loading
loading.ModelFile = lambda path: os.kill(os.getpid(), signal.SIGINT)
sys.argv = ["boundary-forest", "verify", "model.bf"]
main()
"""

READING = """
import os, signal, sys
from boundary_forest.cli import main
import pyarrow.csv
plain = pyarrow.csv.ParseOptions
def options(*, invalid_row_handler=None, **others):
    if invalid_row_handler is None:
        return plain(**others)
    def interrupted(row):
        os.kill(os.getpid(), signal.SIGINT)
        return invalid_row_handler(row)
    return plain(invalid_row_handler=interrupted, **others)
pyarrow.csv.ParseOptions = options
sys.argv = ["boundary-forest", *sys.argv[1:]]
main()
"""


def run(script: str, *arguments: object, **options) -> subprocess.CompletedProcess[str]:
    # A job in the background of a shell ignores Ctrl-C, and these tests may be run by one.
    script = f"import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n{script}"
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, **options
    )


@pytest.mark.parametrize("name", ["typer", "numpy", "pyarrow", "boundary_forest.cli.stream"])
def test_while_modules_are_imported(name):
    done = run(IMPORTING.format(name=name), "stream", "--help")
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_while_python_exits(tmp_path):
    source = write(mixed_table(200), tmp_path / "rows.csv")
    done = run(EXITING, "stream", source, "--target", "label", "--trees", 3)
    assert (done.returncode, done.stderr) == (130, "")


def test_while_a_command_works_that_has_nothing_to_keep():
    done = run(ASKING)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_while_rows_are_read(tmp_path):
    """pyarrow minds signals too, and would call it an error."""
    source = tmp_path / "rows.csv"
    source.write_text("a,y\n" + "1,0\n2,1\n" * 100 + "1,2,3\n" + "1,0\n2,1\n" * 100)
    done = run(READING, "stream", source, "--target", "y", "--on-error", "skip", "--trees", 3)
    assert (done.returncode, done.stderr) == (130, "")
    assert "stopped" in done.stdout


def test_a_command_in_the_background_goes_on_ignoring_it():
    script = f"import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\n{IMPORTING}"
    done = run(script.format(name="numpy"), "stream", "--help")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_package_imports_nothing_before_it_is_used():
    done = run("import sys, boundary_forest.cli; print('numpy' in sys.modules)")
    assert done.stdout == "False\n"
    done = run(
        "import boundary_forest; print(*dir(boundary_forest)); boundary_forest.durable.reserve"
    )
    assert {"load", "open_durable", "durable"} <= set(done.stdout.split())
    done = run("import boundary_forest; boundary_forest.absent")
    assert "module 'boundary_forest' has no attribute 'absent'" in done.stderr


def test_a_program_that_calls_the_command_line_minds_ctrl_c_as_before():
    done = run("""
import signal, sys, threading
from boundary_forest.cli import main
sys.argv = ["boundary-forest", "--help"]
def call():
    try:
        main()
    except SystemExit as end:
        print("ended", end.code)
call()
assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
thread = threading.Thread(target=call)
thread.start()
thread.join()
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("ended 0") == 2
