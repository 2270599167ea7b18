"""The type that positions are kept in: fixed by the first batch's dtype, and nothing is rounded.

bool and uint8 stay uint8; float16, float32 and 8- and 16-bit integers become float32; the rest
float64. ``dtype`` chooses otherwise, int8 and float16 too. Queries of another type are compared in
float64 where the stored type cannot hold them.
"""

from __future__ import annotations

import numpy as np
import pytest
from conftest import answers

from boundary_forest import BoundaryForestNeighbors

STORED_AS = {
    "bool": "uint8",
    "uint8": "uint8",
    "int8": "float32",
    "int16": "float32",
    "uint16": "float32",
    "float16": "float32",
    "float32": "float32",
    "int32": "float64",
    "uint32": "float64",
    "int64": "float64",
    "uint64": "float64",
    "float64": "float64",
    "longdouble": "float64",
}
ULP = 2**-23  # float32's spacing at 1
ELEMENT_TYPES = ("uint8", "int8", "float16", "float32", "float64")
every_dtype = pytest.mark.parametrize("dtype", STORED_AS)


def on(dtype, *arrays):
    """The arrays in a dtype, with values that it and every other can hold."""
    return [(a % 2 if dtype == "bool" else a).astype(dtype) for a in arrays]


# --- The first batch ------------------------------------------------------------------------------


@every_dtype
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_the_first_batchs_dtype_decides(task, dtype, method):
    (X,) = on(dtype, task.X)
    kept = getattr(task.forest(), method)(X, task.y).fingerprint()
    given = {
        stored: getattr(task.forest(dtype=stored), method)(X.astype(stored), task.y).fingerprint()
        for stored in ELEMENT_TYPES
    }
    assert len(set(given.values())) == 5
    assert kept == given[STORED_AS[dtype]]


def test_the_first_batchs_values_do_not_decide(task):
    forests = [
        task.forest(dtype=dtype).fit(np.zeros((5, 4)), task.y[:5]) for dtype in ("auto", "float64")
    ]
    auto, given = (forest.partial_fit(task.X + 0.1, task.y) for forest in forests)
    assert auto.fingerprint() == given.fingerprint()


@every_dtype
@pytest.mark.parametrize("stored", ELEMENT_TYPES)
def test_dtype_overrules_what_batches_and_queries_have(classification, dtype, stored):
    task = classification
    X, X_more, queries = on(dtype, task.X, task.X_more, task.queries)
    forest = task.forest(dtype=stored).fit(X, task.y).partial_fit(X_more, task.y_more)
    plain = task.forest(dtype=stored).fit(X.astype(stored), task.y)
    plain.partial_fit(X_more.astype(stored), task.y_more)
    assert forest.fingerprint() == plain.fingerprint()
    assert answers(forest, queries) == answers(plain, queries.astype(stored))


@pytest.mark.parametrize(("first", "then"), [("uint8", "float64"), ("float64", "uint8")])
def test_fit_decides_anew(task, first, then):
    forest = task.forest().fit(task.X.astype(first), task.y).fit(task.X.astype(then), task.y)
    assert forest.fingerprint() == task.forest().fit(task.X.astype(then), task.y).fingerprint()


@pytest.mark.parametrize("dtype", ["int64", "uint64", "int32"])
def test_integers_up_to_2_to_the_53_are_held(retrieval, dtype):
    largest = min(2**53, np.iinfo(dtype).max)
    X = np.array([[largest], [largest - 1], [0]], dtype=dtype)
    forest = retrieval.forest().fit(X)
    distances, arrivals = forest.kneighbors(X, 3)
    assert arrivals[:, 0].tolist() == [0, 1, 2]
    assert distances[0].tolist() == [0, 1, largest]


# --- Later batches --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ("uint8", np.int16(256)),
        ("uint8", np.int8(-1)),
        ("uint8", np.float32(2.5)),
        ("int8", np.uint8(128)),
        ("int8", np.int64(-129)),
        ("int8", np.float16(2.5)),
        ("float16", np.int16(2049)),
        ("float16", np.float32(0.1)),
        ("float16", np.float64(65520)),
        ("float16", np.float64(2**-25)),
        ("float32", np.int32(2**24 + 1)),
        ("float32", np.float64(1 + 2**-30)),
        ("float32", np.float64(1e39)),
        ("float32", np.float64(1e-60)),
    ],
)
def test_a_later_batch_is_refused_by_its_values_not_by_its_dtype(task, stored, value):
    forest = task.forest(dtype=stored).fit(task.X, task.y)
    harmless = task.X_more.astype(value.dtype)
    forest.partial_fit(harmless, task.y_more)
    before = forest.fingerprint()
    harmful = harmless.copy()
    harmful[3, 2] = value
    with pytest.raises(TypeError, match="dtype="):
        forest.partial_fit(harmful, task.y_more)
    assert forest.fingerprint() == before


