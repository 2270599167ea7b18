"""Promise 1: the engine and reference/ build the same forest, node for node, from the same seed.

Positions on a small integer grid make distances exact and ties plentiful; real-valued positions are
held to the one order of summation that both state.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import _core, reference
from boundary_forest.estimators.engine_constants import trees_in

pytestmark = pytest.mark.kernels

METRICS = [
    ("euclidean", 2.0),
    ("manhattan", 2.0),
    ("chebyshev", 2.0),
    ("minkowski", 1.0),
    ("minkowski", 3.0),
    ("cosine", 2.0),
    ("hamming", 2.0),
    ("canberra", 2.0),
    ("inner_product", 2.0),
    ("callable", 2.0),
]
ESTIMATORS = {"classify": "shepard_vote", "regress": "shepard_mean", "retrieve": "nearest"}


def first_gap(a, b):
    """A callable metric on label vectors."""
    return abs(float(a[0]) - float(b[0]))


LABEL_METRICS = {
    "discrete": lambda a, b: float(a.tolist() != b.tolist()),
    "euclidean": reference.euclidean_label_distance,
    "manhattan": lambda a, b: float(sum(abs(x - y) for x, y in zip(a, b, strict=True))),
    "chebyshev": lambda a, b: float(max(abs(x - y) for x, y in zip(a, b, strict=True))),
    "always": reference.always,
    "callable": first_gap,
}


def squared_gap(x, y):
    """A callable metric; on the grid all its sums are exact."""
    return float(((x - y) ** 2).sum())


@st.composite
def cases(draw):
    task = draw(st.sampled_from(sorted(ESTIMATORS)))
    metric, p = draw(st.sampled_from(METRICS))
    if metric == "inner_product":
        task = "retrieve"
    n, features = draw(st.integers(1, 60)), draw(st.sampled_from([1, 2, 3, 16, 19, 40]))
    element_type = draw(st.sampled_from(["uint8", "int8", "float16", "float32", "float64"]))
    on_grid = element_type in ("uint8", "int8") or metric == "callable" or draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if on_grid:
        X = rng.integers(0, draw(st.sampled_from([2, 3, 6])), size=(n + 5, features))
    else:
        X = rng.normal(size=(n + 5, features))
        X[rng.integers(0, n + 5, size=n // 4)] = X[0]  # duplicates here too
    labels = {
        "classify": rng.integers(0, 3, size=(n, 1)),
        "regress": rng.normal(size=(n, draw(st.integers(1, 3)))).round(1),
        "retrieve": np.zeros((n, 0)),
    }[task].astype(np.float64)
    epsilon, label_metric = 0.0, "discrete" if task == "classify" else "always"
    if task == "regress":
        epsilon = draw(st.sampled_from([0.0, 0.5, None]))
        label_metric = draw(st.sampled_from(["euclidean", *LABEL_METRICS]))
    cuts = sorted(draw(st.lists(st.integers(0, n), max_size=4)))
    return {
        "task": task,
        "metric": metric,
        "p": p,
        "X": X[:n].astype(element_type),
        "queries": X[n - 1 :].astype(element_type),
        "y": labels,
        "epsilon": epsilon,
        "label_metric": label_metric,
        "cuts": [0, *cuts, n],
        "n_T": draw(st.sampled_from([1, 2, 5, 13])),
        "k": draw(st.sampled_from([2, 3, 50, None])),
        "seed": draw(st.integers(0, 2**64 - 1)),
        "n_jobs": draw(st.sampled_from([1, 2])),
        "offline": draw(st.booleans()) and draw(st.booleans()),
    }


def engine_forest(case):
    X, y = case["X"], case["y"]
    forest = _core.Forest(
        n_estimators=case["n_T"],
        max_children=case["k"],
        n_features=X.shape[1],
        label_length=y.shape[1],
        epsilon=case["epsilon"],
        element_type=X.dtype.name,
        seed=case["seed"],
        metric=squared_gap if case["metric"] == "callable" else case["metric"],
        p=case["p"],
        estimator=ESTIMATORS[case["task"]],
        label_metric=first_gap if case["label_metric"] == "callable" else case["label_metric"],
    )
    if case["offline"]:
        forest.learn_offline(X, y, case["n_jobs"])
    else:
        for begin, end in zip(case["cuts"], case["cuts"][1:], strict=False):
            forest.learn(X[begin:end], y[begin:end], case["n_jobs"])
    return forest


def reference_forest(case):
    forest = reference.BoundaryForest(
        n_T=case["n_T"],
        k=float("inf") if case["k"] is None else case["k"],
        d=squared_gap if case["metric"] == "callable" else case["metric"],
        d_c=LABEL_METRICS[case["label_metric"]],
        epsilon=case["epsilon"],
        seed=case["seed"],
        p=case["p"],
    )
    if case["offline"]:
        forest.train_offline(case["X"], case["y"])
    else:
        for x, c in zip(case["X"], case["y"], strict=True):
            forest.BFTrain(x, c)
    return forest


def assert_same_trees(forest, oracle):
    state = forest.snapshot().state()
    if not oracle.trees:
        assert state["arrivals"].tolist() == [node.arrival for node in oracle.buffer]
        assert all(len(examples) == 0 for examples, _ in trees_in(state))
        return
    for (examples, parents), tree in zip(trees_in(state), oracle.all_trees, strict=True):
        # In order of creation, so children come in the same order under the same parents.
        assert state["arrivals"][examples].tolist() == [v.arrival for v in tree.nodes]
        position = {id(v): i for i, v in enumerate(tree.nodes)}
        expected = [position[id(v.parent)] for v in tree.nodes[1:]]
        assert parents[1:].tolist() == expected
    stored = oracle.stored
    assert state["arrivals"].tolist() == sorted(stored)
    for row, label, arrival in zip(
        state["positions"], state["labels"], state["arrivals"], strict=True
    ):
        assert [row.tolist(), label.tolist()] == [part.tolist() for part in stored[arrival]]


def assert_same_answers(forest, oracle, case):
    found = [[v.arrival for v in oracle.BFQuery(y)] for y in case["queries"]]
    assert forest.apply(case["queries"], case["n_jobs"]).tolist() == found
    if case["task"] == "retrieve":
        expected = [oracle.nearest(y) for y in case["queries"]]
        distances, arrivals, _ = forest.neighbors(case["queries"], 1, case["n_jobs"])
        assert list(zip(distances[:, 0], arrivals[:, 0], strict=True)) == expected
    else:
        answers = forest.estimate(case["queries"], case["n_jobs"])
        for answer, y in zip(answers, case["queries"], strict=True):
            vote = case["task"] == "classify"
            expected = oracle.shepard_vote(y, len(answer)) if vote else oracle.shepard_mean(y)
            assert answer.tolist() == expected.tolist()


@settings(max_examples=300, deadline=None, derandomize=True)
@given(cases())
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_engine_equals_reference_node_for_node(case):
    forest, oracle = engine_forest(case), reference_forest(case)
    assert_same_trees(forest, oracle)
    assert forest.stats()["comparisons"]["learn"] == oracle.comparisons
    assert_same_answers(forest, oracle, case)


@pytest.mark.parametrize("scale", [1e-30, 1e30])
@pytest.mark.parametrize("metric", [m for m, p in METRICS if m not in ("callable", "minkowski")])
@pytest.mark.parametrize("element_type", ["float32", "float64"])
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value encountered")
def test_engine_equals_reference_where_floats_over_and_underflow(metric, element_type, scale):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(60, 21)) * scale).astype(element_type)
    case = {
        "task": "retrieve", "metric": metric, "p": 2.0, "X": X[:50], "queries": X[45:],
        "y": np.zeros((50, 0)), "label_metric": "always", "epsilon": 0.0,
        "cuts": [0, 50], "n_T": 3, "k": 4, "seed": 7, "n_jobs": 1, "offline": False,
    }  # fmt: skip
    forest, oracle = engine_forest(case), reference_forest(case)
    assert_same_trees(forest, oracle)
    assert_same_answers(forest, oracle, case)


@pytest.mark.parametrize(("metric", "p"), [case for case in METRICS if case[0] != "callable"])
@pytest.mark.parametrize("element_type", ["uint8", "int8", "float16", "float32"])
def test_queries_of_another_type_are_compared_as_the_reference_compares_them(
    element_type, metric, p
):
    rng = np.random.default_rng(2)
    case = {
        "task": "retrieve", "metric": metric, "p": p,
        "X": rng.integers(0, 5, size=(200, 20)).astype(element_type),
        "queries": rng.integers(0, 5, size=(40, 20)) + rng.choice([0.0, 0.1], size=(40, 20)),
        "y": np.zeros((200, 0)), "label_metric": "always", "epsilon": 0.0,
        "cuts": [0, 200], "n_T": 5, "k": 5, "seed": 3, "n_jobs": 1, "offline": False,
    }  # fmt: skip
    assert_same_answers(engine_forest(case), reference_forest(case), case)


@settings(max_examples=75, deadline=None, derandomize=True)
@given(cases())
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_predict_then_learn_answers_as_asking_and_learning_one_by_one(case):
    case = {**case, "offline": False, "cuts": [0, 1]}
    X, y = case["X"], case["y"]
    together, apart = engine_forest(case), engine_forest(case)
    answers = together.estimate_then_learn(X[1:], y[1:], case["n_jobs"])
    for i in range(1, len(X)):
        answer = apart.estimate(X[i : i + 1], 1)[0].tolist()
        apart.learn(X[i : i + 1], y[i : i + 1], 1)
        # A class that comes later has no share yet.
        assert answers[i - 1].tolist() == answer + [0.0] * (answers.shape[1] - len(answer))
    assert same_state(together.snapshot().state(), apart.snapshot().state())


@settings(max_examples=50, deadline=None, derandomize=True)
@given(cases(), st.data())
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_restored_forest_goes_on_as_the_one_that_was_saved(case, data):
    cut = data.draw(st.integers(1, len(case["X"])))
    saved = engine_forest({**case, "offline": False, "cuts": [0, cut]})
    restored = engine_forest({**case, "offline": False, "cuts": [0]})
    restored.restore(saved.snapshot().state())
    for forest in (saved, restored):
        forest.learn(case["X"][cut:], case["y"][cut:], 1)
    assert same_state(saved.snapshot().state(), restored.snapshot().state())
    assert saved.stats()["comparisons"] == restored.stats()["comparisons"]


@settings(max_examples=50, deadline=None, derandomize=True)
@given(cases(), st.data())
@pytest.mark.filterwarnings("ignore:overflow encountered")
def test_a_widened_forest_is_as_if_the_new_features_had_been_zero_from_the_start(case, data):
    cut, n = data.draw(st.integers(1, len(case["X"]))), len(case["X"])
    case = {**case, "offline": False, "cuts": [0, n]}
    before = case["X"].shape[1]
    wide = np.pad(case["X"], ((0, 0), (0, 3)))
    wide[cut:, before:] = case["X"][cut:, :1]
    always_wide = engine_forest({**case, "X": wide})
    widened = engine_forest({**case, "cuts": [0, cut]}).widened(before + 3)
    widened.learn(wide[cut:], case["y"][cut:], 1)
    assert same_state(widened.snapshot().state(), always_wide.snapshot().state())


def same_state(a, b):
    trees = zip(trees_in(a), trees_in(b), strict=True)
    return all(
        [
            a["seen"] == b["seen"],
            a["n_classes"] == b["n_classes"],
            all(np.array_equal(x, y) for pair in trees for x, y in zip(*pair, strict=True)),
            *(np.array_equal(a[k], b[k]) for k in ("positions", "labels", "arrivals", "spread")),
        ]
    )
