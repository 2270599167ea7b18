"""What others may use of a forest: trees, batches and recorders, attachments, one protocol."""

from __future__ import annotations

import pickle
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import state
from scipy.sparse import csr_matrix

from boundary_forest import BoundaryForestClassifier, open_durable
from boundary_forest.estimators import LearningBatch
from boundary_forest.files import load_forest, save_forest
from boundary_forest.frames import FrameModel

ROWS = [{"size": i % 7, "color": "rb"[i % 2], "is": "ab"[i % 3 > 0]} for i in range(60)]


def frame_model(n=40):
    return FrameModel.from_rows(ROWS[:n], "is", n_estimators=4, random_state=0)


# Trees


def test_trees_hold_each_example_once_under_an_earlier_node(task):
    forest = task.taught()
    n_nodes = forest.stats()["nodes_per_tree"]
    for (arrivals, parents), n in zip(forest.trees(), n_nodes, strict=True):
        assert len(set(arrivals.tolist())) == len(arrivals) == len(parents) == n
        place = {arrival: i for i, arrival in enumerate(arrivals.tolist())}
        assert parents[0] == -1
        assert all(place[p] < i for i, p in enumerate(parents.tolist()) if i)


def test_trees_are_empty_while_examples_are_awaited(task):
    forest = task.forest().fit(task.X[:3], task.y[:3])
    assert [len(arrivals) for arrivals, _ in forest.trees()] == [0] * 5


def test_examples_seen_counts_from_zero(task):
    forest = task.forest()
    assert forest.examples_seen == 0
    assert forest.fitted is None
    assert forest.partial_fit(task.X, task.y).examples_seen == len(task.X)


# Recorders


class Recorded:
    def __init__(self):
        self.batches = []

    @contextmanager
    def recording(self, batch):
        self.batches.append(batch)
        yield [batch]


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_batches_that_were_recorded_give_the_same_forest_again(task, sparse):
    recorder, forest, again = Recorded(), task.forest(), task.forest()
    forest.record_with(recorder)
    for start in range(0, 40, 8):
        rows = slice(start, start + 8)
        X = csr_matrix(task.X[rows]) if sparse else task.X[rows]
        forest.partial_fit(X, task.y[rows], ids=np.arange(rows.start, rows.stop))
    for batch in recorder.batches:
        assert again.examples_seen == batch.first
        again.learn_batch(batch)
    assert state(again, task.queries) == state(forest, task.queries)


def test_feature_names_and_declared_classes_are_recorded():
    import pandas as pd

    recorder = Recorded()
    forest, again = (BoundaryForestClassifier(random_state=0) for _ in "ab")
    forest.record_with(recorder)
    for i in range(3):
        frame = pd.DataFrame({"size": [i], "weight": [2 * i]})
        forest.partial_fit(frame, ["ab"[i % 2]], ["zz"] if i == 1 else None)
    for batch in recorder.batches:
        again.learn_batch(batch)
    assert [batch.feature_names is None for batch in recorder.batches] == [False, True, True]
    assert again.feature_names_in_.tolist() == ["size", "weight"]
    assert again.classes_.tolist() == forest.classes_.tolist() == ["a", "b", "zz"]


def test_the_head_of_a_batch_is_its_first_rows():
    batch = LearningBatch(np.eye(4), np.arange(4), np.arange(4) + 9, np.arange(7), None, 11)
    head = batch.head(2)
    assert len(head) == 2
    assert head.X.tolist() == np.eye(4)[:2].tolist()
    assert (head.y.tolist(), head.ids.tolist(), head.first) == ([0, 1], [9, 10], 11)
    assert len(head.classes) == 7


def test_a_recorded_forest_refuses_fit_and_its_copies_do_not(task):
    forest = task.taught()
    forest.record_with(Recorded())
    with pytest.raises(TypeError, match="partial_fit"):
        forest.fit(task.X, task.y)
    pickle.loads(pickle.dumps(forest)).fit(task.X, task.y)
    forest.record_with(None)
    forest.fit(task.X, task.y)


def test_what_a_recorder_refuses_is_not_learned(task):
    class Full:
        def recording(self, batch):
            raise OSError("no space left")

    forest = task.taught()
    before = state(forest, task.queries)
    forest.record_with(Full())
    with pytest.raises(OSError, match="no space"):
        forest.partial_fit(task.X_more, task.y_more)
    assert state(forest, task.queries) == before


# Attachments


@pytest.mark.parametrize("fitted", [False, True])
def test_attachments_come_back_with_the_forest(task, fitted, tmp_path):
    forest = task.taught() if fitted else task.forest()
    attachments = {"durable": {"operation": 7}, "other": [1, "é", None]}
    save_forest(forest, tmp_path / "model.bf", attachments)
    again, attached = load_forest(tmp_path / "model.bf")
    assert attached == attachments
    assert state(again, task.queries) == state(forest, task.queries)


def test_a_forest_without_attachments_has_none(task, tmp_path):
    task.taught().save(tmp_path / "model.bf")
    assert load_forest(tmp_path / "model.bf")[1] == {}


def test_an_attachment_may_not_take_the_place_of_an_array(task, tmp_path):
    with pytest.raises(ValueError, match="'positions'"):
        save_forest(task.taught(), tmp_path / "model.bf", {"positions": 1})


def test_a_frame_model_over_a_durable_forest_comes_back_from_its_folder(tmp_path):
    model = frame_model()
    with open_durable(tmp_path, model.forest, attachments=model.attachments) as forest:
        FrameModel(forest, model.columns).partial_fit(ROWS[40:50])
    model.partial_fit(ROWS[40:50])
    with open_durable(tmp_path) as forest:
        again = FrameModel.of_forest(forest, forest.attachments)
        assert again.columns == model.columns
        assert again.examples_seen == model.examples_seen == 50
        assert again.fingerprint() == model.fingerprint()


def test_a_frame_model_predicts_then_learns_row_by_row():
    model, one_by_one = frame_model(20), frame_model(20)
    rows = [{**row, "is": None} if i % 4 == 0 else row for i, row in enumerate(ROWS[20:])]
    expected = []
    for row in rows:
        expected += one_by_one.predict([row]).tolist()
        one_by_one.partial_fit([row])
    assert model.predict_then_learn(rows).tolist() == expected
    assert model.fingerprint() == one_by_one.fingerprint()
    assert model.examples_seen == 50
