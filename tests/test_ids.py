"""External ids: kneighbors answers with them, duplicates are refused before anything is learned."""

from __future__ import annotations

import pickle
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from conftest import unchanged

from boundary_forest import BoundaryForestNeighbors

KINDS = {
    "int64": lambda n: n * 7 - 10**12,
    "str": lambda n: np.array([f"row {i}" + "é" * (i % 5) for i in n]),
}


@pytest.fixture(params=KINDS)
def name(request):
    """name(arrival numbers): their ids."""
    return KINDS[request.param]


def test_kneighbors_answers_with_ids_and_apply_with_arrival_numbers(task, name):
    plain = task.taught().partial_fit(task.X_more, task.y_more)
    forest = task.forest().fit(task.X, task.y, ids=name(np.arange(40)))
    forest.partial_fit(task.X_more, task.y_more, ids=name(np.arange(40, 80)))
    assert forest.fingerprint() == plain.fingerprint()
    assert forest.apply(task.queries).tolist() == plain.apply(task.queries).tolist()
    distances, arrivals = plain.kneighbors(task.queries, 3)
    named = forest.kneighbors(task.queries, 3)
    assert named[0].tolist() == distances.tolist()
    assert named[1].tolist() == [name(row).tolist() for row in arrivals]
    assert forest.kneighbors(task.queries, 3, return_distance=False).tolist() == named[1].tolist()


def test_ids_follow_examples_one_by_one_and_through_a_pickle(task, name):
    forest = task.forest()
    for i, (x, y) in enumerate(zip(task.X, task.y, strict=True)):
        forest.partial_fit([x], [y], ids=name(np.array([i])))
        if i % 10 == 0:
            forest = pickle.loads(pickle.dumps(forest))
    whole = task.forest().partial_fit(task.X, task.y)
    arrivals = whole.kneighbors(task.queries, 3, return_distance=False)
    named = forest.kneighbors(task.queries, 3, return_distance=False)
    assert named.tolist() == [name(row).tolist() for row in arrivals]


def test_ids_follow_examples_offline(task, name):
    forest = task.forest(offline=True).fit(task.X, task.y, ids=name(np.arange(40)))
    arrivals = task.taught(offline=True).kneighbors(task.queries, 3, return_distance=False)
    named = forest.kneighbors(task.queries, 3, return_distance=False)
    assert named.tolist() == [name(row).tolist() for row in arrivals]


def test_predict_then_learn_takes_ids(classification, name):
    task = classification
    forest = task.forest().fit(task.X, task.y, ids=name(np.arange(40)))
    forest.predict_then_learn(task.X_more, task.y_more, ids=name(np.arange(40, 80)))
    plain = task.taught().partial_fit(task.X_more, task.y_more)
    arrivals = plain.kneighbors(task.queries, 3, return_distance=False)
    named = forest.kneighbors(task.queries, 3, return_distance=False)
    assert named.tolist() == [name(row).tolist() for row in arrivals]


def test_the_graph_of_neighbours_has_arrival_numbers_for_columns(retrieval, name):
    forest = retrieval.forest().fit(retrieval.X, ids=name(np.arange(40)))
    plain = retrieval.taught().kneighbors_graph(retrieval.queries, 3)
    assert (forest.kneighbors_graph(retrieval.queries, 3) != plain).nnz == 0


@pytest.mark.parametrize(
    "ids",
    [
        [3, 1, 2],
        np.array([3, 1, 2], dtype=np.uint8),
        np.array([3, 1, 2], dtype=object),
        ["c", "a", "b"],
        pd.Series(["c", "a", "b"]),
        np.array(["c", "a", "b"], dtype=object),
    ],
    ids=["list", "uint8", "object integers", "text", "pandas text", "object text"],
)
def test_ids_of_either_kind_come_in_any_container(ids):
    forest = BoundaryForestNeighbors(random_state=0).fit([[0.0], [1.0], [2.0]], ids=ids)
    named = forest.kneighbors([[0.1], [1.1], [2.1]], 1, return_distance=False)
    assert named.ravel().tolist() == np.asarray(ids).tolist()


BAD_IDS = {
    "twice in a batch": [1] * 40,
    "taken": np.arange(39, 79),
    "too few": np.arange(100, 139),
    "too many": np.arange(100, 141),
    "a table": np.arange(100, 140)[:, None],
    "a number": 3,
    "floats": np.arange(100.0, 140.0),
    "booleans": np.zeros(40, dtype=bool),
    "of the other kind": [f"row {i}" for i in range(40)],
    "mixed": [*range(100, 139), "a"],
    "with None": [*range(100, 139), None],
    "beyond int64": [*range(100, 139), 2**63],
    "uint64 beyond int64": np.full(40, 2**64 - 1, dtype=np.uint64),
    "absent": None,
}


