"""Promise 1 beyond the paper: weights of features, samples and votes are the reference's too.

Rows are many enough for decisions, at 125 and 250 arrivals; some features are constant, tiny, huge
or without meaning.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_engine_equals_reference import LABEL_METRICS, assert_same_trees

from boundary_forest import _core, reference
from boundary_forest.reference.votes import POWERS

pytestmark = pytest.mark.kernels

VOTES = ["distance", "uniform", "auto"]
TASKS = ["classify", "regress", "outputs", "nearest"]
ESTIMATORS = {"classify": "shepard_vote", "nearest": "nearest"}  # else shepard_mean
N_QUERIES = 12


def rows_and_labels(rng, n, element_type, task, scales):
    """Labels follow the first two features; the last one is constant."""
    z = rng.normal(size=(n, len(scales) + 1)).round(1)  # so that some rows tie
    z[:, -1] = 1.0
    if element_type == "uint8":
        X = np.clip(z * 20 + 100, 0, 255).astype(np.uint8)
    elif element_type in ("int8", "float16"):
        X = np.clip(z * 20, -128, 127).astype(element_type)
    else:
        X = (z * [*scales, 1.0]).astype(element_type)
    signal = z[:, :1] + (z[:, 1:2] > 0)
    if task == "classify":
        y = np.digitize(signal, [-0.5, 0.5, 1.5]).astype(np.float64)
        flipped = rng.random(n) < 0.1
        y[flipped] = rng.integers(0, 5, size=(flipped.sum(), 1))
        return X, y
    n_outputs = 1 if task == "regress" else 3
    return X, signal * rng.normal(size=n_outputs) + rng.normal(size=(n, n_outputs)).round(1) / 10


@st.composite
def cases(draw, feature_weights, most_rows):
    task = draw(st.sampled_from(TASKS))
    element_type = draw(st.sampled_from(["uint8", "int8", "float16", "float32", "float64"]))
    scales = draw(st.lists(st.sampled_from([1e-25, 1e-3, 1.0, 50.0, 1e15]), min_size=2, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(120, most_rows))
    X, y = rows_and_labels(rng, n + N_QUERIES, element_type, task, scales)
    label_metric = (
        "discrete" if task == "classify" else draw(st.sampled_from(["euclidean", "callable"]))
    )
    weights = feature_weights
    if feature_weights == "given":
        choices = st.sampled_from([0.0, 1e-60, 0.3, 1.0, 7.0, 1e60])
        weights = np.array([draw(choices) for _ in scales] + [1.0])
    return {
        "task": task,
        "X": X[:n],
        "y": y[:n],
        "queries": X[n - 3 :],
        "label_metric": label_metric,
        "epsilon": 0.0 if task == "classify" else draw(st.sampled_from([0.0, 0.2, None])),
        "n_T": draw(st.sampled_from([2, 3, 7])),
        "k": draw(st.sampled_from([2, 5, 50])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        "n_jobs": draw(st.sampled_from([1, 2])),
        "offline": draw(st.booleans()) and draw(st.booleans()),
        "cuts": sorted(draw(st.lists(st.integers(0, n), max_size=3))),
        "feature_weights": weights,
        "max_samples": draw(st.sampled_from([0.01, 0.3, 0.5, 1.0])),
        "weights": draw(st.sampled_from(VOTES)),
        "lifetimes": (),
    }


def both(case):
    X, y, task = case["X"], case["y"], case["task"]
    own = "callable" if case["label_metric"] == "callable" else case["label_metric"]
    d_c = LABEL_METRICS[own]
    same = {
        "epsilon": case["epsilon"], "seed": case["seed"], "max_samples": case["max_samples"],
        "lifetimes": case.get("lifetimes", ()), "max_stored": case.get("max_stored", 0),
    }  # fmt: skip
    E = ESTIMATORS.get(task, "shepard_mean")
    engine = _core.Forest(
        **same, n_estimators=case["n_T"], max_children=case["k"], n_features=X.shape[1],
        label_length=y.shape[1], element_type=X.dtype.name, metric="euclidean", p=2.0, estimator=E,
        label_metric=d_c if own == "callable" else own, vote_weights=case["weights"],
        feature_weights=case["feature_weights"],
    )  # fmt: skip
    oracle = reference.ExtendedForest(
        **same, n_T=case["n_T"], k=case["k"], d_c=d_c, E=E, weights=case["weights"],
        feature_weights=case["feature_weights"],
    )  # fmt: skip
    if case["offline"]:
        engine.learn_offline(X, y, case["n_jobs"])
        oracle.train_offline(X, y)
        return engine, oracle
    for begin, end in zip([0, *case["cuts"]], [*case["cuts"], len(X)], strict=True):
        engine.learn(X[begin:end], y[begin:end], case["n_jobs"])
    for x, c in zip(X, y, strict=True):
        oracle.BFTrain(x, c)
    return engine, oracle


def assert_same(engine, oracle, case):
    assert engine.stats()["comparisons"]["learn"] == oracle.comparisons
    assert_same_trees(engine, oracle)
    state = engine.snapshot().state()
    if oracle.judges:
        assert state["vote_power"] == oracle.recent.rule
        assert state["vote_errors"].tolist() == oracle.recent.errors
        assert state["tree_losses"].tolist() == oracle.recent.losses
    else:
        assert POWERS[state["vote_power"]] == oracle.votes.p
    if oracle.votes.is_auto and not oracle.judges:
        errors = [np.broadcast_to(e, case["y"].shape[1]) for e in oracle.votes.errors.values()]
        assert state["vote_errors"].tolist() == np.concatenate(errors).tolist()
    if oracle.learns_weights:
        n_features = case["X"].shape[1]
        assert state["log_weights"][-1].tolist() == (oracle.log_weights or [0] * n_features)
        assert state["window_positions"].tolist() == [x.tolist() for _, x, _ in oracle.window]
    found = [[v.arrival for v in oracle.BFQuery(y)] for y in case["queries"]]
    assert engine.apply(case["queries"], case["n_jobs"]).tolist() == found
    answers = engine.estimate(case["queries"], case["n_jobs"])
    for y, answer in zip(case["queries"], answers, strict=True):
        expected = oracle.answer(y, oracle.BFQuery(y), oracle.ballot).tolist()
        assert answer.tolist() == expected + [0.0] * (len(answer) - len(expected))


@settings(max_examples=15, deadline=None, derandomize=True)
@given(cases(None, 260))
def test_samples_and_votes_are_the_references(case):
    assert_same(*both(case), case)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases("given", 140))
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_given_weights_are_the_references(case):
    assert_same(*both(case), case)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(cases("learned", 150))
def test_learned_weights_are_the_references(case):
    assert_same(*both(case), case)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases("learned", 124), st.data())
def test_weights_of_the_first_rows_are_the_references(case, data):
    """Before the trees are planted, when they are, and for more trees than 125."""
    case["n_T"] = data.draw(st.sampled_from([100, 119, 120, 130]))
    n = data.draw(st.integers(1, len(case["X"])))
    case |= {"X": case["X"][:n], "y": case["y"][:n], "offline": False}
    case["cuts"] = [min(cut, n) for cut in case["cuts"]]
    if data.draw(st.booleans()):
        case["lifetimes"] = ([0, 16] * 65)[: case["n_T"]]
    assert_same(*both(case), case)


@pytest.mark.parametrize("task", ["classify", "outputs"])
def test_weights_learned_again_are_the_references(task):
    """At the second decision trees have been grown anew once before."""
    X, y = rows_and_labels(np.random.default_rng(14), 282, "float32", task, [1.0, 50.0, 1e-3])
    case = {
        "task": task, "X": X[:275], "y": y[:275], "queries": X[270:], "epsilon": 0.0,
        "label_metric": "discrete" if task == "classify" else "euclidean",
        "n_T": 3, "k": 50, "seed": 3, "n_jobs": 2, "offline": False, "cuts": [124, 126],
        "feature_weights": "learned", "max_samples": 0.5, "weights": "auto", "lifetimes": (),
    }  # fmt: skip
    engine, oracle = both(case)
    assert oracle.log_weights  # the case is one where weights are worth it
    assert oracle.trees[0].generation == 2
    assert_same(engine, oracle, case)


@pytest.mark.parametrize("element_type", ["uint8", "int8", "float16", "float32"])
@pytest.mark.parametrize("weights", [None, "given"])
def test_queries_of_another_type_are_compared_as_the_reference_compares_them(element_type, weights):
    """In float64, with the weights' roots as the rows' type has them."""
    rng = np.random.default_rng(2)
    X, y = rows_and_labels(rng, 130, element_type, "regress", [1.0, 50.0, 1e-3])
    case = {
        "task": "regress", "X": X[:120], "y": y[:120], "queries": X[115:] + 0.1, "epsilon": 0.0,
        "label_metric": "euclidean", "n_T": 3, "k": 5, "seed": 3, "n_jobs": 1, "offline": False,
        "cuts": [], "feature_weights": weights and np.array([0.7, 0.1, 3.3, 1.0]),
        "max_samples": 0.5, "weights": "uniform",
    }  # fmt: skip
    case["queries"] = case["queries"].astype(np.float64)
    assert_same(*both(case), case)


@st.composite
def forgetting_cases(draw, feature_weights, most_rows):
    case = draw(cases(feature_weights, most_rows))
    choices = st.sampled_from([0, 2, 3, 8, 16, 50, 100])
    case["lifetimes"] = [draw(choices) for _ in range(case["n_T"])]
    case["max_stored"] = draw(st.sampled_from([0, 4 * case["n_T"], 60]))
    return {**case, "offline": False}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(forgetting_cases(None, 260))
def test_forests_that_forget_are_the_references(case):
    assert_same(*both(case), case)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(forgetting_cases(None, 150), st.data())
def test_the_smallest_limits_on_storage_are_the_references(case, data):
    n_T = data.draw(st.one_of(st.just(1), st.integers(1, 10)))
    case["n_T"] = n_T
    case["max_stored"] = 4 * n_T + data.draw(st.integers(0, 3))
    case["lifetimes"] = data.draw(st.sampled_from([(), [0] * n_T, [8] * n_T, [0, 3] * n_T]))[:n_T]
    engine, oracle = both(case)
    assert len(oracle.stored) <= case["max_stored"]
    assert_same(engine, oracle, case)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(forgetting_cases("learned", 150))
def test_forests_that_forget_and_learn_weights_are_the_references(case):
    assert_same(*both(case), case)
