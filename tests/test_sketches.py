"""Sketches of long rows: which rows they rule out changes no forest and no answer."""

from __future__ import annotations

import copy

import numpy as np
import pytest

from boundary_forest import BoundaryForestClassifier, BoundaryForestNeighbors, _core, load

pytestmark = [
    pytest.mark.kernels,
    pytest.mark.skipif(
        _core.instruction_set() == "avx512",
        reason="no sketches with AVX-512's products of bytes; the portable kernels' run has them",
    ),
]
D = 1024


def images(n, seed=0, dtype=np.float32):
    """Draw rows of a decaying spectrum, as images have; every tenth is there twice."""
    rng = np.random.default_rng(seed)
    axes = np.random.default_rng(7).standard_normal((D, D)) / np.arange(1, D + 1)[:, None]
    X = rng.standard_normal((n, D)) @ axes
    X[::10] = X[1::10][: len(X[::10])]
    return X.astype(dtype)


def pictures(n, seed=0):
    """Draw rows of bytes likewise."""
    return np.clip(128 + 16 * images(n, seed), 0, 255).astype(np.uint8)


def classes(X):
    X = X - 128.0 if X.dtype == np.uint8 else X
    return (X[:, 0] > 0) + 2 * (X[:, 1] > 0.3)


def forest(**overrides):
    settings = {"n_estimators": 8, "max_children": 12, "random_state": 3, "shuffle": False}
    return BoundaryForestClassifier(**{**settings, **overrides})


def sketch_bytes(model):
    return model.stats()["bytes"]["sketches"]


def assert_equals_plain(monkeypatch, X, Q, *, sketched, **overrides):
    """Fit and query with sketches, in batches and row by row, and without any acceleration."""
    fast = forest(**overrides).fit(X, classes(X))
    assert (sketch_bytes(fast) > 0) == sketched
    alone = [fast.predict_proba(row[None])[0] for row in Q[:25]]
    together, leaves = fast.predict_proba(Q), fast.apply(Q)
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    plain = forest(**overrides).fit(X, classes(X))
    assert sketch_bytes(plain) == 0
    assert fast.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(leaves, plain.apply(Q))
    np.testing.assert_array_equal(together, plain.predict_proba(Q))
    np.testing.assert_array_equal(alone, together[:25])
    counts, plainly = fast.stats(), plain.stats()
    assert counts["comparisons"]["learn"] == plainly["comparisons"]["learn"]
    return counts


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16])
def test_sketches_change_no_forest_and_no_answer(monkeypatch, dtype):
    """Evaluations / comparisons of the queries seen: 0.24."""
    X, Q = images(4000, dtype=dtype), images(300, 1, dtype)
    counts = assert_equals_plain(
        monkeypatch, X, Q, sketched=True, dtype="float16" if dtype == np.float16 else "auto"
    )
    assert counts["evaluations"]["query"] < 0.4 * counts["comparisons"]["query"]


def test_sketches_of_bytes_change_no_forest_and_no_answer(monkeypatch):
    """Only the portable kernels need them: the others compare bytes as fast."""
    is_portable = _core.instruction_set() == "scalar"
    X, Q = pictures(4000), pictures(300, 1)
    counts = assert_equals_plain(monkeypatch, X, Q, sketched=is_portable)
    if is_portable:
        assert counts["evaluations"]["query"] < 0.4 * counts["comparisons"]["query"]


def test_a_row_that_is_queried_alone_has_its_distances_kept_from_tree_to_tree():
    """Evaluations of rows alone / together seen: 0.8."""
    X, Q = images(4000), images(50, 1)
    model = forest(n_estimators=30).fit(X, classes(X))
    before = model.stats()["evaluations"]["query"]
    together = model.apply(Q)
    between = model.stats()["evaluations"]["query"]
    alone = [model.apply(row[None])[0] for row in Q]
    after = model.stats()["evaluations"]["query"]
    np.testing.assert_array_equal(alone, together)
    assert after - between < 0.9 * (between - before)


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda X: X + np.float32(3e4), id="far from zero"),
        pytest.param(lambda X: X * np.float32(1e-9), id="tiny"),
        pytest.param(lambda X: X * np.float32(1e9), id="large"),
        pytest.param(lambda X: np.round(X), id="with many ties"),
        pytest.param(
            lambda X: X * (1 + 1e4 * (np.arange(len(X)) % 7 == 0)[:, None]), id="outliers"
        ),
    ],
)
def test_awkward_rows_are_answered_as_by_the_plain_algorithm(monkeypatch, spoil):
    X, Q = (spoil(x).astype(np.float32) for x in (images(3500), images(200, 1)))
    fast = forest().fit(X, classes(images(3500)))
    found = fast.apply(Q)
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    plain = forest().fit(X, classes(images(3500)))
    assert fast.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(found, plain.apply(Q))


