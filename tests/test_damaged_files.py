"""No damaged file crashes, hangs or takes memory: it loads, or raises and says which array."""

from __future__ import annotations

import tracemalloc

import damaged_files
import numpy as np
import pytest
from damaged_files import Parts, mutations, samples, try_to_use

from boundary_forest import ModelFileError, load
from boundary_forest.files.loading import describe


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return samples(tmp_path_factory.mktemp("samples"))


def test_the_samples_themselves_load(made, tmp_path):
    for content in made.values():
        (tmp_path / "model.bf").write_bytes(Parts(content).content())
        assert try_to_use(tmp_path / "model.bf", mmap=False) == "loaded"


def test_a_damaged_file_loads_or_raises():
    told, slowest, _ = damaged_files.run(500, seed=1)
    assert sum(told.values()) == 500
    assert told["refused"] > 300
    assert told["loaded"] > 20  # an edit may make another sound forest
    assert slowest < damaged_files.LONGEST


def test_loading_takes_little_more_memory_than_the_file(made, tmp_path):
    path = tmp_path / "damaged"
    for what, content in mutations(made, 150, seed=2):
        path.write_bytes(content)
        tracemalloc.start()
        try_to_use(path, mmap=False) if "values" in what else _try_to_load(path)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 2 * len(content) + 500_000, what


def _try_to_load(path):
    try:
        load(path)
    except ModelFileError:
        return


def test_a_damaged_file_is_described_or_refused(made, tmp_path):
    path = tmp_path / "damaged"
    described, refused = [], []
    for _, content in mutations(made, 150, seed=3):
        path.write_bytes(content)
        try:
            described.append(describe(path))
        except ModelFileError as error:
            refused.append(str(error))
    assert len(refused) > 50
    assert all(str(path) in message for message in refused)
    assert len(described) > 10  # checksums of arrays are left to verify
    assert all(described)


def change(name, at, value):
    def apply(parts):
        parts.arrays[name].reshape(-1)[at] = value

    return apply


def document(value, *keys):
    def apply(parts):
        here = parts.document
        for key in keys[:-1]:
            here = here[key]
        here[keys[-1]] = value

    return apply


def shorten(name):
    def apply(parts):
        parts.arrays[name] = parts.arrays[name][:-1]

    return apply


def longer(name):
    def apply(parts):
        parts.arrays[name] = np.append(parts.arrays[name], parts.arrays[name][-1:])

    return apply


def drop(name):
    def apply(parts):
        del parts.arrays[name]

    return apply


WRONG = {
    "a position not a number": ("classes", change("positions", 11, np.nan), "positions: row 2"),
    "an infinite position": ("outputs", change("positions", 0, np.inf), "positions: row 0"),
    "too few positions": ("classes", shorten("positions"), "labels: it has"),
    "no positions": ("classes", drop("positions"), "positions: it is missing"),
    "a label that is no number": ("outputs", change("labels", 3, np.nan), "labels .*finite"),
    "a class that is none": ("classes", change("labels", 3, 77.0), "labels .*class"),
    "too few labels": ("classes", shorten("labels"), "labels: it has"),
    "arrivals in another order": ("classes", change("arrivals", 3, 0), "arrivals is not ascending"),
    "an arrival to come": ("classes", change("arrivals", -1, 10**6), "arrivals exceeds"),
    "an example not stored": ("classes", change("node_examples", 5, 10**6), "node_examples"),
    "an example twice": ("neighbors", change("node_examples", 5, 0), "node_examples: .*twice"),
    "a node under itself": ("classes", change("node_parents", 5, 5), "node_parents: .*parent"),
    "a node under a later one": ("classes", change("node_parents", 5, 6), "node_parents: .*parent"),
    "two roots": ("classes", change("node_parents", 5, 2**32 - 1), "node_parents: .*parent"),
    "no root": ("classes", change("node_parents", 0, 0), "node_parents: .*parent"),
    "many children": ("classes", change("node_parents", slice(1, 6), 0), "node_parents: .*child"),
    "sizes that do not add up": ("classes", change("tree_sizes", 0, 1), "tree_sizes"),
    "too few trees": ("buffered", shorten("tree_sizes"), "tree_sizes: it must have 120 trees"),
    "a generation too many": ("replaced", longer("tree_generations"), "tree_generations"),
    "a tree that grows nowhere": ("replaced", change("tree_places", 1, 4), "tree_places"),
    "trees that grow at one place": ("replaced", change("tree_places", 1, 1), "tree_places"),
    "no place for trees": ("replaced", drop("tree_places"), "tree_places: it is missing"),
    "no generations": ("replaced", drop("tree_generations"), "tree_generations: it is missing"),
    "classes out of order": ("classes", change("classes", 0, ord("z")), "classes are not sorted"),
    "no text": ("classes", change("classes", 0, 0x110000), "classes: it is not text"),
    "a code twice": ("classes", change("class_codes", 0, 1), "class_codes"),
    "a code beyond all": ("classes", change("class_codes", 0, 99), "class_codes"),
    "no number of codes": ("classes", document(None, "forest", "n_codes"), "document: n_codes"),
    "too many codes": ("classes", document(99, "forest", "n_codes"), "n_codes must be"),
    "no declarations": ("classes", drop("class_declared"), "class_declared"),
    "an unknown kind of object": ("objects", change("classes.text", 0, ord("!")), "classes.text"),
    "objects that overlap": ("objects", change("classes.ends", 0, 10**9), "classes.ends"),
    "an id twice": ("outputs", change("ids", 3, 4), "ids: .*unique"),
    "too few ids": ("outputs", shorten("ids"), "ids: .*one per"),
    "another spread": ("outputs", change("spread", 0, 7.0), "spread"),
    "a short spread": ("outputs", shorten("spread"), "spread"),
    "another estimator": (
        "classes",
        document("os.system", "estimator"),
        "document: unknown estimator",
    ),
    "no forest": ("classes", document([], "forest"), "document: its forest"),
    "no seed": ("classes", document(-1, "forest", "seed"), "document: seed must"),
    "fewer seen": ("classes", document(3, "forest", "seen"), "arrivals exceeds"),
    "an order that is none": (
        "classes",
        document([3], "forest", "order"),
        "document: order must be",
    ),
    "more learned than there were": (
        "classes",
        document([3, 4], "forest", "order"),
        "document: order must not",
    ),
    "more seen": ("neighbors", document(10**6, "forest", "seen"), "arrivals has fewer"),
    "endlessly many seen": ("neighbors", document(2**60, "forest", "seen"), "document: seen must"),
    "endlessly many classes": ("classes", document(2**31, "forest", "n_classes"), "classes"),
    "counts that are none": ("classes", document([1], "forest", "counts"), "document: counts must"),
    "endlessly many trees": (
        "classes",
        document(10**6, "forest", "in_use", "n_estimators"),
        "tree_sizes: it must have 1000000 trees",
    ),
    "no metric": ("classes", document("x", "forest", "in_use", "metric"), "document: .*metric"),
    "fewer children": ("classes", document(2, "forest", "in_use", "max_children"), "node_parents"),
    "a metric for others": (
        "classes",
        document("inner_product", "forest", "in_use", "metric"),
        "document: .*inner_product",
    ),
    "one output of two": ("outputs", document(True, "forest", "one_output"), "one_output"),
    "a parameter too many": ("classes", document(1, "parameters", "x"), "document: its parameters"),
    "a random state that is none": (
        "outputs",
        document([1], "parameters", "random_state", "RandomState", "key"),
        "document: its random_state",
    ),
}


