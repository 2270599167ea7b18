"""Data sets from the user's folder: as npz, as LIBSVM text, damaged, and not there at all."""

from __future__ import annotations

import sys

import dataset_samples as samples
import numpy as np
import pytest

from paper import datasets
from paper.datasets import catalogue

PAPER = ["dna", "letter", "mnist", "pendigits", "protein", "seismic"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The user's folder, empty, with an empty cache beside it; "tiny" is in the catalogue."""
    place = tmp_path / "folder"
    place.mkdir()
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(place))
    monkeypatch.setenv("BOUNDARY_FOREST_CACHE", str(tmp_path / "cache"))
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny())
    return place


def in_catalogue(monkeypatch, **changes):
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny(**changes))


def test_the_papers_six_come_first_among_the_names():
    assert datasets.names()[:6] == PAPER
    assert {"electricity", "covtype", "glove100", "california", "abalone"} < set(datasets.names())


@pytest.mark.parametrize("call", [datasets.load, datasets.available])
@pytest.mark.parametrize("name", ["minst", "", None, ["mnist"]])
def test_an_unknown_name_is_refused_with_the_known_ones(call, name):
    with pytest.raises(ValueError, match="must be one of dna, letter, mnist"):
        call(name)


def test_npz_is_loaded_as_it_is(folder):
    np.savez(folder / "tiny.npz", **samples.arrays(), other=np.arange(3))
    data = datasets.load("tiny")
    samples.assert_is_tiny(data)
    assert data.name == "tiny"
    assert data.description == "For tests."
    assert data.source == str(folder / "tiny.npz")
    assert "other" not in data


@pytest.mark.parametrize("ending", ["", ".bz2", ".xz"])
@pytest.mark.parametrize("published", ["", ".bz2"])
def test_libsvm_text_is_found_plain_or_compressed_however_it_is_published(
    ending, published, folder, monkeypatch
):
    in_catalogue(monkeypatch, ending=published)
    samples.write_texts(folder, ending)
    assert datasets.available("tiny")
    data = datasets.load("tiny")
    samples.assert_is_tiny(data)
    assert data.source == f"{folder / 'tiny'}{ending}, {folder / 'tiny.t'}{ending}"


def test_features_that_are_not_integers_become_float32(folder, monkeypatch):
    in_catalogue(monkeypatch, dtype="float32")
    for part, name in (("train", "tiny"), ("test", "tiny.t")):
        (folder / name).write_bytes(samples.text(part, scale=0.1))
    X = datasets.load("tiny").X_train
    assert X.dtype == np.float32
    np.testing.assert_array_equal(X, (samples.arrays()["X_train"] * 0.1).astype(np.float32))


def test_word_vectors_have_words_and_no_targets(folder, monkeypatch):
    in_catalogue(monkeypatch, y_dtype=None, n_classes=None, sources=None)
    made = samples.arrays()
    words = {f"words_{part}": np.array(list("ab" * 60))[: len(made[f"X_{part}"])] for part in
             ("train", "test")}  # fmt: skip
    np.savez(folder / "tiny.npz", X_train=made["X_train"], X_test=made["X_test"], **words)
    data = datasets.load("tiny")
    assert data.words_test.tolist() == words["words_test"].tolist()
    assert data.y_train is None
    assert data.y_test is None


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"X_train": np.zeros((60, 4), np.uint8)}, r"X_train has shape \(60, 4\)"),
        ({"X_test": np.zeros((30, 5))}, "X_test has .* dtype float64, not .* uint8"),
        ({"y_train": np.arange(59, dtype=np.int16)}, r"y_train has shape \(59,\)"),
        ({"y_test": np.zeros(30, np.int16)}, "y_test has 1 classes, not 3"),
        ({"y_test": None}, "y_test is missing; the file has X_train, y_train, X_test"),
    ],
)
def test_npz_with_other_arrays_is_refused_and_left_where_it_is(changes, message, folder):
    arrays = {**samples.arrays(), **changes}
    np.savez(folder / "tiny.npz", **{k: v for k, v in arrays.items() if v is not None})
    with pytest.raises(datasets.DataCorruptError, match=rf"tiny\.npz .*{message}"):
        datasets.load("tiny")
    assert (folder / "tiny.npz").exists()


