"""The first rows: answered by exact search, then learned, whatever pieces they come in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from stream_rows import mixed_table, numbers_table

from boundary_forest import BoundaryForestRegressor
from boundary_forest.frames.arrow_columns import column_of
from boundary_forest.frames.column_options import ColumnOptions
from boundary_forest.frames.inference import choose
from boundary_forest.session import Answered, Decided, Refused, RowBatch
from boundary_forest.session.stream_learner import StreamLearner


def learn(table, target, piece, warmup=50, **options):
    learner = StreamLearner(
        ColumnOptions(target, **options), {"n_estimators": 6, "random_state": 0}, warmup=warmup
    )
    events = []
    for start in range(0, len(table), piece):
        part = table.slice(start, piece)
        numbers = np.arange(start + 1, start + 1 + len(part))
        events += learner.take(RowBatch(part, numbers))
    events += learner.finish()
    return learner, events


def answers(events):
    told = {}
    for event in events:
        if isinstance(event, Answered):
            said = [None] * len(event.numbers) if event.answers is None else event.answers.tolist()
            told |= dict(zip(event.numbers.tolist(), said, strict=True))
        elif isinstance(event, Refused):
            told[event.number] = event.why
    return told


def holes(table):
    """Without some targets and some values; with a column whose kind is seen late."""
    rows = table.to_pylist()
    for i, row in enumerate(rows):
        row["kind"] = i if i < 20 else f"k{i % 3}"
        if i % 7 == 3:
            row["label"] = None
        if i % 11 == 5:
            row["x"] = None
        if i > 30:
            row["new"] = i % 2
    names = dict.fromkeys(n for row in rows for n in row)
    return pa.table({n: column_of([row.get(n) for row in rows]) for n in names})


@pytest.mark.parametrize("missing", ["mean", "drop"])
@pytest.mark.parametrize("piece", [1, 7])
def test_rows_one_by_one_get_the_answers_that_they_get_together(piece, missing):
    table = holes(mixed_table(120))
    whole, together = learn(table, "label", 1000, missing=missing)
    pieces, apart = learn(table, "label", piece, missing=missing)
    assert answers(apart) == answers(together)
    assert len(answers(together)) == 120
    assert pieces.model.fingerprint() == whole.model.fingerprint()


def test_rows_without_any_column_count_as_others_do():
    """Such as NDJSON's, which name an id and nothing else."""
    learner = StreamLearner(
        ColumnOptions("y", id="id", missing="mean", task="classify"), {}, warmup=70
    )
    for i in range(1, 66):
        named = {"id": [i]} if i < 40 else {"id": [i], "a": [i], "y": [str(i % 2)]}
        list(learner.take(RowBatch(pa.table(named), np.array([i]))))
        assert learner.waiting == i
    list(learner.finish())
    assert learner.model.columns.warmup == 65
    assert learner.model.stats()["examples_seen"] == 26


def test_a_warm_up_row_is_answered_by_the_nearest_before_it():
    table = numbers_table(40)
    _, events = learn(table, "y", 1000, warmup=100)
    told = answers(events)
    assert told[1] is None
    X, y = np.column_stack([table[c].to_numpy() for c in "abc"]), table["y"].to_numpy()
    # From the 33rd row on, columns are scaled by the first 33.
    scaled = X / X[:33].std(axis=0)
    for i in range(32, 40):
        nearest = ((scaled[:i] - scaled[i]) ** 2).sum(axis=1).argmin()
        assert told[i + 1] == pytest.approx(y[nearest], rel=1e-12)  # a mean of equals


def test_what_is_learned_is_all_rows_in_order_scaled_by_the_first():
    table = numbers_table(300)
    learner, events = learn(table, "y", 64, warmup=100)
    columns = choose(table.slice(0, 100), ColumnOptions("y"))
    plain = BoundaryForestRegressor(n_estimators=6, random_state=0)
    plain.partial_fit(columns.positions(table).X, columns.labels(table).y)
    assert learner.model.fingerprint() == plain.fingerprint()
    assert sum(isinstance(event, Decided) for event in events) == 1


def test_later_rows_are_answered_before_they_are_learned():
    table = numbers_table(300)
    _, events = learn(table, "y", 1000, warmup=100)
    columns = choose(table.slice(0, 100), ColumnOptions("y"))
    X, y = columns.positions(table).X, columns.labels(table).y
    plain = BoundaryForestRegressor(n_estimators=6, random_state=0).partial_fit(X[:100], y[:100])
    expected = plain.predict_then_learn(X[100:], y[100:])
    told = answers(events)
    assert [told[i] for i in range(101, 301)] == expected.tolist()


def test_a_stream_that_is_shorter_than_its_warm_up_is_learned_at_its_end():
    learner, _ = learn(numbers_table(30), "y", 1000, warmup=100)
    assert learner.model.stats()["examples_seen"] == 30


def test_a_row_without_target_is_answered_and_not_learned():
    table = mixed_table(200)
    labels = [None if i % 2 else label for i, label in enumerate(table["label"].to_pylist())]
    table = table.set_column(4, "label", pa.array(labels))
    learner, events = learn(table, "label", 1000)
    told = answers(events)
    assert all(told[i] is not None for i in range(2, 201))
    assert learner.model.stats()["examples_seen"] == 100
