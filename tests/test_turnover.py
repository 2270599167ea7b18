"""What is told of trees that come and go: in stats, explanations, ``info`` and the report."""

import json
import re
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import pytest
from damaged_files import Parts
from stream_histories import classified, regressed, snapshot, standing
from test_forgetting import LIFETIMES, STREAMS, stream, taught

from boundary_forest import BoundaryForestClassifier, ModelFileError
from boundary_forest.estimators.engine_constants import STREAM_RULES
from boundary_forest.estimators.lifetime_stats import (
    Lifetime,
    Turnover,
    turnover_in,
    vote_rule,
)
from boundary_forest.files.loading import describe
from boundary_forest.reference.forgetting import Lifetimes
from boundary_forest.report import page
from boundary_forest.report.importances import column_importances
from boundary_forest.session.history_recorder import MOST_IMPORTANCES, HistoryRecorder

N_TREES = STREAMS["n_estimators"]


def turnover(task="classify", **params):
    return turnover_in(taught(task, **params).fitted)


def test_every_rule_has_a_text_of_its_own():
    texts, others = (
        [vote_rule(i, classes=classes) for i in range(len(STREAM_RULES))]
        for classes in (True, False)
    )
    assert texts[2] == "1 / distance, multiplied by recent accuracy^10"
    assert len(set(texts)) == len(set(others)) == len(STREAM_RULES)


def test_groups_have_all_trees_of_their_lifetime_and_their_real_ages():
    learner = taught("classify")
    told, trees = turnover_in(learner.fitted), learner.trees()
    assert [group.lifetime for group in told.lifetimes] == [5, 16, 100, None]
    seen = learner.examples_seen
    for group in told.lifetimes:
        places = [i for i in range(N_TREES) if LIFETIMES[i % 4] == group.lifetime]
        ages = [seen - int(trees[i][0].min()) for i in places]
        assert (group.trees, group.youngest, group.oldest) == (len(places), min(ages), max(ages))
        assert 0 <= group.recent_accuracy <= 1
        assert group.recent_rmse is None
    assert learner.stats()["turnover"]["renewals"] == told.renewals


def test_renewals_are_as_many_as_the_schedule_has():
    params = {"forgetting": [5, 16, 100], "max_samples": None, "max_stored": None}
    learner = taught("classify", **params)
    lifetimes = [params["forgetting"][i % 3] for i in range(N_TREES)]
    schedule = Lifetimes(lifetimes, N_TREES)
    seen = learner.examples_seen
    expected = {
        life: sum(
            1 + (seen - schedule.first[i]) // life
            for i in range(N_TREES)
            if lifetimes[i] == life and seen >= schedule.first[i]
        )
        for life in lifetimes
    }
    assert {g.lifetime: g.renewals for g in turnover_in(learner.fitted).lifetimes} == expected


@pytest.mark.parametrize("task", ["regress", "outputs"])
def test_targets_have_errors_instead(task):
    groups = turnover(task).lifetimes
    assert all(group.recent_rmse > 0 and group.recent_accuracy is None for group in groups)


def test_nothing_is_told_of_the_paper_s_forest_or_before_there_are_trees():
    X, y = stream("classify")
    paper = BoundaryForestClassifier(random_state=0).partial_fit(X, y)
    assert "turnover" not in paper.stats()
    explanation = paper.explain(X[0])
    assert explanation.turnover is None
    assert explanation.to_dict()["lifetimes"] == []
    assert turnover(end=3).lifetimes == ()
    unjudged = turnover(weights="uniform")
    assert unjudged.votes == "equal"
    assert unjudged.lifetimes[0].recent_accuracy is None


def test_the_power_of_votes_is_that_of_the_rule_in_use():
    for end in range(50, 400, 50):
        learner = taught("classify", end=end)
        assert learner.vote_power_ == STREAM_RULES[turnover_in(learner.fitted).rule][0]


def test_an_explanation_says_what_each_lifetime_had_of_the_answer():
    learner = taught("classify")
    explanation = learner.explain(stream("classify")[0][0])
    shares = [share for _, share in explanation.lifetimes]
    assert sum(shares) == pytest.approx(1)
    assert f"weights of the trees: {explanation.turnover.votes}" in str(explanation)
    assert "  lifetime 16: weight " in str(explanation)
    assert "lifetime 5, weight" in explanation.paths()
    told = explanation.to_dict()
    assert json.loads(json.dumps(told["lifetimes"]))[-1]["share"] == shares[-1]
    assert [tree["lifetime"] for tree in told["trees"]][:4] == LIFETIMES


