"""Why an answer: explain() tells the paths that the trees took and what each end weighed."""

import json

import numpy as np
import pytest
from conftest import make_task

from boundary_forest import BoundaryForest, BoundaryForestClassifier


@pytest.fixture(params=["classifier", "regressor", "neighbors"])
def asked(request):
    task = make_task(request.param)
    forest = task.taught(n_estimators=9, max_children=3)
    return request.param, task, forest, forest.explain(task.queries[0] + 0.25)


def test_paths_lead_from_the_roots_to_what_apply_finds(asked):
    _, task, forest, explanation = asked
    query = task.queries[:1] + 0.25
    ends = [tree.steps[-1].arrival for tree in explanation.trees]
    assert ends == forest.apply(query)[0].tolist()
    for (arrivals, parents), tree in zip(forest.trees(), explanation.trees, strict=True):
        parent_of = dict(zip(arrivals.tolist(), parents.tolist(), strict=True))
        path = [step.arrival for step in tree.steps]
        assert [parent_of[v] for v in path] == [-1, *path[:-1]]
        for step in tree.steps:
            assert step.distance == pytest.approx(np.linalg.norm(task.X[step.arrival] - query[0]))


def test_weights_are_shares_that_make_the_answer(asked):
    name, task, forest, explanation = asked
    query = task.queries[:1] + 0.25
    weights = [tree.weight for tree in explanation.trees]
    ends = [tree.steps[-1] for tree in explanation.trees]
    assert sum(weights) == pytest.approx(1)
    assert 0 <= explanation.confidence <= 1
    if name == "classifier":
        assert explanation.answer == forest.predict(query)[0]
        share = sum(
            w for w, end in zip(weights, ends, strict=True) if end.label == explanation.answer
        )
        assert explanation.confidence == pytest.approx(share)
    elif name == "regressor":
        assert explanation.answer == forest.predict(query)[0]
        mean = sum(w * end.label for w, end in zip(weights, ends, strict=True))
        assert explanation.answer == pytest.approx(mean)
    else:
        assert explanation.answer == forest.kneighbors(query, 1)[1][0, 0]
        agree = [end.arrival == explanation.answer for end in ends]
        assert explanation.confidence == np.mean(agree)
        assert all((w > 0) == same for w, same in zip(weights, agree, strict=True))


def test_shares_and_examples_sum_up_what_the_trees_say(asked):
    name, task, forest, explanation = asked
    ends = [tree.steps[-1] for tree in explanation.trees]
    examples = explanation.examples
    assert {e.arrival for e in examples} == {end.arrival for end in ends}
    assert sum(e.trees for e in examples) == 9
    assert sum(e.share for e in examples) == pytest.approx(1)
    assert [e.share for e in examples] == sorted((e.share for e in examples), reverse=True)
    if name != "classifier":
        assert explanation.shares == ()
        return
    shares = dict(
        zip(forest.classes_, forest.predict_proba(task.queries[:1] + 0.25)[0], strict=True)
    )
    assert sum(s.trees for s in explanation.shares) == 9
    assert explanation.shares[0].label == explanation.answer
    for share in explanation.shares:
        assert share.share == pytest.approx(shares[share.label])
        assert share.trees == sum(end.label == share.label for end in ends)


def test_an_explanation_prints_the_answer_and_what_it_is_made_of(asked):
    name, _, _, explanation = asked
    lines = str(explanation).splitlines()
    kind = "nearest" if name == "neighbors" else "prediction"
    assert lines[0] == f"{kind}: {explanation.answer!r}"
    n = len(explanation.shares)
    assert (n > 0) == (name == "classifier")
    for line, share in zip(lines[1:], explanation.shares, strict=False):
        assert line.startswith(f"  {share.label!r}: weight {share.share:.2f}, {share.trees} tree")
    assert lines[n + 1] == "from the stored examples"
    assert lines[n + 2].startswith(f"  #{explanation.examples[0].arrival}, ")
    assert "confidence" not in str(explanation)


