"""forget(ids): a request for erasure is carried out in trees, memory, files and folders."""

from __future__ import annotations

import copy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
)
from boundary_forest.durable import open_durable

N = 300


def rows(seed=0):
    """Positions, each with a number of its own that its bytes can be found by."""
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(N, 3)).astype(np.float64)
    return np.column_stack([X, np.arange(N) * 1e-7 + 0.123456789])


def labels(X, kind):
    numbers = X[:, 0] + (X[:, 1] > 2) * 2
    return numbers.astype(int) if kind == "classify" else numbers


KINDS = {
    "classify": BoundaryForestClassifier,
    "regress": BoundaryForestRegressor,
    "general": BoundaryForest,
    "retrieve": BoundaryForestNeighbors,
}
STREAMS = {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"}


def forest(kind, **params):
    return KINDS[kind](**{"n_estimators": 5, "max_children": 4, "random_state": 1, **params})


def taught(kind, n, ids, **params):
    X = rows()
    y = () if kind == "retrieve" else (labels(X, kind)[:n],)
    return forest(kind, **params).partial_fit(X[:n], *y, ids=ids[:n])


def assert_sound(learner):
    """Every tree is whole: promises 4 and 5."""
    copy.deepcopy(learner)  # restoring checks all: parents, children, that no example is in no tree
    state = learner.fitted.engine.snapshot().state()
    in_trees = {a for nodes, _ in learner.trees() for a in nodes.tolist()}
    assert in_trees <= set(state["arrivals"].tolist())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(KINDS)),
    n=st.sampled_from([2, 4, 5, 6, 40, 150, N]),
    text=st.booleans(),
    streams=st.booleans(),
    share=st.sampled_from([0.0, 0.1, 0.5, 0.9]),
    seed=st.integers(0, 2**16),
)
def test_no_forgotten_row_is_ever_an_answer(kind, n, text, streams, share, seed, tmp_path_factory):
    ids = [f"row {i}" for i in range(N)] if text else list(range(1000, 1000 + N))
    params = STREAMS if streams and kind != "retrieve" else {}
    if params and kind in ("classify", "regress"):
        params = {**params, "forgetting": [None, 16, 60]}
    learner = taught(kind, n, ids, **params)
    X, rng = rows(), np.random.default_rng(seed)
    stored = learner.fitted.engine.snapshot().state()["arrivals"].astype(int)
    chosen = stored[rng.random(len(stored)) < share][: len(stored) - 1]
    same = copy.deepcopy(learner)
    learner.forget([ids[a] for a in chosen])
    same.forget([ids[a] for a in rng.permutation(chosen)])
    assert learner.fingerprint() == same.fingerprint()  # promise 2
    assert_sound(learner)
    assert not set(learner.apply(X).ravel().tolist()) & set(chosen.tolist())
    path = tmp_path_factory.mktemp("forgotten") / "model.bf"
    learner.save(path)
    written = path.read_bytes()
    for a in chosen:
        assert X[a, 3].tobytes() not in written
        assert not text or f"row {ids[a]}".encode() not in written
    assert load(path).fingerprint() == learner.fingerprint()
    # One-shot, also of what was forgotten (promise 4), and it goes on as any forest does.
    later, its_ids = X[chosen[:20]], [ids[a] for a in chosen[:20]]
    for x, name in zip(later, its_ids, strict=True):
        y = () if kind == "retrieve" else (labels(x[None], kind),)
        learner.partial_fit(x[None], *y, ids=[name])
        if not params and kind != "retrieve":
            assert learner.predict(x[None]).ravel()[0] == pytest.approx(labels(x[None], kind)[0])