@pytest.mark.parametrize(("sample", "damage", "what"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_named(made, sample, damage, what, tmp_path):
    parts = Parts(made[sample])
    damage(parts)
    path = tmp_path / "model.bf"
    path.write_bytes(parts.content())
    with pytest.raises(ModelFileError, match=what) as refused:
        load(path)
    assert str(path) in str(refused.value)
    if sample != "buffered" and "positions: row" not in what:
        with pytest.raises(ModelFileError, match=what):  # all but positions are checked then too
            load(path, mmap=True)


@pytest.mark.parametrize("sample", ["classes", "objects", "outputs", "neighbors", "buffered"])
def test_a_changed_byte_is_found_by_the_checksum_of_its_array(made, sample, tmp_path):
    parts, content = Parts(made[sample]), made[sample]
    boundaries = list(parts.boundaries(content))
    for name, begin, end in zip(parts.arrays, boundaries, boundaries[1:], strict=False):
        if begin == end:
            continue
        changed = bytearray(content)
        changed[(begin + end) // 2] ^= 1
        (tmp_path / "model.bf").write_bytes(changed)
        with pytest.raises(ModelFileError, match=f"{name}: it is damaged"):
            load(tmp_path / "model.bf")


def test_a_changed_document_is_found_by_its_checksum(made, tmp_path):
    content = made["classes"].replace(b'\\"seen\\": 120', b'\\"seen\\": 121')
    assert content != made["classes"]
    (tmp_path / "model.bf").write_bytes(content)
    with pytest.raises(ModelFileError, match="document is damaged"):
        load(tmp_path / "model.bf")


class Empty:
    """An array without an element, which may have any length in another dimension."""

    nbytes = 0

    def __init__(self, dtype, shape):
        self.dtype, self.shape = np.dtype(dtype), shape

    def tobytes(self):
        return b""


@pytest.mark.parametrize("length", [0, 2**30, 2**31, 2**62, 2**63, 2**64 - 1])
def test_empty_arrays_of_any_shape_are_refused(made, tmp_path, length):
    for name, dtype in (("feature_names", "<u4"), ("ids", "<u4"), ("labels", "<f8")):
        for shape in ((0, length), (length, 0)):
            parts = Parts(made["classes"])
            for part in (f"{name}.text", f"{name}.ends", name):
                parts.arrays.pop(part, None)
            parts.arrays[name] = Empty(dtype, shape)
            parts.document["forest"]["has_feature_names"] = name == "feature_names"
            (tmp_path / "model.bf").write_bytes(parts.content())
            with pytest.raises(ModelFileError, match=name):
                load(tmp_path / "model.bf")
