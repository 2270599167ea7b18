"""The River classes: River's own checks, features that come and go, one forest by every road."""

from __future__ import annotations

import collections
import copy
import math
import pickle
import subprocess
import sys
import threading

import numpy as np
import pytest
from sklearn.datasets import load_digits

from boundary_forest import BoundaryForestClassifier as SklearnClassifier
from boundary_forest import BoundaryForestRegressor as SklearnRegressor

pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import checks, datasets, evaluate, metrics, preprocessing  # noqa: E402

from boundary_forest.river import (  # noqa: E402
    BoundaryForestClassifier,
    BoundaryForestEngine,
    BoundaryForestRegressor,
)

CLASSIFIERS = {BoundaryForestClassifier}
LEARNERS = [BoundaryForestClassifier, BoundaryForestRegressor]
MINI_BATCH_CHECKS = {
    BoundaryForestClassifier: {
        "check_learn_many_matches_learn_one",
        "check_predict_many_matches_predict_one",
        "check_predict_proba_many_matches_predict_proba_one",
    },
    BoundaryForestRegressor: {
        "check_learn_many_matches_learn_one",
        "check_predict_many_matches_predict_one",
    },
}


def river_checks(learner):
    return list(checks.yield_checks(learner(**next(learner._unit_test_params()))))


def all_checks():
    for learner in LEARNERS:
        for i, check in enumerate(river_checks(learner)):
            yield pytest.param(learner, i, id=f"{learner.__name__}-{check.__name__}-{i}")


@pytest.fixture
def grid():
    """Examples on a small grid, so that ties abound: matrix, its dicts, labels, targets."""
    X = np.random.default_rng(5).integers(0, 6, size=(300, 12)).astype(np.float64)
    rows = [{f"x{column}": value for column, value in enumerate(row)} for row in X.tolist()]
    labels = [("low", "middle", "high")[int(total % 3)] for total in X[:, :3].sum(axis=1)]
    return X, rows, labels, X[:, :3].sum(axis=1).tolist()


def learner_and_answers(learner, grid):
    _, rows, labels, targets = grid
    return learner(n_estimators=7, seed=3), rows, labels if learner in CLASSIFIERS else targets


def ask(model, rows):
    if isinstance(model, BoundaryForestClassifier):
        return [model.predict_proba_one(x) for x in rows]
    return [model.predict_one(x) for x in rows]


def state(model):
    """Names and trees, in a form that compares with ==."""

    def plain(part):
        if isinstance(part, dict):
            return {key: plain(value) for key, value in part.items()}
        if isinstance(part, list | tuple):
            return [plain(value) for value in part]
        return part.tolist() if isinstance(part, np.ndarray) else part

    names_and_engine = model._forest.__getstate__()
    names, engine = (plain(names_and_engine[key]) for key in ("names", "engine"))
    # Comparisons alone: how many distances were really computed depends on the size of a batch.
    engine["counts"] = engine["counts"][::2]
    return [names, engine]


# River's checks


@pytest.mark.parametrize(("learner", "i"), list(all_checks()))
def test_river_check(learner, i):
    check = river_checks(learner)[i]
    check(learner(**next(learner._unit_test_params())))


@pytest.mark.parametrize("learner", LEARNERS)
def test_no_river_check_is_left_out_and_the_mini_batch_ones_are_among_them(learner):
    names = {check.__name__ for check in river_checks(learner)}
    assert names >= MINI_BATCH_CHECKS[learner]
    assert learner()._unit_test_skips() == set()


# Unlearned


def test_unlearned_classifier_answers_none_and_nothing():
    model, X = BoundaryForestClassifier(), pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({"a": 1.0}) == {}
    assert model.predict_many(X).to_dict() == {"p": None, "q": None}
    assert model.predict_proba_many(X).shape == (2, 0)
    assert list(model.predict_proba_many(X).index) == ["p", "q"]


def test_unlearned_regressor_answers_zero():
    model, X = BoundaryForestRegressor(), pd.DataFrame({"a": [1.0, 2.0]}, index=["p", "q"])
    assert model.predict_one({"a": 1.0}) == 0.0
    assert model.predict_many(X).to_dict() == {"p": 0.0, "q": 0.0}


def test_empty_batches_teach_nothing_and_get_empty_answers():
    model = BoundaryForestClassifier()
    X, y = pd.DataFrame({"a": [1.0]}), pd.Series(["yes"])
    model.learn_many(X[:0], y[:0])
    assert model.predict_one({"a": 1.0}) is None
    model.learn_many(X, y)
    assert model.predict_many(X[:0]).empty
    assert list(model.predict_proba_many(X[:0]).columns) == ["yes"]


