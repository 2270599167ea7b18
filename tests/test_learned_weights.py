"""Promise 2 beyond the paper: weights, samples and votes depend on arrivals, and on no more.

N rows pass the decisions at 125, 250 and 500 arrivals.
"""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import REFUSED, answers, names, unchanged
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

N = 520
ADAPTIVE = {"feature_weights": "learned", "max_samples": 0.5, "weights": "auto"}
TASKS = ["classify", "regress", "outputs", "general"]


def stream(task, dtype="float32"):
    """Rows and labels: two features of five tell, each on a scale of its own."""
    rng = np.random.default_rng(8)
    z = rng.normal(size=(N + 20, 5)).round(1)
    X = (np.clip(z * 20 + 100, 0, 255) if dtype == "uint8" else z * [1, 50, 1e-3, 7, 1]).astype(
        dtype
    )
    signal = z[:, 0] + (z[:, 1] > 0) + rng.normal(size=N + 20) / 10
    if task == "classify":
        return X, np.array(["low", "mid", "high"])[np.digitize(signal, [0, 1])]
    return X, signal if task == "regress" else np.column_stack([signal, z[:, 1]])


def forest(task, **params):
    made = {
        "classify": BoundaryForestClassifier,
        "regress": BoundaryForestRegressor,
        "outputs": BoundaryForestRegressor,
        "general": BoundaryForest,
    }[task]
    return made(**{"n_estimators": 4, "random_state": 3, **ADAPTIVE, **params})


def taught(task, dtype="float32", cuts=(), begin=None, end=N, **params):
    X, y = stream(task, dtype)
    learner, start = (forest(task, **params), 0) if begin is None else begin
    for cut in [*(cut for cut in cuts if start < cut < end), end]:
        learner.partial_fit(X[start:cut], y[start:cut])
        start = cut
    return learner


def same(one, other, task, dtype="float32"):
    queries = stream(task, dtype)[0][N:]
    assert one.fingerprint() == other.fingerprint()
    assert answers(one, queries) == answers(other, queries)
    assert one.feature_weights_.tolist() == other.feature_weights_.tolist()
    return True


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
@pytest.mark.parametrize("task", TASKS)
def test_single_rows_and_threads_change_nothing(task, dtype):
    whole = taught(task, dtype)
    assert len(set(whole.feature_weights_)) > 1  # something was decided
    assert same(taught(task, dtype, cuts=range(N), n_jobs=2), whole, task, dtype)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    st.sampled_from(TASKS),
    st.lists(st.sampled_from([*range(1, N, 37), 3, 4, 62, 63, 124, 125, 126, 249, 250, 251, 500])),
    st.sampled_from([1, 2, 3]),
)
def test_cuts_change_nothing(task, cuts, n_jobs):
    assert same(taught(task, cuts=sorted(set(cuts)), n_jobs=n_jobs), taught(task), task)


@pytest.mark.parametrize("task", ["classify", "regress", "outputs"])
def test_predict_then_learn_answers_as_asking_and_learning_one_by_one(task):
    X, y = stream(task)
    together, apart = taught(task, end=120), taught(task, end=120)
    said = together.predict_then_learn(X[120:260], y[120:260])
    for i in range(120, 260):
        assert said[i - 120].tolist() == apart.predict(X[i : i + 1])[0].tolist()
        apart.partial_fit(X[i : i + 1], y[i : i + 1])
    assert same(together, apart, task)


def all_of_them():
    made = [(task, dtype) for task in TASKS for dtype in ("uint8", "float32", "float64")]
    forests = [(taught(*one), stream(*one)[0][N:]) for one in made]
    return str([(one.fingerprint(), answers(one, queries)) for one, queries in forests])


@pytest.mark.parametrize(("path", "isa"), [("plain", ""), ("block", "scalar")])
def test_instruction_sets_and_blocks_of_rows_change_nothing(path, isa):
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_learned_weights import *\n"
        "print(all_of_them())\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, str(Path(__file__).parent)],
        env={**os.environ, "BOUNDARY_FOREST_PATH": path, "BOUNDARY_FOREST_ISA": isa},
        check=True,
        capture_output=True,
        text=True,
    )
    assert run.stdout.strip() == all_of_them()


@pytest.mark.parametrize("cut", [3, 62, 100, 125, 133, 240, 499, 500])
@pytest.mark.parametrize("task", TASKS)
def test_copies_and_files_go_on_as_the_forest_itself(task, cut, tmp_path):
    before = taught(task, end=cut)
    before.save(tmp_path / "model.bf")
    copies = [load(tmp_path / "model.bf"), load(tmp_path / "model.bf", mmap=True)]
    copies += [pickle.loads(pickle.dumps(before)), copy.deepcopy(before)]
    for one in copies:
        same(one, before, task)
    expected = taught(task)
    for one in copies:
        assert same(taught(task, begin=(one, cut)), expected, task)


@pytest.mark.parametrize("task", TASKS)
def test_a_durable_folder_goes_on_as_the_forest_itself(task, tmp_path):
    X, y = stream(task)
    for begin, end in [(0, 110), (110, 260), (260, N)]:
        begun = [forest(task)] if begin == 0 else []
        with open_durable(tmp_path, *begun) as durable:
            durable.partial_fit(X[begin:end], y[begin:end])
            last = durable.fingerprint()
    assert last == taught(task).fingerprint()


