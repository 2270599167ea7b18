"""Drivers of a cluster that are killed at random moments, and what is found afterwards.

    python killed_drivers.py FOLDER KIND

A child process learns batch after batch, with the parts of the forest in the same process, and
tells what it has done through a pipe. It is killed; another driver must go on from the folder with
at least what was told, and have the forest of the first rows of the stream, by its fingerprint.
This is a process of its own because one that talks to Ray must not be forked.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import sys
import time
from pathlib import Path

import numpy as np
from ray_in_one_process import OneProcess

import boundary_forest
import boundary_forest.ray.lockstep
from boundary_forest import ray as on_cluster

BATCH, KILLS = 20, 12
PARAMS = {"n_estimators": 8, "random_state": 0}
KINDS = {
    "plain": {},
    "learned": {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"},
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
        forest = cls.from_checkpoint(folder, n_actors=3)
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


def main(folder, kind):
    boundary_forest.ray.lockstep.ActorGroup = OneProcess
    chances = random.Random(3)
    n_kills = seen = 0
    while n_kills < KILLS or seen < BATCH:  # on a busy machine the first ones may come too early
        n_kills += 1
        said = killed(folder, kind, chances.uniform(0, 0.25))
        if not (folder / "driver.bf").exists():
            assert said == 0
            continue
        forest = on_cluster.BoundaryForestClassifier.from_checkpoint(folder, n_actors=3)
        seen = forest.examples_seen if forest.fitted is not None else 0
        assert said <= seen <= said + BATCH, (said, seen)
        local = boundary_forest.BoundaryForestClassifier(**PARAMS, **KINDS[kind])
        if seen > 0:
            local.partial_fit(*rows(0, seen))
            assert forest.fingerprint() == local.fingerprint()
        forest.close()
    print("nothing is lost")


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
