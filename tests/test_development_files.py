"""Until the first release, files and folders of another layout are refused in one sentence."""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from pathlib import Path

import pytest
from damaged_files import samples

from boundary_forest import (
    BoundaryForestClassifier,
    JournalError,
    ModelFileError,
    load,
    open_durable,
)
from boundary_forest.files import LAYOUT, ModelFile, layout
from boundary_forest.files.loading import describe, verify
from boundary_forest.session.resume_state import ResumeState

KEPT = Path(__file__).parent / "data" / "development"  # a folder that a development version wrote
SENTENCE = (
    "it was written by a development version of boundary-forest; fit and save the model again with "
    "this version"
)


@pytest.fixture
def folder(tmp_path):
    """A folder of this version."""
    model = BoundaryForestClassifier(n_estimators=2, random_state=0)
    with open_durable(tmp_path / "folder", model) as forest:
        forest.partial_fit([[0], [9]], ["a", "b"])
    return tmp_path / "folder"


@pytest.mark.parametrize("read", [load, verify, describe])
def test_a_file_of_a_development_version_is_refused(read):
    with pytest.raises(ModelFileError) as refused:
        read(KEPT / "model.bf")
    assert str(refused.value) == f"{KEPT / 'model.bf'}: {SENTENCE}"


def test_a_file_of_another_layout_is_refused(folder, monkeypatch):
    forest = load(folder / "model.bf")
    with monkeypatch.context() as before:
        before.setattr(layout, "LAYOUT", LAYOUT + 1)
        forest.save(folder / "other.bf")
    with pytest.raises(ModelFileError, match=SENTENCE):
        load(folder / "other.bf")


def test_a_folder_of_a_development_version_is_refused_and_left_as_it_is(tmp_path):
    folder = Path(shutil.copytree(KEPT, tmp_path / "folder"))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    with pytest.raises(ModelFileError, match=SENTENCE):
        open_durable(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_journal_of_a_development_version_is_refused(folder):
    shutil.copy(KEPT / "journal.sqlite", folder)
    with pytest.raises(JournalError) as refused:
        open_durable(folder)
    assert str(refused.value) == f"{folder / 'journal.sqlite'}: {SENTENCE}"
    (folder / "model.bf").unlink()
    with pytest.raises(JournalError, match=SENTENCE):
        open_durable(folder, BoundaryForestClassifier())


def test_a_journal_of_another_layout_is_refused(folder):
    with sqlite3.connect(folder / "journal.sqlite") as sql:
        sql.execute(f"PRAGMA application_id = {LAYOUT + 1}")
    sql.close()
    with pytest.raises(JournalError, match=SENTENCE):
        open_durable(folder)


def test_a_change_of_the_layout_has_a_number_of_its_own(folder, tmp_path):
    """If this fails, put another number in files/layout.py, and both numbers here."""
    known = [*outlines(samples(tmp_path), tmp_path), keys(ResumeState().to_json())]
    sql = sqlite3.connect(folder / "journal.sqlite")
    known += sorted(str(row) for row in sql.execute("SELECT name, sql FROM sqlite_master"))
    sql.close()
    outline = zlib.crc32(json.dumps(known, sort_keys=True).encode())
    assert f"{LAYOUT:08X} {outline:08X}" == "5A31D0E8 336B7E42"


def outlines(names, folder):
    """Names and types of all that files hold, without its values."""
    for name in sorted(names):
        with ModelFile(folder / name) as file:
            document = {key: keys(value) for key, value in file.document.items()}
            document["checksums"] = None
            yield document
            yield sorted((e.name, e.dtype.name, len(e.shape)) for e in file.entries.values())
            for attached in file.document["attachments"]:
                yield keys(json.loads(file.array(attached, "uint8").tobytes()))


def keys(value):
    if isinstance(value, dict):
        return {key: keys(part) for key, part in value.items()}
    return keys(value[0]) if isinstance(value, list) and value else None
