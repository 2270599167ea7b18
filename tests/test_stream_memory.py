"""However long a stream is, it is never in memory as a whole."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import resource, sys
import numpy as np
from boundary_forest.sources import open_source

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

before, rows = None, 0
for batch in open_source(sys.argv[1]).batches:
    rows += len(batch.numbers)
    if before is None:
        before = peak()
print(rows, peak() - before)
"""


def test_reading_takes_the_memory_of_a_few_blocks(tmp_path):
    line = ",".join(f"{i}.125" for i in range(100)) + "\n"
    path = tmp_path / "rows.csv"
    n = 200_000
    with path.open("w") as file:
        file.write(",".join(f"c{i}" for i in range(100)) + "\n")
        for _ in range(n // 1000):
            file.write(line * 1000)
    size = path.stat().st_size / 2**20
    assert size > 100
    command = [sys.executable, "-c", SCRIPT, path]
    told = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    rows, more = told.stdout.split()
    assert int(rows) == n
    assert float(more) < 40  # seen: 6 MB, of a file of 132