def test_examples_are_named_by_their_ids_and_few_are_printed():
    X = np.arange(40.0)[:, None]
    forest = BoundaryForestClassifier(n_estimators=30, random_state=0)
    forest.fit(X, np.arange(40) % 2, ids=[f"row {i}" for i in range(40)])
    explanation = forest.explain([20.0])
    assert explanation.examples[0].id == "row 20"
    assert "  id 'row 20', label 0, distance 0: weight " in str(explanation)
    rng = np.random.default_rng(0)
    wide = BoundaryForestClassifier(n_estimators=60, random_state=0)
    wide.fit(rng.normal(size=(300, 20)), rng.integers(0, 2, 300))
    explanation = wide.explain(np.zeros(20))
    assert len(explanation.examples) > 10
    assert f"  and {len(explanation.examples) - 10} more" in str(explanation).splitlines()


def test_an_explanation_has_a_path_for_each_tree_and_goes_into_json(asked):
    _, _, _, explanation = asked
    assert len(explanation.paths().splitlines()) == 9
    as_dict = json.loads(json.dumps(explanation.to_dict()))
    assert len(as_dict["examples"]) == len(explanation.examples)
    assert as_dict["answer"] == explanation.answer
    assert len(as_dict["trees"]) == 9
    assert set(as_dict["trees"][0]["steps"][0]) == {"arrival", "distance", "label"}


def test_an_exact_match_decides_alone_and_with_full_confidence(classification):
    forest = classification.taught(n_estimators=9, shuffle=False)
    row = int(forest.apply(classification.X[-1:])[0, 0])
    explanation = forest.explain(classification.X[row])
    assert explanation.answer == classification.y[row]
    assert explanation.confidence == pytest.approx(1)
    exact, others = [], []
    for tree in explanation.trees:
        (others if tree.steps[-1].distance > 0 else exact).append(tree.weight)
    assert set(exact) == {1 / len(exact)}
    assert set(others) == {0}


def test_before_the_trees_are_planted_the_nearest_example_is_the_whole_path(classification):
    forest = classification.forest(n_estimators=50)
    forest.partial_fit(classification.X[:3], classification.y[:3])
    explanation = forest.explain(classification.X[1])
    assert {tree.steps[0].arrival for tree in explanation.trees} == {1}
    assert explanation.confidence == pytest.approx(1)


def test_text_labels_and_ids_are_shown_as_they_were_given(classification, retrieval):
    names = np.array(["low", "middle", "high"])[classification.y]
    forest = classification.forest().fit(classification.X, names)
    explanation = forest.explain(classification.queries[0])
    assert explanation.answer in names
    assert all(step.label in names for tree in explanation.trees for step in tree.steps)
    index = retrieval.forest().fit(retrieval.X, ids=[f"row {i}" for i in range(40)])
    assert index.explain(retrieval.X[7]).answer == "row 7"


def test_the_general_form_explains_with_its_own_estimator(regression):
    """What a function makes of its nodes is its own affair, so they are shown as equals."""
    forest = BoundaryForest(
        n_estimators=5, estimator=lambda y, nodes: max(n.label[0] for n in nodes), random_state=0
    ).fit(regression.X, regression.y)
    explanation = forest.explain(regression.queries[0] + 0.25)
    ends = [tree.steps[-1].label for tree in explanation.trees]
    assert explanation.answer == max(ends)
    assert [tree.weight for tree in explanation.trees] == pytest.approx([0.2] * 5)
    usual = np.std(regression.y)
    assert explanation.confidence == pytest.approx(max(0, 1 - np.std(ends) / usual))
    json.dumps(explanation.to_dict())


def test_explaining_counts_what_it_compared_and_no_more(classification):
    forest = classification.forest(n_estimators=50)
    forest.partial_fit(classification.X[:3], classification.y[:3])
    before = forest.stats()["comparisons"]["query"]
    forest.explain(classification.X[1])
    assert forest.stats()["comparisons"]["query"] - before == 3


def test_one_query_is_explained_at_a_time(classification):
    forest = classification.taught()
    with pytest.raises(ValueError, match="x must be a single row, got 2"):
        forest.explain(classification.queries[:2])
