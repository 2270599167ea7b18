"""What a session records of an answer is what the forest said when it gave it."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from stream_histories import snapshot
from stream_rows import numbers_table

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor
from boundary_forest.session import Session, Settings
from boundary_forest.session.deciding import decision_on
from boundary_forest.session.recording import Recorder
from boundary_forest.session.report import page

TREES = {"n_estimators": 10, "random_state": 0}


def noisy(n=1500, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    kinds = np.where(rng.random(n) < 0.2, "noise", np.where(X[:, 0] > 0, "right", "left"))
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": kinds})


def truth(forest, x):
    """What each tree ends at, by arrival: number of trees and weight in all."""
    found = {}
    for tree in forest.explain(x).trees:
        trees, weight = found.get(tree.steps[-1].arrival, (0, 0.0))
        found[tree.steps[-1].arrival] = trees + 1, weight + tree.weight
    return found


@pytest.mark.parametrize("max_children", [2, 50])
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_the_examples_that_decided_are_those_of_before_or_not_given(task, max_children):
    """Against explain of a twin that learns row by row; in a call of 200 rows after 300 others."""
    kind = BoundaryForestClassifier if task == "classify" else BoundaryForestRegressor
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, 2) if task == "classify" else X.sum(axis=1)
    forest, twin = (
        kind(**TREES, max_children=max_children).partial_fit(X[:300], y[:300]) for _ in "12"
    )
    if task == "classify":
        shares = forest.predict_proba_then_learn(X[300:], y[300:])
        said = [dict(zip(forest.classes_.tolist(), row.tolist(), strict=True)) for row in shares]
    else:
        said = [{None: answer} for answer in forest.predict_then_learn(X[300:], y[300:]).tolist()]
    n_whole = n_known = 0
    for i in range(300, 500):
        expected = truth(twin, X[i])
        decision = decision_on(forest, X[i], i, said[i - 300])
        for end in decision.ends:
            trees, weight = expected[end.arrival]
            assert end.trees <= trees
            if decision.is_whole:
                assert end.trees == trees
                assert end.weight == pytest.approx(weight)
        n_whole += decision.is_whole
        n_known += decision.known
        twin.partial_fit(X[i : i + 1], y[i : i + 1])
    # Of 2,000 trees and 200 rows. Seen: 1,853 and 122 at least with 50 children, 412 and 0 with 2.
    assert n_known > (1600 if max_children == 50 else 300)
    assert n_whole > 80 or max_children == 2


@pytest.mark.xfail(reason="the engine's paths have distances without the weights of features")
@pytest.mark.parametrize("task", ["classify", "regress"])
def test_a_forest_for_tables_tells_what_decided_or_nothing_where_it_decided_since(task):
    """It decides after 500 and 1,000 examples; its calls are of 300 rows."""
    kind = BoundaryForestClassifier if task == "classify" else BoundaryForestRegressor
    X = np.random.default_rng(0).normal(size=(1100, 3)).astype(np.float32)
    y = np.where(X[:, 0] > 0, 1, 2) if task == "classify" else X[:, 0] + X[:, 1]
    forest, twin = (kind.for_tables(**TREES).partial_fit(X[:200], y[:200]) for _ in "12")
    n_whole = {False: 0, True: 0}  # by whether a decision came after the row, in its call
    for begin in (200, 500, 800):
        here = slice(begin, begin + 300)
        if task == "classify":
            shares = forest.predict_proba_then_learn(X[here], y[here])
            said = [dict(zip(forest.classes_.tolist(), r.tolist(), strict=True)) for r in shares]
        else:
            said = [{None: a} for a in forest.predict_then_learn(X[here], y[here]).tolist()]
        for i in range(here.start, here.stop):
            expected = truth(twin, X[i])
            decision = decision_on(forest, X[i], i, said[i - begin])
            for end in decision.ends if decision.is_whole else ():
                trees, weight = expected[end.arrival]
                assert end.trees == trees
                assert end.weight == pytest.approx(weight)
            n_whole[any(i < n <= here.stop for n in (250, 500, 1000))] += decision.is_whole
            twin.partial_fit(X[i : i + 1], y[i : i + 1])
    assert n_whole[True] == 0
    assert n_whole[False] > 100


def test_duplicates_with_several_labels_give_nothing_or_the_truth():
    rng = np.random.default_rng(1)
    X = rng.integers(0, 3, size=(400, 2)).astype(np.float32)
    y = rng.integers(0, 3, size=400)
    forest, twin = (BoundaryForestClassifier(**TREES).partial_fit(X[:300], y[:300]) for _ in "12")
    shares = forest.predict_proba_then_learn(X[300:], y[300:])
    for i in range(300, 400):
        said = dict(zip(forest.classes_.tolist(), shares[i - 300].tolist(), strict=True))
        decision = decision_on(forest, X[i], i, said)
        if decision.is_whole:
            votes = {}
            for end in decision.ends:
                votes[end.label] = votes.get(end.label, 0.0) + end.weight
            assert votes == pytest.approx({k: v for k, v in said.items() if k in votes}, abs=1e-6)
        twin.partial_fit(X[i : i + 1], y[i : i + 1])


def test_before_there_are_trees_nothing_is_known_of_them():
    X = np.arange(40, dtype=np.float32)[:, None]
    forest = BoundaryForestClassifier(**TREES).partial_fit(X[:5], np.arange(5) % 2)
    forest.predict_proba_then_learn(X[5:], np.arange(35) % 2)
    assert decision_on(forest, X[7], 7, {0: 1.0}).known == 0


def test_hard_rows_show_the_confidence_and_the_shares_that_were_answered():
    table = noisy()
    settings = Settings(target="kind", parameters=TREES, plain=True, warmup=200)
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
        if example.decision.is_whole:
            own = [end.weight for end in example.decision.ends if end.label == answer]
            assert sum(own) == pytest.approx(confidence)
    least = min(example.confidence for example in history.hardest)
    wrong = [c for n, (a, c, _) in said.items() if a != table["kind"][n - 1].as_py()]
    assert sum(c > least for c in wrong) < 20
    assert sum(example.decision.is_whole for example in history.hardest) >= 10  # seen: 20


def test_hard_rows_of_a_regression_have_the_answer_that_was_given():
    with Session(
        Settings(target="y", parameters=TREES, plain=True, warmup=100), recording=True
    ) as session:
        session.take_rows(numbers_table(1000))
        hardest = session.history().hardest
    assert len(hardest) == 20
    for example in hardest:
        assert example.confidence is None
        assert example.residual == pytest.approx(float(example.answered) - float(example.true))
        if example.decision.is_whole:
            mean = sum(end.weight * end.label for end in example.decision.ends)
            assert mean == pytest.approx(float(example.answered))


def test_the_card_says_one_confidence_and_for_which_trees_it_knows_what_decided():
    with Session(
        Settings(target="kind", parameters=TREES, plain=True, warmup=200), recording=True
    ) as session:
        session.take_rows(noisy())
        text = page(session.history())
    cards = text.split('<article class="card example">')[1:]
    assert len(cards) == 20
    for card in cards:
        sure = card.split("confidence ")[1].split("<")[0]
        assert f"<b>{sure}</b>" in card.split('<ul class="legend">')[1]
        assert "decided" in card
    assert sum("of 10 trees" in card for card in cards) < 10


def test_calls_of_a_recorded_session_are_short_and_its_answers_the_same():
    table = noisy(800)
    settings = Settings(target="kind", parameters=TREES, plain=True, warmup=200)
    with Session(settings) as plain, Session(settings, recording=True) as recorded:
        events = [session.take_rows(table) for session in (plain, recorded)]
        assert plain.model.fingerprint() == recorded.model.fingerprint()
    answers = [
        [a for e in every for a in (() if getattr(e, "answers", None) is None else e.answers)]
        for every in events
    ]
    assert answers[0] == answers[1]
    assert max(len(e.numbers) for e in events[1] if getattr(e, "arrival", None)) <= 800 // 16


def test_histories_are_bounded_and_asking_for_one_changes_nothing():
    recorder = Recorder()
    for rows in range(1, 5001):
        if recorder.wants(rows):
            recorder.see(snapshot(rows))
    for _ in range(3):
        history = recorder.history(None, snapshot(5000))
        assert 250 <= len(history.snapshots) <= 501
        history.snapshots.clear()
    assert len(recorder.history(None, snapshot(5000)).snapshots) >= 250
