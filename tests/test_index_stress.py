"""Readers, learners, forgetters, upserters and savers on one durable index.

The result is compared with a plain dict.

``BOUNDARY_FOREST_STRESS=600`` makes it run for 600 seconds instead of a few.
"""

from __future__ import annotations

import os
import pickle
import random
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

from boundary_forest import BoundaryForestNeighbors, JournalError, load, open_durable

SECONDS = float(os.environ.get("BOUNDARY_FOREST_STRESS", "4"))
N_FEATURES = 6
SPAN = 400  # ids per changing thread, so that each knows what became of its own
CHANGERS = ("learner", "upserter", "forgetter")


class Changer(threading.Thread):
    """Changes the ids of its own, and keeps in a dict what must be found in the end."""

    def __init__(self, run: Run, number: int, kind: str) -> None:
        super().__init__(name=f"{kind} {number}", daemon=True)
        self.run_, self.kind = run, kind
        self.first_id = number * SPAN
        self.rows: dict[int, np.ndarray] = {}
        self.random = random.Random(number)
        self.numbers = np.random.default_rng(number)

    def run(self) -> None:
        while not self.run_.is_over():
            with self.run_.noting():
                self.change()

    def change(self) -> None:
        index, free = self.run_.index, self.free_ids()
        some = self.random.sample(free, min(len(free), self.random.choice([1, 7, 40])))
        share = {"learner": 0.2, "upserter": 0.3, "forgetter": 0.6}[self.kind]
        if self.rows and (not some or self.random.random() < share):
            some = self.random.sample(
                list(self.rows), min(len(self.rows), self.random.choice([1, 3, 60]))
            )
            if self.kind == "upserter":
                new = self.numbers.normal(size=(len(some), N_FEATURES)).astype(np.float32)
                index.upsert(new, some)
                self.rows.update(zip(some, new, strict=True))
            else:
                index.forget(some)
                for one in some:
                    del self.rows[one]
            self.check_own(some)
        elif some:
            new = self.numbers.normal(size=(len(some), N_FEATURES)).astype(np.float32)
            index.partial_fit(new, ids=some)
            self.rows.update(zip(some, new, strict=True))
            self.check_own(some)

    def free_ids(self) -> list[int]:
        own = range(self.first_id, self.first_id + SPAN)
        return [one for one in own if one not in self.rows]

    def check_own(self, ids: list[int]) -> None:
        """Nobody else changes these ids, so that they must be there as they are here."""
        index = self.run_.index
        for one in ids[:2]:
            row = self.rows.get(one)
            query = np.zeros((1, N_FEATURES), np.float32) if row is None else row[None]
            if row is None:
                with pytest.raises(ValueError, match="between 1 and 0"):
                    index.kneighbors(query, 1, allowed=[one])
            else:
                distance, found = index.kneighbors(query, 1, allowed=[one])
                assert (distance[0, 0], found[0, 0]) == (0.0, one)


class Run:
    """One index, the threads that use it, and what went wrong."""

    def __init__(self, folder, seconds: float) -> None:
        self.folder, self.end = folder, time.monotonic() + seconds
        self.index = open_durable(folder / "index", new_index(), snapshot_rows=3000)
        self.problems: list[BaseException] = []
        self.changers = [Changer(self, i, kind) for i, kind in enumerate(CHANGERS * 2)]

    def is_over(self) -> bool:
        return time.monotonic() > self.end or bool(self.problems)

    @contextmanager
    def noting(self):
        try:
            yield
        except Exception as error:
            self.problems.append(error)

    def read(self) -> None:
        queries = np.random.default_rng(9).normal(size=(5, N_FEATURES)).astype(np.float32)
        reads = [
            lambda: self.index.kneighbors(queries, 3, beam=20, exact=False),
            lambda: self.index.kneighbors(queries, 3, exact=True),
            lambda: self.index.radius_neighbors(queries, 0.5),
            lambda: self.index.apply(queries),
            lambda: self.index.explain(queries[0]),
            lambda: self.index.trees(),
            lambda: self.index.stats(),
            lambda: self.index.fingerprint(),
        ]
        rng = random.Random(1)
        while not self.is_over():
            with self.noting():
                rng.choice(reads)()

    def save(self) -> None:
        path, rng = self.folder / "copy.bf", random.Random(2)
        while not self.is_over():
            with self.noting():
                how = rng.choice(["save", "pickle", "snapshot", "wait", "wait"])
                if how == "save":
                    self.index.save(path)
                    assert load(path).fitted.engine.n_forgotten == 0
                elif how == "pickle":
                    assert pickle.loads(pickle.dumps(self.index.model)).examples_seen > 0
                elif how == "snapshot":
                    self.index.snapshot()
                time.sleep(0.05)

    def expected(self) -> dict[int, np.ndarray]:
        return {one: row for changer in self.changers for one, row in changer.rows.items()}


def new_index():
    return BoundaryForestNeighbors(n_estimators=4, random_state=0)


def check(index, rows: dict[int, np.ndarray]) -> None:
    """Every row is found where it belongs, and nothing else is there."""
    assert index.stats()["examples_stored"] == len(rows)
    ids = np.array(sorted(rows))
    queries = np.stack([rows[one] for one in ids.tolist()])
    distances, found = index.kneighbors(queries, 1, exact=True)
    np.testing.assert_array_equal(found.ravel(), ids)
    np.testing.assert_array_equal(distances, 0.0)


def test_readers_and_changers_share_an_index(tmp_path):
    run = Run(tmp_path, SECONDS)
    for changer in run.changers:  # one change each, so that there is something to query
        changer.change()
    threads = [*run.changers, *(threading.Thread(target=run.read, daemon=True) for _ in range(2))]
    threads.append(threading.Thread(target=run.save, daemon=True))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS + 60)
    assert not any(thread.is_alive() for thread in threads)
    if run.problems:
        raise run.problems[0]
    check(run.index, run.expected())
    last = run.index.fingerprint()
    run.index.close()
    with pytest.raises(JournalError, match="closed"):
        run.index.partial_fit(np.zeros((1, N_FEATURES), np.float32), ids=[-1])
    with open_durable(tmp_path / "index") as index:
        assert index.fingerprint() == last
        check(index, run.expected())
