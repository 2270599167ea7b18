"""A driver that is killed leaves a checkpoint_dir from which another one goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")


@pytest.mark.parametrize("kind", ["plain", "learned"])
def test_nothing_acknowledged_is_lost_with_a_driver(kind, tmp_path):
    program = Path(__file__).with_name("killed_drivers.py")
    run = subprocess.run(
        [sys.executable, program, tmp_path / "forest", kind],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "nothing is lost" in run.stdout, run.stderr
