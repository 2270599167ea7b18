"""Promise 1 for ``weights="mixture"``: experts, weights and probabilities are the reference's.

Decisions come at 125, 187 and 250 arrivals; some features are constant, tiny or without meaning,
and some rows occur twice.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_equals_reference import assert_same_trees
from test_learned_weights_equal_reference import rows_and_labels

from boundary_forest import _core, reference
from boundary_forest.reference import mixture as rules

pytestmark = pytest.mark.kernels

N_QUERIES = 12


@st.composite
def cases(draw, most_rows=270, times=1):
    task = draw(st.sampled_from(["classify", "regress", "outputs"]))
    element_type = draw(st.sampled_from(["uint8", "int8", "float16", "float32", "float64"]))
    scales = draw(st.lists(st.sampled_from([1e-3, 1.0, 50.0]), min_size=2, max_size=5)) * times
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(120, most_rows))
    X, y = rows_and_labels(rng, n + N_QUERIES, element_type, task, scales)
    weights = draw(st.sampled_from([None, "learned", "given"]))
    if weights == "given":
        choices = st.sampled_from([0.0, 0.3, 1.0, 7.0])
        weights = np.array([draw(choices) for _ in scales] + [1.0])
    return {
        "task": task,
        "X": X,
        "y": y,
        "n": n,
        "n_T": draw(st.sampled_from([3, 7, 12])),  # below, at and above the number of features
        "seed": draw(st.integers(0, 2**64 - 1)),
        "n_jobs": draw(st.sampled_from([1, 2])),
        "cuts": sorted(draw(st.lists(st.integers(0, n), max_size=3))),
        "feature_weights": weights,
        "max_samples": draw(st.sampled_from([0.3, 1.0])),
    }


def both(case, **more):
    X, y, n = case["X"], case["y"], case["n"]
    E = "shepard_vote" if case["task"] == "classify" else "shepard_mean"
    same = {
        "epsilon": 0.0 if case["task"] == "classify" else None, "seed": case["seed"],
        "max_samples": case["max_samples"], "feature_weights": case["feature_weights"],
    }  # fmt: skip
    engine = _core.Forest(
        **same, **more, n_estimators=case["n_T"], max_children=5, n_features=X.shape[1],
        label_length=y.shape[1], element_type=X.dtype.name, metric="euclidean", p=2.0, estimator=E,
        label_metric="discrete" if case["task"] == "classify" else "euclidean",
        vote_weights="mixture",
    )  # fmt: skip
    oracle = reference.ExtendedForest(**same, n_T=case["n_T"], k=5, E=E, weights="mixture")
    if more:
        engine.learn(X[:n], y[:n], case["n_jobs"], np.arange(n))
    else:
        for begin, end in zip([0, *case["cuts"]], [*case["cuts"], n], strict=True):
            engine.learn(X[begin:end], y[begin:end], case["n_jobs"])
    for x, c in zip(X[:n], y[:n], strict=True):
        oracle.BFTrain(x, c)
    return engine, oracle


def assert_same_mixture(engine, oracle):
    state, mixture = engine.snapshot().state(), oracle.mixture
    K = len(rules.EXPERTS)
    assert state["mixture_weights"].tolist() == [*mixture.weights, mixture.sharpness]
    assert state["class_order"].tolist() == mixture.classes
    below = np.tril_indices(K)
    units = [] if mixture.votes else mixture.units.tolist()
    losses = mixture.losses if mixture.votes else []
    assert state["mixture_trial"].tolist() == [
        mixture.n_judged, mixture.is_calibrating, *units, *mixture.products[below].tolist(),
        *losses,
    ]  # fmt: skip
    linear, of_features = mixture.linear, mixture.map
    assert state["linear_map"].tolist() == (
        [] if of_features is None
        else [mixture.first_row, of_features.n_knots, of_features.step,
              *np.ravel(of_features.numbers)]
    )  # fmt: skip
    assert state["linear_sums"].tolist() == (
        [] if not linear.is_kept
        else [linear.n, linear.unit, linear.most_products, *linear.origin, *linear.label_origin,
              *linear.sums, *linear.products[np.tril_indices(len(linear.sums))],
              *linear.label_sums, *linear.cross.ravel()]
    )  # fmt: skip
    models = [np.column_stack(fit) for fit in linear.fits]
    assert state["linear_model"].tolist() == (np.hstack(models).ravel().tolist() if models else [])


def assert_same(engine, oracle, case):
    assert_same_trees(engine, oracle)
    assert_same_mixture(engine, oracle)
    queries = case["X"][case["n"] - 3 :]
    answers = engine.estimate(queries, case["n_jobs"])
    for y, answer in zip(queries, answers, strict=True):
        expected = oracle.answer(y, oracle.BFQuery(y), oracle.ballot).tolist()
        assert answer.tolist() == expected + [0.0] * (len(answer) - len(expected))


@settings(max_examples=12, deadline=None, derandomize=True)
@given(cases())
def test_mixtures_are_the_references(case):
    assert_same(*both(case), case)


# Features have two knots up to 7, one up to 11, then two without products, and none beyond 75.
@pytest.mark.parametrize("times", [3, 6, 34])
@settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_mixtures_of_many_features_are_the_references(times, data):
    case = data.draw(cases(135, times))
    assert_same(*both(case), case)


@pytest.mark.parametrize("times", [6, 45])  # the models have no room for all of the second
@settings(max_examples=2, deadline=None, derandomize=True)
@given(data=st.data())
def test_mixtures_of_features_that_come_late_are_the_references(times, data):
    """Room for features that are all zero in the first rows changes nothing."""
    case = data.draw(cases(135, times))
    case["X"][:90, data.draw(st.integers(1, 20)) :] = 0
    assert_same(*both(case), case)


@settings(max_examples=4, deadline=None, derandomize=True)
@given(cases(140), st.data())
def test_sums_without_forgotten_rows_are_the_references(case, data):
    n = case["n"]
    engine, oracle = both(case, ids="int64")
    stored = engine.snapshot().state()["arrivals"].tolist()
    lost = sorted(data.draw(st.sets(st.sampled_from(stored), min_size=1, max_size=9)))
    assert engine.forget(np.array(lost), 1, False) == []
    oracle.forget(lost)
    for x, c in zip(case["X"][n - 20 : n], case["y"][n - 20 : n], strict=True):
        oracle.BFTrain(x, c)
    engine.learn(case["X"][n - 20 : n], case["y"][n - 20 : n], 1, np.arange(n, n + 20))
    assert_same(engine, oracle, case)


def test_the_references_experts_are_the_engines():
    names = {"mean": "mean", "linear": "linear", "quadratic": "quadratic"}
    shown = [
        names.get(kind) or f"{kind}(power={power}" + (f", penalty={penalty:g})" if penalty else ")")
        for kind, power, penalty in rules.EXPERTS
    ]
    assert shown == _core.experts()