def test_what_was_learned_but_not_kept_is_forgotten_too(tmp_path):
    """It may be among the last arrivals, from which weights are learned, or in the reservoir."""
    X = rows()
    learner = taught("classify", N, list(range(N)), **STREAMS)
    kept = {arrival for nodes, _ in learner.trees() for arrival in nodes.tolist()}
    dropped = sorted(set(range(N)) - kept)
    assert dropped
    learner.save(tmp_path / "before.bf")
    assert X[dropped[0], 3].tobytes() in (tmp_path / "before.bf").read_bytes()
    learner.forget(dropped)
    learner.save(tmp_path / "after.bf")
    written = (tmp_path / "after.bf").read_bytes()
    assert not any(X[a, 3].tobytes() in written for a in dropped)
    again = load(tmp_path / "after.bf")
    for one in (learner, again):
        one.partial_fit(X + 1e-9, labels(X, "classify"), ids=np.arange(N) + 10**6)
    assert again.fingerprint() == learner.fingerprint()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_unknown_ids_are_listed_and_nothing_is_forgotten(kind):
    learner = taught(kind, N, [f"row {i}" for i in range(N)])
    known = learner.fitted.engine.snapshot().state()["ids"]
    before = learner.fingerprint()
    with pytest.raises(KeyError, match="'nobody', 'no one'"):
        learner.forget([known[0], "nobody", known[1], "no one"])
    assert learner.fingerprint() == before
    learner.forget([known[0], known[0]])
    with pytest.raises(KeyError, match="unknown id"):
        learner.forget([known[0]])
    assert learner.forget([]).fingerprint() != before


def test_bad_requests_are_refused():
    learner = taught("classify", N, list(range(N)))
    before = learner.fingerprint()
    with pytest.raises(TypeError, match="ids"):
        learner.forget(["1"])
    with pytest.raises(TypeError, match="ids"):
        learner.forget("1")
    stored = learner.fitted.engine.snapshot().state()["ids"]
    with pytest.raises(ValueError, match="all stored examples"):
        learner.forget(stored)
    assert learner.fingerprint() == before
    nameless = BoundaryForestClassifier().fit(rows(), labels(rows(), "classify"))
    with pytest.raises(ValueError, match="ids"):
        nameless.forget([1])
    with pytest.raises(KeyError, match="nothing has been learned"):
        BoundaryForestClassifier().forget([1])


def test_a_folder_forgets_in_snapshot_and_journal(tmp_path):
    X = rows()
    y, ids = labels(X, "classify"), np.arange(N)
    with open_durable(tmp_path, forest("classify", **STREAMS)) as durable:
        durable.partial_fit(X[:100], y[:100], ids=ids[:100])
        durable.snapshot()
        durable.partial_fit(X[100:200], y[100:200], ids=ids[100:200])
        gone = [3, 50, 150, 199]
        assert any(X[150, 3].tobytes() in f.read_bytes() for f in tmp_path.iterdir())
        durable.forget(gone)
        for file in tmp_path.iterdir():
            assert not any(X[a, 3].tobytes() in file.read_bytes() for a in gone), file
        with pytest.raises(TypeError, match="durable"):
            durable.model.forget([5])
        durable.partial_fit(X[200:], y[200:], ids=ids[200:])
        last = durable.fingerprint()
    with open_durable(tmp_path) as durable:
        assert durable.fingerprint() == last
        with pytest.raises(KeyError):
            durable.forget(gone)


def test_a_folder_that_could_not_be_written_has_not_forgotten(tmp_path, monkeypatch):
    X = rows()
    y, ids = labels(X, "classify"), np.arange(N)
    with open_durable(tmp_path, forest("classify")) as durable:
        durable.partial_fit(X, y, ids=ids)
        before = durable.fingerprint()
        known = durable.model.fitted.engine.snapshot().state()["ids"][:3]

        def full(*_):
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr("boundary_forest.durable.durable_forest.write_model", full)
            with pytest.raises(OSError, match="No space left"):
                durable.forget(known)
    with open_durable(tmp_path) as durable:
        assert durable.fingerprint() == before
        durable.forget(known)


def test_a_crash_after_the_snapshot_leaves_nothing_once_the_folder_is_opened(tmp_path, monkeypatch):
    X = rows()
    y, ids = labels(X, "classify"), np.arange(N)
    durable = open_durable(tmp_path, forest("classify"))
    durable.partial_fit(X, y, ids=ids)
    known = int(durable.model.fitted.engine.snapshot().state()["ids"][0])
    with monkeypatch.context() as patch:
        patch.setattr("boundary_forest.durable.journal.Journal.drop_until", _crash)
        with pytest.raises(KeyboardInterrupt):
            durable.forget([known])
    with open_durable(tmp_path) as again:
        for file in tmp_path.iterdir():
            assert X[known, 3].tobytes() not in file.read_bytes()
        with pytest.raises(KeyError):
            again.forget([known])


def _crash(*_):
    raise KeyboardInterrupt
