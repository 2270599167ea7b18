"""What users of other indexes do with this one: it works, or an error names what does."""

from __future__ import annotations

import pickle
from ipaddress import ip_address
from pathlib import PurePosixPath
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from damaged_files import Parts
from sklearn.base import clone

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    load,
    open_durable,
)
from boundary_forest.durable import durable_forest
from boundary_forest.estimators.familiar_names import ELSEWHERE
from boundary_forest.files import ModelFileError

X = np.random.default_rng(0).normal(size=(80, 4))
IDS = [f"row {i}" for i in range(80)]

every_search = pytest.mark.parametrize("search", ["graph", "paper"])


def index(**params) -> BoundaryForestNeighbors:
    return BoundaryForestNeighbors(**{"n_estimators": 3, "random_state": 0, **params})


# Filters


@every_search
@pytest.mark.parametrize("ids", [None, IDS, range(100, 180)], ids=["arrivals", "text", "int"])
def test_a_function_of_an_id_is_the_mask_of_the_ids_it_allows(ids, search):
    made = index(search=search).fit(X, ids=ids)
    names = list(range(80)) if ids is None else list(ids)
    allowed = {name for i, name in enumerate(names) if i % 3}
    called = []

    def function(name):
        called.append(name)
        return "yes" if name in allowed else ""

    mask = np.array([name in allowed for name in names])
    for method, limit in ((made.kneighbors, 5), (made.radius_neighbors, 1.5)):
        for found, expected in zip(
            method(X, limit, allowed=function), method(X, limit, allowed=mask), strict=True
        ):
            assert [*map(list, found)] == [*map(list, expected)]
    assert called == names * 2  # once per call, whatever the number of queries


def test_a_function_is_not_called_for_what_was_forgotten():
    made = index().fit(X, ids=IDS)
    made.forget(IDS[:20])
    called = []
    made.kneighbors(X[:2], 3, allowed=lambda name: called.append(name) or True)
    assert called == IDS[20:]


def test_a_function_that_fails_or_allows_too_little_says_so():
    made = index().fit(X, ids=IDS)
    with pytest.raises(ZeroDivisionError):
        made.kneighbors(X, 1, allowed=lambda name: 1 / 0)
    with pytest.raises(ValueError, match=r"between 1 and 0 \(the examples allowed\)"):
        made.kneighbors(X, 1, allowed=lambda name: False)
    with pytest.raises(TypeError, match="a boolean mask, ids or a function of an id, got 7"):
        made.kneighbors(X, 1, allowed=7)


# An index that becomes empty


@every_search
@pytest.mark.parametrize("ids", [IDS, range(80)], ids=["text", "int"])
def test_an_index_that_forgot_everything_is_as_new(ids, search, tmp_path):
    ids = list(ids)
    made = index(search=search).fit(X, ids=ids)
    made.forget(ids[:30])
    made.forget(ids[30:])
    new = index(search=search).fit(X[:50], ids=ids[:50])
    made.save(tmp_path / "index.bf")
    copies = [made, load(tmp_path / "index.bf"), load(tmp_path / "index.bf", mmap=True)]
    for one in (*copies, pickle.loads(pickle.dumps(made))):
        assert len(one) == one.n_samples_fit_ == 0
        assert list(one) == []
        assert ids[0] not in one
        assert one.radius_neighbors(X[:1], 9.0)[1][0].size == 0
        assert one.stats()["examples_stored"] == 0
        with pytest.raises(ValueError, match="the index is empty: add vectors"):
            one.kneighbors(X[:1], 1)
        with pytest.raises(ValueError, match="features"):
            one.partial_fit(X[:1, :3], ids=ids[:1])  # it is still an index of such vectors
        with pytest.raises(KeyError, match="unknown id"):
            one.forget(ids[:1])
        one.partial_fit(X[:20], ids=ids[:20]).partial_fit(X[20:50], ids=ids[20:50])
        assert one.fingerprint() == new.fingerprint()


def test_a_file_without_examples_must_be_that_of_an_empty_index(tmp_path):
    path = tmp_path / "index.bf"
    index().fit(X, ids=IDS).forget(IDS).save(path)
    content = path.read_bytes()
    parts = Parts(content)
    parts.document["forest"]["seen"] = 5
    path.write_bytes(parts.content())
    with pytest.raises(ModelFileError, match=r"shape \(0, 4\)"):
        load(path)
    parts = Parts(content)
    parts.document["estimator"] = "BoundaryForestRegressor"
    path.write_bytes(parts.content())
    with pytest.raises(ModelFileError):
        load(path)


