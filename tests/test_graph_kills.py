"""kill -9 while an index that is searched as a graph learns, replaces, forgets and is saved."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize("kind", ["durable", "saved"])
def test_kill_9_leaves_an_index_after_its_last_step(kind, tmp_path):
    """Real processes; BOUNDARY_FOREST_KILLS=200 for more of them than the few here."""
    kills = os.environ.get("BOUNDARY_FOREST_KILLS", "8")
    script = Path(__file__).with_name("killed_indexes.py")
    done = subprocess.run(
        [sys.executable, script, kills, tmp_path, kind], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["kills"] == int(kills)
    assert told["steps"] > 4
    assert told["stored"] > 0
    assert len(told["during"]) > 1
