"""Frames, sparse matrices and labels of every kind: taken as they are, or refused by name."""

from __future__ import annotations

import datetime
import enum
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from conftest import answers, state, unchanged
from scipy import sparse

from boundary_forest import BoundaryForestClassifier
from boundary_forest.estimators import blocks

# --- Frames ---------------------------------------------------------------------------------------

COLUMNS = ["width", "height", "weight", "age"]


@pytest.fixture(params=["pandas", "polars"])
def frame(request):
    library = pytest.importorskip(request.param)
    if request.param == "pandas":
        return lambda X, columns=COLUMNS: library.DataFrame(X, columns=columns)
    return lambda X, columns=COLUMNS: library.DataFrame(X, schema=columns)


def test_frames_teach_what_their_values_would(task, frame):
    forest = task.forest().fit(frame(task.X), task.y)
    forest.partial_fit(frame(task.X_more), task.y_more)
    plain = task.taught().partial_fit(task.X_more, task.y_more)
    assert forest.feature_names_in_.tolist() == COLUMNS
    assert forest.fingerprint() == plain.fingerprint()
    assert answers(forest, frame(task.queries)) == answers(plain, task.queries)


def test_fit_forgets_feature_names(task, frame):
    forest = task.forest().fit(frame(task.X), task.y).fit(task.X, task.y)
    assert not hasattr(forest, "feature_names_in_")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert state(forest, task.queries) == state(task.taught(), task.queries)


@pytest.mark.parametrize("columns", [COLUMNS[::-1], ["width", "height", "weight", "price"]])
def test_other_feature_names_are_refused_and_teach_nothing(task, frame, columns):
    forest = task.forest().fit(frame(task.X), task.y)
    with (
        unchanged(forest, frame(task.queries)),
        pytest.raises(ValueError, match="feature names"),
    ):
        forest.partial_fit(frame(task.X_more, columns), task.y_more)
    with pytest.raises(ValueError, match="feature names"):
        forest.apply(frame(task.queries, columns))


def test_series_of_labels_are_taken(classification, frame):
    names = np.array(["a", "bb", "ccc"])[classification.y]
    y = frame(names[:, None], ["label"])["label"]
    forest = classification.forest().fit(classification.X, y)
    assert forest.classes_.tolist() == ["a", "bb", "ccc"]
    plain = classification.forest().fit(classification.X, names)
    assert forest.fingerprint() == plain.fingerprint()


def test_categories_and_pandas_types_are_taken(classification):
    names = np.array(["a", "bb", "ccc"])[classification.y]
    plain = classification.forest().fit(classification.X, names)
    for dtype in ("category", "string", object):
        forest = classification.forest().fit(classification.X, pd.Series(names, dtype=dtype))
        assert forest.fingerprint() == plain.fingerprint()
    numbers = pd.Series(classification.y, dtype="Int64")
    taught = classification.taught()
    assert classification.forest().fit(classification.X, numbers).fingerprint() == (
        taught.fingerprint()
    )


# --- Sparse matrices ------------------------------------------------------------------------------

FORMATS = ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(blocks, "BLOCK_VALUES", 28)  # seven rows of four


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64", "float64"])
def test_sparse_rows_teach_and_ask_what_dense_rows_would(task, kind, dtype, small_blocks):
    X, X_more, queries = (part.astype(dtype) for part in (task.X, task.X_more, task.queries))
    plain = task.forest().fit(X, task.y).partial_fit(X_more, task.y_more)
    make = getattr(sparse, f"{kind}_array")
    forest = task.forest().fit(make(X), task.y).partial_fit(make(X_more), task.y_more)
    assert forest.fingerprint() == plain.fingerprint()
    assert answers(forest, make(queries)) == answers(plain, queries)


@pytest.mark.parametrize("params", [{"offline": True}, {"metric": lambda x, y: abs(x - y).max()}])
def test_sparse_rows_are_densified_whole_where_blocks_would_change_the_call(
    task, params, small_blocks
):
    forest = task.forest(**params).fit(sparse.csr_matrix(task.X), task.y)
    assert forest.fingerprint() == task.taught(**params).fingerprint()


@pytest.mark.parametrize("value", [np.nan, np.inf, 0.1])
def test_one_bad_sparse_value_far_down_teaches_nothing(task, value, small_blocks):
    forest = task.forest(dtype="float32").fit(task.X, task.y)
    X = sparse.lil_array(task.X_more)
    X[-1, 2] = value
    with unchanged(forest, task.queries), pytest.raises((ValueError, TypeError), match="X"):
        forest.partial_fit(X.tocsr(), task.y_more)


def test_a_metric_that_fails_takes_back_all_blocks_of_a_sparse_batch(task, small_blocks):
    def metric(x, y):
        if fuse and max(x[0], y[0]) > 100:
            raise ZeroDivisionError
        return float(np.abs(x - y).sum())

    fuse = False
    forest = task.forest(metric=metric).fit(task.X, task.y)
    X = task.X_more.copy()
    X[-1, 0] = 101
    with unchanged(forest, task.queries):
        fuse = True
        with pytest.raises((ValueError, ZeroDivisionError)):
            forest.partial_fit(sparse.csr_array(X), task.y_more)
        fuse = False


def test_sparse_rows_take_memory_by_the_block():
    """640 MB if they were dense all at once; a block is 32 MB, and two are there at a time."""
    X = sparse.random_array((20_000, 4_000), density=1e-4, format="csr", rng=0)
    forest = BoundaryForestClassifier(n_estimators=1, random_state=0)
    tracemalloc.start()
    try:
        forest.fit(X, np.zeros(20_000, dtype=int))
        forest.predict(X)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6  # seen: 67 MB


