"""What a stream is judged by is what scikit-learn says of its answers, resumed or not."""

from __future__ import annotations

import json
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from sklearn import metrics
from stream_rows import mixed_table, numbers_table, write

from boundary_forest.report import page
from boundary_forest.session import Session, SessionSettings, class_measures
from boundary_forest.session.scores import MEASURES

TREES = {"n_estimators": 10, "random_state": 0}
WARMUP = 200  # rows


def noisy(n=1200):
    """Three classes and noise, of which one class appears late, and unlabelled rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 3))
    kinds = np.where(rng.random(n) < 0.2, "noise", np.where(X[:, 0] > 0, "right", "left"))
    kinds[700::50] = "late"
    kinds = [None if i % 17 == 5 else kind for i, kind in enumerate(kinds.tolist())]
    return pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "kind": pa.array(kinds)})


def taken(table, target):
    """The last snapshot and history of a session, and all rows that were answered.

    Of shares of the votes, those of the forest: the warm-up has none.
    """
    true, answers, shares = [], [], []
    with Session(SessionSettings(target=target, parameters=TREES, warmup=WARMUP)) as session:
        for event in session.take_rows(table):
            if getattr(event, "answers", None) is not None and event.y is not None:
                true += event.y.tolist()
                answers += event.answers.tolist()
                if event.confidence is not None and event.arrival is not None:
                    classes = event.result.classes.tolist()
                    shares += [dict(zip(classes, s, strict=True)) for s in event.result.shares]
        return session.snapshot(), session.history(), true, answers, shares


def test_classes_are_judged_as_by_scikit_learn():
    state, history, true, answers, shares = taken(noisy(1500), "kind")
    labels = sorted(set(true) | set(answers))
    assert len(labels) == 4
    assert state.accuracy == pytest.approx(metrics.accuracy_score(true, answers))
    assert state.error == pytest.approx(1 - state.accuracy)
    assert state.kappa == pytest.approx(metrics.cohen_kappa_score(true, answers))
    assert state.macro_f1 == pytest.approx(metrics.f1_score(true, answers, average="macro"))
    voted = [[share.get(label, 0.0) for label in labels] for share in shares]
    by_forest = true[-len(voted) :]
    assert len(true) - len(voted) == pytest.approx(WARMUP, abs=WARMUP / 10)  # some have no label
    losses = metrics.log_loss(by_forest, voted, labels=labels)
    assert state.log_loss == pytest.approx(losses)
    recent = metrics.log_loss(by_forest[-1000:], voted[-1000:], labels=labels)
    assert len(voted) > 1000
    assert state.recent_log_loss == pytest.approx(recent)
    surest = np.array(voted).max(axis=1)
    assert state.confidence == pytest.approx(surest.mean())
    assert state.recent_confidence == pytest.approx(surest[-1000:].mean())
    expected = metrics.precision_recall_fscore_support(true, answers, labels=labels)
    found = {score.name: score for score in history.by_class}
    for label, precision, recall, f1, rows in zip(labels, *expected, strict=True):
        assert found[label].rows == rows
        assert found[label].answered == answers.count(label)
        seen = label in answers  # without a prediction there is no precision
        assert found[label].precision == (pytest.approx(precision) if seen else None)
        assert found[label].recall == pytest.approx(recall)
        assert found[label].f1 == pytest.approx(f1)


def test_numbers_are_judged_as_by_scikit_learn():
    state, history, true, answers, _ = taken(numbers_table(1000), "y")
    assert state.mae == pytest.approx(metrics.mean_absolute_error(true, answers))
    assert state.rmse == pytest.approx(metrics.root_mean_squared_error(true, answers))
    assert state.r2 == pytest.approx(metrics.r2_score(true, answers))
    assert history.by_class == history.reliability == []


def test_the_baselines_answer_from_the_labels_before_a_row():
    """The first row has no answer, so that it is not counted; its label is known from then on."""
    state, *_ = taken(noisy(), "kind")
    labels = [kind for kind in noisy()["kind"].to_pylist() if kind is not None]
    majority = no_change = 0
    for i in range(1, len(labels)):
        counts = Counter(labels[:i])
        most = [label for label, n in counts.items() if n == max(counts.values())]
        reached = {label: max(j for j in range(i) if labels[j] == label) for label in most}
        majority += labels[i] == min(most, key=reached.get)
        no_change += labels[i] == labels[i - 1]
    assert state.majority_accuracy == pytest.approx(majority / (len(labels) - 1))
    assert state.no_change_accuracy == pytest.approx(no_change / (len(labels) - 1))


def test_a_stream_that_ends_in_its_warmup_has_no_log_loss():
    state, history, *_ = taken(noisy(WARMUP - 1), "kind")
    assert 0 < state.error < 1
    assert state.log_loss is state.recent_log_loss is state.confidence is None
    assert history.reliability == []


def test_reliability_counts_every_answer_of_the_forest_by_its_confidence():
    _, history, true, answers, shares = taken(noisy(), "kind")
    confidence = np.array([max(share.values()) for share in shares])
    right = (np.array(true) == np.array(answers))[-len(shares) :]
    assert sum(b.rows for b in history.reliability) == len(shares)
    for found in history.reliability:
        low = min(0.9, np.floor(10 * found.confidence + 1e-9) / 10)
        here = (confidence >= low - 1e-12) & ((confidence < low + 0.1 - 1e-12) | (low > 0.85))
        assert found.rows == here.sum()
        assert found.confidence == pytest.approx(confidence[here].mean())
        assert found.accuracy == pytest.approx(right[here].mean())


@pytest.mark.parametrize(("make", "target"), [(noisy, "kind"), (numbers_table, "y")])
def test_the_curve_has_the_measures_of_the_rows_up_to_each_point(make, target):
    """Evenly spaced, however the rows came; recent is over a thousand answers."""
    table = make(3000)
    settings = SessionSettings(target=target, parameters=TREES, warmup=200)
    with Session(settings, recording=True) as session:
        events = [event for i in (0, 1, 1700) for event in session.take_rows(part(table, i))]
        history = session.history()
        last = session.snapshot()
    answers = [
        (row, true, answer)
        for event in events
        if getattr(event, "answers", None) is not None and event.y is not None
        for row, true, answer in zip(event.numbers, event.y, event.answers, strict=True)
    ]
    assert 300 < len(history.curve) <= 600
    assert history.curve[-1].rows > 2990
    for point in history.curve[:: len(history.curve) // 7]:
        so_far = [(true, answer) for row, true, answer in answers if row <= point.rows]
        for name, pairs in (("", so_far), ("recent_", so_far[-1000:])):
            true, given = map(list, zip(*pairs, strict=True))
            if target == "kind":
                error = 1 - metrics.accuracy_score(true, given)
                assert getattr(point, f"{name}error") == pytest.approx(error)
            elif len(true) > 1:
                mae = metrics.mean_absolute_error(true, given)
                assert getattr(point, f"{name}mae") == pytest.approx(mae)
                found = getattr(point, f"{name}r2")
                assert found == pytest.approx(metrics.r2_score(true, given), abs=1e-6)
    assert history.curve[-1].majority_accuracy == pytest.approx(last.majority_accuracy, abs=2e-3)


def part(table, begin):
    """The rows from one of the places where a stream was cut, to the next."""
    ends = {0: 1, 1: 1700, 1700: len(table)}
    return table.slice(begin, ends[begin] - begin)


@pytest.mark.parametrize("target", ["label", "x"])
def test_a_stream_that_is_resumed_has_the_measures_of_one_that_was_not(told, tmp_path, target):
    table = mixed_table(900)
    source, part = tmp_path / "rows.csv", tmp_path / "part.csv"
    write(table, source)
    write(table.slice(0, 500), part)

    def last_event(source, folder):
        options = ("--target", target, "--durable", folder, "--json", "--trees", 8, "--warmup", 100)
        code, out, error = told("stream", source, *options)
        assert code == 0, error
        return json.loads(out.splitlines()[-1])

    whole = last_event(source, tmp_path / "whole")
    last_event(part, tmp_path / "kept")
    resumed = last_event(source, tmp_path / "kept")
    assert resumed["rows"] == whole["rows"] == 900
    names = [name for name in MEASURES if not name.startswith("recent_")]
    assert sum(whole[name] is not None for name in names) == (8 if target == "label" else 3)
    for name in names:
        assert resumed[name] == pytest.approx(whole[name])
    assert resumed.get("classes") == whole.get("classes")


@pytest.mark.parametrize("scale", [1e-300, 1e200, 1e300])
def test_targets_may_be_as_large_or_small_as_doubles_are(scale):
    table = numbers_table(400)
    table = table.set_column(3, "y", pa.array(table["y"].to_numpy() * scale))
    settings = SessionSettings(target="y", parameters=TREES, warmup=100)
    with Session(settings, recording=True) as session:
        session.take_rows(table)
        state = session.snapshot()
        text = page(session.history())
    assert 0 < state.mae < scale
    assert (state.rmse is None) == (scale > 1)  # its square overflows
    assert "Mean absolute error" in text


def test_very_many_classes_are_counted_in_bounded_room():
    rng = np.random.default_rng(0)
    scores = class_measures.ClassScores()
    true = [str(i) for i in rng.integers(0, 5000, 20_000)]
    scores.add(true, true)
    assert len(scores.counts) == class_measures.MOST_CLASSES + 1
    assert sum(score.rows for score in scores.by_class()) == 20_000
    assert scores.kappa() == 1.0


def test_fit_says_nothing_of_errors(told, tmp_path):
    source = write(mixed_table(300), tmp_path / "rows.csv")
    arguments = ("--target", "label", "--save", tmp_path / "model.bf", "--warmup", 100)
    code, out, error = told("fit", source, *arguments)
    assert code == 0, error
    assert "300 in" in out
    assert "error " not in out
    assert " - " not in out