@pytest.mark.parametrize("task", ["classify", "regress"])
@pytest.mark.parametrize("end", [3, 60, 499])
def test_info_tells_the_same_and_does_not_count_what_only_grows(task, end, told, tmp_path):
    learner = taught(task, end=end)
    learner.save(tmp_path / "model.bf")
    described = describe(tmp_path / "model.bf")
    assert described["trees"] == N_TREES
    assert described["turnover"] == learner.stats()["turnover"]
    _, shown, _ = told("info", tmp_path / "model.bf")
    assert re.search(rf"trees +{N_TREES}, ", shown)
    assert ("trees, lifetime unlimited" in shown) == (end > N_TREES)
    assert "votes" in shown


@pytest.mark.parametrize("value", ["sometimes", [], [True], ["16"], 16, [0]])
def test_info_refuses_lifetimes_that_are_none(value, tmp_path):
    path = tmp_path / "model.bf"
    taught("classify").save(path)
    parts = Parts(path.read_bytes())
    parts.document["forest"]["in_use"]["forgetting"] = value
    path.write_bytes(parts.content())
    with pytest.raises(ModelFileError, match="forgetting"):
        describe(path)


def test_the_report_shows_trees_by_lifetime_and_when_rules_were_in_use():
    rows = range(100, 4000, 100)
    states = [snapshot(n, turnover=standing(n, rule=n // 1000)) for n in rows]
    text = page(classified(snapshots=states))
    assert '<h2 id="forgetting">Forgetting' in text
    for part in ("Trees by lifetime", "16 rows", "Recent accuracy by lifetime", "Renewals"):
        assert part in text
    for rule in range(4):
        assert vote_rule(rule, classes=True) in text
    assert vote_rule(4, classes=True) not in text
    assert '<h2 id="forgetting">Forgetting' not in page(classified())


def test_the_report_of_a_regression_shows_errors_by_lifetime():
    history = regressed()
    states = [
        type(s)(**{**vars(s), "turnover": standing(s.rows, classes=False)})
        for s in history.snapshots
    ]
    assert "Recent RMSE by lifetime" in page(regressed(snapshots=states))
    unjudged = Turnover(0, "equal", 1, (Lifetime(16, 2, 8, 20, 3, None, None),))
    text = page(classified(snapshots=[snapshot(100, turnover=unjudged)]))
    assert "by lifetime" in text
    assert "Recent accuracy" not in text


def test_a_stream_that_forgets_reports_it(told, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(5000, 3))
    y = np.where(np.arange(5000) < 2500, X[:, 0] > 0, X[:, 1] > 0).astype(int)
    source = tmp_path / "rows.csv"
    np.savetxt(source, np.c_[X, y], delimiter=",", header="a,b,c,y", comments="", fmt="%.4f")
    report = tmp_path / "report.html"
    options = ["--target", "y", "--task", "classify", "--forgetting", "auto"]
    code, *said = told("stream", source, *options, "--report", report)
    assert code == 0, said
    text = report.read_text(encoding="utf-8")
    assert '<h2 id="forgetting">Forgetting' in text
    assert "4,096 rows" in text


@pytest.mark.parametrize(
    ("kept", "when"), [(2000, "had doubled"), (3000, "when the weights were learned")]
)
def test_the_report_says_how_often_weights_were_looked_at(kept, when):
    recorded = [(rows, {"a": 0.25, "b": 0.75}) for rows in (1000, kept, 3500)]
    assert when in column_importances(recorded).over_time.note


def test_importances_of_a_long_stream_are_kept_evenly_and_not_all():
    recorder = HistoryRecorder()
    for thousands in range(1, 1000):
        recorder.add_importances(Weighed(thousands * 1000 + 7))
    rows = [rows for rows, _ in recorder.importances(Weighed(10**6))]
    assert len(rows) <= MOST_IMPORTANCES + 1
    assert rows[0] == 1000
    assert rows[-1] == 10**6
    assert max(np.diff(rows)) < 30_000


class Weighed:
    """A model that has learned so many rows, as the recorder sees it."""

    feature_importances_: ClassVar = {"a": 1.0}

    def __init__(self, examples_seen):
        adaptive = {"forgetting": "auto", "feature_weights": "learned"}
        settings = SimpleNamespace(adaptive=adaptive)
        self.examples_seen = examples_seen
        self.forest = SimpleNamespace(fitted=SimpleNamespace(settings=settings))
