"""What a session records of an answer is what the forest said when it gave it."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pytest
from sklearn.datasets import load_digits, load_iris
from stream_histories import snapshot
from stream_rows import numbers_table

from boundary_forest import BoundaryForestClassifier
from boundary_forest.report import page
from boundary_forest.session import Session, SessionSettings, stream_learner
from boundary_forest.session.events import NO_ANSWERS
from boundary_forest.session.history_recorder import HistoryRecorder
from boundary_forest.session.stream_learner import FEWEST_ROWS
from boundary_forest.session.vote_breakdown import VoteBreakdown

TREES = {"n_estimators": 10, "random_state": 0}


def noisy(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    kinds = np.where(rng.random(n) < 0.2, "noise", np.where(X[:, 0] > 0, "right", "left"))
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": kinds})


def as_explained(forest, x):
    """What each tree ends at, by arrival: number of trees and weight in all."""
    found = {}
    for tree in forest.explain(x).trees:
        trees, weight = found.get(tree.steps[-1].arrival, (0, 0.0))
        found[tree.steps[-1].arrival] = trees + 1, weight + tree.weight
    return found


@pytest.mark.parametrize("weights", ["distance", "auto", "mixture"])
def test_the_examples_that_decided_are_those_of_just_before(weights):
    """Against explain of a twin that learns row by row."""
    rng = np.random.default_rng(1)
    X = rng.integers(0, 6, size=(400, 2)).astype(np.float32)  # many come twice
    y = rng.integers(0, 3, size=400)
    forest, twin = (
        BoundaryForestClassifier(**TREES, weights=weights).partial_fit(X[:5], y[:5]) for _ in "12"
    )
    _, ends = forest.predict_proba_then_learn(X[5:], y[5:], return_ends=True)
    for i in range(5, 400):
        found = VoteBreakdown.of_row(ends, i - 5).examples
        expected = as_explained(twin, X[i])
        assert {end.arrival: end.trees for end in found} == {a: n for a, (n, _) in expected.items()}
        assert {end.arrival: end.weight for end in found} == pytest.approx(
            {a: weight for a, (_, weight) in expected.items()}
        )
        sizes = [abs(end.weight) for end in found]
        assert sizes == sorted(sizes, reverse=True)
        assert all(end.label == y[end.arrival] for end in found)
        assert VoteBreakdown.of_explanation(twin.explain(X[i])) == VoteBreakdown(found)
        twin.partial_fit(X[i : i + 1], y[i : i + 1])


@pytest.mark.parametrize("weights", ["auto", "mixture"])
def test_hard_rows_show_the_confidence_and_the_shares_that_were_answered(weights):
    table = noisy()
    parameters = {**TREES, "weights": weights}
    settings = SessionSettings(target="kind", parameters=parameters, warmup=200)
    with Session(settings, recording=True) as session:
        said = {}
        for event in session.take_rows(table):
            if getattr(event, "arrival", None) is not None:
                for i, number in enumerate(event.numbers.tolist()):
                    shares = zip(event.result.classes, event.result.shares[i], strict=True)
                    said[number] = (event.answers[i], event.confidence[i], dict(shares))
        history = session.history()
    assert len(history.hardest) == 20
    for example in history.hardest:
        answer, confidence, shares = said[example.row]
        assert (example.answered, example.confidence) == (answer, confidence)
        assert dict(example.shares) == {k: v for k, v in shares.items() if v > 0}
        assert example.shares[0] == (answer, confidence)
        assert example.true == table["kind"][example.row - 1].as_py() != answer
        ends = example.votes.examples
        assert sum(end.trees for end in ends) == 10
        if weights == "auto":
            assert sum(e.weight for e in ends if e.label == answer) == pytest.approx(confidence)
        assert sum(share for _, share in example.shares) == pytest.approx(1.0)
        assert all(end.arrival < example.row for end in ends)
    least = min(example.confidence for example in history.hardest)
    wrong = [c for n, (a, c, _) in said.items() if a != table["kind"][n - 1].as_py()]
    assert sum(c > least for c in wrong) < 20


def test_hard_rows_of_a_regression_have_the_answer_that_was_given():
    parameters = {**TREES, "weights": "auto"}  # a mixture may have a linear part
    with Session(
        SessionSettings(target="y", parameters=parameters, warmup=100), recording=True
    ) as session:
        session.take_rows(numbers_table(1000))
        hardest = session.history().hardest
    assert len(hardest) == 20
    for example in hardest:
        assert example.confidence is None
        assert example.residual == pytest.approx(float(example.answered) - float(example.true))
        mean = sum(end.weight * end.label for end in example.votes.examples)
        assert mean == pytest.approx(float(example.answered))


def iris():
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(y))
    columns = {f"c{i}": X[order, i] for i in range(X.shape[1])}
    return pa.table({**columns, "kind": np.array(["setosa", "versicolor", "virginica"])[y[order]]})


def in_warmup(table, target):
    """What is recorded of a stream that ends in its warm-up."""
    with Session(SessionSettings(target=target, parameters=TREES), recording=True) as session:
        session.take_rows(table)
        list(session.finish())
        return session.history()


def test_hard_rows_of_a_stream_that_ends_in_its_warm_up_are_those_that_were_wrong():
    table = iris()
    history = in_warmup(table, "kind")
    wrong = round(history.snapshots[-1].error * 149)
    assert 0 < len(history.hardest) == min(20, wrong)
    labels = table["kind"].to_pylist()
    X = np.column_stack([table[f"c{i}"] for i in range(4)])
    for example in history.hardest:
        assert example.in_warmup
        assert example.true == labels[example.row - 1] != example.answered
        (end,) = example.votes.examples
        assert end.label == example.answered == labels[end.arrival]
        assert (end.trees, end.weight) == (0, pytest.approx(1.0))
        assert end.arrival < example.row - 1
        assert list(example.stored[end.arrival].values()) == list(map(str, X[end.arrival]))
    text = page(history)
    assert "no prediction was wrong" not in text
    assert "confidence 100.0 %, in the warm-up" in text


def test_hard_rows_of_a_regression_in_its_warm_up():
    history = in_warmup(numbers_table(300), "y")
    assert len(history.hardest) == 20
    assert all(example.in_warmup for example in history.hardest)
    largest = [abs(example.residual) for example in history.hardest]
    assert largest == sorted(largest, reverse=True)
    for example in history.hardest:
        assert float(example.answered) == pytest.approx(example.votes.examples[0].label)


def test_rows_of_the_warm_up_give_way_to_those_that_the_forest_answered():
    with Session(
        SessionSettings(target="kind", parameters=TREES, warmup=1490), recording=True
    ) as session:
        session.take_rows(noisy())
        rows = [(example.in_warmup, example.row) for example in session.history().hardest]
    assert len(rows) == 20
    by_forest = [row for warmup, row in rows if not warmup]
    assert 0 < len(by_forest) < 20
    assert rows[: len(by_forest)] == [(False, row) for row in by_forest]
    assert min(by_forest) > 1490


def test_hard_rows_have_the_columns_that_they_were_predicted_from():
    table = noisy().append_column("id", pa.array(range(1500))).append_column("no", [["x"] * 1500])
    settings = SessionSettings(target="kind", id="id", drop=("no",), parameters=TREES, warmup=200)
    with Session(settings, recording=True) as session:
        session.take_rows(table)
        hardest = session.history().hardest
    assert {tuple(example.features) for example in hardest} == {("a", "b", "c")}


@pytest.mark.parametrize("scaling", ["none", "standard", "minmax"])
@pytest.mark.parametrize("plain", [True, False])
def test_digits_are_drawn_beside_the_stored_examples_that_decided(scaling, plain):
    """All of them if trees only grow; else those that no tree has dropped by the call's end."""
    X, y = load_digits(return_X_y=True)
    table = pa.table({**{f"pixel{i}": X[:, i] for i in range(64)}, "digit": y})
    settings = SessionSettings(
        target="digit", scaling=scaling, plain=plain, parameters=TREES, warmup=100
    )
    with Session(settings, recording=True) as session:
        session.take_rows(table)
        history = session.history()
    known = of = 0
    cards = page(history).split('<article class="card example">')[1:]
    for card, example in zip(cards, history.hardest, strict=True):
        assert example.features == {f"pixel{i}": str(X[example.row - 1, i]) for i in range(64)}
        arrivals = [end.arrival for end in example.votes.examples[:8]]
        known, of = known + len(example.stored), of + len(arrivals)
        for arrival, columns in example.stored.items():
            assert list(map(float, columns.values())) == pytest.approx(X[arrival], abs=1e-4)
        drawn = sum(arrival in example.stored for arrival in arrivals[:5])
        assert card.count('viewBox="0 0 8 8" class="picture"') == 1 + drawn
        assert f"<b>{card.split('confidence ')[1].split('<')[0]}</b>" in card
    assert known == of if plain else known > 0.8 * of  # seen: 0.97


