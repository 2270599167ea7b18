"""Durable calls that are interrupted at random moments, and what is found afterwards.

    python interrupted_learners.py INTERRUPTS FOLDER plain|ids|learned lines|bytecodes

A durable forest learns call after call, of several blocks and operations each, and takes snapshots.
SIGINT comes at a random line or bytecode of every call, in this package or in the context managers
that it uses. After it a copy of the folder, as a crash would leave it, must open with all that was
acknowledged, and be the living forest: by its fingerprint, its answers and its ids. It must also be
the one of the first rows of the stream, and must learn on. With learned weights, some calls make
decisions, at 125 and 250 arrivals. Prints JSON.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import json
import random
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import numpy as np

import boundary_forest
from boundary_forest import BoundaryForestClassifier, open_durable
from boundary_forest.durable import interruptible_blocks, packing

TRACED = (str(Path(boundary_forest.__file__).parent), contextlib.__file__)
ROWS, A_FOLDER = 8, 50  # rows of a call; interrupts until another forest is begun
LEARNED = {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"}
QUERIES = np.random.default_rng(0).uniform(size=(5, 3))


def rows(first: int, n: int) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The stream: every row follows from its number, and new classes come all the time."""
    numbers = np.arange(first, first + n)
    X = (numbers[:, None] * [7, 11, 13] % 17).astype(np.float64) / 17
    return X, numbers // 20, [f"row {number}" for number in numbers]


@functools.cache
def leaving(code: CodeType) -> frozenset[int]:
    """The instructions between the end of a with statement's body and the call of its __exit__.

    CPython looks for signals after calls and at jumps, so none is ever handled there; a trace
    function that raises there would skip the __exit__.
    """
    found = list(dis.get_instructions(code))
    nones = [one.opname == "LOAD_CONST" and one.argval is None for one in found]
    offsets = [one.offset for one in found]
    skipped = set()
    for i, one in enumerate(found):
        if all(nones[i : i + 3]) and len(nones[i : i + 3]) == 3:
            skipped.update(offsets[i : i + 5])
            if found[i - 1].opname == "SWAP":  # below the value that is returned from inside
                skipped.add(offsets[i - 1])
        if one.opname == "WITH_EXCEPT_START":
            skipped.update(offsets[i - 1 : i + 1])
    return frozenset(skipped)


class Interrupt:
    """SIGINT at the k-th line or bytecode of a call; none if the call has fewer."""

    def __init__(self, k: int, *, bytecodes: bool) -> None:
        self.k = k
        self.bytecodes = bytecodes
        self.count = 0
        self.fired = False

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if self.fired or not code.co_filename.startswith(TRACED):
            return None
        if frame.f_lasti not in leaving(code):
            frame.f_trace_opcodes = self.bytecodes
            self.count += 1
            if self.count == self.k:
                self.fired = True
                signal.raise_signal(signal.SIGINT)
        return self

    def during(self, call: Callable[[], Any]) -> bool:
        """Whether the call was ended by it."""
        try:
            sys.settrace(self)
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(None)
        return False


def check_same(one: Any, other: Any) -> None:
    assert one.stats()["examples_seen"] == other.stats()["examples_seen"], "another length"
    assert one.fingerprint() == other.fingerprint(), "another forest"
    assert one.predict(QUERIES).tolist() == other.predict(QUERIES).tolist(), "other answers"
    n = min(10, one.stats()["examples_stored"])
    nearest = [forest.kneighbors(QUERIES, n)[1].tolist() for forest in (one, other)]
    assert nearest[0] == nearest[1], "other ids"


def interrupted_in(folder: Path, interrupts: int, kind: str, bytecodes: bool) -> Counter[str]:
    rng = random.Random(folder.name)
    with_ids = kind == "ids"
    params = {"n_estimators": 3, "random_state": 0, **(LEARNED if kind == "learned" else {})}
    model, truth = (BoundaryForestClassifier(**params) for _ in range(2))
    longest: dict[str, int] = {}
    found: Counter[str] = Counter()
    with open_durable(folder / "living", model, snapshot_rows=40) as forest:
        while found["interrupted"] < interrupts:
            seen = forest.examples_seen
            X, y, ids = rows(seen, ROWS)
            named = {"ids": ids} if with_ids else {}
            calls = {
                "partial_fit": lambda: forest.partial_fit(X, y, **named),  # noqa: B023
                "predict_then_learn": lambda: forest.predict_then_learn(X, y, **named),  # noqa: B023
                "snapshot": forest.snapshot,
                "keep_note": forest.keep_note,
            }
            name = rng.choices(list(calls), weights=[8, 3, 1, 1])[0] if seen else "partial_fit"
            k = rng.randint(1, longest[name]) if name in longest else 0
            interrupt = Interrupt(k, bytecodes=bytecodes)
            interrupted = interrupt.during(calls[name])
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
            if not interrupted:
                longest[name] = max(longest.get(name, 0), interrupt.count)
            learned = forest.examples_seen - seen
            learns = name in ("partial_fit", "predict_then_learn")
            assert interrupted or learned == ROWS * learns, "an acknowledged call was not learned"
            if interrupted:
                found["interrupted"] += 1
                found[{0: "none learned", ROWS: "all learned"}.get(learned, "part learned")] += 1
            if learned:
                X, y, ids = rows(seen, learned)
                truth.partial_fit(X, y, ids=ids if with_ids else None)
            if seen + learned:
                check_same(forest, truth)
                copy = shutil.copytree(folder / "living", folder / "copy")
                with open_durable(copy) as again:
                    check_same(again, truth)
                shutil.rmtree(copy)
    return found


def main(interrupts: int, folder: Path, kind: str, *, bytecodes: bool) -> None:
    interruptible_blocks.FIRST_ROWS = interruptible_blocks.MOST_ROWS = 3
    packing.OPERATION_BYTES = 4 * 3 * 8
    found: Counter[str] = Counter()
    for done in range(0, interrupts, A_FOLDER):
        work = folder / str(done)
        work.mkdir()
        found += interrupted_in(work, min(A_FOLDER, interrupts - done), kind, bytecodes)
    print(json.dumps(found))


if __name__ == "__main__":
    _, n, where, kind, moments = sys.argv
    main(int(n), Path(where), kind, bytecodes=moments == "bytecodes")
