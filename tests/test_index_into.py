"""``boundary-forest index --into``: more vectors for an index that is there."""

from __future__ import annotations

import json
import os
import signal

import numpy as np
import pytest
from stream_rows import write
from test_index_command import IDS, QUERIES, X, run, vectors

from boundary_forest import BoundaryForestNeighbors, load
from boundary_forest.cli import index
from boundary_forest.sources import binary_formats

__all__ = ["run"]  # a fixture
MORE = np.random.default_rng(5).normal(size=(60, 6)).astype(np.float32)


@pytest.fixture
def saved(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    assert run("index", source, "--id", "id", "--save", tmp_path / "index.bf")[0] == 0
    return tmp_path / "index.bf"


def test_rows_are_added_and_known_ids_replaced(run, tmp_path, saved):
    """What Python's upsert does, and the file is what it says."""
    ids = [*IDS[:20], *(f"new {i}" for i in range(40))]
    more = write(vectors(MORE, ids), tmp_path / "more.parquet")
    code, out, _ = run("index", more, "--id", "id", "--into", saved)
    assert code == 0
    assert "40, 20 replaced" in out
    assert "440 with 6 float32" in out
    found = load(saved)
    same = BoundaryForestNeighbors(random_state=0).fit(X, ids=IDS).upsert(MORE, ids)
    assert found.stats()["examples_stored"] == 440
    assert found.kneighbors(MORE, 1, return_distance=False).ravel().tolist() == ids
    np.testing.assert_array_equal(
        found.kneighbors(QUERIES, 5, exact=True), same.kneighbors(QUERIES, 5, exact=True)
    )
    # The columns that it was made of are still known.
    assert run("neighbors", saved, more, "-k", 1)[0] == 0
    code, out, _ = run("index", more, "--id", "id", "--into", saved, "--json")
    last = json.loads(out)
    assert (last["indexed"], last["added"], last["replaced"]) == (440, 0, 60)


def test_rows_without_ids_are_numbered_on(run, tmp_path):
    source = write(vectors(), tmp_path / "v.parquet")
    run("index", source, "--save", tmp_path / "index.bf", "--trees", 5)
    more = write(vectors(MORE, IDS[:60]), tmp_path / "more.arrow")
    other = tmp_path / "both.bf"
    code, _, _ = run("index", more, "--into", tmp_path / "index.bf", "--save", other, "--beam", 40)
    assert code == 0
    assert load(tmp_path / "index.bf").n_samples_fit_ == 400
    both = load(other)
    same = BoundaryForestNeighbors(n_estimators=5, random_state=0).fit(X).partial_fit(MORE)
    assert both.fingerprint() == same.fingerprint()
    assert both.beam == 40
    assert both.kneighbors(MORE[:3], 1, return_distance=False).ravel().tolist() == [400, 401, 402]


def test_mistakes_are_told_and_the_index_stays_as_it_was(run, tmp_path, saved):
    before = saved.read_bytes()
    more = write(vectors(MORE, IDS[:60]), tmp_path / "more.parquet")

    def refused(*arguments):
        code, _, err = run("index", *arguments)
        assert code == 2
        assert err.count("\n") == 1
        assert saved.read_bytes() == before
        return err

    into = ("--into", saved)
    assert "have ids: give the column with the ids by --id" in refused(more, *into)
    narrow = write(vectors(MORE[:, :4], IDS[:60]), tmp_path / "n.parquet")
    assert "contains lists of 4 numbers, but vectors have 6" in refused(narrow, "--id", "id", *into)
    numbers = write(vectors(MORE, list(range(60))), tmp_path / "i.parquet")
    assert "ids must be str as in the first batch" in refused(numbers, "--id", "id", *into)
    twice = write(vectors(MORE[:3], ["a", "b", "a"]), tmp_path / "t.parquet")
    assert "'a' occurs 2 times" in refused(twice, "--id", "id", *into)
    for option in (("--metric", "cosine"), ("--trees", 3), ("--children", 9), ("--seed", 1)):
        assert f"{option[0]} cannot be combined with --into" in refused(
            more, "--id", "id", *into, *option
        )
    assert "stores float32, and all its vectors" in refused(
        more, "--id", "id", *into, "--dtype", "float64"
    )
    assert "No such file" in refused(more, "--id", "id", "--into", tmp_path / "none.bf")
    assert "use --save FILE to create an index" in refused(more)
    BoundaryForestNeighbors(random_state=0).fit(X).save(tmp_path / "numbered.bf")
    assert "have no ids: omit --id" in refused(
        more, "--id", "id", "--into", tmp_path / "numbered.bf"
    )
    empty = write(vectors(X[:0], np.array([], dtype=str)), tmp_path / "e.parquet")
    assert "has no rows to index" in refused(empty, "--id", "id", *into)


def test_an_id_that_comes_twice_is_refused_wherever_the_source_is_cut(
    run, tmp_path, saved, monkeypatch
):
    monkeypatch.setattr(binary_formats, "BATCH_ROWS", 20)
    twice = write(vectors(MORE, [*IDS[:59], IDS[0]]), tmp_path / "t.parquet")
    code, _, err = run("index", twice, "--id", "id", "--into", saved)
    assert code == 2
    assert "ids must be unique, but 'v0' occurs more than once" in err
    assert load(saved).n_samples_fit_ == 400


@pytest.mark.parametrize("spelled", [[], ["--save", "index.bf"]])
def test_an_index_that_another_process_changed_is_not_replaced(
    spelled, run, tmp_path, saved, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    more = write(vectors(MORE, IDS[:60]), tmp_path / "more.parquet")
    other = BoundaryForestNeighbors(random_state=0).fit(X[:50], ids=IDS[:50])
    add = index._Adding.add

    def changed(*arguments):
        add(*arguments)
        other.save(saved)

    monkeypatch.setattr(index._Adding, "add", changed)
    code, _, err = run("index", more, "--id", "id", "--into", saved, *spelled)
    assert code == 2
    assert "was changed by another process" in err
    assert load(saved).fingerprint() == other.fingerprint()


def test_an_interrupt_saves_what_was_added_so_far(run, tmp_path, saved, monkeypatch):
    more = write(vectors(MORE, [f"new {i}" for i in range(60)]), tmp_path / "more.parquet")
    add = index._Adding.add

    def interrupted(*arguments):
        add(*arguments)
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(binary_formats, "BATCH_ROWS", 20)
    monkeypatch.setattr(index._Adding, "add", interrupted)
    code, out, _ = run("index", more, "--id", "id", "--into", saved)
    assert code == 130
    assert "after row 20" in out
    assert load(saved).stats()["examples_stored"] == 420