def test_one_example_is_enough():
    model = BoundaryForestClassifier(seed=0)
    model.learn_one({"a": 1.0}, "yes")
    assert model.predict_proba_one({"a": 5.0}) == {"yes": 1.0}
    regressor = BoundaryForestRegressor(seed=0)
    regressor.learn_one({"a": 1.0}, 4)
    assert regressor.predict_one({"a": 5.0}) == 4.0


# One forest by every road


@pytest.mark.parametrize("cuts", [[100, 200], [1, 2, 6, 7, 8, 250], []])
@pytest.mark.parametrize("learner", LEARNERS)
def test_batches_teach_the_same_as_one_by_one(learner, cuts, grid):
    one, rows, y = learner_and_answers(learner, grid)
    many = learner_and_answers(learner, grid)[0]
    for x, label in zip(rows[:280], y[:280], strict=True):
        one.learn_one(x, label)
    for begin, end in zip([0, *cuts], [*cuts, 280], strict=True):
        many.learn_many(pd.DataFrame(rows[begin:end]), pd.Series(y[begin:end]))
    assert ask(one, rows) == ask(many, rows)
    assert state(one) == state(many)


def test_classifier_is_scikit_learns(grid):
    X, rows, labels, _ = grid
    model = BoundaryForestClassifier(n_estimators=7, seed=3)
    same = SklearnClassifier(n_estimators=7, random_state=3)
    for x, label in zip(rows[:250], labels[:250], strict=True):
        model.learn_one(x, label)
    same.partial_fit(X[:250], labels[:250])
    shares = [dict(zip(same.classes_, row, strict=True)) for row in same.predict_proba(X)]
    assert ask(model, rows) == shares


def test_regressor_is_scikit_learns(grid):
    X, rows, _, targets = grid
    model = BoundaryForestRegressor(n_estimators=7, seed=3)
    same = SklearnRegressor(n_estimators=7, random_state=3)
    for x, target in zip(rows[:250], targets[:250], strict=True):
        model.learn_one(x, target)
    same.partial_fit(X[:250], targets[:250])
    assert ask(model, rows) == same.predict(X).tolist()


@pytest.mark.parametrize("learner", LEARNERS)
def test_many_are_answered_as_one_by_one(learner, grid):
    model, rows, y = learner_and_answers(learner, grid)
    X = pd.DataFrame(rows, index=range(1000, 1300))
    model.learn_many(X[:200], pd.Series(y[:200]))
    answers = model.predict_many(X)
    assert answers.index.equals(X.index)
    assert answers.tolist() == [model.predict_one(x) for x in rows]
    if isinstance(model, BoundaryForestClassifier):
        shares = model.predict_proba_many(X)
        assert shares.index.equals(X.index)
        assert shares.to_dict("records") == ask(model, rows)


@pytest.mark.parametrize("learner", LEARNERS)
def test_threads_change_nothing(learner, grid):
    model, rows, y = learner_and_answers(learner, grid)
    threaded = model.clone({"n_jobs": 2})
    X = pd.DataFrame(rows)
    for forest in (model, threaded):
        forest.learn_many(X, pd.Series(y))
    assert threaded.predict_many(X).equals(model.predict_many(X))
    assert ask(threaded, rows) == ask(model, rows)


# Features that come and go


def test_an_absent_feature_counts_as_zero(grid):
    _, rows, labels, _ = grid
    full, sparse = (BoundaryForestClassifier(n_estimators=7, seed=3) for _ in range(2))
    without_zeros = [{name: value for name, value in x.items() if value} for x in rows]
    for x, bare, label in zip(rows, [rows[0], *without_zeros[1:]], labels, strict=True):
        full.learn_one(x, label)
        sparse.learn_one(bare, label)
    assert ask(sparse, without_zeros) == ask(full, rows)


@pytest.mark.parametrize("learner", LEARNERS)
def test_a_late_feature_was_zero_before(learner, grid):
    late, rows, y = learner_and_answers(learner, grid)
    early = late.clone()
    for i, (x, label) in enumerate(zip(rows, y, strict=True)):
        known = {name: value for name, value in x.items() if i >= 150 or name != "x11"}
        late.learn_one(known, label)
        early.learn_one({"x11": 0.0, **known}, label)
    assert list(late._forest.columns.of) == [f"x{column}" for column in range(12)]
    assert ask(late, rows) == ask(early, rows)


