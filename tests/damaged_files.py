"""Damaged model files: each one loads, and is then asked and taught, or raises ModelFileError.

``python -m damaged_files --mutations 20000`` makes them one after the other; ``make fuzz`` runs
that with an engine under the address sanitizer, and pytest a few hundred with the plain one. A file
that takes over 5 s ends the process with a traceback; so does one whose loading allocates more than
twice the file's size at once, where a library (cpp/tests/allocation_watch.cpp) watches that.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import faulthandler
import json
import struct
import tempfile
import time
import zlib
from collections import Counter
from pathlib import Path

import numpy as np

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    ModelFileError,
    load,
)
from boundary_forest.files import ModelFile, loading
from boundary_forest.files.layout import DTYPES, NAMES, Entry, header, shown
from boundary_forest.frames import FrameModel

LONGEST = 5.0  # seconds that one file may take
ALLOWED = 16_384  # bytes that may be allocated at once, however short the file
NASTY = [
    *(None, True, -1, 0, 1, 2**31, 2**32, 2**53, 2**64, 10**30, 0.5, float("nan"), float("inf")),
    *("", "x", "euclidean", "nearest", "a" * 5000, [], [1], {}, {"RandomState": {}}),
    {"callable": "os.system"},
]


def samples(folder, n=120):
    """Files of every kind of estimator, which has learned n examples, by name, as bytes."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(n, 5)).astype(np.float32)
    names = np.array([f"id {i}" for i in range(n)], dtype=object)
    few = {"n_estimators": 4, "random_state": 0}
    kinds = {
        "classes": BoundaryForestClassifier(**few, max_children=3).fit(
            X, rng.choice(["a", "bb", "ccc"], n), ids=names
        ),
        "objects": BoundaryForestClassifier(**few, metric="cosine", offline=True).fit(
            X, np.array([2**70, 5, 7] * n, dtype=object)[:n]
        ),
        "outputs": BoundaryForestRegressor(
            n_estimators=4, random_state=np.random.RandomState(3)
        ).fit(X.astype(np.float64), X[:, :2], ids=np.arange(n)),
        "neighbors": BoundaryForestNeighbors(**few, metric="manhattan").fit(X.astype(np.uint8)),
        "general": BoundaryForest(
            **few, epsilon=0.5, metric="minkowski", metric_params={"p": 3}
        ).fit(X, X[:, 0]),
        "learned": BoundaryForestRegressor(
            **few, feature_weights="learned", max_samples=0.5, weights="auto"
        ).fit(np.tile(X, (-(-130 // n), 1)), np.tile(X[:, 0] + X[:, 1], -(-130 // n))),
        "forgetting": BoundaryForestClassifier(
            **few, forgetting=[None, 16, 40], weights="auto", feature_weights="learned"
        ).fit(X, rng.choice(["a", "bb", "ccc"], n)),
        "buffered": BoundaryForestClassifier(n_estimators=n, random_state=0).fit(
            X[:20], np.arange(20) % 3
        ),
        "columns": FrameModel.from_rows(raw_rows(n), "kind", **few),
        "any columns": BoundaryForestClassifier(**few, columns="auto").fit(
            [[f"t{i % 5}" if i % 7 else None, i if i % 6 else None] for i in range(n)],
            rng.choice(["a", "bb", "ccc"], n),
        ),
        "halves": BoundaryForestNeighbors(**few, dtype="float16").fit(X / 8),
        "signed bytes": BoundaryForestClassifier(
            **few, dtype="int8", feature_weights="learned"
        ).fit(X - 4, rng.choice(["a", "bb", "ccc"], n)),
        "replaced": replaced(BoundaryForestNeighbors(**few, search="paper").fit(X)),
    }
    made = {}
    for name, forest in kinds.items():
        forest.save(folder / name)
        made[name] = (folder / name).read_bytes()
    return made


def replaced(forest, first=20):
    """The same with all trees grown anew, without the first examples, and two that only grow."""
    for place, answering in ((0, True), (1, True), (2, True), (3, True), (3, False), (1, False)):
        (arrivals, _), engine = forest.trees()[place], forest.fitted.engine
        engine.regrow(place, arrivals[arrivals >= first].astype(np.uint64), answering)
    return forest


def raw_rows(n):
    """Rows of every kind of column."""
    return {
        "size": [i * 7 % 31 / 4 for i in range(n)],
        "color": [("red", "blue", "grün")[i % 3] for i in range(n)],
        "round": [i % 4 > 1 for i in range(n)],
        "kind": [("x", "y")[i * i % 5 % 2] for i in range(n)],
    }


class Parts:
    """A file taken apart, to be changed and put together again with the right checksums."""

    def __init__(self, content):
        (length,) = struct.unpack("<Q", content[:8])
        described = json.loads(content[8 : 8 + length])
        self.document = json.loads(described.pop("__metadata__")["model"])
        self.document.pop("checksums")
        self.arrays = {}
        for name, entry in described.items():
            begin, end = (8 + length + offset for offset in entry["data_offsets"])
            array = np.frombuffer(content[begin:end], dtype=DTYPES[entry["dtype"]])
            self.arrays[name] = array.reshape(entry["shape"]).copy()

    def boundaries(self, content):
        at = len(content) - sum(array.nbytes for array in self.arrays.values())
        for array in self.arrays.values():
            yield at
            at += array.nbytes
        yield at

    def content(self):
        entries, checksums, start = [], {}, 0
        for name, array in self.arrays.items():
            entry = Entry(name, array.dtype, array.shape, start)
            entries.append(entry)
            checksums[name] = shown(zlib.crc32(array.tobytes(), entry.begin_checksum()))
            start += array.nbytes
        arrays = b"".join(array.tobytes() for array in self.arrays.values())
        return header(self.document, entries, checksums) + arrays


# Mutations: each takes a file's bytes and a generator, and returns other bytes


def flip_bits(content, rng):
    changed = bytearray(content)
    for _ in range(rng.integers(1, 9)):
        changed[rng.integers(len(changed))] ^= 1 << rng.integers(8)
    return bytes(changed)


def flip_header_bits(content, rng):
    (length,) = struct.unpack("<Q", content[:8])
    changed = bytearray(content)
    changed[rng.integers(8 + length)] ^= 1 << rng.integers(8)
    return bytes(changed)


def truncate(content, rng):
    return content[: rng.integers(len(content))]


def truncate_at_a_boundary(content, rng):
    boundaries = list(Parts(content).boundaries(content))
    return content[: max(0, boundaries[rng.integers(len(boundaries))] + rng.integers(-2, 3))]


def swap_arrays(content, rng):
    parts = Parts(content)
    one, two = rng.choice(list(parts.arrays), 2)
    parts.arrays[one], parts.arrays[two] = parts.arrays[two], parts.arrays[one]
    return parts.content()


def edit_document(content, rng):
    parts = Parts(content)
    edit_json(parts.document, rng)
    return parts.content()


def edit_frame(content, rng):
    """What a file says of columns; of its document, where it says nothing of them."""
    parts = Parts(content)
    if "frame" not in parts.arrays:
        return edit_document(content, rng)
    frame = json.loads(parts.arrays["frame"].tobytes())
    edit_json(frame, rng)
    parts.arrays["frame"] = np.frombuffer(json.dumps(frame).encode(), dtype=np.uint8)
    return parts.content()


def edit_json(here, rng):
    """Put something else somewhere, or take it away."""
    while True:
        at = rng.integers(len(here))
        key = list(here)[at] if isinstance(here, dict) else at
        inside = here[key]
        if not (isinstance(inside, dict | list) and inside and rng.random() < 0.8):
            break
        here = inside
    if isinstance(here, dict) and rng.random() < 0.2:
        del here[key]
    else:
        here[key] = NASTY[rng.integers(len(NASTY))]


def edit_values(content, rng):
    parts = Parts(content)
    name = rng.choice(list(parts.arrays))
    flat = parts.arrays[name].reshape(-1)
    for _ in range(rng.integers(1, 5)):
        if len(flat) == 0:
            break
        at = rng.integers(len(flat))
        way = rng.integers(4)
        if way == 0:
            flat[at] = flat[rng.integers(len(flat))]
        elif way == 1 and flat.dtype.kind == "f":
            with np.errstate(all="ignore"):
                flat[at] = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.5, 1e300, 2.0**32])
        elif way == 2:
            flat.view(np.uint8)[rng.integers(flat.nbytes)] ^= 1 << rng.integers(8)
        else:
            with np.errstate(all="ignore"):
                flat[at] = flat[at] + np.array(rng.integers(1, 3)).astype(flat.dtype)
    return parts.content()


def edit_shapes(content, rng):
    parts = Parts(content)
    name = rng.choice(list(parts.arrays))
    array = parts.arrays[name]
    way = rng.integers(5)
    if way == 0:
        array = array[: rng.integers(len(array) + 1)]
    elif way == 1:
        array = np.concatenate([array, array[:1]])
    elif way == 2:
        array = array.reshape(-1)
    elif way == 3:
        dtypes = [dtype for dtype in NAMES if array.nbytes % dtype.itemsize == 0]
        array = array.reshape(-1).view(dtypes[rng.integers(len(dtypes))])
    else:
        array = array.reshape(1, *array.shape)
    parts.arrays[name] = np.ascontiguousarray(array)
    return parts.content()


def drop_or_add_an_array(content, rng):
    parts = Parts(content)
    name = rng.choice(list(parts.arrays))
    array = parts.arrays.pop(name)
    if rng.random() < 0.5:
        parts.arrays[rng.choice(["x", "ids", "classes", "classes.text", "feature_names"])] = array
    return parts.content()


MUTATIONS = [
    flip_bits,
    flip_header_bits,
    truncate,
    truncate_at_a_boundary,
    swap_arrays,
    edit_document,
    edit_frame,
    edit_values,
    edit_values,
    edit_values,
    edit_shapes,
    drop_or_add_an_array,
]


def mutations(made, n, seed):
    """n mutated files: truncations at every boundary and 500 random lengths first, if n allows."""
    rng = np.random.default_rng(seed)
    names = sorted(made)
    if n >= 5000:
        for name in names:
            for at in Parts(made[name]).boundaries(made[name]):
                yield f"{name} cut at {at}", made[name][:at]
            n -= len(Parts(made[name]).arrays) + 1
        for _ in range(500):
            yield "cut", truncate(made[rng.choice(names)], rng)
        n -= 500
    for _ in range(n):
        mutate = MUTATIONS[rng.integers(len(MUTATIONS))]
        name = rng.choice(names)
        yield f"{name} {mutate.__name__}", mutate(made[name], rng)


def try_to_use(path, *, mmap, watched=contextlib.nullcontext):
    """Load a file; ask and teach what was loaded. "refused" or "loaded"."""
    try:
        with watched():
            with ModelFile(path) as file:  # an edited document may name functions
                functions = dict.fromkeys(loading.named_functions(file), difference)
            forest = load(path, mmap=mmap, **functions)
    except ModelFileError:
        return "refused"
    try:
        if isinstance(forest, FrameModel):
            forest.predict(raw_rows(5))
            forest = forest.partial_fit(raw_rows(5)).forest
        if forest.fitted is not None:
            use(forest)
    except (TypeError, ValueError):  # parameters that are wrong, which act when they are used
        return "loaded, and refused to be used"
    return "loaded"


def difference(a, b):
    return float(np.sum(a != b))


def use(forest):
    """One row and a block of rows, asked and taught."""
    settings = forest.fitted.settings
    X = np.arange(12 * forest.n_features_in_).reshape(12, -1) % 7
    X = X.astype(settings.element_type)
    for rows in (X[:1], X):
        forest.apply(rows)
        forest.kneighbors(rows, 2)
        if hasattr(forest, "predict"):
            forest.predict(rows)
    forest.fingerprint()
    y = X[:, : settings.label_length].astype(np.float64)
    if hasattr(forest, "classes_"):
        y = forest.classes_[:1].repeat(len(X))
    elif getattr(forest.fitted.labels, "one_output", False):
        y = y[:, 0]
    ids = None
    if settings.ids != "none":
        ids = [10**12 + i for i in range(len(X))]
        ids = ids if settings.ids == "int64" else [f"new {i}" for i in ids]
    forest.partial_fit(X, y, ids=ids)
    forest.explain(X[:1])


class Watch:
    """What loading allocates at once, told by a library; nothing is told without one."""

    def __init__(self, library):
        self._library = library and ctypes.CDLL(library)
        self.largest = 0
        if library:
            self._library.end_watching.restype = ctypes.c_size_t

    @contextlib.contextmanager
    def __call__(self):
        if not self._library:
            yield
            return
        self._library.begin_watching()
        try:
            yield
        finally:
            self.largest = self._library.end_watching()


def run(n, seed, n_examples=120, library=None):
    """All of it: how many were refused and loaded, and the worst of time and allocation."""
    told = Counter()
    slowest = most = 0.0
    watch = Watch(library)
    with tempfile.TemporaryDirectory() as folder:
        made = samples(Path(folder), n_examples)
        path = Path(folder) / "damaged"
        for content in made.values():  # so that all is imported
            path.write_bytes(content)
            assert try_to_use(path, mmap=False) == "loaded"
        try:
            for i, (what, content) in enumerate(mutations(made, n, seed)):
                faulthandler.dump_traceback_later(LONGEST, exit=True)
                path.write_bytes(content)
                start = time.perf_counter()
                try:
                    told[try_to_use(path, mmap=bool(i % 2), watched=watch)] += 1
                    assert watch.largest <= max(2 * len(content), ALLOWED), watch.largest
                except BaseException as error:
                    kept = Path(tempfile.gettempdir()) / "damaged.bf"
                    kept.write_bytes(content)
                    error.add_note(f"file {i}, {what}, seed {seed}; kept as {kept}")
                    raise
                slowest = max(slowest, time.perf_counter() - start)
                most = max(most, watch.largest / max(len(content), ALLOWED / 2))
        finally:
            faulthandler.cancel_dump_traceback_later()
    return dict(told), slowest, most


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--examples", type=int, default=120, help="that the samples have learned")
    parser.add_argument("--watch", help="the library that tells of allocations")
    arguments = parser.parse_args()
    start = time.perf_counter()
    told, slowest, most = run(
        arguments.mutations, arguments.seed, arguments.examples, arguments.watch
    )
    seconds = time.perf_counter() - start
    print(f"{sum(told.values())} files in {seconds:.0f} s: {told}")
    print(f"the slowest took {slowest:.3f} s")
    if arguments.watch:
        print(f"the largest allocation was {most:.2f} of the file (or of {ALLOWED // 2:,} bytes)")
