"""load(path, mmap=True): positions stay in the file, unread and unchanged, and all else goes on."""

from __future__ import annotations

import gc
import pickle
from pathlib import Path

import numpy as np
import pytest
from damaged_files import Parts

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    ModelFileError,
    load,
)
from boundary_forest.files.loading import verify

X = np.random.default_rng(0).normal(size=(3000, 40)).astype(np.float32)


@pytest.fixture
def forest():
    return BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:2000])


@pytest.fixture
def path(forest, tmp_path):
    forest.save(tmp_path / "model.bf")
    return tmp_path / "model.bf"


def resident(path):
    """Kilobytes of the file that this process has in memory; None if it is not mapped."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    for i, line in enumerate(lines):
        if line.endswith(str(path)):
            return next(int(x.split()[1]) for x in lines[i:] if x.startswith("Rss:"))
    return None


linux = pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's smaps")


@linux
def test_opening_reads_no_position(path, forest):
    other = load(path, mmap=True)
    assert resident(path) == 0
    assert other.apply(X[:5]).tolist() == forest.apply(X[:5]).tolist()
    assert resident(path) > 0


@linux
def test_the_mapping_lives_as_long_as_its_forest(path, forest):
    other = load(path, mmap=True)
    path.unlink()
    gc.collect()
    assert other.fingerprint() == forest.fingerprint()
    assert resident(f"{path} (deleted)") is not None
    del other
    gc.collect()
    assert resident(f"{path} (deleted)") is None


def test_learning_goes_on_in_memory_and_the_file_stays_as_it_was(path, forest):
    before = path.read_bytes()
    other = load(path, mmap=True)
    for start in range(2000, 3000, 100):
        for one in (forest, other):
            one.partial_fit(X[start : start + 100])
    assert other.fingerprint() == forest.fingerprint()
    assert other.kneighbors(X[1990:2010], 3)[1].tolist() == (
        forest.kneighbors(X[1990:2010], 3)[1].tolist()
    )
    assert path.read_bytes() == before


def test_mapped_positions_are_not_counted_as_memory(path):
    assert load(path, mmap=True).stats()["bytes"]["positions"] < X.nbytes / 100
    assert load(path).stats()["bytes"]["positions"] > X[:2000].nbytes


def test_a_mapped_forest_can_be_saved_to_its_own_file_again_and_again(path, forest):
    other = load(path, mmap=True)
    for start in range(2000, 3000, 250):
        for one in (forest, other):
            one.partial_fit(X[start : start + 250])
        other.save(path)
        assert load(path).fingerprint() == other.fingerprint() == forest.fingerprint()
        other = load(path, mmap=True)


def test_two_forests_on_one_file_go_their_own_ways(path, forest):
    one, two = load(path, mmap=True), load(path, mmap=True)
    one.partial_fit(X[2000:2500])
    assert two.fingerprint() == forest.fingerprint()
    assert pickle.loads(pickle.dumps(one)).fingerprint() == one.fingerprint()


def poison(path, value, kept=0):
    """Overwrite the rows from the first that is not kept; the checksums stay right."""
    parts = Parts(path.read_bytes())
    parts.arrays["positions"][kept:] = value
    path.write_bytes(parts.content())


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 3e38])
@pytest.mark.parametrize("kept", [0, 1000])
def test_bad_positions_raise_where_they_are_read_and_else_answer_wrongly(value, kept, tmp_path):
    path = tmp_path / "model.bf"
    y = np.arange(2000) % 7
    BoundaryForestClassifier(n_estimators=3, random_state=0).fit(X[:2000], y).save(path)
    poison(path, value, kept)
    if np.isfinite(value):
        load(path)
    else:
        with pytest.raises(ModelFileError, match=r"positions: row \d+ .*finite"):
            load(path)
        with pytest.raises(ModelFileError, match="positions"):
            verify(path)
    other = load(path, mmap=True)
    with np.errstate(all="ignore"):
        assert other.predict(X[:300]).shape == (300,)
        assert other.predict(X[:1]).shape == (1,)
        assert other.kneighbors(X[:20], 30)[1].shape == (20, 30)
        other.explain(X[:1])
        other.partial_fit(X[2000:], np.arange(1000) % 7)
        assert other.stats()["examples_seen"] == 3000


def test_a_checksum_of_positions_is_left_to_verify(path):
    content = bytearray(path.read_bytes())
    at = content.index(X[7].tobytes())
    content[at] ^= 1
    path.write_bytes(content)
    load(path, mmap=True)
    for check in (load, verify):
        with pytest.raises(ModelFileError, match="positions: it is damaged"):
            check(path)