@pytest.mark.parametrize("ids", BAD_IDS.values(), ids=BAD_IDS.keys())
def test_bad_ids_are_refused_by_name_and_teach_nothing(task, ids):
    forest = task.forest().fit(task.X, task.y, ids=np.arange(40))
    with (
        unchanged(forest, task.queries),
        pytest.raises((ValueError, TypeError), match=r"\bids\b"),
    ):
        forest.partial_fit(task.X_more, task.y_more, ids=ids)
    forest.partial_fit(task.X_more, task.y_more, ids=np.arange(100, 140))


def test_ids_may_not_begin_in_the_middle_but_fit_begins_anew(task):
    forest = task.taught()
    with unchanged(forest, task.queries), pytest.raises(ValueError, match=r"\bids\b"):
        forest.partial_fit(task.X_more, task.y_more, ids=np.arange(40))
    forest.fit(task.X, task.y, ids=[str(i) for i in range(40)])
    forest.fit(task.X, task.y, ids=np.arange(40))
    assert forest.kneighbors(task.queries, 1)[1].dtype == np.int64
    assert forest.fit(task.X, task.y).partial_fit(task.X_more, task.y_more)


def test_a_batch_that_was_refused_leaves_its_ids_free(task):
    forest = task.forest().fit(task.X, task.y, ids=np.arange(40))
    X = task.X_more.copy()
    X[-1, 0] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        forest.partial_fit(X, task.y_more, ids=np.arange(40, 80))
    forest.partial_fit(task.X_more, task.y_more, ids=np.arange(40, 80))


def test_a_metric_that_fails_leaves_the_ids_free(task):
    def metric(x, y):
        if broken:
            raise ZeroDivisionError
        return float(np.abs(x - y).sum())

    broken = False
    forest = task.forest(metric=metric).fit(task.X, task.y, ids=np.arange(40))
    broken = True
    with pytest.raises((ValueError, TypeError, ZeroDivisionError)):
        forest.partial_fit(task.X_more, task.y_more, ids=np.arange(40, 80))
    broken = False
    forest.partial_fit(task.X_more, task.y_more, ids=np.arange(40, 80))


def test_an_example_that_was_not_stored_frees_its_id(classification):
    X, y = np.zeros((10, 2)), np.zeros(10, dtype=int)
    forest = classification.forest(n_estimators=1).fit(X, y, ids=np.arange(10))
    assert forest.stats()["examples_stored"] == 1
    forest.partial_fit(X[1:], y[1:], ids=np.arange(1, 10))
    with pytest.raises(ValueError, match=r"\b0\b.*stored"):
        forest.partial_fit(X[:1], y[:1], ids=[0])


def test_ids_of_long_streams_in_small_batches_are_all_found():
    rng = np.random.default_rng(0)
    X, ids = rng.normal(size=(1500, 2)), rng.permutation(10**6)[:1500]
    forest = BoundaryForestNeighbors(n_estimators=2, random_state=0)
    start = 0
    while start < len(X):
        stop = start + int(rng.integers(1, 20))
        forest.partial_fit(X[start:stop], ids=ids[start:stop])
        start = stop
    with pytest.raises(ValueError, match="ids"):
        forest.partial_fit(X[:1], ids=ids[rng.integers(1500, size=1)])
    distances, named = forest.kneighbors(X, 1)
    found = distances[:, 0] == 0
    assert found.mean() > 0.85  # seen: 0.901
    assert named[found, 0].tolist() == ids[found].tolist()


def test_readers_always_find_the_ids_of_what_they_meet():
    X = np.random.default_rng(0).normal(size=(30_000, 3))
    ids = np.arange(len(X)) + 10**6
    forest = BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:5], ids=ids[:5])
    done, seen = threading.Event(), []

    def read():
        while not done.is_set():
            distances, named = forest.kneighbors(X[::3000], 3)
            gaps = np.linalg.norm(X[named - 10**6] - X[::3000, None], axis=2)
            seen.append(np.abs(gaps - distances).max())

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    try:
        forest.partial_fit(X[5:20_000], ids=ids[5:20_000])
        for i in range(20_000, len(X), 500):
            forest.partial_fit(X[i : i + 500], ids=ids[i : i + 500])
        forest.fit(X[::-1][:1000], ids=ids[::-1][:1000])
    finally:
        done.set()
        for reader in readers:
            reader.join()
        sys.setswitchinterval(interval)
    assert len(seen) > 3
    assert max(seen) < 1e-9
