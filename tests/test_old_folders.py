"""Durable folders of every earlier release open: two of each schema are kept in tests/data."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import nullcontext
from pathlib import Path

import durable_folders as made
import pytest

from boundary_forest import JournalError, durable, open_durable
from boundary_forest.durable.journal import SCHEMA

KEPT = sorted((Path(__file__).parent / "data").glob("durable-v*"))


@pytest.fixture(params=KEPT, ids=lambda path: path.name)
def folder(request, tmp_path):
    return Path(shutil.copytree(request.param, tmp_path / request.param.name))


def ids_stored(forest) -> set[str]:
    X = made.batch(0)[0]
    return set(forest.kneighbors(X, forest.stats()["examples_stored"])[1].ravel().tolist())


def check(forest, batches: range) -> None:
    plain = made.learn(made.model(), batches)
    assert forest.stats()["examples_seen"] == len(batches) * made.BATCH
    assert forest.fingerprint() == plain.fingerprint()
    assert ids_stored(forest) == ids_stored(plain)


def test_a_kept_folder_is_the_forest_that_was_left_and_goes_on(folder):
    with open_durable(folder) as forest:
        check(forest, range(made.BATCHES))
        assert forest.note == f"after batch {made.BATCHES - 1}"
        made.learn(forest, range(made.BATCHES, made.BATCHES + 2))
    with open_durable(folder) as forest:
        check(forest, range(made.BATCHES + 2))
        assert forest.note == f"after batch {made.BATCHES + 1}"
        forest.snapshot()
    with open_durable(folder) as forest:
        check(forest, range(made.BATCHES + 2))


def test_the_last_batch_of_a_kept_folder_can_be_taken_back(folder):
    with open_durable(folder, redo=True) as forest:
        assert forest.taken_back == f"after batch {made.BATCHES - 1}"
        assert forest.note == f"after batch {made.BATCHES - 2}"
        check(forest, range(made.BATCHES - 1))
    with open_durable(folder) as forest:
        check(forest, range(made.BATCHES - 1))


@pytest.mark.parametrize("step", ["journal.migrate", "opening._learn_again"])
def test_what_fails_while_it_is_brought_up_to_date_loses_nothing(folder, monkeypatch, step):
    module, _, name = step.partition(".")
    work = getattr(getattr(durable, module), name)

    def stop(*arguments, **more):
        work(*arguments, **more)
        raise MemoryError

    with monkeypatch.context() as fault:
        fault.setattr(f"boundary_forest.durable.{step}", stop)
        fails = name != "migrate" or "v1" in folder.name
        with pytest.raises(MemoryError) if fails else nullcontext():
            open_durable(folder).close()
    with open_durable(folder) as forest:
        check(forest, range(made.BATCHES))


def test_a_kept_folder_whose_batch_is_damaged_is_refused_and_left_as_it_is(tmp_path):
    folder = Path(shutil.copytree(KEPT[0], tmp_path / "folder"))
    journal = folder / "journal.sqlite"
    with sqlite3.connect(journal) as sql:
        sql.execute("UPDATE batches SET contents = 'text' WHERE first = 30")
    sql.close()
    for _ in range(2):
        with pytest.raises(JournalError, match="example 30 is damaged"):
            open_durable(folder)


def test_every_schema_is_kept():
    names = {path.name for path in KEPT}
    assert names == {
        f"durable-v{schema}{end}" for schema in range(1, SCHEMA + 1) for end in ("", "-killed")
    }