def test_asking_adds_nothing_to_a_defaultdict():
    model = BoundaryForestClassifier(seed=0)
    model.learn_one({"a": 1.0, "b": 2.0}, True)
    x = collections.defaultdict(lambda: 5.0, a=1.0)
    assert model.predict_one(x) is True
    model.learn_one(x, False)
    assert x == {"a": 1.0}
    assert model.predict_one({"a": 1.0, "b": 0.0}) is False


def test_columns_are_in_order_of_first_appearance_and_sorted_within_an_example():
    model = BoundaryForestClassifier(seed=0)
    for x in ({"b": 1.0}, {"x10": 1.0, "b": 1.0, "x2": 1.0}, {}, {7: 1.0, ("t",): 1.0, "a": 1.0}):
        model.learn_one(x, True)
    assert list(model._forest.columns.of) == ["b", "x2", "x10", 7, "a", ("t",)]


def test_the_order_inside_a_dict_means_nothing(grid):
    model, rows, labels = learner_and_answers(BoundaryForestClassifier, grid)
    reversed_ = model.clone()
    for x, label in zip(rows[:200], labels[:200], strict=True):
        model.learn_one(x, label)
        reversed_.learn_one(dict(reversed(x.items())), label)
    assert ask(reversed_, rows) == ask(model, rows)


def test_a_first_example_without_features_is_all_zero():
    model = BoundaryForestClassifier(n_estimators=2, seed=0)
    model.learn_one({}, "nothing")
    model.learn_one({"a": 1.0}, "something")
    model.learn_one({"b": 1.0}, "something")
    assert model.predict_one({}) == "nothing"
    assert model.predict_one({"a": 1.0}) == "something"


def test_a_feature_no_example_had_is_ignored():
    model = BoundaryForestClassifier(n_estimators=2, seed=0)
    for value, label in ((0.0, "low"), (1.0, "high"), (0.1, "low"), (0.9, "high")):
        model.learn_one({"a": value}, label)
    assert model.predict_proba_one({"a": 0.2, "new": 1e9}) == model.predict_proba_one({"a": 0.2})
    assert list(model._forest.columns.of) == ["a"]


# What is refused, and that nothing is learned from it


@pytest.mark.parametrize(
    ("value", "error"),
    [
        ("1.5", TypeError),
        (np.str_("1.5"), TypeError),
        (1j, TypeError),
        ([1.0], TypeError),
        (None, ValueError),
        (math.nan, ValueError),
        (-math.inf, ValueError),
        (10**400, ValueError),
        (2**53 + 1, ValueError),
    ],
)
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_bad_feature_is_named_and_changes_nothing(learner, value, error, grid):
    model, rows, y = learner_and_answers(learner, grid)
    bad = {"x0": 1.0, "new": 2.0, "speed": value}
    with pytest.raises(error, match="'speed'"):
        model.learn_one(bad, y[0])
    assert not ask(model, rows)[0]
    for x, label in zip(rows[:50], y[:50], strict=True):
        model.learn_one({**x, "speed": 1.0}, label)
    before = pickle.dumps(model)
    unseen = "unseen" if learner in CLASSIFIERS else 1.0
    with pytest.raises(error, match="'speed'"):
        model.learn_one(bad, unseen)
    with pytest.raises(error, match="'speed'"):
        model.predict_one(bad)
    assert pickle.dumps(model) == before


def test_large_finite_values_are_fine():
    model = BoundaryForestRegressor(seed=0)
    model.learn_one({"a": 1e300, "b": -1e300, "c": 2**53}, 1.0)
    assert model.predict_one({"a": 1e300, "b": -1e300, "c": 2**53}) == 1.0


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float32", "Int64", "boolean"])
def test_frames_of_any_numbers(dtype):
    X = pd.DataFrame({"a": [0, 1, 1, 0], "b": [1, 1, 0, 0]}).astype(dtype)
    model = BoundaryForestClassifier(n_estimators=2, seed=0)
    model.learn_many(X, pd.Series([0, 1, 2, 3]))
    assert model.predict_many(X).tolist() == [0, 1, 2, 3]
    assert model.predict_one({"a": True, "b": np.float32(1)}) == 1


