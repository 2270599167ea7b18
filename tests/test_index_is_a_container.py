"""An index has a length, tells which ids it has, returns their vectors and lists them."""

from __future__ import annotations

import pickle
from uuid import UUID

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from boundary_forest import BoundaryForestNeighbors, load

X = np.random.default_rng(0).normal(size=(60, 4))
INTEGERS = [1000 - 7 * i for i in range(60)]
NAMES = {"int": INTEGERS, "text": [f"row {i} é" for i in INTEGERS]}

every_kind = pytest.mark.parametrize("ids", NAMES.values(), ids=NAMES.keys())
every_search = pytest.mark.parametrize("search", ["graph", "paper"])


def index(**params) -> BoundaryForestNeighbors:
    return BoundaryForestNeighbors(**{"n_estimators": 3, "random_state": 0, **params})


def check(made: BoundaryForestNeighbors, rows: dict) -> None:
    """It has exactly these rows, by their ids in order of arrival."""
    assert made
    assert len(made) == len(rows)
    assert list(made) == list(rows)
    assert all(type(one) in (int, str) for one in made)
    assert all(one in made for one in rows)
    np.testing.assert_array_equal(made.get(list(rows)), list(rows.values()))


def test_before_fitting_it_is_empty_and_yet_an_index():
    made = index()
    assert made
    assert len(made) == 0
    assert list(made) == []
    assert 0 not in made
    assert "a" not in made
    with pytest.raises(NotFittedError):
        made.get([0])


@every_search
def test_without_ids_it_lists_numbers_of_rows_and_has_no_id(search):
    made = index(search=search).fit(X[:40]).partial_fit(X[40:])
    assert len(made) == 60
    assert list(made) == list(range(60))
    assert 0 not in made
    with pytest.raises(ValueError, match="have no ids"):
        made.get([0])


@every_search
@every_kind
def test_it_is_a_container_of_ids(ids, search):
    made = index(search=search).fit(X[:40], ids=ids[:40])
    assert ids[40] not in made
    made.partial_fit(X[40:], ids=np.array(ids[40:]))
    check(made, dict(zip(ids, X, strict=True)))
    turned = [ids[5], ids[2], ids[5]]
    np.testing.assert_array_equal(made.get(turned), X[[5, 2, 5]])
    np.testing.assert_array_equal(made.get(np.array(turned)), X[[5, 2, 5]])
    np.testing.assert_array_equal(made.get(iter(turned)), X[[5, 2, 5]])
    assert made.get([]).shape == (0, 4)
    for other in (None, 1.5, [ids[0]], b"a", object(), 2**70, "a", -1):
        assert other not in made


@every_search
@every_kind
@pytest.mark.parametrize("erase", [False, True])
def test_what_is_forgotten_is_not_in_it(ids, search, erase):
    made = index(search=search).fit(X, ids=ids)
    rows = dict(zip(ids, X, strict=True))
    gone = ids[10:40:3] + ids[-1:]
    made.forget(gone)
    if erase:
        made.erase_forgotten()
    for one in gone:
        del rows[one]
        assert one not in made
    check(made, rows)
    with pytest.raises(KeyError, match="unknown id"):
        made.get(gone[:1])
    made.partial_fit(X[:1] + 9, ids=gone[:1])
    check(made, rows | {gone[0]: X[0] + 9})


@every_kind
def test_an_upsert_replaces_a_vector(ids):
    made = index().fit(X[:50], ids=ids[:50])
    rows = dict(zip(ids[:50], X, strict=False))
    made.upsert(X[48:54] + 1, ids[48:54])
    for one in ids[48:50]:
        del rows[one]  # it is stored last again
    check(made, rows | dict(zip(ids[48:54], X[48:54] + 1, strict=True)))


@every_kind
def test_unknown_ids_are_listed(ids):
    made = index().fit(X[:30], ids=ids[:30])
    with pytest.raises(KeyError) as raised:
        made.get([ids[40], ids[0], ids[50]])
    assert f"get() got 2 unknown ids: {ids[40]!r}, {ids[50]!r}" in str(raised.value.args[0])
    with pytest.raises(TypeError, match="ids must be"):
        made.get([1.5])
    with pytest.raises(TypeError, match="list or an array"):
        made.get("row")


def test_uuids_become_text():
    ids = [UUID(int=i) for i in range(60)]
    made = index().fit(X, ids=ids)
    check(made, {str(one): x for one, x in zip(ids, X, strict=True)})
    assert ids[3] in made
    assert UUID(int=99) not in made
    np.testing.assert_array_equal(made.get(ids[3:5]), X[3:5])
    assert made.kneighbors(X[:1], 1)[1].tolist() == [[str(ids[0])]]
    made.forget(ids[:1])
    assert ids[0] not in made


@pytest.mark.parametrize("dtype", ["uint8", "int8", "float16", "float32", "float64"])
def test_vectors_come_back_in_the_type_in_which_they_are_stored(dtype):
    rows = np.abs(X * 20).astype(dtype)
    found = index(dtype=dtype).fit(rows, ids=INTEGERS).get(INTEGERS[::-1])
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, rows[::-1])
    found[:] = 0  # a copy


@pytest.mark.parametrize(("alias", "name"), [("ip", "inner_product"), ("angular", "cosine")])
def test_metrics_have_the_names_that_other_indexes_give_them(alias, name):
    one, other = (index(metric=metric).fit(X) for metric in (alias, name))
    assert one.fingerprint() == other.fingerprint()
    for mine, theirs in zip(one.kneighbors(X, 3), other.kneighbors(X, 3), strict=True):
        np.testing.assert_array_equal(mine, theirs)
    np.testing.assert_array_equal(one.fit_transform(X).toarray(), other.fit_transform(X).toarray())


@every_kind
def test_copies_have_what_it_has_and_clones_nothing(ids, tmp_path):
    made = index().fit(X, ids=ids)
    made.forget(ids[:3])
    made.save(tmp_path / "index.bf")
    rows = dict(zip(ids[3:], X[3:], strict=True))
    mapped = load(tmp_path / "index.bf", mmap=True)
    for other in (pickle.loads(pickle.dumps(made)), load(tmp_path / "index.bf"), mapped):
        check(other, rows)
    assert len(clone(made)) == 0
    assert list(clone(made)) == []
