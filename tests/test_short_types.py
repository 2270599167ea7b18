"""Rows kept as int8 or float16 take a byte or two, and answer as the same rows kept as float32.

Not nearly: the conversion to float32 is exact, so trees, distances, votes and what a search of the
graph finds are the same, bit for bit.
"""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from conftest import answers
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
    open_durable,
)

pytestmark = pytest.mark.kernels

SHORT = ("int8", "float16")
METRICS = (
    "euclidean", "manhattan", "chebyshev", "minkowski", "cosine", "hamming", "canberra",
)  # fmt: skip
ESTIMATORS = {
    "classifier": BoundaryForestClassifier,
    "regressor": BoundaryForestRegressor,
    "general": BoundaryForest,
    "neighbors": BoundaryForestNeighbors,
}
every_short_type = pytest.mark.parametrize("dtype", SHORT)


def drawn(rng, shape, dtype, spread):
    """Rows that both types hold, with ties, duplicates and, where there are, subnormal numbers."""
    if dtype == "float16":
        rows = (rng.normal(size=shape) * spread).clip(-65504, 65504).astype(dtype)
        rows[rng.random(shape) < 0.05] = 3 * 2.0**-24
    else:
        rows = (rng.normal(size=shape) * spread).round().clip(-128, 127).astype(dtype)
    rows[rng.integers(len(rows), size=len(rows) // 5)] = rows[0]
    return rows


def trees_of(forest):
    return [[part.tolist() for part in tree] for tree in forest.trees()]


def assert_same(short, wide, queries):
    """Trees and answers, for queries that the short type holds, that float32 holds, and others."""
    assert trees_of(short) == trees_of(wide)
    between = queries.astype(np.float32)
    between[::2, ::3] += np.float32(0.3)
    beyond = queries.astype(np.float64)
    beyond[::2, ::3] += 0.1
    for asked in (queries, between, beyond, queries[:1], between[:1]):
        assert answers(short, asked) == answers(wide, asked)
        if isinstance(short, BoundaryForestNeighbors):
            beams = (
                ({"beam": 3, "exact": False}, {"beam": 50, "exact": False})
                if short.search == "graph"
                else ()
            )
            for search in ({"exact": True}, *beams):
                found = [forest.kneighbors(asked, 3, **search) for forest in (short, wide)]
                assert [part.tolist() for part in found[0]] == [part.tolist() for part in found[1]]


@settings(max_examples=100, deadline=None, derandomize=True)
@given(
    dtype=st.sampled_from(SHORT),
    kind=st.sampled_from(sorted(ESTIMATORS)),
    metric=st.sampled_from((*METRICS, "inner_product")),
    search=st.sampled_from(["graph", "paper"]),
    features=st.sampled_from([1, 3, 16, 19, 40, 70, 300]),
    spread=st.sampled_from([1.0, 30.0, 200.0]),
    n=st.integers(12, 150),
    cut=st.integers(5, 140),
    n_jobs=st.sampled_from([1, 2]),
    offline=st.booleans(),
    seed=st.integers(0, 2**32 - 1),
)
def test_every_answer_is_that_of_float32(
    dtype, kind, metric, search, features, spread, n, cut, n_jobs, offline, seed
):
    rng = np.random.default_rng(seed)
    X = drawn(rng, (n + 10, features), dtype, spread)
    y = (X[:n, 0].astype(float) > 0) + rng.integers(0, 2, n)
    if metric == "inner_product" and kind != "neighbors":
        metric = "cosine"
    params = {"n_estimators": 5, "max_children": 4, "metric": metric, "offline": offline}
    params |= {"random_state": seed, "n_jobs": n_jobs}
    if metric == "minkowski":
        params["metric_params"] = {"p": 3}
    if kind == "neighbors":
        params["search"] = search
    forests = []
    for element_type in (dtype, "float32"):
        forest = ESTIMATORS[kind](**params, dtype=element_type)
        forest.fit(X[:cut][:n], y[:cut])
        if cut < n:
            forest.partial_fit(X[cut:n].astype(np.float64), y[cut:])
        forests.append(forest)
    assert_same(*forests, X[n - 5 :])


@every_short_type
def test_long_rows_of_the_largest_bytes_are_summed_as_float32_sums_them(dtype):
    """Sums of squares beyond 2**24, which integers would keep apart and float32 rounds."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((300, 1)) < 0.5, 127, -128) + np.zeros((300, 600))
    X[:, :4] -= np.sign(X[:, :4]) * rng.integers(0, 4, size=(300, 4))
    X = X.astype(dtype)
    short, wide = (
        BoundaryForestNeighbors(n_estimators=4, random_state=0, dtype=kept).fit(X[:250])
        for kept in (dtype, "float32")
    )
    assert_same(short, wide, X[200:])
    assert (wide.kneighbors(X[:20], 200, exact=True)[0] ** 2 > 2**24).any()


@every_short_type
@pytest.mark.parametrize("weights", ["learned", "given"])
@pytest.mark.parametrize("features", [6, 40])
def test_weights_of_features_are_learned_and_used_alike(dtype, weights, features):
    rng = np.random.default_rng(1)
    X = drawn(rng, (700, features), dtype, 20.0)
    y = (X[:, 0] > 0) + 2 * (X[:, 1] > 5)
    chosen = "learned" if weights == "learned" else rng.choice([0.0, 0.3, 2.0], size=features) + 0.1
    short, wide = (
        BoundaryForestClassifier(
            n_estimators=6, feature_weights=chosen, weights="auto", random_state=0, dtype=kept
        ).fit(X[:600], y[:600])
        for kept in (dtype, "float32")
    )
    assert short.feature_weights_.tolist() == wide.feature_weights_.tolist()
    assert len(set(short.feature_weights_.tolist())) > 1
    assert_same(short, wide, X[590:])


@every_short_type
def test_rows_take_a_byte_or_two_for_each_feature(dtype):
    X = drawn(np.random.default_rng(2), (4000, 64), dtype, 20.0)
    index = BoundaryForestNeighbors(n_estimators=3, dtype=dtype, random_state=0).fit(X)
    least = X.nbytes  # X itself is in the type
    assert least <= index.stats()["bytes"]["positions"] <= least + 3 * 2**16


@every_short_type
@pytest.mark.parametrize("mmap", [False, True])
def test_files_pickles_and_copies_keep_the_type(tmp_path, dtype, mmap):
    rng = np.random.default_rng(3)
    X = drawn(rng, (500, 20), dtype, 20.0)
    index = BoundaryForestNeighbors(n_estimators=5, dtype=dtype, random_state=0).fit(X[:400])
    index.save(tmp_path / "index.bf")
    for again in (
        load(tmp_path / "index.bf", mmap=mmap),
        pickle.loads(pickle.dumps(index)),
        copy.deepcopy(index),
    ):
        assert again.fingerprint() == index.fingerprint()
        assert answers(again, X[390:]) == answers(index, X[390:])
        again.partial_fit(X[400:])
        whole = copy.deepcopy(index).partial_fit(X[400:])
        assert again.fingerprint() == whole.fingerprint()
        with pytest.raises(TypeError, match="dtype="):
            again.partial_fit(np.full((1, 20), 0.1))


@every_short_type
def test_examples_are_forgotten_and_replaced_as_with_float32(dtype):
    rng = np.random.default_rng(4)
    X = drawn(rng, (400, 12), dtype, 20.0)
    names = [f"row {i}" for i in range(300)]
    forests = []
    for kept in (dtype, "float32"):
        index = BoundaryForestNeighbors(n_estimators=5, dtype=kept, random_state=0)
        index.fit(X[:300], ids=names)
        index.upsert(X[300:350], names[:50])
        index.forget(names[40:80])
        forests.append(index)
    found, expected = (forest.kneighbors(X[350:], 5) for forest in forests)
    assert found[0].tolist() == expected[0].tolist()
    assert found[1].tolist() == expected[1].tolist()
    for forest in forests:
        forest.forget(names[120:250])  # more than a third: it is rebuilt
    assert trees_of(forests[0]) == trees_of(forests[1])


@every_short_type
def test_a_durable_forest_is_reopened_with_its_type(tmp_path, dtype):
    X = drawn(np.random.default_rng(5), (200, 6), dtype, 20.0)
    y = np.arange(200) % 3
    kind = BoundaryForestClassifier(n_estimators=4, dtype=dtype, random_state=0)
    with open_durable(tmp_path / "forest", kind) as learner:
        learner.partial_fit(X[:120], y[:120])
        learner.partial_fit(X[120:].astype(np.float64), y[120:])
    with open_durable(tmp_path / "forest") as learner:
        plain = BoundaryForestClassifier(n_estimators=4, dtype=dtype, random_state=0)
        plain.partial_fit(X, y)
        assert learner.fingerprint() == plain.fingerprint()


@every_short_type
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused(task, dtype, bad):
    forest = task.forest(dtype=dtype).fit(task.X, task.y)
    harmful = task.X_more.astype(np.float16)
    harmful[1, 2] = bad
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        forest.partial_fit(harmful, task.y_more)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        forest.kneighbors(harmful, 1)


def test_auto_never_chooses_them(task):
    for dtype in SHORT:
        X = task.X.astype(dtype)
        auto, wide = task.forest().fit(X, task.y), task.forest(dtype="float32").fit(X, task.y)
        assert auto.fingerprint() == wide.fingerprint()