def test_empty_rows_and_empty_matrices():
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.fit(sparse.csr_array((3, 2)), ["a", "a", "a"])
    assert forest.predict(sparse.csr_array((1, 2))).tolist() == ["a"]
    with pytest.raises(ValueError, match="X"):
        forest.predict(sparse.csr_array((0, 2)))


# --- Labels ---------------------------------------------------------------------------------------


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


DAYS = [datetime.date(2020, 1, 1), datetime.date(2019, 5, 5)]
GOOD_LABELS = {
    "text": ["b", "a"],
    "integers": [5, -2],
    "large integers": [2**62 + 1, 2**62],
    "uint64": np.array([2**64 - 1, 0], dtype=np.uint64),
    "booleans": [True, False],
    "whole floats": [2.0, -1.0],
    "object integers": np.array([3, 10**30], dtype=object),
    "object text": np.array(["b", "a\0"], dtype=object),
    "bytes": np.array([b"b", b"a"]),
    "object bytes": np.array([b"b", b"a\0"], dtype=object),
    "dates": np.array(DAYS, dtype=object),
    "decimals": np.array([Decimal("0.5"), Decimal("0.25")], dtype=object),
    "enumeration": np.array([Size.LARGE, Size.SMALL], dtype=object),
}


@pytest.mark.parametrize("labels", GOOD_LABELS.values(), ids=GOOD_LABELS.keys())
def test_labels_of_every_kind_that_sorts_come_back_as_they_were_given(labels):
    X = np.array([[0.0], [10.0]])
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    for x, label in zip(X, labels, strict=True):
        forest.partial_fit([x], np.asarray([label], dtype=getattr(labels, "dtype", None)))
    expected = np.asarray(labels).tolist()
    assert forest.predict(X).tolist() == expected
    assert forest.classes_.tolist() == sorted(expected)
    assert [type(label) for label in forest.predict(X).tolist()] == [type(x) for x in expected]


def test_bytes_in_a_list_keep_the_zeros_at_their_ends():
    forest = BoundaryForestClassifier(n_estimators=2).fit([[0.0], [9.0]], [b"a\0", b"a"])
    assert forest.classes_.tolist() == [b"a", b"a\0"]


BAD_LABELS = {
    "text and numbers": np.array(["a", 1], dtype=object),
    "text and booleans": np.array(["a", True], dtype=object),
    "dates and text": np.array([DAYS[0], "a"], dtype=object),
    "sets": np.array([frozenset("a"), frozenset("b")], dtype=object),
    "complex": np.array([1j, 2j]),
    "bytes and text": np.array([b"a", "b"], dtype=object),
    "dates of numpy": np.array(["2020-01-01", "2020-01-02"], dtype="datetime64[D]"),
    "objects that do not sort": np.array([object(), object()], dtype=object),
    "pandas NA": pd.Series(["a", pd.NA], dtype="string"),
    "fractions among objects": np.array([1, 0.5], dtype=object),
    "fractions": np.array([1.0, 0.5]),
}


@pytest.mark.parametrize("labels", BAD_LABELS.values(), ids=BAD_LABELS.keys())
@pytest.mark.parametrize("fitted", [False, True])
def test_what_cannot_be_a_label_is_refused_before_anything_is_learned(
    classification, labels, fitted
):
    forest = classification.taught() if fitted else classification.forest()
    with (
        unchanged(forest, classification.queries),
        pytest.raises((ValueError, TypeError), match=r"\by\b"),
    ):
        forest.partial_fit(classification.X_more[:2], labels)


@pytest.mark.parametrize(
    ("first", "later"),
    [([0, 1], ["0", "1"]), (["0"], [0]), ([True, False], [0, 1]), ([0, 1], [True, False])],
)
def test_kinds_of_labels_do_not_mix(first, later):
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.fit(np.arange(4)[:, None], np.resize(first, 4))
    answered = forest.predict_proba([[0.0], [1.5]]).tolist()
    with pytest.raises(TypeError, match=r"\by\b.*all text, all numbers"):
        forest.partial_fit(np.arange(4)[:, None], np.resize(later, 4))
    assert forest.predict_proba([[0.0], [1.5]]).tolist() == answered
    assert forest.classes_.tolist() == sorted(set(first))


def test_integers_of_different_types_stay_exact():
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.partial_fit([[0.0]], np.array([-(2**62) - 1]))
    forest.partial_fit([[10.0]], np.array([2**64 - 1], dtype=np.uint64))
    assert forest.predict([[0.0], [10.0]]).tolist() == [-(2**62) - 1, 2**64 - 1]


def test_many_classes_in_a_small_batch_are_no_reason_to_warn():
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(3):
            forest.partial_fit(np.arange(30.0)[:, None], np.arange(30) + 20 * i)
    assert len(forest.classes_) == 70


def test_continuous_targets_are_told_of_the_regressor(classification):
    with pytest.raises(ValueError, match="BoundaryForestRegressor"):
        classification.forest().fit(classification.X, classification.y + 0.5)


def test_state_is_the_same_whatever_holds_the_labels(classification):
    told = state(classification.taught(), classification.queries)
    for y in (classification.y.tolist(), classification.y.astype(np.int8)):
        forest = classification.forest().fit(classification.X, y)
        assert state(forest, classification.queries) == told
