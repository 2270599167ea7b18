"""Learners that are killed at random moments, and what is found afterwards.

    python killed_learners.py KILLS FOLDER plain|learned|mixed

A child process learns batch after batch, takes a snapshot now and then, saves the model to a file
beside it, and tells what it has done through a pipe, when it is done. It is killed; the folder must
open again with at least what was told, and the forest must be that of the first rows of the stream,
by its fingerprint and its answers; the file must load. Then another child goes on. With learned
weights the child is killed soon after it has begun to learn a batch that brings a decision, which
rebuilds all trees; after the last of DECISIONS another forest is begun. With a mixture of experts
it has learned a batch before. Prints JSON.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import struct
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from boundary_forest import BoundaryForestClassifier, load, open_durable

BATCH, FEATURES = 20, 30
# Seconds until a kill; a decision takes 5 ms to 60 ms.
LONGEST = {"plain": 0.25, "learned": 0.015, "mixed": 0.1}
WORDS = {"learning": 0, "snapshot": 1, "saving": 2, "deciding": 3}
DECISIONS = (125, 250, 500, 1000)  # arrivals
PARAMS = {
    "plain": {},
    "learned": {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"},
    "mixed": {
        "feature_weights": "learned", "max_samples": 0.5, "weights": "mixture",
        "forgetting": "auto",
    },
}  # fmt: skip


def rows(first: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The stream: every row follows from its number."""
    X = np.random.default_rng(first).integers(0, 256, (n, FEATURES)).astype(np.uint8)
    return X, X[:, 0] // 64


def model(kind: str) -> BoundaryForestClassifier:
    return BoundaryForestClassifier(n_estimators=8, random_state=0, **PARAMS[kind])


def learn_until_killed(folder: Path, kind: str, pipe: int) -> None:
    def tell(what: str, number: int) -> None:
        os.write(pipe, struct.pack("<BQ", WORDS[what], number))

    with open_durable(folder / "durable", model(kind)) as forest:
        seen = forest.examples_seen
        for step in range(10**9):
            decides = kind == "learned" and any(seen < at <= seen + BATCH for at in DECISIONS)
            tell("deciding" if decides else "learning", seen)
            forest.partial_fit(*rows(seen, BATCH))
            seen += BATCH
            if step % 5 == 1:
                tell("snapshot", seen)
                forest.snapshot()
            if step % 5 == 3:
                tell("saving", seen)
                forest.save(folder / "saved.bf")


def killed(folder: Path, kind: str) -> tuple[str, int]:
    """What the child did last, and how many examples it had been told to have."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            learn_until_killed(folder, kind, writing)
        finally:
            os._exit(1)
    os.close(writing)
    told = b""
    while kind != "plain" and (part := os.read(reading, 9)):
        told += part
        if part[0] == WORDS["deciding"] or (kind == "mixed" and len(told) > 9):
            break
    time.sleep(random.uniform(0, LONGEST[kind]))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    while part := os.read(reading, 1 << 16):
        told += part
    os.close(reading)
    if not told:
        return "learning", 0
    word, acknowledged = struct.unpack_from("<BQ", told, len(told) - 9)
    return next(name for name, w in WORDS.items() if w == word), acknowledged


def main(kills: int, folder: Path, kind: str) -> None:
    random.seed(0)
    truth = model(kind)
    n_true = before = saved = learned = 0
    during: Counter[str] = Counter()
    for _ in range(kills):
        what, acknowledged = killed(folder, kind)
        during[what] += 1
        with open_durable(folder / "durable", model(kind)) as forest:
            seen = forest.examples_seen
            assert seen >= max(acknowledged, before), f"{seen} of {acknowledged} are there"
            assert seen % BATCH == 0, f"a batch is there in part: {seen}"
            while n_true < seen:
                truth.partial_fit(*rows(n_true, BATCH))
                n_true += BATCH
            if seen > 0:
                assert forest.fingerprint() == truth.fingerprint(), "another forest"
                X = rows(10**9, 3)[0]
                assert (forest.predict_proba(X) == truth.predict_proba(X)).all(), "other answers"
        if (folder / "saved.bf").exists():
            n_saved = load(folder / "saved.bf").stats()["examples_seen"]
            assert n_saved >= saved, "an older file came back"
            saved = n_saved
        learned += seen - before
        before = seen
        if kind == "learned" and seen >= DECISIONS[-1]:
            shutil.rmtree(folder / "durable")
            (folder / "saved.bf").unlink(missing_ok=True)
            truth = model(kind)
            n_true = before = saved = 0
    print(json.dumps({"kills": kills, "learned": learned, "saved": saved, "during": during}))


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
