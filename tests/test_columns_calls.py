"""columns="auto": interrupted calls, other threads, offline fits, and forgetting."""

from __future__ import annotations

import threading

import numpy as np
import pandas as pd
import pytest

from boundary_forest import BoundaryForestClassifier, open_durable
from boundary_forest.estimators import training
from boundary_forest.estimators.columns import ColumnEncoder
from boundary_forest.estimators.columns.reading import read_frame, read_single
from tests.column_tables import mixed_table


def forest_of(**more):
    return BoundaryForestClassifier.for_tables(**{"n_estimators": 10, "random_state": 0, **more})


def fails(*_):
    raise MemoryError


@pytest.mark.parametrize("shuffle", [False, True])
def test_an_interrupted_call_knows_the_columns_of_what_it_learned(monkeypatch, shuffle):
    """Also if memory ends, so that this cannot be computed at once."""
    frame, y = mixed_table(400)

    def blocks_of_100(n, _):
        return (slice(i, min(i + 100, n)) for i in range(0, n, 100))

    learned = training._Columns.learned
    calls = iter([None, None])

    def interrupted(self, X, labels):
        if next(calls, "end") == "end":
            patched.setattr(ColumnEncoder, "learned", fails)
            raise KeyboardInterrupt
        return learned(self, X, labels)

    monkeypatch.setattr(training, "slices", blocks_of_100)
    whole = forest_of(shuffle=shuffle)
    with monkeypatch.context() as patched:
        patched.setattr(training._Columns, "learned", interrupted)
        with pytest.raises(KeyboardInterrupt):
            whole.fit(frame, y)
    assert whole.examples_seen == 200
    rows = whole.fitted.rows(np.arange(200))
    assert (rows.tolist() == list(range(200))) != shuffle
    part = forest_of().partial_fit(frame.iloc[rows], y[rows])
    assert whole.fitted.encoder.described() == part.fitted.encoder.described()
    np.testing.assert_array_equal(whole.predict(frame), part.predict(frame))


def test_a_folder_whose_call_ran_out_of_memory_opens_as_the_same_forest(tmp_path, monkeypatch):
    frame, y = mixed_table(400)
    train = training._train_block

    def out_of_memory(prepared, rows, block, n_threads, *more):
        train(prepared, rows[:30], slice(block.start, block.start + 30), n_threads, *more)
        patched.setattr(ColumnEncoder, "learned", fails)
        raise MemoryError

    with open_durable(tmp_path, forest_of()) as whole:
        whole.partial_fit(frame[:300], y[:300])
        with monkeypatch.context() as patched:
            patched.setattr(training, "_train_block", out_of_memory)
            with pytest.raises(MemoryError):
                whole.partial_fit(frame[300:], y[300:])
        assert whole.examples_seen == 330
        whole.partial_fit(frame[330:], y[330:])
        fingerprint = whole.fingerprint()
    assert fingerprint == forest_of().partial_fit(frame, y).fingerprint()
    with open_durable(tmp_path) as reopened:
        assert reopened.fingerprint() == fingerprint


def test_queries_of_another_thread_go_on_while_features_are_added():
    frame, y = mixed_table(300)
    forest = forest_of().partial_fit(frame[:50], y[:50])
    errors, done, queries = [], threading.Event(), frame[:20].to_dict("records")

    def ask():
        while not done.is_set():
            try:
                assert len(forest.predict_proba(queries)) == 20
            except Exception as error:
                errors.append(error)
                return

    asking = threading.Thread(target=ask)
    asking.start()
    for i in range(50, 300, 10):
        rows = [dict(row, **{f"new {i}": i}) for row in frame[i : i + 10].to_dict("records")]
        forest.partial_fit(rows, [f"class {i % 40}"] * 10)
    done.set()
    asking.join()
    assert not errors
    assert forest.n_features_in_ == 6 + 25


def test_an_offline_fit_takes_frames():
    frame, y = mixed_table(300)
    forest = BoundaryForestClassifier(
        n_estimators=20, offline=True, columns="auto", random_state=0
    ).fit(frame[["age", "city"]], y)
    assert forest.score(frame[["age", "city"]], y) > 0.8  # seen: 0.93


def test_forgotten_examples_leave_what_is_known_about_columns():
    frame, y = mixed_table(200)
    forest = forest_of().partial_fit(frame, y, ids=np.arange(200))
    before = forest.fitted.encoder
    forest.forget(np.arange(50))
    assert forest.fitted.encoder is before
    assert forest.predict(frame).shape == (200,)
    forest.partial_fit(frame[:50], y[:50], ids=np.arange(50))


def test_missing_values_do_not_widen_numbers():
    X = np.arange(60.0).reshape(20, 3)
    forest = forest_of().partial_fit(X, X[:, 0] > 30)
    X[4, 1] = np.nan
    forest.partial_fit(X, X[:, 0] > 30)
    assert forest.fitted.settings.n_features == 3


def test_small_types_stay_small():
    X = np.random.default_rng(0).integers(0, 9, (50, 3)).astype(np.float32)
    y = X[:, 0] > 4
    X[3, 1] = np.nan
    forest = forest_of().partial_fit(X, y)
    assert forest.fitted.settings.element_type == "float32"
    assert forest.partial_fit(X[:10], y[:10]).predict(X).shape == (50,)


def test_single_rows_have_the_features_that_they_have_in_batches():
    frame, y = mixed_table(300)
    frame.loc[250:255, "city"] = "Quito"  # never learned
    y = np.where(frame["visits"].fillna(0) > 40, "maybe", y)
    forest = BoundaryForestClassifier.for_tables(n_estimators=5, random_state=0)
    forest.fit(frame[:250], y[:250])
    encoder, width = forest.fitted.encoder, forest.fitted.settings.n_features
    names, kinds = forest.feature_names_in_.tolist(), encoder.layout.kinds
    together = encoder.query_rows(read_frame(frame[250:], kinds, names), width)
    for i in range(50):
        row = read_single(frame[250 + i : 251 + i], names, kinds)
        np.testing.assert_array_equal(encoder.query_rows(row, width)[0], together[i])


def test_a_single_row_keeps_integers_that_a_common_type_would_round():
    frame = pd.DataFrame({"n": [2**53 + 1], "x": [0.5]})
    with pytest.raises(ValueError, match="exact only up to"):
        read_single(frame, ["n", "x"], ("number", "number"))
