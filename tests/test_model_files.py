"""A forest that was saved and loaded is the same forest, and goes on learning as it would have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading

import numpy as np
import pandas as pd
import pytest
from conftest import make_task, state
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    ModelFileError,
    load,
)
from boundary_forest.estimators.engine_constants import METRICS

mapped = pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])


def gap(x, y, weight=1.0):
    return abs(weight) * float(np.abs(x - y).sum())


def label_gap(a, b):
    return float(np.abs(a - b).max())


def first_label(y, nodes):
    return nodes[0].label


ESTIMATORS = {
    "classifier": (BoundaryForestClassifier, lambda X, rng: rng.integers(0, 4, len(X))),
    "named classes": (
        BoundaryForestClassifier,
        lambda X, rng: rng.choice(["a", "bb", "a longer name"], len(X)),
    ),
    "regressor": (BoundaryForestRegressor, lambda X, rng: X.sum(axis=1).astype(float)),
    "outputs": (BoundaryForestRegressor, lambda X, rng: X[:, :2].astype(float)),
    "neighbors": (BoundaryForestNeighbors, lambda X, rng: None),
    "general": (BoundaryForest, lambda X, rng: X[:, :2].astype(float)),
}


def part(y, begin, end):
    return None if y is None else y[begin:end]


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    estimator=st.sampled_from(sorted(ESTIMATORS)),
    element_type=st.sampled_from(["uint8", "int8", "float16", "float32", "float64"]),
    metric=st.sampled_from([*METRICS, gap]),
    cut=st.integers(1, 70),
    offline=st.booleans(),
    max_children=st.sampled_from([2, 5, None]),
    with_ids=st.sampled_from([None, int, str]),
    mmap=st.booleans(),
    seed=st.integers(0, 10),
)
def test_going_on_after_a_file_is_going_on_without_one(
    tmp_path_factory,
    estimator,
    element_type,
    metric,
    cut,
    offline,
    max_children,
    with_ids,
    mmap,
    seed,
):
    kind, label = ESTIMATORS[estimator]
    if metric == "inner_product" and kind is not BoundaryForestNeighbors:
        metric = "cosine"
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 9, size=(80, 3)).astype(element_type)
    y = label(X, rng)
    ids = None if with_ids is None else np.array([with_ids(i) for i in range(80)], dtype=object)
    forest = kind(
        n_estimators=5,
        metric=metric,
        dtype=element_type,
        max_children=max_children,
        offline=offline,
        random_state=seed,
    )
    learned = part(ids, 0, cut)
    forest.fit(X[:cut], part(y, 0, cut), ids=learned)
    path = tmp_path_factory.mktemp("model") / "model.bf"
    forest.save(path)
    functions = {"metric": gap} if metric is gap else {}
    other = load(path, mmap=mmap, **functions)
    assert type(other) is kind
    assert other.get_params() == forest.get_params()
    assert state(other, X[:7]) == state(forest, X[:7]) if cut >= 3 else True
    assert other.stats()["comparisons"] == forest.stats()["comparisons"]
    for one in (forest, other):
        one.partial_fit(X[cut:], part(y, cut, 80), ids=part(ids, cut, 80))
    assert state(other, X[:7]) == state(forest, X[:7])
    other.save(path)
    assert load(path, **functions).fingerprint() == forest.fingerprint()


@mapped
@pytest.mark.parametrize("n", [3, 40], ids=["before there are trees", "trees"])
def test_a_loaded_forest_is_as_the_saved_one(task, n, mmap, tmp_path):
    forest = task.forest().fit(task.X[:n], task.y[:n])
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf", mmap=mmap)
    assert state(other, task.queries) == state(forest, task.queries)
    before = state(forest, task.queries)
    other.partial_fit(task.X_more, task.y_more)
    assert state(forest, task.queries) == before
    forest.partial_fit(task.X_more, task.y_more)
    assert state(other, task.queries) == state(forest, task.queries)


def test_an_estimator_that_has_learned_nothing_can_be_saved(task, tmp_path):
    task.forest(max_children=3).save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.get_params() == task.forest(max_children=3).get_params()
    assert not hasattr(other, "seed_")
    assert other.fit(task.X, task.y).fingerprint() == task.taught(max_children=3).fingerprint()


def test_parameters_set_after_learning_are_kept_and_act_at_the_next_fit(task, tmp_path):
    forest = task.taught().set_params(metric="manhattan", n_estimators=2, max_children=2)
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.get_params() == forest.get_params()
    assert other.fingerprint() == forest.fingerprint() == task.taught().fingerprint()
    assert other.fit(task.X, task.y).fingerprint() == forest.fit(task.X, task.y).fingerprint()


def test_a_random_state_goes_on_where_it_was(task, tmp_path):
    forest = task.taught(random_state=np.random.RandomState(7))
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.seed_ == forest.seed_
    assert other.fit(task.X, task.y).seed_ == forest.fit(task.X, task.y).seed_


def test_feature_names_come_along(classification, tmp_path):
    frame = pd.DataFrame(classification.X, columns=["a", "b", "ü", "a longer name"])
    forest = classification.forest().fit(frame, classification.y)
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.feature_names_in_.tolist() == forest.feature_names_in_.tolist()
    assert other.feature_names_in_.dtype == object
    with pytest.raises(ValueError, match="feature names"):
        other.predict(frame[["b", "a", "ü", "a longer name"]])


LABELS = {
    "text": np.array(["b", "a", "cc"]),
    "text objects": np.array(["b", "a", "c" * 300], dtype=object),
    "unusual text": np.array(["\ud800", "", "a\0b"], dtype=object),
    "booleans": np.array([True, False, True]),
    "small integers": np.array([3, 1, 2], dtype=np.int8),
    "unsigned": np.array([2**64 - 1, 1, 2], dtype=np.uint64),
    "floats": np.array([3.0, 1.0, 2.0], dtype=np.float32),
    "beyond int64": np.array([2**70, -(2**70), 5], dtype=object),
    "bytes": np.array([b"b", b"\xff", b"cc"]),
    "bytes objects": np.array([b"b", b"\xff\0", b""], dtype=object),
    "numpy in objects": np.array([np.int64(3), np.int64(1), np.int64(2)], dtype=object),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS.keys())
def test_classes_are_kept_as_they_were_given(labels, tmp_path):
    forest = BoundaryForestClassifier(n_estimators=2, random_state=0)
    forest.partial_fit([[0.0], [1.0], [2.0]], labels)
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.classes_.dtype == forest.classes_.dtype
    assert list(map(type, other.classes_)) == list(map(type, forest.classes_))
    assert other.predict([[0.0], [1.0], [2.0]]).tolist() == labels.tolist()
    assert other.fingerprint() == forest.fingerprint()


def test_declared_classes_that_have_not_come_are_kept(tmp_path):
    forest = BoundaryForestClassifier(random_state=0).partial_fit([[0]], ["b"], classes=["z", "a"])
    forest.save(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf")
    assert other.classes_.tolist() == ["a", "b", "z"]
    assert other.predict_proba([[0]]).tolist() == [[0.0, 1.0, 0.0]]


def test_labels_that_no_file_takes_are_left_to_pickle(tmp_path):
    labels = np.array([(1, "a"), (2, "b")], dtype=[("i", int), ("s", "U1")]).tolist()
    y = np.empty(2, dtype=object)
    y[:] = labels
    forest = BoundaryForestClassifier(random_state=0).fit([[0], [1]], y)
    with pytest.raises(TypeError, match=r"classes contains \(1, 'a'\).*pickle"):
        forest.save(tmp_path / "model.bf")
    assert os.listdir(tmp_path) == []


@mapped
def test_functions_are_given_again(mmap, tmp_path):
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60.0)
    forest = BoundaryForest(
        n_estimators=4,
        metric=gap,
        metric_params={"weight": 2.0},
        label_metric=label_gap,
        estimator=first_label,
        random_state=0,
    ).fit(X[:40], y[:40])
    path = tmp_path / "model.bf"
    forest.save(path)
    functions = {"metric": gap, "label_metric": label_gap, "estimator": first_label}
    other = load(path, mmap=mmap, **functions)
    assert other.predict(X).tolist() == forest.predict(X).tolist()
    assert other.partial_fit(X[40:], y[40:]).fingerprint() == (
        forest.partial_fit(X[40:], y[40:]).fingerprint()
    )
    for name in functions:
        given = {**functions}
        function = given.pop(name)
        with pytest.raises(TypeError, match=rf"{function.__name__} as {name}.*{name}="):
            load(path, **given)
    with pytest.raises(TypeError, match="must be the function"):
        load(path, **{**functions, "metric": "euclidean"})
    with pytest.raises(TypeError, match="metric_params"):
        load(path, **{**functions, "metric": label_gap})


def test_functions_that_were_not_saved_are_refused(task, tmp_path):
    task.taught().save(tmp_path / "model.bf")
    with pytest.raises(TypeError, match="do not pass metric"):
        load(tmp_path / "model.bf", metric=gap)


def test_a_file_has_room_for_one_function_a_name(task, tmp_path):
    forest = task.taught(metric=gap).set_params(metric=label_gap)
    with pytest.raises(TypeError, match="another function"):
        forest.save(tmp_path / "model.bf")
    forest.set_params(metric="euclidean").save(tmp_path / "model.bf")
    assert load(tmp_path / "model.bf", metric=gap).fingerprint() == forest.fingerprint()


def test_a_compiled_metric_is_given_again(tmp_path):
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(CPointer(float64), CPointer(float64), int64)")
    def distance(x, y, n):
        return abs(x[0] - y[0])

    forest = BoundaryForestNeighbors(3, metric=distance, random_state=0)
    forest.fit(np.arange(80.0)[:, None])
    forest.save(tmp_path / "model.bf")
    with pytest.raises(TypeError, match="as metric"):
        load(tmp_path / "model.bf")
    other = load(tmp_path / "model.bf", metric=distance)
    assert other.fingerprint() == forest.fingerprint()


@pytest.mark.parametrize("params", [{"p": 3}, {"p": np.float64(1.5)}, {"p": np.int64(2)}])
def test_metric_params_come_along(task, params, tmp_path):
    forest = task.taught(metric="minkowski", metric_params=params)
    forest.save(tmp_path / "model.bf")
    assert load(tmp_path / "model.bf").fingerprint() == forest.fingerprint()


def test_parameters_that_are_not_json_are_refused(task, tmp_path):
    forest = task.taught(metric=gap, metric_params={"weight": 1 + 0j})
    with pytest.raises(TypeError, match="metric_params"):
        forest.save(tmp_path / "model.bf")


class Derived(BoundaryForestNeighbors):
    pass


def test_classes_of_ones_own_are_left_to_pickle(tmp_path):
    with pytest.raises(TypeError, match=r"Derived .*pickle"):
        Derived().save(tmp_path / "model.bf")


def test_saving_while_another_thread_learns_gives_a_forest_between_two_calls(tmp_path):
    X = np.random.default_rng(0).normal(size=(2000, 3))
    forest = BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:10], ids=np.arange(10))

    def learn():
        for i in range(10, len(X), 10):
            forest.partial_fit(X[i : i + 10], ids=np.arange(i, i + 10))

    thread = threading.Thread(target=learn)
    thread.start()
    for i in range(10):
        forest.save(tmp_path / f"{i}.bf")
    thread.join()
    for i in range(10):
        one = load(tmp_path / f"{i}.bf", mmap=bool(i % 2))
        n = one.stats()["examples_seen"]
        assert n % 10 == 0
        assert (
            one.fingerprint()
            == BoundaryForestNeighbors(n_estimators=3, random_state=0).fit(X[:n]).fingerprint()
        )
        assert one.kneighbors(X[n - 1 : n], 1, return_distance=False).tolist() == [[n - 1]]


GO_ON = """
import sys, numpy, boundary_forest
for path in sys.argv[1:]:
    X, y, queries = (numpy.load(path + name + ".npy") for name in ("X", "y", "q"))
    for mmap in (False, True):
        forest = boundary_forest.load(path, mmap=mmap)
        forest.partial_fit(X, y)
        print(forest.fingerprint(), forest.apply(queries).tolist())