@pytest.mark.parametrize(
    ("X", "error", "message"),
    [
        (pd.DataFrame({"a": ["x", "y"]}), TypeError, "feature 'a' must be a number, got 'x'"),
        (pd.DataFrame({"a": [1.0, np.nan]}), ValueError, "feature 'a' must be finite, got"),
        (pd.DataFrame({"a": [1, None]}, dtype=object), ValueError, "feature 'a' is None"),
        (pd.DataFrame([[1.0, 2.0]] * 2, columns=["a", "a"]), ValueError, "column named 'a'"),
        (pd.DataFrame({"a": [1.0]}), ValueError, "X has 1 rows but y has 2"),
    ],
)
def test_a_bad_frame_is_refused(X, error, message):
    for model in (BoundaryForestClassifier(), BoundaryForestRegressor()):
        with pytest.raises(error, match=message):
            model.learn_many(X, pd.Series([0, 1]))
        assert not model.predict_one({"a": 1.0})


@pytest.mark.parametrize(
    ("label", "error"), [(None, ValueError), (math.nan, ValueError), ([1], TypeError)]
)
def test_a_bad_label_is_refused(label, error):
    model = BoundaryForestClassifier()
    with pytest.raises(error, match="y must be"):
        model.learn_one({"a": 1.0}, label)
    with pytest.raises(error, match="y must be"):
        model.learn_many(pd.DataFrame({"a": [1.0, 2.0]}), pd.Series(["fine", label], dtype=object))
    assert model.predict_proba_one({"a": 1.0}) == {}


@pytest.mark.parametrize(
    ("target", "error"), [("1", TypeError), (math.nan, ValueError), (None, ValueError)]
)
def test_a_bad_target_is_refused(target, error):
    model = BoundaryForestRegressor()
    with pytest.raises(error, match=r"^y (is|must be) "):
        model.learn_one({"a": 1.0}, target)
    assert model.predict_one({"a": 1.0}) == 0.0


@pytest.mark.parametrize(
    "params",
    [
        {"n_estimators": 0},
        {"max_children": 1},
        {"metric": "euclid"},
        {"metric": "minkowski", "metric_params": {"p": 0.5}},
        {"seed": -1},
        {"seed": "0"},
    ],
)
@pytest.mark.parametrize("learner", [*LEARNERS, BoundaryForestEngine])
def test_a_bad_parameter_is_refused_at_once(learner, params):
    with pytest.raises((TypeError, ValueError), match=[*params][-1]):
        learner(**params)


def test_a_label_whose_example_was_refused_is_not_known():
    def metric(a, b):
        if b[0] == 13.0 or a[0] == 13.0:
            raise RuntimeError("unlucky")
        return float(abs(a - b).sum())

    model = BoundaryForestClassifier(n_estimators=1, metric=metric, seed=0)
    model.learn_one({"a": 1.0}, "one")
    model.learn_one({"a": 2.0}, "two")
    with pytest.raises(ValueError, match="unlucky"):
        model.learn_one({"a": 13.0}, "thirteen")
    assert set(model.predict_proba_one({"a": 1.0})) == {"one", "two"}
    model.learn_one({"a": 3.0}, "three")
    assert model.predict_one({"a": 3.0}) == "three"


# Labels


@pytest.mark.parametrize(
    "labels", [[True, False], [3, -1], ["yes", "no"], [("a", 1), ("b", 2)], ["mixed", 7]]
)
def test_labels_come_back_as_they_were_learned(labels):
    model = BoundaryForestClassifier(n_estimators=3, seed=0)
    for i in range(20):
        model.learn_one({"a": float(i % 2)}, labels[i % 2])
    for value, label in enumerate(labels):
        assert model.predict_one({"a": float(value)}) == label
        assert type(model.predict_one({"a": float(value)})) is type(label)
    assert list(model.predict_proba_one({"a": 0.0})) == labels
    assert model.predict_many(pd.DataFrame({"a": [0.0, 1.0]})).tolist() == labels


# Copies


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("after", [0, 4, 150])
@pytest.mark.parametrize("learner", LEARNERS)
def test_a_copy_goes_on_as_the_original_would(learner, after, copied, grid):
    model, rows, y = learner_and_answers(learner, grid)
    for x, label in zip(rows[:after], y[:after], strict=True):
        model.learn_one(x, label)
    other = copied(model)
    assert ask(other, rows) == ask(model, rows)
    for x, label in zip(rows[after:], y[after:], strict=True):
        late = {**x, "late": x["x0"]}
        model.learn_one(late, label)
        other.learn_one(late, label)
    assert ask(other, rows) == ask(model, rows)
    assert state(other) == state(model)


def test_a_clone_has_learned_nothing_and_an_unseeded_one_draws_its_own_seed(grid):
    model, rows, labels = learner_and_answers(BoundaryForestClassifier, grid)
    model.learn_one(rows[0], labels[0])
    assert model.clone().predict_one(rows[0]) is None
    unseeded = [BoundaryForestClassifier() for _ in range(2)]
    for forest in unseeded:
        forest.learn_many(pd.DataFrame(rows), pd.Series(labels))
    assert state(unseeded[0]) != state(unseeded[1])