def test_the_command_line_knows_an_empty_index(told, tmp_path):
    path = tmp_path / "index.bf"
    index().fit(X, ids=range(80)).forget(range(80)).save(path)
    np.savez(tmp_path / "rows.npz", X=X, y=np.arange(80))
    code, _, error = told("neighbors", path, tmp_path / "rows.npz", "-k", 1, "--id", "y")
    assert code == 2
    assert f"{path} is empty: add vectors with index --into {path}" in error
    assert told("index", tmp_path / "rows.npz", "--id", "y", "--into", path)[0] == 0
    assert len(load(path)) == 80


def test_vectors_may_be_put_into_an_empty_index_by_upsert():
    made = index().fit(X, ids=IDS).forget(IDS)
    made.upsert(X[:10], IDS[:10])
    assert list(made) == IDS[:10]
    assert made.kneighbors(X[:1], 1)[1].tolist() == [[IDS[0]]]


def test_a_request_with_an_unknown_id_forgets_nothing():
    made = index().fit(X, ids=IDS)
    with pytest.raises(KeyError, match="unknown id"):
        made.forget([*IDS[1:], "other"])
    assert len(made) == 80
    made.forget([*IDS[1:], *IDS[1:]])
    assert list(made) == IDS[:1]


def test_readers_of_an_index_that_becomes_empty_keep_what_they_read():
    made = index().fit(X, ids=IDS)
    fitted = made.fitted
    made.forget(IDS)
    assert fitted.engine.stats()["examples_stored"] == 80


def test_a_classifier_keeps_at_least_one_example():
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0).fit(X, [0, 1] * 40, ids=IDS)
    with pytest.raises(ValueError, match="must not be those of all stored examples"):
        forest.forget([one for one in IDS if forest.fitted.engine.named([one])[0][0]])


# A durable index


@every_search
def test_a_durable_index_is_a_container_and_may_become_empty(search, tmp_path):
    with open_durable(tmp_path, index(search=search)) as made:
        assert made
        assert len(made) == 0
        made.partial_fit(X, ids=IDS)
        assert len(made) == 80
        assert IDS[3] in made
        assert "other" not in made
        assert list(made) == IDS
        np.testing.assert_array_equal(made.get(IDS[2:4]), X[2:4])
        made.forget(IDS)
        assert len(made) == 0
    with open_durable(tmp_path) as made:
        assert len(made) == made.examples_seen == 0
        made.partial_fit(X[:30], ids=IDS[:30])
    with open_durable(tmp_path) as made:  # from the journal
        assert list(made) == IDS[:30]
        assert made.fingerprint() == index(search=search).fit(X[:30], ids=IDS[:30]).fingerprint()


@pytest.mark.parametrize(("fails", "left"), [("write_model", 80), ("drop_until", 0)])
def test_a_folder_that_fails_to_become_empty_is_whole(fails, left, tmp_path, monkeypatch):
    """Before the snapshot nothing is forgotten; after it, the journal's rows do not come back."""

    def fail(*_):
        raise OSError("the disk is full")

    made = open_durable(tmp_path, index())
    made.partial_fit(X, ids=IDS)
    with monkeypatch.context() as patched:
        target = durable_forest if fails == "write_model" else durable_forest.Journal
        patched.setattr(target, fails, fail)
        with pytest.raises(OSError, match="disk is full"):
            made.forget(IDS)
    with open_durable(tmp_path) as made:
        assert len(made) == left
        made.upsert(X[:30] + 1, IDS[:30])
    with open_durable(tmp_path) as made:
        assert len(made) == max(left, 30)
        np.testing.assert_array_equal(made.get(IDS[:30]), X[:30] + 1)


def test_an_empty_durable_index_keeps_a_seed_that_was_drawn(tmp_path):
    drawn = BoundaryForestNeighbors(n_estimators=3).fit(X, ids=IDS)
    with open_durable(tmp_path, drawn) as made:
        made.forget(IDS)
        made.partial_fit(X[:30], ids=IDS[:30])
        expected = made.fingerprint()
    with open_durable(tmp_path) as made:
        assert made.fingerprint() == expected


def test_a_durable_classifier_is_no_container(tmp_path):
    with open_durable(tmp_path, BoundaryForestClassifier(random_state=0)) as forest:
        assert forest
        with pytest.raises(TypeError, match="len"):
            len(forest)
        with pytest.raises(TypeError, match="not iterable"):
            list(forest)


# Columns of lists


