"""A durable forest: whatever was acknowledged is there again, and nothing twice."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import make_task, state
from scipy.sparse import csr_matrix

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestRegressor,
    open_durable,
)
from boundary_forest.files import writing

BATCH = 7


def batches(task):
    X, y = np.concatenate([task.X, task.X_more]), np.concatenate([task.y, task.y_more])
    return [(X[i : i + BATCH], y[i : i + BATCH]) for i in range(0, len(X), BATCH)]


def after_a_crash(folder: Path, to: Path) -> Path:
    """The folder as a crash at this moment would leave it: what is open is copied as it lies."""
    shutil.copytree(folder, to)
    return to


@pytest.mark.parametrize("snapshot_rows", [None, 20], ids=["journal alone", "snapshots"])
def test_after_a_crash_all_that_was_acknowledged_is_there(task, tmp_path, snapshot_rows):
    plain = task.forest()
    with open_durable(tmp_path / "f", task.forest(), snapshot_rows=snapshot_rows) as forest:
        for i, (X, y) in enumerate(batches(task)):
            forest.partial_fit(X, y)
            plain.partial_fit(X, y)
            left = after_a_crash(tmp_path / "f", tmp_path / f"crash{i}")
            with open_durable(left) as again:
                assert state(again, task.queries) == state(plain, task.queries)
    with open_durable(tmp_path / "f") as again:
        assert state(again, task.queries) == state(plain, task.queries)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.float64])
def test_every_element_type_comes_back(retrieval, tmp_path, dtype):
    X = retrieval.X.astype(dtype)
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(X)
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == retrieval.forest().fit(X).fingerprint()


def test_a_crash_between_a_snapshot_and_emptying_the_journal_learns_nothing_twice(
    classification, tmp_path, monkeypatch
):
    task = classification
    with open_durable(tmp_path / "f", task.forest()) as forest:
        forest.partial_fit(task.X, task.y)
        monkeypatch.setattr(forest._journal, "drop_until", lambda number: None)
        forest.snapshot()
        left = after_a_crash(tmp_path / "f", tmp_path / "crash")
    with open_durable(left) as again:
        assert again.stats()["examples_seen"] == len(task.X)
        again.partial_fit(task.X_more, task.y_more)
    with open_durable(left) as again:
        plain = task.taught(shuffle=False).partial_fit(task.X_more, task.y_more)
        assert state(again, task.queries) == state(plain, task.queries)


def test_a_seed_that_was_not_given_is_drawn_once(classification, tmp_path):
    task = classification
    with open_durable(tmp_path / "f", task.forest(random_state=None)) as forest:
        left = after_a_crash(tmp_path / "f", tmp_path / "crash")
        forest.partial_fit(task.X, task.y)
        found = forest.fingerprint()
    for folder, expected in ((tmp_path / "f", found), (left, found)):
        with open_durable(folder, task.forest(random_state=None)) as again:
            if folder is left:
                again.partial_fit(task.X, task.y)
            assert again.fingerprint() == expected


def test_it_begins_with_what_a_model_has_learned_and_leaves_that_alone(task, tmp_path):
    model = task.taught()
    before = state(model, task.queries)
    with open_durable(tmp_path, model) as forest:
        forest.partial_fit(task.X_more, task.y_more)
    assert state(model, task.queries) == before
    with open_durable(tmp_path) as forest:
        model.partial_fit(task.X_more, task.y_more)
        assert state(forest, task.queries) == state(model, task.queries)


def test_all_that_can_be_given_with_a_batch_comes_back(tmp_path):
    task = make_task("classifier")
    frame = pd.DataFrame(task.X, columns=list("abcd"))
    labels = np.array(["left", "middle", "right"])[task.y]
    ids = [f"row {i}" for i in range(len(frame))]
    plain = task.forest()
    with open_durable(tmp_path, task.forest()) as forest:
        for learner in (forest, plain):
            learner.partial_fit(frame, labels, classes=["above", *np.unique(labels)], ids=ids)
    with open_durable(tmp_path) as forest:
        assert state(forest, frame[:5]) == state(plain, frame[:5])
        assert forest.kneighbors(frame[:1], 1)[1].tolist() == [["row 0"]]
        assert forest.feature_names_in_.tolist() == list("abcd")


def test_objects_sparse_rows_and_vectors_come_back(tmp_path):
    X = np.eye(6, dtype=np.float32)
    mixed = np.array([2**70, 1, 2**70, 3, 4, 5], dtype=object)
    cases = {
        "objects": (BoundaryForestClassifier(n_estimators=3, random_state=0), X, mixed),
        "sparse": (
            BoundaryForestRegressor(n_estimators=3, random_state=0),
            csr_matrix(X),
            np.arange(6.0),
        ),
        "vectors": (BoundaryForest(n_estimators=3, random_state=0), X, X.astype(float)),
    }
    for name, (model, rows, y) in cases.items():
        with open_durable(tmp_path / name, model) as forest:
            forest.partial_fit(rows, y)
        with open_durable(tmp_path / name) as forest:
            assert forest.fingerprint() == model.partial_fit(rows, y).fingerprint()
            assert forest.predict(rows).tolist() == model.predict(rows).tolist()


@pytest.mark.filterwarnings("error::UserWarning")
@pytest.mark.parametrize("n_in_snapshot", [0, 1])
def test_names_of_features_come_back_without_a_warning(classification, tmp_path, n_in_snapshot):
    task = classification
    frame = pd.DataFrame(task.X, columns=list("abcd"))
    plain = task.forest()
    with open_durable(tmp_path, task.forest()) as forest:
        for i, at in enumerate(range(0, len(frame), BATCH)):
            for learner in (forest, plain):
                learner.partial_fit(frame[at : at + BATCH], task.y[at : at + BATCH])
            if i + 1 == n_in_snapshot:
                forest.snapshot()
    with open_durable(tmp_path) as forest:
        assert forest.feature_names_in_.tolist() == list("abcd")
        assert state(forest, frame[:5]) == state(plain, frame[:5])


@pytest.mark.filterwarnings("ignore:A column-vector")
def test_declared_classes_of_any_form_come_back(classification, tmp_path):
    task = classification
    for name, classes in {
        "a list": [0, 1, 2, 7],
        "a column": np.array([[0], [1], [2], [7]]),
        "pandas": pd.Index([0, 1, 2, 7], dtype="Int64"),
    }.items():
        with open_durable(tmp_path / name, task.forest()) as forest:
            forest.partial_fit(task.X, task.y, classes=classes)
        with open_durable(tmp_path / name) as forest:
            assert forest.classes_.tolist() == [0, 1, 2, 7]
            assert forest.fingerprint() == task.taught(shuffle=False).fingerprint()


def test_answers_come_before_what_they_are_about_is_learned(classification, tmp_path):
    task = classification
    with open_durable(tmp_path, task.taught()) as forest:
        said = forest.predict_then_learn(task.X_more, task.y_more)
    plain = task.taught()
    assert said.tolist() == plain.predict_then_learn(task.X_more, task.y_more).tolist()
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == plain.fingerprint()


# --- snapshots ------------------------------------------------------------------------------------


def journal_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.glob("journal.sqlite*"))


def test_a_snapshot_empties_the_journal_and_leaves_no_trace_in_it(retrieval, tmp_path):
    secret = b"a secret of forty bytes, never found again"[:32]
    row = np.frombuffer(secret, dtype=np.uint8)[None]
    with open_durable(tmp_path, retrieval.forest()) as forest:
        forest.partial_fit(np.repeat(row, 500, axis=0) + np.arange(500, dtype=np.uint8)[:, None])
        found = b"".join(path.read_bytes() for path in tmp_path.glob("journal.sqlite*"))
        assert secret in found
        before = journal_bytes(tmp_path)
        forest.snapshot()
        found = b"".join(path.read_bytes() for path in tmp_path.glob("journal.sqlite*"))
        assert secret not in found
        assert journal_bytes(tmp_path) > 0
        assert (tmp_path / "journal.sqlite-wal").stat().st_size == 0
        assert before > 0


def test_snapshots_come_by_rows_and_by_bytes(retrieval, tmp_path):
    for name, limit in (("rows", {"snapshot_rows": 10}), ("bytes", {"snapshot_bytes": 10 * 32})):
        folder = tmp_path / name
        with open_durable(folder, retrieval.forest(), **limit) as forest:
            forest.partial_fit(retrieval.X[:5])
            first = (folder / "model.bf").stat().st_size
            assert forest._journal.n_rows == 5
            forest.partial_fit(retrieval.X[5:15])
            assert forest._journal.n_rows == 0
            assert (folder / "model.bf").stat().st_size > first


def test_a_snapshot_that_fails_loses_nothing(retrieval, tmp_path, monkeypatch):
    def full(descriptor):
        raise OSError(28, "No space left on device")

    with open_durable(tmp_path, retrieval.forest(), snapshot_rows=10) as forest:
        monkeypatch.setattr(writing.os, "fsync", full)
        with pytest.warns(RuntimeWarning, match="No space left.*nothing is lost"):
            forest.partial_fit(retrieval.X)
        monkeypatch.undo()
    with open_durable(tmp_path) as forest:
        assert forest.fingerprint() == retrieval.forest().fit(retrieval.X).fingerprint()


def test_a_batch_that_was_learned_is_acknowledged_whatever_its_snapshot_does(
    classification, tmp_path
):
    """Else it would be learned again."""
    task = classification
    with open_durable(tmp_path, task.forest(), snapshot_rows=len(task.X) + 1) as forest:
        forest.partial_fit(task.X, task.y)
        forest.set_params(metric_params={"no": object()})  # of which no file can be made
        with pytest.warns(RuntimeWarning, match="not JSON.*nothing is lost"):
            forest.partial_fit(task.X_more, task.y_more)
    with open_durable(tmp_path) as forest:
        plain = task.taught(shuffle=False).partial_fit(task.X_more, task.y_more)
        assert forest.fingerprint() == plain.fingerprint()


def test_it_shows_what_it_is_and_what_it_can_do(tmp_path):
    model = BoundaryForestClassifier(n_estimators=7, random_state=0)
    with open_durable(tmp_path / "kept", model) as forest:
        forest.partial_fit([[0], [9]], ["a", "b"])
        assert repr(forest) == (
            f"<DurableForest of {model!r} in {str(tmp_path / 'kept')!r}, 2 examples seen>"
        )
        assert {"predict_proba", "kneighbors", "explain", "snapshot", "note"} <= set(dir(forest))
        assert all(hasattr(forest, name) for name in dir(forest) if name != "feature_names_in_")
    assert repr(forest).endswith(", closed>")