# --- Queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "value"),
    [
        ("uint8", np.float64(19.6)),
        ("uint8", np.float32(0.5)),
        ("uint8", np.int64(256)),
        ("uint8", np.int64(-3)),
        ("uint8", np.float64(1e300)),
        ("int8", np.float64(19.6)),
        ("int8", np.uint8(200)),
        ("int8", np.int64(-129)),
        ("float16", np.float64(0.1)),
        ("float16", np.float64(1e300)),
        ("float16", np.int64(2**53 - 1)),
        ("float32", np.float64(0.1)),
        ("float32", np.float64(1e300)),
        ("float32", np.int64(2**24 + 1)),
        ("float32", np.int64(2**53 - 1)),
    ],
)
@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("metric", ["manhattan", "euclidean", "chebyshev"])
@pytest.mark.parametrize("n_estimators", [3, 100], ids=["from trees", "from the buffer"])
def test_a_query_that_the_stored_type_cannot_hold_is_compared_in_float64(
    stored, value, metric, n_estimators
):
    X = np.array([[0], [1], [7], [19], [20], [127]])
    forest = BoundaryForestNeighbors(
        metric=metric, n_estimators=n_estimators, dtype=stored, random_state=0
    )
    distances, arrivals = forest.fit(X).kneighbors([[value]], 6)
    gaps = np.abs(X[:, 0] - np.float64(value))
    if metric == "euclidean":
        gaps = np.sqrt(gaps * gaps)
    order = np.argsort(gaps, kind="stable")
    assert arrivals[0].tolist() == order.tolist()
    assert distances[0].tolist() == gaps[order].tolist()


@pytest.mark.parametrize(
    ("stored", "X", "query", "as_stored"),
    [
        # Cut off after the point.
        ("uint8", [[0, 0], [1, 1]], [0.9, 0.9], [0, 0]),
        # Rounded to the nearest byte.
        ("uint8", [[0, 0, 0], [1, 1, 1]], [0.6, 0.6, 0.1], [1, 1, 0]),
        # Wrapped around 256.
        ("uint8", [[3], [255]], [259], [3]),
        # Rounded to float32: in units of its spacing at 1, (0.45, 0) between (0, 0.4) and (1, 0).
        ("float32", [[1, 0.4 * ULP], [1 + ULP, 0]], [1 + 0.45 * ULP, 0], [1, 0]),
        # Wrapped around 128.
        ("int8", [[-56], [127]], [200], [-56]),
        # The same in units of float16's.
        ("float16", [[1, 3 * 2**-13], [1 + 2**-10, 0]], [1 + 0.45 * 2**-10, 0], [1, 0]),
    ],
    ids=["cut off", "rounded", "wrapped around", "to float32", "signed", "to float16"],
)
def test_the_nearest_is_found_where_converting_the_query_would_miss_it(stored, X, query, as_stored):
    X = np.array(X).astype(stored)
    exact = np.linalg.norm(X - np.array(query, dtype=np.float64), axis=1)
    converted = np.linalg.norm(X - np.array(as_stored, dtype=np.float64), axis=1)
    assert np.argmin(exact) != np.argmin(converted)
    forest = BoundaryForestNeighbors(n_estimators=2, dtype=stored, random_state=0).fit(X)
    distances, arrivals = forest.kneighbors([query], 1)
    assert arrivals.item() == np.argmin(exact)
    assert distances.item() == pytest.approx(exact.min(), rel=1e-15)


def test_a_row_of_a_mixed_batch_is_compared_as_it_would_be_alone(task):
    forest = task.forest().fit(task.X.astype(np.uint8), task.y)
    queries = task.queries.copy()
    queries[::2] += 0.25
    together = answers(forest, queries)
    for i in range(len(queries)):
        for method, alone in answers(forest, queries[i : i + 1]).items():
            if method == "kneighbors":
                assert [part[0] for part in alone] == [part[i] for part in together[method]]
            else:
                assert alone[0] == together[method][i]