def test_rows_too_far_away_to_be_coded_are_compared(monkeypatch):
    X, Q = images(3500, dtype=np.float64), images(50, 1, np.float64)
    X[3000::50] *= 1e30
    Q[::5] *= 1e30
    assert_equals_plain(monkeypatch, X, Q, sketched=True)


def test_queries_of_another_type_are_answered_alike(monkeypatch):
    assert_equals_plain(
        monkeypatch, images(3500), images(100, 1, np.float64) + 1e-12, sketched=True
    )


def test_rows_without_principal_directions_have_no_sketches(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.random((3000, D), dtype=np.float32)
    assert_equals_plain(monkeypatch, X, X[:50] + np.float32(0.1), sketched=False)


def test_batches_threads_and_single_rows_make_the_same_forest():
    X = images(4000)
    y = classes(X)
    whole = forest().fit(X, y)
    parts = forest(n_jobs=2)
    for begin, end in ((0, 1999), (1999, 2300), (2300, 4000)):
        if end == 2300:
            for i in range(begin, end):
                parts.partial_fit(X[i : i + 1], y[i : i + 1])
        else:
            parts.partial_fit(X[begin:end], y[begin:end], classes=range(4))
    assert sketch_bytes(parts) > 0
    assert parts.fingerprint() == whole.fingerprint()


def test_learning_the_row_just_queried_keeps_to_the_plain_forest():
    X = images(2600)
    y = classes(X)
    whole = forest().fit(X, y)
    stepwise = forest().partial_fit(X[:2300], y[:2300], classes=range(4))
    for i in range(2300, 2600):
        if i % 2:
            stepwise.predict(X[i : i + 1])
        stepwise.partial_fit(X[i : i + 1], y[i : i + 1])
    assert stepwise.fingerprint() == whole.fingerprint()


@pytest.mark.parametrize("mmap", [False, True])
def test_loaded_forests_have_sketches_when_they_are_needed(tmp_path, mmap):
    X, Q = images(4000), images(300, 1)
    model = forest().fit(X[:3500], classes(X[:3500]))
    model.save(tmp_path / "forest")
    loaded = load(tmp_path / "forest", mmap=mmap)
    assert (sketch_bytes(loaded) > 0) == (not mmap)
    np.testing.assert_array_equal(loaded.apply(Q), model.apply(Q))
    assert sketch_bytes(loaded) > 0
    for each in (model, loaded):
        each.partial_fit(X[3500:], classes(X[3500:]))
    assert loaded.fingerprint() == model.fingerprint()
    np.testing.assert_array_equal(copy.deepcopy(loaded).apply(Q), model.apply(Q))


def test_forgetting_and_reusing_slots_keeps_to_the_plain_forest(monkeypatch):
    X = images(5000)
    ids = np.arange(5000)

    def life():
        model = forest()
        model.partial_fit(X[:3000], classes(X[:3000]), classes=range(4), ids=ids[:3000])
        model.forget(model.fitted.engine.snapshot().state()["arrivals"].astype(int)[::2])
        return model.partial_fit(X[3000:], classes(X[3000:]), ids=ids[3000:])

    fast = life()
    assert sketch_bytes(fast) > 0
    found = fast.apply(X[:400])
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    plain = life()
    assert fast.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(found, plain.apply(X[:400]))


@pytest.mark.parametrize(
    "overrides", [{"offline": True}, {"forgetting": [None, 1500]}, {"max_stored": 900}]
)
def test_every_way_to_learn_keeps_to_the_plain_forest(monkeypatch, overrides):
    X, Q = images(4000), images(200, 1)
    fast = forest(**overrides).fit(X, classes(X))
    found = fast.apply(Q)
    assert sketch_bytes(fast) > 0
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    plain = forest(**overrides).fit(X, classes(X))
    assert fast.fingerprint() == plain.fingerprint()
    np.testing.assert_array_equal(found, plain.apply(Q))


@pytest.mark.parametrize("search", ["paper", "graph"])
def test_an_index_of_long_rows_keeps_to_the_plain_one(monkeypatch, search):
    X, Q = images(3000), images(50, 1)
    fast = BoundaryForestNeighbors(n_estimators=8, random_state=0, search=search).fit(X)
    found = fast.kneighbors(Q, 5)
    assert sketch_bytes(fast) > 0
    monkeypatch.setenv("BOUNDARY_FOREST_PATH", "plain")
    plain = BoundaryForestNeighbors(n_estimators=8, random_state=0, search=search).fit(X)
    assert fast.fingerprint() == plain.fingerprint()
    for ours, theirs in zip(found, plain.kneighbors(Q, 5), strict=True):
        np.testing.assert_array_equal(ours, theirs)
