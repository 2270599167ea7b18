"""Indexes that are changed and killed at random moments, and what is found afterwards.

    python killed_indexes.py KILLS FOLDER durable|saved

A child process carries out a script of steps, each of which follows from its number: it adds rows
with ids, replaces some and forgets some. ``durable`` does so in a durable folder, and has what was
replaced erased now and then; ``saved`` in memory, and saves the index to a file after each. It
tells of each step that is done through a pipe, and is killed. What is there afterwards must be the
index after the last step that was told, or after the one that was under way: by its fingerprint,
and by what searches of it find, by the graph and exactly, which is what an index finds that went
through the same steps untroubled.
Then another child goes on. Prints JSON.
"""

from __future__ import annotations

import copy
import json
import os
import random
import signal
import struct
import sys
import time
from collections import Counter
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from boundary_forest import BoundaryForestNeighbors, load, open_durable

BATCH, FEATURES, NEIGHBORS = 40, 12, 5
LONGEST = 0.12  # seconds until a kill; opening the folder takes most of them
QUERIES = np.random.default_rng(0).normal(size=(20, FEATURES)).astype(np.float32)


def rows(step: int) -> np.ndarray:
    return np.random.default_rng(step).normal(size=(BATCH, FEATURES)).astype(np.float32)


def model() -> BoundaryForestNeighbors:
    return BoundaryForestNeighbors(n_estimators=6, random_state=0)


def kind_of(step: int) -> str:
    if step % 8 == 7:
        return "forget"
    return "replace" if step % 2 else "learn"


def carry_out(index, step: int) -> None:
    """Take a step. Ids of a batch are those of the step that learned it."""
    ids, kind = step * BATCH + np.arange(BATCH), kind_of(step)
    if kind == "learn":
        index.partial_fit(rows(step), ids=ids)
    elif kind == "replace":  # what the last step learned
        index.upsert(rows(step), ids - BATCH)
    else:  # most of what was learned seven steps ago
        index.forget(ids[: BATCH - 5] - 7 * BATCH)


def step_of(index) -> int:
    """How many steps an index has gone through, by how many rows it has seen and stored."""
    seen = stored = step = 0
    while (seen, stored) != (index.examples_seen, index.stats()["examples_stored"] if seen else 0):
        kind = kind_of(step)
        seen += BATCH if kind != "forget" else 0
        stored += {"learn": BATCH, "replace": 0, "forget": 5 - BATCH}[kind]
        step += 1
        assert step < 10**5, "no step leads there"
    return step


def erases(step: int, folder: str) -> bool:
    """Whether the index is grown anew after so many steps, as before it is saved."""
    return folder == "saved" or step % 8 in (0, 3) or step % 11 == 0


@contextmanager
def opened(folder: Path, kind: str):
    """The index as it is in the folder."""
    if kind == "durable":
        with open_durable(folder / "durable", model()) as forest:
            yield forest
        return
    path = folder / "index.bf"
    yield load(path) if path.exists() else model()


def change_until_killed(folder: Path, kind: str, pipe: int) -> None:
    with opened(folder, kind) as index:
        step = 0 if index.examples_seen == 0 else step_of(index)
        while True:
            carry_out(index, step)
            step += 1
            if kind == "saved":
                index.save(folder / "index.bf")
            elif erases(step, kind):
                copy.deepcopy(index.model)  # which erases what was replaced
            os.write(pipe, struct.pack("<Q", step))
            if kind == "durable" and step % 11 == 0:
                index.snapshot()


def killed(folder: Path, kind: str) -> int:
    """How many steps the child has told to be done."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            change_until_killed(folder, kind, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = os.read(reading, 8)  # it has begun
    time.sleep(random.uniform(0, LONGEST))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), "the child failed by itself"
    while part := os.read(reading, 1 << 16):
        told += part
    os.close(reading)
    return int(struct.unpack_from("<Q", told, len(told) - 8)[0])


def main(kills: int, folder: Path, kind: str) -> None:
    random.seed(0)
    truth, step = model(), 0
    during: Counter[str] = Counter()
    for _ in range(kills):
        told = killed(folder, kind)
        with opened(folder, kind) as index:
            there = step_of(index)
            assert told > step, "an older index came back"
            assert there in (told, told + 1), f"{there} steps, and {told} were told"
            if kind == "durable" and erases(there, kind):  # the kill may have come before
                copy.deepcopy(index.model)
            during[kind_of(there)] += 1  # the step that was under way, or next
            while step < there:
                carry_out(truth, step)
                step += 1
                if erases(step, kind):
                    truth.fitted.engine.erase_forgotten(1)
            assert index.fingerprint() == truth.fingerprint(), "another index"
            for exact in (False, True):
                for beam in (5, 40):
                    found = index.kneighbors(QUERIES, NEIGHBORS, beam=beam, exact=exact)
                    same = truth.kneighbors(QUERIES, NEIGHBORS, beam=beam, exact=exact)
                    np.testing.assert_array_equal(found, same)
    stored = truth.stats()["examples_stored"]
    print(json.dumps({"kills": kills, "steps": step, "stored": stored, "during": during}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
