"""What building from source shows: its progress, and what to install if there is no compiler."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PROGRESS = ROOT / ".ci" / "progress.py"


def watched(script):
    command = [sys.executable, PROGRESS, "building", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def test_the_output_of_a_command_that_succeeds_is_not_shown():
    done = watched("echo '[1/2] one'; echo noise; echo more noise >&2")
    assert (done.returncode, done.stdout, done.stderr) == (0, "== building\n", "")


def test_the_output_of_a_command_that_fails_is_shown_without_the_steps():
    done = watched("echo '[1/2] one'; echo 'what went wrong' >&2; exit 3")
    assert (done.returncode, done.stderr) == (3, "what went wrong\n")


def test_a_terminal_shows_how_many_steps_are_done():
    pty = pytest.importorskip("pty")
    script = "echo '[12/67] twelve'; sleep 1.5; echo ' [67/67] last'; sleep 1.5"
    reader, terminal = pty.openpty()
    command = [sys.executable, PROGRESS, "building", "sh", "-c", script]
    assert subprocess.run(command, stdout=terminal, check=False, timeout=60).returncode == 0
    os.close(terminal)
    shown = os.read(reader, 10_000).decode()
    os.close(reader)
    assert "\r== building: 12 of 67, 1 s" in shown
    assert "\r== building: 67 of 67, " in shown


@pytest.mark.parametrize(
    ("compiler", "wrong"),
    [
        (None, "boundary-forest found no C++ compiler"),
        ("old", "which is too old: boundary-forest is C++20"),
    ],
)
def test_without_a_fit_compiler_the_error_names_what_to_install(compiler, wrong, tmp_path):
    cmake, ninja, real = (shutil.which(name) for name in ("cmake", "ninja", "g++"))
    beside = Path(sys.executable).parent
    cmake, ninja = (
        cmake or shutil.which("cmake", path=beside),
        ninja or shutil.which("ninja", path=beside),
    )
    if not cmake or not ninja or (compiler and not real):
        pytest.skip("needs CMake, ninja and GCC")
    environment = {"PATH": str(tmp_path), "HOME": str(tmp_path)}
    if compiler:  # GCC that pretends to be an earlier one
        old = tmp_path / "c++"
        old.write_text(
            f'#!/bin/sh\nPATH={os.environ["PATH"]} exec {real} -U__GNUC__ -D__GNUC__=9 "$@"\n'
        )
        old.chmod(0o755)
        environment["CXX"] = str(old)
    command = [cmake, "-S", ROOT, "-B", tmp_path / "build", "-G", "Ninja"]
    command.append(f"-DCMAKE_MAKE_PROGRAM={ninja}")
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=120
    )
    assert done.returncode != 0
    message = " ".join(done.stderr.split())
    assert wrong in message
    assert "GCC 12, Clang 14 or Apple Clang 15 (Xcode 15), or later." in message
    assert "sudo apt-get install g++" in message
