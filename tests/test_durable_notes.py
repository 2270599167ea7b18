"""A note is on the disk in one piece with the batch that it goes with."""

from __future__ import annotations

import numpy as np
import pytest

from boundary_forest import BoundaryForestClassifier, open_durable


def batch(i: int) -> tuple[np.ndarray, np.ndarray]:
    X = np.random.default_rng(i).uniform(size=(30, 4))
    return X, (X[:, 0] > 0.5).astype(int)


def taught(n: int) -> BoundaryForestClassifier:
    forest = BoundaryForestClassifier(n_estimators=4, random_state=0)
    for i in range(n):
        forest.partial_fit(*batch(i))
    return forest


@pytest.fixture
def folder(tmp_path):
    """Three batches with notes, and nobody who closed the folder properly."""
    model = BoundaryForestClassifier(n_estimators=4, random_state=0)
    with open_durable(tmp_path / "kept", model, note="begun") as forest:
        assert forest.note == "begun"
        for i in range(3):
            forest.note = f"after {i}"
            forest.partial_fit(*batch(i))
    return tmp_path / "kept"


def test_the_last_batchs_note_comes_back(folder):
    with open_durable(folder) as forest:
        assert forest.note == "after 2"
        forest.snapshot()
    with open_durable(folder) as forest:
        assert forest.note == "after 2"
        forest.note = "by itself"
        forest.keep_note()
    with open_durable(folder) as forest:
        assert forest.note == "by itself"
        assert forest.taken_back is None


def test_a_batch_that_is_refused_leaves_the_note_of_the_one_before(folder):
    with open_durable(folder) as forest:
        forest.note = "never"
        with pytest.raises(ValueError, match="rows"):
            forest.partial_fit(batch(3)[0], batch(3)[1][:5])
    with open_durable(folder) as forest:
        assert forest.note == "after 2"


def test_the_last_batch_can_be_taken_back_to_be_learned_again(folder):
    with open_durable(folder, redo=True) as forest:
        assert forest.taken_back == "after 2"
        assert forest.note == "after 1"
        assert forest.fingerprint() == taught(2).fingerprint()
        shares = forest.predict_proba_then_learn(*batch(2))
        assert forest.fingerprint() == taught(3).fingerprint()
    assert (shares == taught(2).predict_proba_then_learn(*batch(2))).all()


def test_a_batch_that_a_snapshot_has_is_not_taken_back(folder):
    with open_durable(folder) as forest:
        forest.snapshot()
    with open_durable(folder, redo=True) as forest:
        assert forest.taken_back is None
        assert forest.fingerprint() == taught(3).fingerprint()


def test_shares_are_those_of_row_by_row():
    forest, plain = taught(1), taught(1)
    X, y = batch(1)
    shares = forest.predict_proba_then_learn(X, y)
    for i in range(len(y)):
        assert (plain.predict_proba(X[i : i + 1])[0] == shares[i]).all()
        plain.partial_fit(X[i : i + 1], y[i : i + 1])
    assert forest.fingerprint() == plain.fingerprint()
    answers = taught(1).predict_then_learn(X, y)
    assert (forest.classes_[shares.argmax(axis=1)] == answers).all()
