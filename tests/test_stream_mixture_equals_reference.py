"""Promise 1 for ``weights="mixture"`` of forests that forget: the engine's are the reference's."""

from __future__ import annotations

from itertools import cycle, islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_equals_reference import assert_same_trees
from test_mixture_equals_reference import N_QUERIES, cases

from boundary_forest import BoundaryForestClassifier, _core, reference
from boundary_forest.estimators.forest_settings import AUTO
from boundary_forest.reference import stream_mixture as rules

pytestmark = pytest.mark.kernels


def both(case, lifetimes, *, with_ids=False):
    X, y, n = case["X"], case["y"], case["n"]
    engine = empty_engine(case, lifetimes, with_ids=with_ids)
    oracle = reference.ExtendedForest(
        **shared_parameters(case), n_T=case["n_T"], k=5, E=estimator_of(case), weights="mixture",
        lifetimes=lifetimes,
    )  # fmt: skip
    for begin, end in zip([0, *case["cuts"]], [*case["cuts"], n], strict=True):
        ids = [np.arange(begin, end)] if with_ids else []
        engine.learn(X[begin:end], y[begin:end], case["n_jobs"], *ids)
    for x, c in zip(X[:n], y[:n], strict=True):
        oracle.BFTrain(x, c)
    return engine, oracle


def empty_engine(case, lifetimes, *, with_ids=False):
    X, y = case["X"], case["y"]
    return _core.Forest(
        **shared_parameters(case), n_estimators=case["n_T"], max_children=5, n_features=X.shape[1],
        label_length=y.shape[1], element_type=X.dtype.name, metric="euclidean", p=2.0,
        estimator=estimator_of(case), vote_weights="mixture", lifetimes=lifetimes,
        label_metric="discrete" if case["task"] == "classify" else "euclidean",
        ids="int64" if with_ids else "none",
    )  # fmt: skip


def estimator_of(case):
    return "shepard_vote" if case["task"] == "classify" else "shepard_mean"


def shared_parameters(case):
    return {
        "epsilon": 0.0 if case["task"] == "classify" else None, "seed": case["seed"],
        "max_samples": case["max_samples"], "feature_weights": case["feature_weights"],
    }  # fmt: skip


def assert_same(engine, oracle, case):
    assert_same_trees(engine, oracle)
    state, mixture, D = engine.snapshot().state(), oracle.stream, case["X"].shape[1]
    assert state["mixture_weights"].tolist() == [*mixture.weights(mixture.rate), mixture.sharpness]
    assert state["class_order"].tolist() == mixture.classes
    n_outputs = len(mixture.classes) if mixture.votes else mixture.n_outputs
    solved = [len(m.fits[0][0]) if m.fits else 0 for m in mixture.models]
    assert state["mixture_trial"].tolist() == [
        *mixture.n_judged, *mixture.rate_losses, *np.ravel(mixture.losses).tolist(),
        *mixture.correction_losses, *mixture.sharpness_losses, *solved, *mixture.last_error,
        *[0.0] * (n_outputs - len(mixture.last_error)),
    ]  # fmt: skip
    below = np.tril_indices(D)
    assert state["linear_sums"].tolist() == [
        x for m in mixture.models
        for x in (m.n, m.unit, 0, *m.origin, *m.label_origin, *m.sums, *m.products[below],
                  *m.label_sums, *m.cross.ravel())
    ]  # fmt: skip
    models = [np.column_stack(m.fits[0]).ravel() for m in mixture.models if m.fits]
    assert state["linear_model"].tolist() == np.concatenate([np.zeros(0), *models]).tolist()
    queries = case["X"][case["n"] - 3 :]
    for y, answer in zip(queries, engine.estimate(queries, case["n_jobs"]), strict=True):
        expected = oracle.answer(y, oracle.BFQuery(y), oracle.ballot).tolist()
        assert answer.tolist() == expected + [0.0] * (len(answer) - len(expected))


def lifetimes_for(n_T):
    return [(0, 40, 9)[i % 3] for i in range(n_T)]


@settings(max_examples=10, deadline=None, derandomize=True)
@given(cases())
def test_mixtures_of_streams_are_the_references(case):
    assert_same(*both(case, lifetimes_for(case["n_T"])), case)


def assert_same_after_forgetting(case, data, lifetimes):
    """Rows are forgotten by another engine that the state was copied to, and more are learned."""
    n = case["n"]
    first, oracle = both(case, lifetimes, with_ids=True)
    engine = empty_engine(case, lifetimes, with_ids=True)
    engine.restore(first.snapshot().state())
    stored = engine.snapshot().state()["arrivals"].tolist()
    lost = sorted(data.draw(st.sets(st.sampled_from(stored[:-1]), min_size=1, max_size=9)))
    assert engine.forget(np.array(lost), 1, False) == []
    oracle.forget(lost)
    more = slice(n - N_QUERIES, n)
    for x, c in zip(case["X"][more], case["y"][more], strict=True):
        oracle.BFTrain(x, c)
    engine.learn(case["X"][more], case["y"][more], 1, np.arange(n, n + N_QUERIES))
    assert_same(engine, oracle, case)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(cases(140), st.data())
def test_models_without_forgotten_rows_are_the_references(case, data):
    assert_same_after_forgetting(case, data, lifetimes_for(case["n_T"]))


@settings(max_examples=3, deadline=None, derandomize=True)
@given(cases(180), st.data())
def test_the_setting_of_for_streams_is_the_references(case, data):
    setting = BoundaryForestClassifier.for_streams()
    names = {
        "n_T": "n_estimators",
        "max_samples": "max_samples",
        "feature_weights": "feature_weights",
    }
    case |= {name: getattr(setting, parameter) for name, parameter in names.items()}
    lifetimes = [life or 0 for life in islice(cycle(AUTO), case["n_T"])]
    assert_same_after_forgetting(case, data, lifetimes)


def test_long_spans_are_the_references():
    """More than 1,000 arrivals: origins move, and the last 1,000 rows are not all. After 2,207, the
    sums of the model that forgets fastest are divided.
    """
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2300, 3)).cumsum(axis=0) * 0.01 + rng.normal(size=(2300, 3)).round(1)
    y = (X[:, :1] + 0.3 * rng.normal(size=(2300, 1)) > X[:, 1:2]).astype(float)
    case = {
        "task": "classify", "X": X, "y": y, "n": 2290, "n_T": 4, "seed": 5, "n_jobs": 1,
        "cuts": [300, 1001, 2250], "feature_weights": "learned", "max_samples": 0.5,
    }  # fmt: skip
    assert_same(*both(case, [0, 0, 64, 16]), case)


def test_the_references_experts_are_the_engines():
    assert _core.experts(forgets=True) == rules.EXPERTS
