"""A class leaves with its last example: a label may be as personal as the row that had it."""

from __future__ import annotations

import io
import pickle
import threading

import joblib
import numpy as np
import pytest

from boundary_forest import BoundaryForestClassifier, load
from boundary_forest.durable import open_durable

SECRET = "the secret label"
N = 120
KINDS = {
    "the paper's forest": {"n_estimators": 5},
    "before there are trees": {"n_estimators": 2 * N},
    "a window": {"n_estimators": 5, "feature_weights": "learned", "max_samples": 0.5},
    "lifetimes": {"n_estimators": 6, "forgetting": [None, 16, 60], "weights": "auto"},
}


def rows(n=N, seed=0):
    X = np.random.default_rng(seed).normal(size=(n, 4))
    return X, np.where(X[:, 0] > 0, "left", "right").astype(object)


def taught(kind="the paper's forest", **options):
    """Return a forest with one example of the secret label, whose id is 100."""
    X, y = rows()
    y[100] = SECRET
    forest = BoundaryForestClassifier(random_state=1, **KINDS[kind])
    return forest.partial_fit(X, y, ids=np.arange(N), **options)


def contents(forest, path):
    forest.save(path)
    dumped = io.BytesIO()
    joblib.dump(forest, dumped)
    return path.read_bytes() + pickle.dumps(forest) + dumped.getvalue()