"""


def test_another_process_goes_on_exactly_as_this_one(tmp_path):
    paths, here = [], []
    for name in ("classifier", "regressor", "neighbors"):
        task = make_task(name)
        forest = task.taught(random_state=None)
        paths.append(os.fspath(tmp_path / f"{name}.bf"))
        forest.save(paths[-1])
        for array, values in (("X", task.X_more), ("y", task.y_more), ("q", task.queries)):
            np.save(f"{paths[-1]}{array}.npy", values)
        forest.partial_fit(task.X_more, task.y_more)
        here += [f"{forest.fingerprint()} {forest.apply(task.queries).tolist()}"] * 2
    there = subprocess.run(
        [sys.executable, "-c", GO_ON, *paths], capture_output=True, text=True, check=True
    )
    assert there.stdout.splitlines() == here


def test_the_file_is_a_safetensors_file(task, tmp_path):
    from safetensors.numpy import load_file

    task.taught().save(tmp_path / "model.bf")
    arrays = load_file(tmp_path / "model.bf")
    assert (
        arrays["positions"].tolist()
        == task.taught().fitted.engine.snapshot().state()["positions"].tolist()
    )


NO_MODELS = {
    "empty": (b"", "empty"),
    "text": (b"once upon a time", "safetensors"),
    "another safetensors file": (b"\x02\0\0\0\0\0\0\0{}", "not a model"),
}


@pytest.mark.parametrize(("content", "what"), NO_MODELS.values(), ids=NO_MODELS.keys())
def test_what_is_no_model_file_is_refused(content, what, tmp_path):
    path = tmp_path / "model.bf"
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=what) as refused:
        load(path)
    assert str(path) in str(refused.value)


def test_a_missing_file_and_a_folder_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing")
    with pytest.raises(IsADirectoryError, match="directory"):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ModelFileError, match="regular"):
        load(tmp_path / "pipe")


def test_a_newer_format_is_refused_with_the_way_out(task, tmp_path):
    path = tmp_path / "model.bf"
    task.taught().save(path)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"version":"1"', b'"version":"2"'))
    with pytest.raises(ModelFileError, match="newer boundary-forest"):
        load(path)


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["boundary-forest", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            boundary_forest.cli.main()
        return stop.value.code or 0, *capsys.readouterr()

    import boundary_forest.cli

    return run


def test_verify_tells_a_sound_file_from_a_damaged_one(task, command, tmp_path):
    path = tmp_path / "model.bf"
    task.taught(metric=gap).save(path)
    assert command("verify", path) == (0, f"{path}: intact\n", "")
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    code, out, err = command("verify", path)
    assert (code, out) == (1, "")
    last = "class_declared" if task.estimator is BoundaryForestClassifier else "node_parents"
    assert f"{last}: it is damaged" in err
    assert command("verify", tmp_path / "nothing")[0] == 2
    assert command("verify", tmp_path)[0] == 2
    assert command("verify")[0] == 2


def test_info_shows_what_a_model_is(task, command, tmp_path):
    path = tmp_path / "model.bf"
    task.taught(metric=gap).save(path)
    code, out, err = command("info", path)
    assert (code, err) == (0, "")
    assert task.estimator.__name__ in out
    assert "gap, a function that must be passed to load" in out
    described = json.loads(command("info", path, "--json")[1])
    assert described["examples_seen"] == 40
    assert described["trees"] == 5
    assert described["arrays"]["positions"]["dtype"] == "float64"
    path.write_bytes(b"no model")
    assert command("info", path)[0] == 1
    assert command("info", tmp_path / "nothing")[0] == 2


def test_info_shows_an_estimator_that_has_learned_nothing(command, tmp_path):
    BoundaryForest(random_state=np.random.RandomState(0)).save(tmp_path / "model.bf")
    code, out, _ = command("info", tmp_path / "model.bf")
    assert code == 0
    assert "nothing has been learned yet" in out