def test_nan_and_pickled_objects_are_refused(folder, monkeypatch):
    in_catalogue(monkeypatch, dtype="float64")
    floats = {k: v.astype(float) if k[0] == "X" else v for k, v in samples.arrays().items()}
    np.savez(folder / "tiny.npz", **floats)
    datasets.load("tiny")
    floats["X_test"][3, 2] = np.nan
    np.savez(folder / "tiny.npz", **floats)
    with pytest.raises(datasets.DataCorruptError, match="X_test has NaN"):
        datasets.load("tiny")
    np.savez(folder / "tiny.npz", **{**floats, "X_test": floats["X_test"].astype(object)})
    with pytest.raises(datasets.DataCorruptError, match="allow_pickle"):
        datasets.load("tiny")


def test_every_damaged_file_is_named_whatever_reads_it(folder):
    np.savez(folder / "tiny.npz", **samples.arrays())
    whole = (folder / "tiny.npz").read_bytes()
    npy = np.lib.format.magic(1, 0) + whole
    for damaged in (b"", b"no zip file", whole[:-30], whole[:300], npy):
        (folder / "tiny.npz").write_bytes(damaged)
        with pytest.raises(datasets.DataCorruptError, match=r"tiny\.npz"):
            datasets.load("tiny")
    (folder / "tiny.npz").unlink()

    text = samples.text("train")
    for ending in ("", ".bz2", ".xz"):
        samples.write_texts(folder, ending)
        train = folder / f"tiny{ending}"
        compressed = samples.COMPRESS[ending]
        for damaged in (
            b"",
            b"<html>not found</html>\n",
            compressed(text)[:-40],
            compressed(text + b"1 6:1\n"),  # a feature too many
            compressed(text.replace(b":", b":0.", 1)),  # no integer
            compressed(b"0.5" + text[1:]),  # no class
            compressed(text.splitlines(keepends=True)[0]),
        ):
            train.write_bytes(damaged)
            with pytest.raises(datasets.DataCorruptError, match=rf"tiny{ending} is damaged"):
                datasets.load("tiny")
        train.unlink()


def test_a_text_of_the_users_needs_the_form_but_not_the_published_bytes(folder):
    samples.write_texts(folder)
    (folder / "tiny").write_bytes(b"# a comment\n" + samples.text("train"))
    samples.assert_is_tiny(datasets.load("tiny"))


def test_half_a_set_is_none(folder):
    samples.write_texts(folder)
    (folder / "tiny.t").unlink()
    (folder / "tiny.t").mkdir()  # a folder of that name is not the file
    assert not datasets.available("tiny")
    with pytest.raises(datasets.DataAbsentError):
        datasets.load("tiny", download=False)


@pytest.mark.parametrize("name", datasets.names())
def test_an_absent_set_is_reported_with_the_places_and_the_way_to_get_it(name, folder):
    assert not datasets.available(name)
    with pytest.raises(FileNotFoundError) as caught:
        datasets.load(name, download=False)
    assert isinstance(caught.value, datasets.DataAbsentError)
    message = str(caught.value)
    assert message.startswith(f"{name} is absent")
    assert str(folder) in message
    assert str(folder.parent / "cache") in message
    assert f"{name}.npz with the arrays X_train" in message
    assert ("https://www.csie.ntu.edu.tw/" in message) == (name in PAPER)
    assert not (folder.parent / "cache").exists()  # looking creates nothing


@pytest.mark.parametrize("value", [None, "", "/nonexistent/folder"])
def test_a_folder_that_is_not_set_or_not_there_is_no_crash(value, folder, monkeypatch):
    if value is None:
        monkeypatch.delenv("BOUNDARY_FOREST_DATA")
    else:
        monkeypatch.setenv("BOUNDARY_FOREST_DATA", value)
    with pytest.raises(datasets.DataAbsentError, match=value or "not set"):
        datasets.load("tiny", download=False)


def test_sets_that_are_not_published_in_this_form_are_not_downloaded(folder):
    with pytest.raises(datasets.DataAbsentError, match="california is absent"):
        datasets.load("california", download=True)


def test_without_pooch_only_a_download_is_refused(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.delenv("BOUNDARY_FOREST_CACHE")
    with pytest.raises(ImportError, match="pip install pooch"):
        datasets.load("tiny")
    with pytest.raises(datasets.DataAbsentError, match="pooch"):
        datasets.load("tiny", download=False)
    assert not datasets.available("tiny")
    samples.write_texts(folder)
    samples.assert_is_tiny(datasets.load("tiny"))
