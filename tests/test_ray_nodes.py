"""Nothing is lost when a node goes and another one comes. It takes a minute, so it is asked for:

BOUNDARY_FOREST_NODES=1 .venv/bin/pytest tests/test_ray_nodes.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")


@pytest.mark.skipif("BOUNDARY_FOREST_NODES" not in os.environ, reason="BOUNDARY_FOREST_NODES")
def test_a_node_that_goes_takes_nothing_with_it(tmp_path):
    program = Path(__file__).with_name("ray_nodes.py")
    run = subprocess.run(
        [sys.executable, program, tmp_path], capture_output=True, text=True, timeout=400
    )
    assert "nothing is lost" in run.stdout, run.stderr
