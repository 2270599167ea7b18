"""With shard_by="examples" each actor has a forest over a part of the stream."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster
from boundary_forest.ray.actor_group import PartialForest

pytestmark = pytest.mark.usefixtures("one_process")

X, Y = load_digits(return_X_y=True)
NAMES = np.array([f"digit {digit}" for digit in Y])


def sharded(kind="Classifier", n_actors=3, **params):
    return getattr(on_cluster, f"BoundaryForest{kind}")(
        random_state=0, shard_by="examples", n_actors=n_actors, num_cpus=0.1, **params
    )


def test_one_shard_answers_as_the_forest_of_one_process():
    spread = sharded(n_actors=1).fit(X[:1000], NAMES[:1000])
    local = boundary_forest.BoundaryForestClassifier(random_state=0).fit(X[:1000], NAMES[:1000])
    np.testing.assert_array_equal(spread.predict(X[1000:]), local.predict(X[1000:]))
    np.testing.assert_allclose(spread.predict_proba(X[900:]), local.predict_proba(X[900:]))
    spread = sharded("Regressor", 1).fit(X[:1000], Y[:1000])
    local = boundary_forest.BoundaryForestRegressor(random_state=0).fit(X[:1000], Y[:1000])
    np.testing.assert_allclose(spread.predict(X[900:]), local.predict(X[900:]))


def test_rows_that_are_infinitely_far_are_answered():
    far = X[:2] * 1e200
    shares = sharded().fit(X[:100], NAMES[:100]).predict_proba(far)
    np.testing.assert_allclose(shares.sum(axis=1), 1.0)
    assert np.isfinite(sharded("Regressor").fit(X[:100], Y[:100]).predict(far)).all()


def test_what_shards_cannot_tell_is_refused():
    forest = sharded().fit(X[:100], NAMES[:100])
    for ask in (forest.apply, lambda rows: forest.explain(rows[0])):
        with pytest.raises(NotImplementedError, match="its own trees"):
            ask(X[:1])


def test_shards_answer_from_the_first_example_on_and_well():
    forest = sharded().partial_fit(X[:1], NAMES[:1])
    assert forest.predict(X[5:7]).tolist() == [NAMES[0]] * 2
    for begin in range(1, 1500, 101):
        rows = slice(begin, min(begin + 101, 1500))
        forest.partial_fit(X[rows], NAMES[rows])
    assert forest.examples_seen == 1500
    assert forest.score(X[1500:], NAMES[1500:]) > 0.9  # 0.93 was seen
    np.testing.assert_allclose(forest.predict_proba(X[1500:]).sum(axis=1), 1)
    assert (forest.predict(X[:1500]) == NAMES[:1500]).mean() > 0.99
    assert len(forest.fingerprint()) == 32
    targets = np.stack([Y, -Y], axis=1)
    assert sharded("Regressor").fit(X[:1500], targets[:1500]).score(X[1500:], targets[1500:]) > 0.7


@pytest.mark.parametrize(
    "params",
    [
        {"offline": True},
        {"weights": "auto"},
        {"forgetting": "auto"},
        {"max_stored": 500},
        {"feature_weights": "learned"},
        {"checkpoint_dir": "somewhere"},
    ],
)
def test_what_needs_all_examples_in_one_place_is_refused(params):
    with pytest.raises(ValueError, match="shard_by='trees'"):
        sharded(**params).fit(X[:50], Y[:50])


def test_methods_that_need_it_are_refused(tmp_path):
    forest = sharded().fit(X[:100], Y[:100])
    with pytest.raises(NotImplementedError, match="partial_fit"):
        forest.predict_then_learn(X[:5], Y[:5])
    with pytest.raises(NotImplementedError, match="shard_by='trees'"):
        forest.save(tmp_path / "model.bf")


def test_shards_that_have_parted_predict_nothing(monkeypatch):
    forest = sharded().fit(X[:100], NAMES[:100])

    def fails(self, *arguments):
        raise MemoryError

    monkeypatch.setattr(PartialForest, "learn_share", fails)
    with pytest.raises(MemoryError):
        forest.partial_fit(X[100:110], NAMES[100:110])
    for ask in (
        lambda: forest.predict(X[:9]),
        lambda: forest.predict_proba(X[:9]),
        lambda: forest.kneighbors(X[:9], 3),
        forest.stats,
        forest.fingerprint,
    ):
        with pytest.raises(on_cluster.ForestLostError, match="start a new forest"):
            ask()