def test_the_order_of_classes_changes_nothing():
    X, y = stream("classify")
    plain = taught("classify")
    declared = forest("classify").partial_fit(X[:N], y[:N], classes=["mid", "low", "zz", "high"])
    assert declared.fingerprint() == plain.fingerprint()
    renamed = forest("classify").partial_fit(X[:N], np.char.replace(y[:N], "low", "zzz"))
    assert renamed.apply(X[N:]).tolist() == plain.apply(X[N:]).tolist()
    assert renamed.feature_weights_.tolist() == plain.feature_weights_.tolist()
    shares, others = renamed.predict_proba(X[N:]), plain.predict_proba(X[N:])
    assert shares.tolist() == others[:, [0, 2, 1]].tolist()


@pytest.mark.parametrize(
    "params",
    [
        {"feature_weights": None},
        {"feature_weights": [1.0, 2.0, 1.0, 1.0, 1.0]},
        {"max_samples": 0.4},
        {"weights": "uniform"},
    ],
    ids=str,
)
def test_another_parameter_is_another_forest(params):
    assert taught("classify", **params).fingerprint() != taught("classify").fingerprint()


BAD = {
    "negative": ("feature_weights", [1.0, -1.0, 1.0, 1.0, 1.0]),
    "not a number": ("feature_weights", [1.0, np.nan, 1.0, 1.0, 1.0]),
    "infinite": ("feature_weights", [1.0, np.inf, 1.0, 1.0, 1.0]),
    "all zero": ("feature_weights", np.zeros(5)),
    "too few": ("feature_weights", np.ones(4)),
    "too many": ("feature_weights", np.ones(6)),
    "a table": ("feature_weights", np.ones((5, 1))),
    "text": ("feature_weights", "lerned"),
    "complex": ("feature_weights", np.ones(5) * 1j),
    "an integer": ("max_samples", 1),
    "many": ("max_samples", 100),
    "none at all": ("max_samples", 0.0),
    "no fraction": ("max_samples", np.nan),
    "too large": ("max_samples", 1.5),
    "unknown votes": ("weights", "best"),
}


@pytest.mark.parametrize(("parameter", "value"), BAD.values(), ids=BAD.keys())
@pytest.mark.parametrize("task", TASKS)
def test_bad_values_are_refused_by_name_and_nothing_is_learned(task, parameter, value):
    X, y = stream(task)
    learner = forest(task).fit(X[:130], y[:130])
    learner.set_params(**{parameter: value})
    with unchanged(learner, X[N:]), pytest.raises(REFUSED, match=names(parameter)):
        learner.fit(X[:50], y[:50])
    new = forest(task, **{parameter: value})
    with unchanged(new, X[N:]), pytest.raises(REFUSED, match=names(parameter)):
        new.partial_fit(X[:50], y[:50])


@pytest.mark.parametrize("metric", ["manhattan", "cosine", lambda a, b: 0.0])
@pytest.mark.parametrize(
    "weights", ["learned", [1.0, 2.0, 1.0, 1.0, 1.0]], ids=["learned", "given"]
)
def test_other_metrics_take_no_weights(metric, weights):
    X, y = stream("classify")
    with pytest.raises(ValueError, match="feature_weights requires metric='euclidean'"):
        forest("classify", metric=metric, feature_weights=weights).fit(X, y)


def test_weights_of_one_are_the_plain_distance():
    X, _ = stream("regress")
    plain = taught("regress", feature_weights=None)
    ones = taught("regress", feature_weights=np.ones(5))
    assert ones.apply(X[N:]).tolist() == plain.apply(X[N:]).tolist()


def test_weights_are_those_of_scaled_columns():
    X, y = stream("regress", "float64")
    weights = np.array([4.0, 1 / 64, 1024.0**2, 0.25, 0.0])  # roots are powers of two
    weighted = forest("regress", feature_weights=weights).fit(X[:N], y[:N])
    scaled = forest("regress", feature_weights=None).fit(X[:N] * np.sqrt(weights), y[:N])
    assert weighted.apply(X[N:]).tolist() == scaled.apply(X[N:] * np.sqrt(weights)).tolist()


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200])
def test_targets_of_any_size_teach_the_same_weights(scale):
    X, y = stream("regress")
    moderate, other = forest("regress").fit(X, y), forest("regress").fit(X, y * scale)
    assert moderate.feature_weights_.max() > 2 * moderate.feature_weights_.min()
    assert np.allclose(other.feature_importances_, moderate.feature_importances_, atol=0.05)


def test_trees_are_grown_anew_in_steps_and_take_over_together():
    X, y = stream("classify")
    learner = forest("classify", n_estimators=20).partial_fit(X[:125], y[:125])
    before = [len(nodes) for nodes, _ in learner.trees()]
    weights = learner.feature_weights_
    growing = []
    for i in range(125, 142):
        state = learner.fitted.engine.snapshot().state(with_positions=False)
        growing.append(len(state["tree_sizes"]) - 20)
        after = [len(nodes) for nodes, _ in learner.trees()]
        if growing[-1]:  # those that answer have gone on as they were
            assert all(new >= old for new, old in zip(after, before, strict=True))
        learner.partial_fit(X[i : i + 1], y[i : i + 1])
    assert growing == [0, *(-(-20 * j // 16) for j in range(1, 16)), 0]
    assert not np.array_equal(weights, np.ones(5))


def test_retrieval_has_no_labels_to_learn_weights_from():
    assert "feature_weights" not in BoundaryForestNeighbors().get_params()
