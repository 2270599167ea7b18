"""What the durable folders kept in tests/data hold, and how they were made.

    python durable_folders.py FOLDER VERSION

writes two with the release that runs it: ``durable-vN`` was closed, ``durable-vN-killed`` is as a
crash between a snapshot and the emptying of the journal leaves it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from boundary_forest import BoundaryForestClassifier, open_durable

BATCH, BATCHES, IN_SNAPSHOT = 10, 4, 2


def model() -> BoundaryForestClassifier:
    return BoundaryForestClassifier(n_estimators=4, max_children=3, random_state=7)


def batch(i: int) -> tuple[Any, list[str], list[str]]:
    """Numbers that need no generator, which might change; every other batch is sparse."""
    numbers = np.arange(i * BATCH, (i + 1) * BATCH)
    X = (numbers[:, None] * [7, 11, 13] % 17).astype(np.float32)
    labels = ["high" if x > 8 else "low" for x in X[:, 0]]
    return csr_matrix(X) if i % 2 else X, labels, [f"row {number}" for number in numbers]


def learn(forest: Any, batches: range) -> Any:
    for i in batches:
        X, y, ids = batch(i)
        forest.note = f"after batch {i}"
        forest.partial_fit(X, y, ids=ids)
    return forest


def main(folder: Path, version: str) -> None:
    with tempfile.TemporaryDirectory() as work:
        kept = Path(work) / "kept"
        with open_durable(kept, model(), note="new") as forest:
            learn(forest, range(IN_SNAPSHOT))
            forest._journal.forget = lambda _: None
            forest.snapshot()
            learn(forest, range(IN_SNAPSHOT, BATCHES))
            shutil.copytree(kept, folder / f"durable-v{version}-killed")
        shutil.copytree(kept, folder / f"durable-v{version}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
