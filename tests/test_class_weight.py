"""class_weight multiplies the votes for each class, in every call and on every path."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_classification
from sklearn.metrics import balanced_accuracy_score, recall_score
from sklearn.model_selection import train_test_split
from test_forget_equals_reference import BEYOND, N, pair, rows

import boundary_forest
from boundary_forest import BoundaryForestClassifier
from boundary_forest.durable import open_durable

WEIGHTS = {"plain": 1.0, "rare": 7.5}
KINDS = ["balanced", WEIGHTS]


def imbalanced(n=600, seed=0, weights=(0.9,)):
    X, y = make_classification(n, 6, weights=weights, random_state=seed, flip_y=0.1)
    return X, np.array(["plain", "rare"])[y]


def forest_of(class_weight, kind=BoundaryForestClassifier, **params):
    return kind(class_weight=class_weight, n_estimators=8, random_state=0, **params)


@settings(max_examples=20, deadline=None, derandomize=True)
@given(
    kind=st.sampled_from(sorted(BEYOND)),
    class_weight=st.sampled_from(["balanced", {0: 0.5, 1: 3.0, 2: 11.0}]),
    cuts=st.lists(st.integers(1, N), max_size=4, unique=True).map(sorted),
    seed=st.integers(0, 2**32 - 1),
)
def test_votes_equal_reference_row_by_row_in_any_batches(kind, class_weight, cuts, seed):
    rng = np.random.default_rng(seed)
    X, y = rows(rng, N, on_grid=bool(seed % 2))
    labels = y[:, None].astype(np.float64)
    forest, oracle = pair(5, seed, votes=True, class_weight=class_weight, **BEYOND[kind])
    n_classes = int(labels.max()) + 1
    forest.learn(X[:1], labels[:1], 1, np.arange(1))
    oracle.BFTrain(X[0], labels[0])
    for begin, end in zip([1, *cuts], [*cuts, N], strict=True):
        if begin >= end:
            continue
        some = slice(begin, end)
        shares = forest.estimate_then_learn(X[some], labels[some], 1 + seed % 2, np.arange(N)[some])
        for i, share in zip(range(begin, end), shares, strict=True):
            np.testing.assert_array_equal(share, oracle.shepard_vote(X[i], len(share)))
            oracle.BFTrain(X[i], labels[i])
        gone = [int(a) for a in forest.snapshot().state()["arrivals"][1::7]]
        if forest.forget(np.array(gone), 1) == []:
            oracle.forget(gone)
    queries, _ = rows(rng, 5, on_grid=bool(seed % 2))
    for query, share in zip(queries, forest.estimate(queries, 1), strict=True):
        np.testing.assert_array_equal(share, oracle.shepard_vote(query, n_classes))


@pytest.mark.parametrize("class_weight", KINDS)
def test_votes_are_multiplied_and_predict_is_the_argmax(class_weight):
    X, y = imbalanced()
    plain = forest_of(None).fit(X[:500], y[:500])
    weighted = forest_of(class_weight).fit(X[:500], y[:500])
    factors = np.array([WEIGHTS[label] for label in weighted.classes_])
    if class_weight == "balanced":
        counts = np.array([(y[:500] == label).sum() for label in weighted.classes_])
        factors = 500 / (2 * counts)
    expected = plain.predict_proba(X[500:]) * factors
    expected /= expected.sum(axis=1, keepdims=True)
    shares = weighted.predict_proba(X[500:])
    np.testing.assert_allclose(shares, expected, rtol=1e-12)
    assert (weighted.predict(X[500:]) == weighted.classes_[shares.argmax(axis=1)]).all()
    assert (weighted.predict(X[500:]) != plain.predict(X[500:])).any()
    # The trees are the same.
    for (mine, _), (others, _) in zip(weighted.trees(), plain.trees(), strict=True):
        assert mine.tolist() == others.tolist()


@pytest.mark.parametrize("class_weight", KINDS)
@pytest.mark.parametrize("setting", [{}, {"weights": "auto", "forgetting": [None, 40]}])
def test_test_then_train_weighs_as_of_each_row(class_weight, setting):
    X, y = imbalanced(300)
    whole, rowwise = (forest_of(class_weight, **setting).partial_fit(X[:1], y[:1]) for _ in "ab")
    shares = whole.predict_proba_then_learn(X[1:], y[1:])
    for i in range(1, 300):
        before = np.zeros(2)
        known = rowwise.predict_proba(X[i : i + 1])[0]
        for label, share in zip(rowwise.classes_, known, strict=True):
            before[np.searchsorted(whole.classes_, label)] = share
        np.testing.assert_array_equal(before, shares[i - 1])
        rowwise.partial_fit(X[i : i + 1], y[i : i + 1])
    assert whole.fingerprint() == rowwise.fingerprint()


@pytest.mark.parametrize("class_weight", KINDS)
def test_threads_files_pickles_copies_and_folders_keep_the_weights(class_weight, tmp_path):
    X, y = imbalanced()
    forest = forest_of(class_weight).partial_fit(X[:200], y[:200])
    forest.save(tmp_path / "model.bf")
    others = {
        "loaded": boundary_forest.load(tmp_path / "model.bf"),
        "mapped": boundary_forest.load(tmp_path / "model.bf", mmap=True),
        "pickled": pickle.loads(pickle.dumps(forest)),
        "copied": copy.deepcopy(forest),
        "threads": forest_of(class_weight, n_jobs=2).partial_fit(X[:200], y[:200]),
    }
    with open_durable(tmp_path / "folder", forest_of(class_weight)) as durable:
        durable.partial_fit(X[:150], y[:150])
        durable.snapshot()
        durable.partial_fit(X[150:200], y[150:200])
    with open_durable(tmp_path / "folder") as durable:
        others["durable"] = copy.deepcopy(durable.model)
    forest.partial_fit(X[200:400], y[200:400])
    for name, other in others.items():
        assert other.class_weight == class_weight, name
        other.partial_fit(X[200:400], y[200:400])
        assert other.fingerprint() == forest.fingerprint(), name
        np.testing.assert_array_equal(other.predict_proba(X), forest.predict_proba(X))


def test_a_new_class_has_its_weight_from_its_first_example_on(tmp_path):
    forest = forest_of({"b": 4.0, "c": 9.0, "never": 2.0}, n_jobs=1)
    forest.partial_fit([[0.0], [0.0]], ["a", "b"], classes=["a", "b", "c"])
    assert forest.predict_proba([[0.0]]).tolist() in ([[1.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]])
    X = np.zeros((30, 1))
    forest.partial_fit(X, ["a", "c"] * 15)
    shares = dict(zip(forest.classes_, forest.predict_proba([[0.0]])[0], strict=True))
    votes = dict.fromkeys("abc", 0)
    for tree in forest.explain([0.0]).trees:
        votes[tree.steps[-1].label] += 1
    total = votes["a"] + 4 * votes["b"] + 9 * votes["c"]
    assert shares["c"] == pytest.approx(9 * votes["c"] / total)


@pytest.mark.parametrize("class_weight", KINDS)
def test_explain_shows_the_weights_that_were_used(class_weight):
    X, y = imbalanced()
    forest = forest_of(class_weight).fit(X[:500], y[:500])
    for x in X[500:520]:
        explanation = forest.explain(x)
        shares = {share.label: share.share for share in explanation.shares}
        for label, share in zip(forest.classes_, forest.predict_proba([x])[0], strict=True):
            assert shares.get(label, 0.0) == pytest.approx(share)
        assert explanation.answer == forest.predict([x])[0]


def test_forgotten_examples_no_longer_count():
    X, y = imbalanced(200)
    forest = forest_of("balanced").partial_fit(X, y, ids=np.arange(200))
    stored = forest.fitted.engine.snapshot().state()["arrivals"].astype(int)
    gone = [i for i in stored[::3] if y[i] == "plain"]
    codes = forest.fitted.labels.codes.newest.table.codes
    counts = forest.fitted.engine.snapshot().state()["class_counts"][codes]
    assert counts.tolist() == [(y == "plain").sum(), (y == "rare").sum()]
    forest.forget(gone)
    counts = forest.fitted.engine.snapshot().state()["class_counts"][codes]
    assert counts.tolist() == [(y == "plain").sum() - len(gone), (y == "rare").sum()]


@pytest.mark.parametrize("class_weight", KINDS)
def test_a_call_that_fails_leaves_the_weights_as_they_were(class_weight):
    X, y = imbalanced(120)
    is_failing = False

    def metric(a, b):
        if is_failing and X[100, 0] in (a[0], b[0]):
            raise ZeroDivisionError
        return float(np.abs(a - b).sum())

    forest = forest_of(class_weight, metric=metric).partial_fit(X[:80], y[:80])
    shares, fingerprint = forest.predict_proba(X[80:]), forest.fingerprint()
    is_failing = True
    with pytest.raises(ValueError, match="ZeroDivisionError"):
        forest.partial_fit(X[80:], np.where(np.arange(40) % 2, "zzz", y[80:]))
    is_failing = False
    assert forest.fingerprint() == fingerprint
    np.testing.assert_array_equal(forest.predict_proba(X[80:]), shares)
    forest.partial_fit(X[80:], y[80:])
    same = forest_of(class_weight, metric=metric).partial_fit(X, y)
    assert forest.fingerprint() == same.fingerprint()


def test_set_params_acts_at_the_next_fit():
    X, y = imbalanced(200)
    forest = forest_of(None).fit(X, y)
    shares = forest.predict_proba(X)
    forest.set_params(class_weight="balanced")
    np.testing.assert_array_equal(forest.predict_proba(X), shares)
    assert (forest.fit(X, y).predict_proba(X) != shares).any()


@pytest.mark.parametrize("weight", [0, -1.0, np.nan, np.inf, 1e200, "many", None, True])
def test_weights_that_are_no_numbers_above_zero_are_refused(weight):
    with pytest.raises(ValueError, match="class_weight must have a number between"):
        forest_of({"rare": weight}).fit([[0.0]], ["rare"])


def test_keys_of_another_kind_than_the_labels_are_refused():
    forest = forest_of({"1": 3.0})
    with pytest.raises(TypeError, match="class_weight has the class '1', but y has numbers"):
        forest.fit([[0.0]], [1])
    assert forest.fitted is None


def test_the_order_of_a_dict_does_not_matter():
    X, y = imbalanced(100)
    one, two = ({"plain": 2, "rare": 3.0}, {np.str_("rare"): np.float32(3), "plain": 2.0})
    forests = [forest_of(weights).fit(X, y) for weights in (one, two)]
    assert forests[0].fingerprint() == forests[1].fingerprint()
    assert forests[0].fingerprint() != forest_of({"plain": 2, "rare": 4}).fit(X, y).fingerprint()


@pytest.mark.parametrize("class_weight", KINDS)
def test_river_weighs_as_the_estimator_does(class_weight):
    pytest.importorskip("river")
    from boundary_forest.river import BoundaryForestClassifier as RiverClassifier

    X, y = imbalanced(200)
    model = RiverClassifier(class_weight=class_weight, n_estimators=8, seed=0)
    forest = forest_of(class_weight)
    for i in range(200):
        if i:
            shares = model.predict_proba_one(dict(enumerate(X[i])))
            expected = forest.predict_proba(X[i : i + 1])[0]
            assert shares == dict(zip(forest.classes_, expected, strict=True))
        model.learn_one(dict(enumerate(X[i])), str(y[i]))
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
    assert pickle.loads(pickle.dumps(model)).predict_proba_one(dict(enumerate(X[0]))) == (
        model.predict_proba_one(dict(enumerate(X[0])))
    )


def test_balanced_votes_find_more_of_the_rare_class():
    X, y = make_classification(
        6000, 20, n_informative=6, weights=[0.97], random_state=0, class_sep=0.8
    )
    X, X_test, y, y_test = train_test_split(X, y, random_state=0, stratify=y)
    recall, accuracy = {}, {}
    for class_weight in (None, "balanced"):
        forest = BoundaryForestClassifier.for_tables(class_weight=class_weight, random_state=0)
        answers = forest.fit(X, y).predict(X_test)
        recall[class_weight] = recall_score(y_test, answers)
        accuracy[class_weight] = balanced_accuracy_score(y_test, answers)
    # Observed: recall .29 and .92, balanced accuracy .65 and .67.
    assert recall["balanced"] > recall[None] + 0.4
    assert accuracy["balanced"] > accuracy[None]