def test_threads_can_be_changed_and_the_shape_of_the_forest_cannot():
    model = BoundaryForestClassifier()
    model.mutate({"n_jobs": 2})
    assert model.n_jobs == 2
    with pytest.raises(ValueError, match="n_estimators"):
        model.mutate({"n_estimators": 3})


def test_memory_usage_has_the_engines_share(grid):
    model, rows, labels = learner_and_answers(BoundaryForestClassifier, grid)
    before = model._raw_memory_usage
    model.learn_many(pd.DataFrame(rows), pd.Series(labels))
    assert model._raw_memory_usage >= before + model._forest.n_bytes > before


# In River's company


def test_phishing_in_a_pipeline():
    model = preprocessing.StandardScaler() | BoundaryForestClassifier(seed=0)
    accuracy = evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    assert accuracy.get() > 0.85  # 0.864 to 0.867 over seeds


def test_trump_approval_in_a_pipeline():
    model = preprocessing.StandardScaler() | BoundaryForestRegressor(seed=0)
    error = evaluate.progressive_val_score(datasets.TrumpApproval(), model, metrics.MAE())
    assert error.get() < 0.52  # 0.465 to 0.473 over seeds


def test_mini_batches_in_a_pipeline():
    X, y = load_digits(return_X_y=True, as_frame=True)
    model = preprocessing.StandardScaler() | BoundaryForestClassifier(n_estimators=20, seed=0)
    for begin in range(0, 1500, 300):
        model.learn_many(X[begin : begin + 300], y[begin : begin + 300])
    assert (model.predict_many(X[1500:]) == y[1500:]).mean() > 0.89  # 0.909 to 0.926 over seeds


# Without River


def test_without_river_the_packages_are_named():
    code = "import sys; sys.modules['river'] = None; import boundary_forest.river"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode != 0
    assert done.stderr.endswith(" needs River and pandas: pip install river pandas\n")


def test_features_that_keep_appearing_cost_few_copies_and_change_no_answer():
    """Each widening copies all stored rows; with room to spare a hundred features need a few."""
    rng = np.random.default_rng(0)
    late, early = BoundaryForestClassifier(5, seed=1), BoundaryForestClassifier(5, seed=1)
    names = [f"x{i:03d}" for i in range(100)]
    rows = [{name: float(rng.normal()) for name in names[: 1 + i // 3]} for i in range(300)]
    widths = set()
    for i, x in enumerate(rows):
        late.learn_one(x, i % 3)
        early.learn_one({**dict.fromkeys(names, 0.0), **x}, i % 3)
        widths.add(late._forest.columns.width)
    assert len(widths) < 30
    assert [late.predict_proba_one(x) for x in rows] == [early.predict_proba_one(x) for x in rows]


def test_a_feature_that_came_with_a_failing_call_is_forgotten():
    def metric(x, y):
        if len(x) > 1:
            raise ZeroDivisionError
        return float(abs(x - y).sum())

    model = BoundaryForestClassifier(2, metric=metric, seed=1)
    for i in range(5):
        model.learn_one({"a": float(i)}, i % 2)
    before = [model.predict_proba_one({"a": i + 0.25}) for i in range(5)]
    with pytest.raises(ValueError, match="metric raised ZeroDivisionError"):
        model.learn_one({"a": 1.0, "b": 2.0}, 0)
    assert [model.predict_proba_one({"a": i + 0.25}) for i in range(5)] == before
    model.learn_one({"a": 7.0}, 1)
    assert model.predict_one({"a": 7.0}) == 1


def test_importances_read_while_features_appear_are_those_of_the_forest():
    """They had come from foreign memory where a wider engine took the place of the one read."""
    models, wrong, n_read = [], [], 0

    def learn():
        for _ in range(6):
            model = BoundaryForestClassifier(n_estimators=4, seed=0)
            model.learn_one({"f0": 1.0}, 0)
            models.append(model)
            for k in range(1, 200):
                model.learn_one({f"f{k}": float(k)}, k % 2)

    learner = threading.Thread(target=learn)
    learner.start()
    while learner.is_alive():
        if models:
            shares = list(models[-1].feature_importances_.values())
            n_read += 1
            if min(shares) < 0 or not math.isclose(sum(shares), 1 if any(shares) else 0):
                wrong.append(shares)
    assert n_read > 50
    assert not wrong