LISTS = {
    "pandas": pd.Series(X.tolist()),
    "pandas of arrays": pd.Series(list(X)),
    "a frame": pd.DataFrame({"embedding": list(X)}),
    "objects": pd.Series(list(X)).to_numpy(),
    "polars": pl.Series(X.tolist()),
    "polars arrays": pl.Series(X.tolist(), dtype=pl.Array(pl.Float64, 4)),
    "a polars frame": pl.DataFrame({"embedding": X.tolist()}),
    "pyarrow": pa.array(X.tolist()),
    "pyarrow fixed": pa.chunked_array([pa.array(X.tolist(), pa.list_(pa.float64(), 4))]),
    "a table": pa.table({"embedding": X.tolist()}),
}


@pytest.mark.parametrize("column", LISTS.values(), ids=LISTS.keys())
def test_a_column_of_lists_is_a_matrix(column):
    made = index().fit(column, ids=IDS)
    plain = index().fit(X, ids=IDS)
    assert made.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(made.kneighbors(column, 3)[1], plain.kneighbors(X, 3)[1])
    made.upsert(column[:3], IDS[:3])
    forests = [
        BoundaryForestClassifier(n_estimators=3, random_state=0).fit(rows, [0, 1] * 40)
        for rows in (column, X)
    ]
    assert forests[0].fingerprint() == forests[1].fingerprint()
    assert forests[0].predict(column).tolist() == forests[1].predict(X).tolist()


def test_types_of_listed_numbers_are_kept():
    made = index().fit(pd.Series(list(X.astype(np.float32))), ids=IDS)
    assert made.get(IDS[:1]).dtype == np.float32


def test_lists_that_are_missing_or_of_other_lengths_are_named():
    with pytest.raises(ValueError, match="a list in each row, but row 1 has None"):
        index().fit(pd.Series([[1.0, 2.0], None, [3.0, 4.0]]))
    with pytest.raises(ValueError, match="one length, but row 2 has 1 numbers and row 0 has 2"):
        index().fit(pd.Series([[1.0, 2.0], [3.0, 4.0], [5.0]]))
    with pytest.raises(ValueError, match="a list in each row, but row 0 has None"):
        index().fit(pd.Series([None, [3.0, 4.0]]))


# Ids


@pytest.mark.parametrize(
    "make",
    [lambda i: UUID(int=i), lambda i: PurePosixPath(f"a/{i}"), lambda i: ip_address(2**24 + i)],
)
def test_objects_whose_text_identifies_them_are_ids(make):
    ids = [make(i) for i in range(80)]
    made = index().fit(X, ids=ids)
    assert list(made) == [str(one) for one in ids]
    assert ids[3] in made
    assert str(ids[3]) in made
    made.forget(ids[:3])
    assert ids[0] not in made
    made.upsert(X[:2], pd.Series(ids[:2]))
    assert len(made) == 79


def test_columns_of_text_are_ids():
    for ids in (pd.Series(IDS, dtype="string"), pl.Series(IDS), pa.array(IDS), pd.Index(IDS)):
        assert list(index().fit(X, ids=ids)) == IDS


@pytest.mark.parametrize("one", [None, 1.5, b"a", (1, 2), object(), pd.Timestamp("2024-06-29")])
def test_other_objects_are_refused(one):
    ids = np.empty(80, object)
    ids[:] = [one] * 80
    with pytest.raises(TypeError, match=r"ids must be all integers .* or all strings, got values"):
        index().fit(X, ids=ids)


# Names


def test_names_of_other_indexes_lead_to_ours(tmp_path):
    made = index().fit(X, ids=IDS)
    for name, ours in ELSEWHERE.items():
        assert not hasattr(made, name)
        with pytest.raises(AttributeError, match=f"no attribute '{name}': use") as raised:
            getattr(made, name)
        method = ours.partition("(")[0].removeprefix("boundary_forest.")
        assert str(raised.value).endswith(ours)
        assert method in ("len", "list", "load") or hasattr(made, method) or "nothing" in ours
    with pytest.raises(AttributeError, match=r"no attribute 'other'$"):
        made.other  # noqa: B018
    with (
        open_durable(tmp_path, made) as durable,
        pytest.raises(AttributeError, match=r"use kneighbors\("),
    ):
        durable.knn_query(X, 3)


def test_search_is_a_parameter_that_says_so_when_it_is_called():
    made = index(search="paper").fit(X)
    for one in (
        made,
        clone(made),
        pickle.loads(pickle.dumps(made)),
        index().set_params(search="paper"),
    ):
        assert one.search == "paper"
        assert one.get_params()["search"] == "paper"
        assert type(one.get_params()["search"]) is type(vars(one)["search"]) is str
        with pytest.raises(TypeError, match=r"search is a parameter .* use kneighbors\(X, n_neig"):
            one.search(X, 10)
    assert not hasattr(BoundaryForestNeighbors.__new__(BoundaryForestNeighbors), "search")
    made.search = made.search  # as a SearchName
    assert type(made.get_params()["search"]) is str