def holds(content):
    return any(SECRET.encode(code) in content for code in ("utf-8", "utf-32-le", "utf-16-le"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fixed_width", [False, True])
def test_no_file_and_no_copy_has_the_name(kind, fixed_width, tmp_path):
    forest = taught(kind)
    if fixed_width:
        X, y = rows()
        y[100] = SECRET
        forest.fit(X, y.astype(str), ids=np.arange(N))
    assert holds(contents(forest, tmp_path / "before.bf"))
    forest.forget([100])
    assert forest.classes_.tolist() == ["left", "right"]
    assert forest.classes_.dtype == ("<U5" if fixed_width else object)
    assert not holds(contents(forest, tmp_path / "after.bf"))
    for other in (load(tmp_path / "after.bf"), pickle.loads(pickle.dumps(forest))):
        assert other.classes_.tolist() == ["left", "right"]
        assert other.fingerprint() == forest.fingerprint()


def test_a_class_stays_as_long_as_it_has_an_example():
    X, _ = rows(1, seed=7)
    forest = taught().partial_fit(X, [SECRET], ids=[500])
    assert SECRET in forest.forget([100]).classes_
    assert SECRET not in forest.forget([500]).classes_


def test_declared_classes_stay_for_good(tmp_path):
    X, y = rows(1, seed=7)
    later = taught().partial_fit(X, y, classes=[SECRET, "never seen"], ids=[500])
    for forest in (taught(classes=[SECRET, "never seen"]), later):
        forest.save(tmp_path / "model.bf")
        for one in (forest, load(tmp_path / "model.bf")):
            one.forget([100])
            assert one.classes_.tolist() == ["left", "never seen", "right", SECRET]
            assert (one.predict_proba(X)[:, [1, 3]] == 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_answers_have_the_columns_of_the_living_classes(kind, tmp_path):
    forest = taught(kind).forget([100])
    X, _ = rows()
    forest.save(tmp_path / "model.bf")
    for one in (forest, load(tmp_path / "model.bf")):
        shares = one.predict_proba(X)
        assert shares.shape == (N, 2)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (one.classes_[shares.argmax(axis=1)] == one.predict(X)).all()
        assert one.explain(X[0]).answer == one.predict(X[:1])[0]
        # New classes and one that comes again get codes of their own.
        new = one.predict_proba_then_learn(X[:3] + 9, ["new", SECRET, "new"], ids=[500, 501, 502])
        assert one.classes_.tolist() == ["left", "new", "right", SECRET]
        assert new.shape == (3, 4)
        np.testing.assert_allclose(new.sum(axis=1), 1)
        assert one.predict_then_learn(X[:1], ["left"], ids=[503])[0] in one.classes_
    assert forest.fingerprint() == one.fingerprint()
    assert one.forget([501]).classes_.tolist() == ["left", "new", "right"]


def test_equal_forests_are_equal_whatever_codes_their_classes_have():
    """The fingerprint is of examples, so neither codes nor classes without examples matter."""
    X, y = rows()
    forgotten = taught().forget([100])
    declared = taught(classes=["zzz", "right", SECRET, "left"]).forget([100])
    assert forgotten.fingerprint() == declared.fingerprint()
    assert forgotten.classes_.tolist() != declared.classes_.tolist()
    for one in (forgotten, declared):
        one.partial_fit(X + 1, y, ids=np.arange(N) + 1000)
    assert forgotten.fingerprint() == declared.fingerprint()


@pytest.mark.parametrize("ids", [[100, 9999], range(N)], ids=["unknown", "all"])
def test_a_call_that_fails_keeps_the_class(ids):
    forest = taught()
    before = forest.fingerprint()
    with pytest.raises((KeyError, ValueError)):
        forest.forget(ids)
    assert SECRET in forest.classes_
    assert forest.fingerprint() == before


def test_a_folder_has_nothing_of_the_name_and_learns_on_as_before(tmp_path):
    X, y = rows(30, seed=3)
    y[:10] = "new"
    y[10:20] = SECRET
    folder = tmp_path / "folder"
    with open_durable(folder, BoundaryForestClassifier(n_estimators=5, random_state=1)) as durable:
        first = taught()
        secret = rows()
        secret[1][100] = SECRET
        durable.partial_fit(*secret, ids=np.arange(N))
        durable.forget([100])
        assert not holds(b"".join(path.read_bytes() for path in folder.iterdir()))
        assert durable.classes_.tolist() == ["left", "right"]
        durable.partial_fit(X, y, ids=np.arange(500, 530))  # in the journal alone
        expected = first.forget([100]).partial_fit(X, y, ids=np.arange(500, 530))
        assert durable.fingerprint() == expected.fingerprint()
    with open_durable(folder) as durable:
        assert durable.fingerprint() == expected.fingerprint()
        assert durable.classes_.tolist() == expected.classes_.tolist()
        np.testing.assert_array_equal(durable.predict_proba(X), expected.predict_proba(X))
        codes = [f.fitted.engine.snapshot().state()["labels"] for f in (durable, expected)]
        np.testing.assert_array_equal(*codes)


def test_queries_that_began_before_still_name_the_class():
    X, _ = rows()
    forest = taught()
    fitted = forest.fitted
    _, ends = forest.predict_then_learn(X[100:101], ["left"], ids=[500], return_ends=True)
    codes = fitted.predicted(X[100:101], 1)
    forest.forget([100])
    assert (ends.labels == SECRET).any()
    assert fitted.labels.answers(codes).tolist() == [SECRET]
    # And what they meet of classes that came since has a name too.
    forest.partial_fit(X[:1] + 50, ["new"], ids=[501])
    assert fitted.labels.answers(fitted.predicted(X[:1] + 50, 1)).tolist() == ["new"]


def test_queries_beside_forgetting_name_living_classes():
    X, _ = rows()
    forest, failures, done = taught(), [], threading.Event()

    def ask():
        try:
            while not done.is_set():
                shares = forest.predict_proba(X[95:105])
                np.testing.assert_allclose(shares.sum(axis=1), 1)
                forest.explain(X[100])
                assert None not in forest.predict(X[95:105])
        except BaseException as error:
            failures.append(error)

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    for i in range(60):
        forest.partial_fit(X[100:101] + 0.01, [f"person {i}"], ids=[1000 + i])
        forest.forget([1000 + i])
    done.set()
    for reader in readers:
        reader.join()
    assert not failures, failures[0]
    assert forest.classes_.tolist() == ["left", "right", SECRET]
