"""A driver that is killed leaves a checkpoint_dir from which another one goes on."""

from __future__ import annotations

import os
import random
import signal
import struct
import time

import numpy as np
import pytest

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster

BATCH, KILLS = 20, 12
PARAMS = {"n_estimators": 8, "random_state": 0}
KINDS = {
    "the paper's forest": {},
    "learned weights": {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"},
}


def rows(first, n):
    """The stream: every row follows from its number."""
    X = np.stack(
        [np.random.default_rng(a).integers(0, 256, 10, np.uint8) for a in range(first, first + n)]
    )
    return X, X[:, 0] // 64


def learn_until_killed(folder, kind, pipe):
    cls = on_cluster.BoundaryForestClassifier
    if (folder / "driver.bf").exists():
        forest = cls.from_checkpoint(folder)
    else:
        forest = cls(
            n_actors=3, checkpoint_dir=folder, checkpoint_rows=100, **PARAMS, **KINDS[kind]
        )
    seen = forest.examples_seen if forest.fitted is not None else 0
    while True:
        os.write(pipe, struct.pack("<Q", seen))
        forest.partial_fit(*rows(seen, BATCH))
        seen += BATCH


def killed(folder, kind, after):
    """How many examples a driver said that it had learned, when it was killed."""
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            learn_until_killed(folder, kind, into)
        finally:
            os._exit(1)
    os.close(into)
    said = os.read(out, 8)  # it has begun
    time.sleep(after)
    os.kill(child, signal.SIGKILL)
    status = os.waitpid(child, 0)[1]
    while more := os.read(out, 1 << 16):
        said = (said + more)[-8:]
    os.close(out)
    assert os.WIFSIGNALED(status), "it failed before it was killed"
    return struct.unpack("<Q", said)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_acknowledged_is_lost_with_a_driver(kind, tmp_path, one_process):
    chances = random.Random(3)
    folder = tmp_path / "forest"
    for _ in range(KILLS):
        said = killed(folder, kind, chances.uniform(0, 0.25))
        if not (folder / "driver.bf").exists():
            assert said == 0
            continue
        forest = on_cluster.BoundaryForestClassifier.from_checkpoint(folder)
        seen = forest.examples_seen if forest.fitted is not None else 0
        assert said <= seen <= said + BATCH
        local = boundary_forest.BoundaryForestClassifier(**PARAMS, **KINDS[kind])
        if seen > 0:
            local.partial_fit(*rows(0, seen))
            assert forest.fingerprint() == local.fingerprint()
        forest.close()
    assert seen >= KILLS * BATCH