def test_hard_rows_that_are_not_learned_show_what_decided_too(tmp_path):
    table = noisy()
    parameters = {**TREES, "weights": "auto"}
    settings = SessionSettings(target="kind", parameters=parameters, warmup=200)
    with Session(settings) as session:
        session.take_rows(table.slice(0, 1000))
        session.save(tmp_path / "model.bf")
    settings = SessionSettings(target="kind", load=tmp_path / "model.bf", learning=False)
    with Session(settings, recording=True) as session:
        session.take_rows(table.slice(1000))
        hardest = session.history().hardest
    assert len(hardest) == 20
    for example in hardest:
        own = sum(e.weight for e in example.votes.examples if e.label == example.answered)
        assert own == pytest.approx(example.confidence)


def test_the_card_says_one_confidence_and_what_decided():
    with Session(
        SessionSettings(target="kind", parameters=TREES, warmup=200), recording=True
    ) as session:
        session.take_rows(noisy())
        text = page(session.history())
    cards = text.split('<article class="card example">')[1:]
    assert len(cards) == 20
    for card in cards:
        sure = card.split("confidence ")[1].split("<")[0]
        assert f"<b>{sure}</b>" in card.split('<ul class="legend">')[1]
        assert re.search(r"<summary>\d+ stored examples? decided</summary>", card)


