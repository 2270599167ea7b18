"""The engine's coming interface over the present one; goes as soon as the engine has it."""
# mypy: ignore-errors
# ruff: noqa

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np

from boundary_forest import _core

NO_PARENT = 2**32 - 1


class Forest:
    def __init__(self, *, ids: str, **settings: Any) -> None:
        self.engine = _core.Forest(**settings)
        self.kind = ids
        self.names: dict[int, Any] = {}

    def _named(self, arrivals):
        if self.kind == "none":
            return None
        flat = [self.names[int(a)] for a in arrivals.ravel()]
        if self.kind == "text":
            return flat
        return np.array(flat, dtype=np.int64).reshape(arrivals.shape)

    def check_ids(self, ids) -> None:
        values = list(ids)
        seen, stored = set(), set(self.names.values())
        for v in values:
            if v in seen:
                raise ValueError(
                    f"ids must be unique, but {v!r} is there {values.count(v)} times: give each example an id of its own"
                )
            seen.add(v)
        for v in values:
            if v in stored:
                raise ValueError(
                    f"ids must be new, but {v!r} already names a stored example: give the new one another id"
                )

    def _learning(self, method, X, y, n_jobs, ids):
        first = self.seen
        if ids is not None:
            values = ids.tolist() if isinstance(ids, np.ndarray) else list(ids)
            before = dict(self.names)
            self.names = {**before, **{first + i: v for i, v in enumerate(values)}}
        try:
            return getattr(self.engine, method)(X, y, n_jobs)
        finally:
            if ids is not None:
                kept = set(self.engine.state(with_positions=False)["arrivals"].tolist())
                self.names = {a: v for a, v in self.names.items() if a in kept}

    def learn(self, X, y, n_jobs, ids=None):
        return self._learning("learn", X, y, n_jobs, ids)

    def learn_offline(self, X, y, n_jobs, ids=None):
        return self._learning("learn_offline", X, y, n_jobs, ids)

    def predict_then_learn(self, X, y, n_jobs, ids=None):
        return self._learning("predict_then_learn", X, y, n_jobs, ids)

    def apply(self, X, n_jobs):
        return self.engine.apply(X, n_jobs)

    def estimate(self, X, n_jobs):
        return self.engine.estimate(X, n_jobs)

    def neighbors(self, X, n, n_jobs):
        distances, arrivals = self.engine.neighbors(X, n, n_jobs)
        return distances, arrivals, self._named(arrivals)

    def found(self, X, n_jobs):
        slots, distances = self.engine.found(X, n_jobs)
        met, places = np.unique(slots, return_inverse=True)
        positions, labels, arrivals = self.engine.examples(met)
        return (
            places.reshape(slots.shape).astype(np.uint32),
            distances,
            (positions, labels, arrivals, self._named(arrivals)),
        )

    def paths(self, x):
        paths, weights, estimate = self.engine.paths(x)
        met = np.unique(np.concatenate([slots[0] for slots, _ in paths]))
        positions, labels, arrivals = self.engine.examples(met)
        trees = [(np.searchsorted(met, s[0]), d[0]) for s, d in paths]
        return trees, weights, estimate, (positions, labels, arrivals, self._named(arrivals))

    def snapshot(self):
        return Snapshot(self)

    def digest(self, label_keys):
        state = self.engine.state()
        arrivals, begin, trees = state["arrivals"], 0, []
        for size in state["tree_sizes"].tolist():
            e, p = (state[k][begin : begin + size] for k in ("node_examples", "node_parents"))
            begin += size
            h = hashlib.blake2b(
                arrivals[e].tobytes() + arrivals[e[p[1:]]].tobytes(), digest_size=16
            )
            trees.append(np.frombuffer(h.digest(), np.uint64))
        labels = (
            state["labels"] if label_keys is None else label_keys[state["labels"][:, 0].astype(int)]
        )
        positions = state["positions"]
        if positions.dtype != np.uint8:
            positions = positions + 0.0
        total = np.zeros(2, np.uint64)
        for a, x, c in zip(arrivals, positions, labels):
            h = hashlib.blake2b(a.tobytes() + x.tobytes() + c.tobytes(), digest_size=16)
            total += np.frombuffer(h.digest(), np.uint64)
        return np.array(trees, np.uint64).reshape(-1, 2), total

    @property
    def seen(self):
        return self.engine.seen

    @property
    def n_classes(self):
        return self.engine.state(with_positions=False)["n_classes"]

    @property
    def label_deviation(self):
        return self.engine.label_deviation

    def stats(self):
        stats = self.engine.stats()
        stats["bytes"]["ids"] = 24 * len(self.names)
        stats["bytes"]["total"] += stats["bytes"]["ids"]
        return stats

    def widen(self, n):
        self.engine.widen(n)

    def restore(self, state, positions="copied"):
        state = dict(state)
        ids = state.pop("ids", None)
        self.engine.restore(state, positions)
        if ids is not None:
            self.check_ids(ids)
            if len(ids) != len(state["arrivals"]):
                raise ValueError("ids do not name the examples that are stored")
            ids = ids.tolist() if isinstance(ids, np.ndarray) else ids
            self.names = dict(zip(state["arrivals"].tolist(), ids))


class Snapshot:
    def __init__(self, forest):
        self.forest = forest
        self.n = forest.engine.stats()["examples_stored"]

    def state(self, with_positions=True):
        state = self.forest.engine.state(with_positions)
        state["ids"] = self.forest._named(state["arrivals"])
        return state

    def positions(self, begin, end):
        return self.forest.engine.examples(np.arange(begin, end, dtype=np.uint32))[0]

    def neighbors(self, X, n, n_jobs):
        return self.forest.neighbors(X, n, n_jobs)
