"""Nothing that was acknowledged is lost when actors die, or the driver does."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster
from boundary_forest.ray.actor_group import PartialForest

X, Y = load_digits(return_X_y=True)
X = X.astype(np.uint8)
NAMES = np.array([f"the digit {digit}" for digit in Y])

KINDS = {
    "the paper's forest": {},
    "votes that are chosen": {"weights": "auto", "max_samples": 0.5},
    "a bound": {"max_stored": 200},
    "learned weights, trees that come and go": {
        "feature_weights": "learned",
        "weights": "auto",
        "forgetting": "auto",
    },
}


def classifiers(folder, **params):
    params = {"n_estimators": 12, "random_state": 1, "shuffle": False, **params}
    local = boundary_forest.BoundaryForestClassifier(**params)
    spread = on_cluster.BoundaryForestClassifier(
        n_actors=3, num_cpus=0.1, checkpoint_dir=folder, checkpoint_rows=300, **params
    )
    return local, spread


def batches(begin=0, end=1500, n=70):
    return [slice(first, min(first + n, end)) for first in range(begin, end, n)]


@pytest.mark.parametrize("kind", KINDS)
def test_parts_that_die_at_random_moments_change_nothing(kind, tmp_path, one_process, monkeypatch):
    monkeypatch.setattr(one_process, "chances", random.Random(5))
    monkeypatch.setattr(one_process, "n_deaths", 0)
    local, spread = classifiers(tmp_path, **KINDS[kind])
    for number, rows in enumerate(batches()):
        # Where actors exchange, there are many more calls, and all are brought back by as many.
        exchanges = {"feature_weights", "max_stored"} & KINDS[kind].keys()
        monkeypatch.setattr(one_process, "mortality", 0.002 if exchanges else 0.02)
        if number % 3:
            said = spread.predict_then_learn(X[rows], NAMES[rows])
            np.testing.assert_array_equal(said, local.predict_then_learn(X[rows], NAMES[rows]))
        else:
            spread.partial_fit(X[rows], NAMES[rows])
            local.partial_fit(X[rows], NAMES[rows])
        np.testing.assert_array_equal(spread.predict(X[1700:]), local.predict(X[1700:]))
    monkeypatch.setattr(one_process, "mortality", 0.0)
    assert spread.fingerprint() == local.fingerprint()
    assert one_process.n_deaths >= 3
    spread.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n_actors", [None, 2])
def test_another_driver_goes_on(kind, n_actors, tmp_path, one_process):
    local, spread = classifiers(tmp_path, **KINDS[kind])
    for rows in batches(0, 800):
        spread.partial_fit(X[rows], NAMES[rows])
        local.partial_fit(X[rows], NAMES[rows])
    spread.close()
    other = on_cluster.BoundaryForestClassifier.from_checkpoint(
        tmp_path, n_actors=n_actors, num_cpus=0.1
    )
    assert other.fingerprint() == local.fingerprint()
    assert other.get_params()["checkpoint_dir"] == tmp_path
    for rows in batches(800, 1500):
        other.partial_fit(X[rows], NAMES[rows])
        local.partial_fit(X[rows], NAMES[rows])
    assert other.fingerprint() == local.fingerprint()
    np.testing.assert_array_equal(other.predict_proba(X[1700:]), local.predict_proba(X[1700:]))
    other.close()


def test_before_the_first_snapshot_the_journal_has_it_all(tmp_path, one_process):
    forest = on_cluster.BoundaryForestRegressor(n_actors=2, num_cpus=0.1, checkpoint_dir=tmp_path)
    forest.fit(X[:100], Y[:100])
    expected = forest.fingerprint()
    forest.close()
    other = on_cluster.BoundaryForestRegressor.from_checkpoint(tmp_path, n_actors=2, num_cpus=0.1)
    assert other.fingerprint() == expected
    other.close()


def test_a_local_forest_that_is_spread_out_is_on_the_disk_at_once(tmp_path, one_process):
    local = boundary_forest.BoundaryForestNeighbors(n_estimators=6, search="paper", random_state=0)
    local.fit(X[:300], ids=[f"row {i}" for i in range(300)])
    kind = on_cluster.BoundaryForestNeighbors
    kind.from_local(local, n_actors=2, num_cpus=0.1, checkpoint_dir=tmp_path).close()
    other = kind.from_checkpoint(tmp_path, num_cpus=0.1)
    assert other.fingerprint() == local.fingerprint()
    np.testing.assert_array_equal(other.kneighbors(X[400:410])[1], local.kneighbors(X[400:410])[1])
    other.close()


def test_actors_that_die_before_their_first_snapshot_are_not_begun_anew(
    tmp_path, one_process, monkeypatch
):
    local = boundary_forest.BoundaryForestClassifier(n_estimators=6).fit(X[:100], Y[:100])
    kind = on_cluster.BoundaryForestClassifier
    monkeypatch.setattr(one_process, "mortality", 1.0)
    with pytest.raises(on_cluster.ForestLostError, match="start again"):
        kind.from_local(local, n_actors=2, num_cpus=0.1, checkpoint_dir=tmp_path)
    monkeypatch.setattr(one_process, "mortality", 0.0)
    kind.from_local(local, n_actors=2, num_cpus=0.1, checkpoint_dir=tmp_path).close()


def test_a_snapshot_that_cannot_be_saved_is_put_off(tmp_path, one_process, monkeypatch):
    local, spread = classifiers(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("boundary_forest.ray.actor_group.write_part", _full_disk)
        with pytest.warns(RuntimeWarning, match="nothing is lost"):
            spread.partial_fit(X[:400], NAMES[:400])
    spread.partial_fit(X[400:410], NAMES[400:410])
    assert len(list(tmp_path.glob("part-*.bf"))) == 3
    assert spread.fingerprint() == local.fit(X[:410], NAMES[:410]).fingerprint()
    spread.close()


def _full_disk(path, state):
    raise OSError(28, "No space left on device", path)


@pytest.mark.parametrize("stale", [False, True])
def test_a_folder_that_nodes_do_not_share_keeps_its_journal(
    stale, tmp_path, one_process, monkeypatch
):
    elsewhere, save = tmp_path / "node", PartialForest.save
    elsewhere.mkdir()
    if stale:  # another forest's, under the same name
        classifiers(elsewhere)[1].partial_fit(X[:20], NAMES[:20]).close()
    local, spread = classifiers(tmp_path / "driver")

    def on_its_own_disk(part, path, identity):
        save(part, str(elsewhere / Path(path).name), identity)

    with monkeypatch.context() as patched:
        patched.setattr(PartialForest, "save", on_its_own_disk)
        for rows in batches(end=400, n=200):
            if rows.stop < 400:
                spread.partial_fit(X[rows], NAMES[rows])
                continue
            with pytest.warns(RuntimeWarning, match="not the same folder on all nodes"):
                spread.partial_fit(X[rows], NAMES[rows])
        with pytest.raises(OSError, match="a folder that all nodes share"):
            spread.save_checkpoint()
    assert not list(tmp_path.glob("*/part-*.bf"))
    spread.close()
    other = type(spread).from_checkpoint(tmp_path / "driver", n_actors=3, num_cpus=0.1)
    assert other.fingerprint() == local.fit(X[:400], NAMES[:400]).fingerprint()
    other.close()


def test_a_relative_folder_is_the_drivers_wherever_actors_run(tmp_path, one_process, monkeypatch):
    (tmp_path / "driver").mkdir()
    (tmp_path / "actor").mkdir()
    monkeypatch.chdir(tmp_path / "driver")
    save = PartialForest.save

    def in_another_folder(part, *arguments):
        with monkeypatch.context() as patched:
            patched.chdir(tmp_path / "actor")
            save(part, *arguments)

    monkeypatch.setattr(PartialForest, "save", in_another_folder)
    local, spread = classifiers("checkpoint")
    spread.partial_fit(X[:400], NAMES[:400])
    spread.close()
    assert len(list(tmp_path.glob("driver/checkpoint/part-*.bf"))) == 3
    other = type(spread).from_checkpoint("checkpoint", n_actors=3, num_cpus=0.1)
    assert other.fingerprint() == local.fit(X[:400], NAMES[:400]).fingerprint()
    other.close()


def test_without_a_checkpoint_the_call_raises(one_process, monkeypatch):
    forest = on_cluster.BoundaryForestClassifier(n_estimators=4, n_actors=2, num_cpus=0.1)
    forest.fit(X[:50], Y[:50])
    monkeypatch.setattr(one_process, "mortality", 1.0)
    with pytest.raises(on_cluster.ForestLostError, match="checkpoint_dir"):
        forest.partial_fit(X[50:60], Y[50:60])


def test_actors_that_always_die_end_the_call_and_lose_nothing(tmp_path, one_process, monkeypatch):
    local, spread = classifiers(tmp_path)
    spread.partial_fit(X[:50], NAMES[:50])
    monkeypatch.setattr(one_process, "mortality", 1.0)
    with pytest.raises(on_cluster.ForestLostError, match=r"actors died \d+ times"):
        spread.partial_fit(X[50:60], NAMES[50:60])
    monkeypatch.setattr(one_process, "mortality", 0.0)
    with pytest.raises(on_cluster.ForestLostError, match="from_checkpoint"):
        spread.partial_fit(X[50:60], NAMES[50:60])
    spread.close()
    other = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, n_actors=3, num_cpus=0.1)
    assert other.fingerprint() == local.fit(X[:60], NAMES[:60]).fingerprint()
    other.close()


def test_folders_are_refused_that_cannot_be_used(tmp_path, one_process):
    _, spread = classifiers(tmp_path)
    spread.partial_fit(X[:50], NAMES[:50])
    kind = on_cluster.BoundaryForestClassifier
    with pytest.raises(boundary_forest.JournalError):
        kind.from_checkpoint(tmp_path)
    with pytest.raises(TypeError, match="would discard"):
        spread.fit(X[:50], NAMES[:50])
    spread.close()
    with pytest.raises(boundary_forest.JournalError, match="from_checkpoint"):
        classifiers(tmp_path)[1].partial_fit(X[:50], NAMES[:50])
    with pytest.raises(boundary_forest.ModelFileError, match="BoundaryForestClassifier"):
        on_cluster.BoundaryForestRegressor.from_checkpoint(tmp_path)
    with pytest.raises(FileNotFoundError, match="no forest"):
        kind.from_checkpoint(tmp_path / "other")
    with pytest.raises(ValueError, match="offline"):
        classifiers(tmp_path / "more")[1].set_params(offline=True).fit(X[:50], Y[:50])


@pytest.mark.xdist_group("ray")
def test_actors_that_are_killed_come_back(tmp_path, ray_cluster):
    local, spread = classifiers(tmp_path)
    spread.set_params(n_actors=2)
    for number, rows in enumerate(batches(0, 450, 150)):
        if number == 1:
            ray_cluster.kill(spread.fitted.engine._group._actors[1])
        spread.partial_fit(X[rows], NAMES[rows])
        local.partial_fit(X[rows], NAMES[rows])
    assert spread.fingerprint() == local.fingerprint()
    spread.close()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("with_folder", [False, True])
def test_an_actor_that_fails_leaves_nothing_of_the_call(
    kind, with_folder, tmp_path, one_process, monkeypatch
):
    local, spread = classifiers(tmp_path if with_folder else None, **KINDS[kind])
    for forest in (local, spread):
        forest.partial_fit(X[:200], NAMES[:200])
    work, calls = PartialForest.learn, []

    def fails(self, *arguments):
        calls.append(self)
        if len(calls) == 3:
            raise MemoryError("of the last actor")
        return work(self, *arguments)

    with monkeypatch.context() as patch:
        patch.setattr(PartialForest, "learn", fails)
        with pytest.raises(MemoryError):
            spread.partial_fit(X[900:910], NAMES[900:910])
    if not with_folder:
        for call in (
            lambda: spread.partial_fit(X[200:210], NAMES[200:210]),
            lambda: spread.predict(X[:9]),
            lambda: spread.predict_proba(X[:9]),
            lambda: spread.kneighbors(X[:9], 3),
            lambda: spread.apply(X[:9]),
            lambda: spread.explain(X[0]),
            spread.stats,
            spread.trees,
            spread.fingerprint,
            spread.to_local,
        ):
            with pytest.raises(on_cluster.ForestLostError, match="start a new forest"):
                call()
        spread.fit(X[:200], NAMES[:200])
    for forest in (local, spread):
        forest.partial_fit(X[200:400], NAMES[200:400])
    assert spread.fingerprint() == local.fingerprint()
    spread.close()


def test_an_actor_that_dies_while_others_forget_does_not_remember(tmp_path, one_process):
    _, spread = classifiers(tmp_path)
    spread.partial_fit(X[:200], NAMES[:200], ids=np.arange(200))
    spread.save_checkpoint()
    before = spread.fingerprint()
    engine = spread.fitted.engine
    spread_out = engine._spread

    def dies(state):
        spread_out(state)
        engine._group._die(1)

    engine._spread = dies
    with pytest.raises(on_cluster.ForestLostError, match="forget again"):
        spread.forget([7])
    spread.close()
    again = on_cluster.BoundaryForestClassifier.from_checkpoint(tmp_path, num_cpus=0.1)
    assert again.fingerprint() == before
    again.close()
