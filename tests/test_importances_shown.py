"""Importances where people look: explain, a model of raw rows, info and the report."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from stream_histories import classified, importances, regressed
from test_stream_tables import useless_columns

from boundary_forest import BoundaryForestClassifier, load
from boundary_forest.estimators.adaptive import last_decision
from boundary_forest.frames import FrameModel
from boundary_forest.report import page
from boundary_forest.session import Session, SessionSettings


def examples(n=600):
    X = np.random.default_rng(0).normal(size=(n, 8))
    return X, (X[:, 3] > 0).astype(int)


def weighing(**parameters):
    return BoundaryForestClassifier.for_tables(n_estimators=20, random_state=0, **parameters)


def test_an_explanation_names_the_few_most_important_features_and_their_shares():
    X, y = examples()
    forest = weighing().fit(pd.DataFrame(X, columns=list("abcdefgh")), y)
    explanation = forest.explain(pd.DataFrame(X[:1], columns=list("abcdefgh")))
    assert len(explanation.importances) == 5
    assert explanation.importances[0] == ("d", forest.feature_importances_[3])
    assert str(explanation).splitlines()[-1].startswith("most important features: d ")
    told = json.loads(json.dumps(explanation.to_dict()))["importances"]
    assert list(told.items()) == list(explanation.importances)


def test_features_without_names_are_numbered_and_given_weights_count_too():
    X, y = examples(100)
    forest = BoundaryForestClassifier(feature_weights=[0, 0, 1, 0, 0, 0, 0, 0]).fit(X, y)
    assert forest.explain(X[0]).importances == (("x2", 1.0),)


def test_a_forest_that_weighs_nothing_explains_as_ever():
    X, y = examples(100)
    explanation = BoundaryForestClassifier(n_estimators=3).fit(X, y).explain(X[0])
    assert explanation.importances == ()
    assert "most important" not in str(explanation)


def raw_rows(n=600):
    colors = np.random.default_rng(1).integers(0, 3, n)
    x = np.random.default_rng(2).normal(size=n)
    return pd.DataFrame(
        {"x": x, "color": np.array(["red", "green", "blue"])[colors], "is": colors == 1}
    )


def test_a_model_of_raw_rows_sums_a_columns_categories():
    model = FrameModel.from_rows(
        raw_rows(), "is", feature_weights="learned", n_estimators=20, random_state=0
    )
    assert list(model.feature_importances_) == ["x", "color"]
    assert sum(model.feature_importances_.values()) == pytest.approx(1)
    assert model.feature_importances_["color"] > 0.7  # seen: 0.76
    assert model.explain(raw_rows().iloc[:1]).importances[0][0] == "color"


def test_info_shows_the_importances_that_the_forest_has(told, tmp_path):
    X, y = examples()
    forest = weighing().fit(pd.DataFrame(X, columns=list("abcdefgh")), y)
    forest.save(tmp_path / "model.bf")
    _, out, _ = told("info", tmp_path / "model.bf", "--json")
    shown = json.loads(out)["feature_importances"]
    assert list(shown) == list("abcdefgh")
    np.testing.assert_allclose(list(shown.values()), forest.feature_importances_, rtol=1e-9)
    _, out, _ = told("info", tmp_path / "model.bf")
    assert "most important" in out
    assert " d 1.00" in out or " d 0.9" in out


def test_info_shows_columns_of_raw_rows_and_nothing_of_plain_forests(told, tmp_path):
    for weights in ("learned", None):
        model = FrameModel.from_rows(raw_rows(), "is", random_state=0, feature_weights=weights)
        model.save(tmp_path / "model.bf")
        _, out, _ = told("info", tmp_path / "model.bf")
        line = next((line for line in out.splitlines() if "most important" in line), "")
        assert ("color 0." in line) == (weights is not None)


def test_a_session_records_importances_where_weights_were_learned_and_at_the_end():
    with Session(SessionSettings(target="y", warmup=100), recording=True) as session:
        for begin in range(0, 2500, 50):
            session.take_rows(useless_columns().slice(begin, 50))
        history = session.history()
        now = session.model.feature_importances_
    rows = [n for n, _ in history.importances]
    assert rows == [125, 250, 500, 1000, 2000, 2500]
    assert history.importances[-1][1] == now
    assert max(now, key=now.get) == "c3"
    assert now["c3"] > 0.9


def test_a_plain_forest_has_none_to_record():
    with Session(SessionSettings(target="y", warmup=100, plain=True), recording=True) as session:
        session.take_rows(useless_columns(400))
        history = session.history()
    assert history.importances == []
    assert "Important columns" not in page(history)


def test_the_report_has_a_bar_for_each_of_the_largest_and_a_line_for_the_rest():
    text = page(classified())
    section = text.split('id="columns"')[1].split("</section>")[0]
    assert section.count("<tr><td>") == 15
    assert "<td>f0</td>" in section
    assert "and 9 others, 19.6 % together" in section
    assert "Importance over time" in section
    assert "Important columns" in page(regressed(importances=importances(3)))


def test_names_of_columns_cannot_become_part_of_the_page():
    text = page(classified(importances=[(1000, {"<script>x</script>": 1.0})]))
    assert "<script>x" not in text


@pytest.mark.parametrize(
    ("seen", "decided"), [(0, 0), (124, 0), (125, 125), (249, 125), (250, 250), (4001, 4000)]
)
def test_decisions_come_at_doublings(seen, decided):
    assert last_decision(seen) == decided


def test_weights_change_where_decisions_are_said_to_come_and_nowhere_else():
    X, y = examples(520)
    forest = weighing().fit(X[:120], y[:120])
    before, changed = forest.feature_weights_, []
    for i in range(120, 520):
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
        if (forest.feature_weights_ != before).any():
            changed.append(i + 1)
        before = forest.feature_weights_
    assert changed
    assert set(changed) <= {125, 250, 500}


def test_a_saved_forest_has_the_importances_it_had(tmp_path):
    X, y = examples()
    forest = weighing().fit(X, y)
    forest.save(tmp_path / "model.bf")
    again = load(tmp_path / "model.bf")
    assert again.feature_importances_.tolist() == forest.feature_importances_.tolist()
    assert again.vote_power_ == forest.vote_power_
