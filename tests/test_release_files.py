"""Files of every release are loaded, and answer as they did; so are those of this version."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from damaged_files import samples
from release_files import ANSWERS, answers_of, durable_forests, write_release

import boundary_forest
from boundary_forest import ModelFileError
from boundary_forest.files import reading

RELEASES = Path(__file__).parent / "data" / "releases"
KEPT = sorted(path for path in RELEASES.glob("*") if path.is_dir())


@pytest.fixture(scope="module")
def current(tmp_path_factory):
    """What this version leaves, were it released."""
    return write_release(tmp_path_factory.mktemp("releases"))


def test_a_release_leaves_a_file_and_a_folder_of_every_kind(current, tmp_path):
    kinds = {f"models/{name}" for name in samples(tmp_path)}
    kinds |= {f"durable/{name}" for name in durable_forests()} | {"stream"}
    assert json.loads((current / ANSWERS).read_text()).keys() == kinds
    assert len(kinds) >= 18
    assert current.name == boundary_forest.__version__


def test_what_this_version_writes_answers_the_same_when_it_is_loaded_again(current):
    assert answers_of(current) == json.loads((current / ANSWERS).read_text())


def test_a_version_that_cannot_read_a_file_is_noticed(current, monkeypatch):
    monkeypatch.setattr(reading, "LAYOUT", reading.LAYOUT + 1)
    with pytest.raises(ModelFileError):
        answers_of(current)


@pytest.mark.parametrize("release", KEPT, ids=lambda path: path.name)
def test_files_of_an_earlier_release_answer_as_they_did(release):
    assert answers_of(release) == json.loads((release / ANSWERS).read_text())


@pytest.mark.skipif(
    boundary_forest.__version__ not in {path.name for path in KEPT}, reason="not released yet"
)
def test_the_files_that_are_kept_for_this_version_are_those_it_writes(current):
    kept = RELEASES / current.name
    assert (kept / ANSWERS).read_text() == (current / ANSWERS).read_text()