@pytest.mark.parametrize("target", ["kind", "y"])
def test_cards_of_a_mixture_say_what_weights_are(target):
    table = noisy() if target == "kind" else numbers_table(1000)
    settings = SessionSettings(target=target, parameters={"n_estimators": 30}, warmup=200)
    with Session(settings, recording=True) as session:
        session.take_rows(table)
        assert session.model.forest.weights == "mixture"
        history = session.history()
    found = [[end.weight for end in example.votes.examples] for example in history.hardest]
    assert any(min(weights) < 0 or sum(weights) < 0.9 for weights in found)  # they are no shares
    text = page(history)
    assert "A mixture of experts predicted" in text
    shown = [float(value) for value in re.findall(r"(?:opacity|width):(-?[0-9.]+)", text)]
    assert shown
    assert min(shown) >= 0


def test_a_recorded_session_answers_and_learns_the_same_by_calls_as_long():
    table = noisy(800)
    settings = SessionSettings(target="kind", parameters=TREES, warmup=200)
    with Session(settings) as plain, Session(settings, recording=True) as recorded:
        events = [session.take_rows(table) for session in (plain, recorded)]
        assert plain.model.fingerprint() == recorded.model.fingerprint()
    answers = [
        [a for e in every for a in (() if getattr(e, "answers", None) is None else e.answers)]
        for every in events
    ]
    assert answers[0] == answers[1]
    recorded_calls = [e for e in events[1] if getattr(e, "arrival", None)]
    assert len(recorded_calls[0].numbers) == FEWEST_ROWS
    assert all(len(e.result.ends) == len(e.numbers) for e in recorded_calls)
    assert all(getattr(e, "result", NO_ANSWERS).ends is None for e in events[0])


def test_calls_of_a_recorded_session_are_shorter_with_very_many_trees(monkeypatch):
    monkeypatch.setattr(stream_learner, "MOST_VOTES", 200)
    with Session(
        SessionSettings(target="kind", parameters=TREES, warmup=200), recording=True
    ) as session:
        events = session.take_rows(noisy(800))
    assert max(len(e.numbers) for e in events if getattr(e, "arrival", None)) == 20


def test_histories_are_bounded_and_asking_for_one_changes_nothing():
    recorder = HistoryRecorder()
    for rows in range(1, 5001):
        if recorder.snapshot_due(rows):
            recorder.add_snapshot(snapshot(rows))
    for _ in range(3):
        history = recorder.history(None, snapshot(5000))
        assert 250 <= len(history.snapshots) <= 501
        history.snapshots.clear()
    assert len(recorder.history(None, snapshot(5000)).snapshots) >= 250
