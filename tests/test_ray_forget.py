"""Examples are forgotten on a cluster as in one process, and leave its folder."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster
from boundary_forest.ray.actor_group import ActorLostError, PartialForest

X, Y = load_digits(return_X_y=True)
KINDS = {
    "the paper's forest": {},
    "all that is decided": {
        "feature_weights": "learned",
        "weights": "auto",
        "forgetting": "auto",
        "max_samples": 0.5,
    },
    "a bound": {"max_stored": 200},
}


def names(begin, end):
    return [f"row {i}" for i in range(begin, end)]


def both(kind, **cluster):
    params = {"n_estimators": 12, "random_state": 1, **KINDS[kind]}
    return (
        boundary_forest.BoundaryForestClassifier(**params),
        on_cluster.BoundaryForestClassifier(n_actors=3, num_cpus=0.1, **cluster, **params),
    )


def learn(forest, begin, end):
    forest.partial_fit(X[begin:end], Y[begin:end], ids=names(begin, end))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_folder", [False, True])
def test_a_forest_forgets_as_in_one_process(kind, with_folder, tmp_path, one_process):
    cluster = {"checkpoint_dir": tmp_path, "checkpoint_rows": 300} if with_folder else {}
    forests = both(kind, **cluster)
    rng = np.random.default_rng(0)
    for begin in (0, 8, 500, 1000):  # the first before there are trees
        end = {0: 8, 8: 500, 500: 1000, 1000: 1500}[begin]
        for forest in forests:
            learn(forest, begin, end)
        stored = set(forests[0].kneighbors(X[:end], 1, return_distance=False).ravel().tolist())
        gone = rng.choice(sorted(stored), size=len(stored) // 4, replace=False).tolist()
        for forest in forests:
            forest.forget(gone)
        local, spread = forests
        assert spread.fingerprint() == local.fingerprint()
        np.testing.assert_array_equal(spread.apply(X[1500:]), local.apply(X[1500:]))
        with pytest.raises(KeyError, match="nothing was removed"):
            spread.forget([gone[0]])
    if with_folder:
        spread.close()
        spread = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, num_cpus=0.1)
        assert spread.fingerprint() == local.fingerprint()
    spread.close()


def test_the_folder_has_nothing_of_what_is_forgotten(tmp_path, one_process):
    _, spread = both("the paper's forest", checkpoint_dir=tmp_path)
    secret = np.full((1, 64), 123.456)
    learn(spread, 0, 300)
    spread.partial_fit(secret, [9], ids=["the secret row"])

    def holds():
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        return secret.tobytes() in content or b"the secret row" in content

    assert holds()
    spread.forget(["the secret row"])
    assert not holds()
    learn(spread, 300, 400)
    spread.close()


def test_nothing_is_left_of_an_actor_that_died_while_it_wrote(tmp_path, one_process, monkeypatch):
    _, spread = both("the paper's forest", checkpoint_dir=tmp_path)
    learn(spread, 0, 300)
    write, n_calls = PartialForest.save, iter(range(100))

    def dies_at_first(self, path, identity):
        if next(n_calls) > 0:
            return write(self, path, identity)
        (tmp_path / ".saving-0123456789abcdef.tmp").write_bytes(b"row 7")
        raise ActorLostError([0])

    monkeypatch.setattr(PartialForest, "save", dies_at_first)
    spread.save_checkpoint()
    gone = spread.kneighbors(X[:1], 1, return_distance=False)[0].tolist()
    spread.forget(gone)
    assert not list(tmp_path.glob(".saving-*"))
    spread.close()


def test_forget_fails_if_an_older_file_cannot_be_removed(tmp_path, one_process, monkeypatch):
    _, spread = both("the paper's forest", checkpoint_dir=tmp_path)
    learn(spread, 0, 300)
    spread.save_checkpoint()

    def fails(path, missing_ok=False):
        raise PermissionError(f"{path} may not be removed")

    with monkeypatch.context() as patch:
        patch.setattr("pathlib.Path.unlink", fails)
        with pytest.raises(PermissionError, match="part-"):
            spread.forget(spread.kneighbors(X[:1], 1, return_distance=False)[0].tolist())
    spread.close()
    again = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, n_actors=3, num_cpus=0.1)
    assert len(list(tmp_path.glob("part-*"))) == 3
    again.close()


def test_a_folder_that_cannot_be_written_has_not_forgotten(tmp_path, one_process, monkeypatch):
    _, spread = both("the paper's forest", checkpoint_dir=tmp_path)
    learn(spread, 0, 300)
    before = spread.fingerprint()

    def fails(*arguments):
        raise OSError("no space left")

    with monkeypatch.context() as patch:
        patch.setattr("boundary_forest.ray.checkpoint.write_model", fails)
        with pytest.raises(OSError, match="no space"):
            spread.forget(names(0, 10))
    with pytest.raises(on_cluster.ForestLostError, match="from_checkpoint"):
        learn(spread, 300, 400)
    spread.close()
    again = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, n_actors=3, num_cpus=0.1)
    assert again.fingerprint() == before
    again.forget(names(0, 2))
    again.close()


@pytest.mark.parametrize("shard_by", ["trees", "examples"])
def test_a_class_without_an_example_leaves(shard_by, tmp_path, one_process):
    folder = {"checkpoint_dir": tmp_path} if shard_by == "trees" else {}
    local, spread = both("the paper's forest", shard_by=shard_by, **folder)
    labels = np.array([f"digit {digit}" for digit in Y[:300]], dtype=object)
    labels[100] = "the secret label"
    for forest in (local, spread):
        forest.partial_fit(X[:300], labels, ids=names(0, 300)).forget(["row 100"])
        forest.partial_fit(X[300:302], ["new", "digit 0"], ids=names(300, 302))
    assert spread.classes_.tolist() == local.classes_.tolist()
    assert "the secret label" not in spread.classes_
    shares = spread.predict_proba(X[:400])
    np.testing.assert_allclose(shares.sum(axis=1), 1)
    assert (spread.classes_[shares.argmax(axis=1)] == spread.predict(X[:400])).all()
    if shard_by == "trees":
        np.testing.assert_array_equal(shares, local.predict_proba(X[:400]))
        content = b"".join(path.read_bytes() for path in tmp_path.iterdir() if path.is_file())
        assert b"the secret label" not in content
        spread.close()
        spread = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, num_cpus=0.1)
        assert spread.fingerprint() == local.fingerprint()
        np.testing.assert_array_equal(spread.predict_proba(X[:400]), shares)
    spread.close()
