"""An index that is searched as a graph is sharded by examples."""

from __future__ import annotations

import numpy as np
import pytest

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster
from boundary_forest.ray.actor_group import PartialForest

pytestmark = pytest.mark.usefixtures("one_process")

X = np.random.default_rng(0).normal(size=(2000, 12)).astype(np.float32)
QUERIES = X[1900:]


def index(**params):
    return on_cluster.BoundaryForestNeighbors(
        n_estimators=10, random_state=0, search="graph", n_actors=3, num_cpus=0.1, **params
    )


def local_index():
    return boundary_forest.BoundaryForestNeighbors(n_estimators=10, random_state=0)


def test_exact_answers_are_those_of_one_process_and_others_nearly_so():
    spread, local = index(), local_index()
    for begin in range(0, 1900, 77):
        rows = X[begin : min(begin + 77, 1900)]
        spread.partial_fit(rows)
        local.partial_fit(rows)
    for mine, others in zip(
        spread.kneighbors(QUERIES, 10, exact=True),
        local.kneighbors(QUERIES, 10, exact=True),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, others)
    found = spread.kneighbors(QUERIES, 10, return_distance=False)
    true = local.kneighbors(QUERIES, 10, return_distance=False, exact=True)
    recall = np.mean([len(set(a) & set(b)) / 10 for a, b in zip(found, true, strict=True)])
    assert recall > 0.97  # 1.0 was seen
    assert spread.stats()["examples_stored"] == spread.examples_seen == 1900


def test_save_learns_the_index_of_one_process(tmp_path):
    spread = index().fit(X[:500], ids=np.arange(500))
    spread.save(tmp_path / "index.bf")
    loaded = boundary_forest.load(tmp_path / "index.bf")
    assert loaded.fingerprint() == local_index().fit(X[:500], ids=np.arange(500)).fingerprint()
    again = on_cluster.BoundaryForestNeighbors.from_local(loaded, n_actors=2, num_cpus=0.1)
    np.testing.assert_array_equal(
        again.kneighbors(QUERIES, 3, exact=True)[1], loaded.kneighbors(QUERIES, 3, exact=True)[1]
    )


def test_ids_are_unique_over_shards_and_can_be_forgotten():
    spread = index().fit(X[:300], ids=[f"row {i}" for i in range(300)])
    with pytest.raises(ValueError, match="row 7"):
        spread.partial_fit(X[:1], ids=["row 7"])
    with pytest.raises(KeyError, match="row 999"):
        spread.forget(["row 7", "row 999"])
    spread.forget(["row 7", "row 11"])
    assert spread.kneighbors(X[7:8], 1, return_distance=False)[0, 0] != "row 7"
    spread.partial_fit(X[7:8], ids=["row 7"])
    assert spread.kneighbors(X[7:8], 1, return_distance=False)[0, 0] == "row 7"


def test_what_is_forgotten_is_known_no_more():
    spread = index().fit(X[:30], ids=[f"r{i}" for i in range(30)])
    spread.forget(["r0"])
    with pytest.raises(KeyError, match="r0"):
        spread.forget(["r0"])
    spread.partial_fit(X[30:32], ids=["z", "r0"])  # in another shard now
    spread.forget(["r0", "r3"])
    found = spread.kneighbors(X[[0, 3, 31]], 5, return_distance=False)
    assert not {"r0", "r3"} & set(found.ravel().tolist())
    found = spread.kneighbors(X[:1], 2, allowed=["r0", "r3", "r4", "r5"], return_distance=False)
    assert set(found.ravel().tolist()) == {"r4", "r5"}


def test_a_function_as_a_filter_is_refused():
    spread = index().fit(X[:30])
    with pytest.raises(NotImplementedError, match="not available on a cluster: pass ids or a bool"):
        spread.kneighbors(X[:1], 2, allowed=lambda name: True)


def test_from_local_brings_nothing_back_that_was_forgotten():
    local = local_index().fit(X[:300], ids=np.arange(300))
    local.forget([7])
    local.upsert(X[500:501], [8])
    spread = on_cluster.BoundaryForestNeighbors.from_local(local, n_actors=2, num_cpus=0.1)
    found = spread.kneighbors(X[[7, 8]], 1)
    assert (found[0] > 0).all()
    assert spread.stats()["examples_stored"] == 299


def test_shards_that_failed_to_learn_together_learn_no_more(monkeypatch):
    spread = index().fit(X[:30])
    fail_once(monkeypatch, "learn_share")
    with pytest.raises(MemoryError):
        spread.partial_fit(X[30:40])
    with pytest.raises(on_cluster.ForestLostError, match="start a new forest"):
        spread.partial_fit(X[30:40])
    assert spread.fit(X[:30]).kneighbors(X[:1], 1)[1] == [[0]]


QUESTIONS = {
    "kneighbors": lambda index: index.kneighbors(QUERIES, 3),
    "exact": lambda index: index.kneighbors(QUERIES, 3, exact=True),
    "its own neighbors": lambda index: index.kneighbors(n_neighbors=2),
    "a mask": lambda index: index.kneighbors(QUERIES, 3, allowed=np.ones(30, dtype=bool)),
    "allowed ids": lambda index: index.kneighbors(QUERIES, 1, allowed=np.arange(20)),
    "radius_neighbors": lambda index: index.radius_neighbors(QUERIES, 1.0),
    "a mask in a radius": lambda index: index.radius_neighbors(
        QUERIES, 1.0, allowed=np.ones(30, dtype=bool)
    ),
    "kneighbors_graph": lambda index: index.kneighbors_graph(QUERIES, 3),
    "its own graph": lambda index: index.kneighbors_graph(n_neighbors=2),
    "transform": lambda index: index.transform(QUERIES),
    "stats": lambda index: index.stats(),
    "fingerprint": lambda index: index.fingerprint(),
    "to_local": lambda index: index.to_local(),
    "forget": lambda index: index.forget([0]),
}


def test_shards_that_have_parted_answer_nothing(monkeypatch):
    spread = index(n_neighbors=2).fit(X[:30], ids=np.arange(30))
    fail_once(monkeypatch, "learn_share")
    with pytest.raises(MemoryError):
        spread.partial_fit(X[30:40], ids=np.arange(30, 40))
    answered = []
    for name, ask in QUESTIONS.items():
        try:
            ask(spread)
            answered.append(name)
        except on_cluster.ForestLostError:
            pass
    assert not answered


def fail_once(monkeypatch, method):
    """The second part that is asked for it fails, once."""
    work, calls = getattr(PartialForest, method), []

    def fails(self, *arguments):
        calls.append(self)
        if len(calls) == 2:
            raise MemoryError("of one actor")
        return work(self, *arguments)

    monkeypatch.setattr(PartialForest, method, fails)


def test_few_examples_filters_and_radii():
    spread, local = index().fit(X[:2]), local_index().fit(X[:2])
    np.testing.assert_array_equal(spread.kneighbors(QUERIES, 2)[1], local.kneighbors(QUERIES, 2)[1])
    with pytest.raises(ValueError, match=r"2 \(the examples stored\), got 3"):
        spread.kneighbors(QUERIES, 3)
    for forest in (spread, local):
        forest.partial_fit(X[2:900])
    mask = np.arange(900) % 4 == 1
    options = {"allowed": mask, "exact": True}
    np.testing.assert_array_equal(
        spread.kneighbors(QUERIES, 5, **options)[1], local.kneighbors(QUERIES, 5, **options)[1]
    )
    for mine, others in zip(
        spread.radius_neighbors(QUERIES, 3.0, exact=True)[1],
        local.radius_neighbors(QUERIES, 3.0, exact=True)[1],
        strict=True,
    ):
        np.testing.assert_array_equal(mine, others)


@pytest.mark.parametrize("params", [{"offline": True}, {"checkpoint_dir": "somewhere"}])
def test_what_shards_cannot_do_is_refused(params):
    with pytest.raises(ValueError, match="search='paper'"):
        index(**params).fit(X[:50])
    with pytest.raises(NotImplementedError, match="partial_fit"):
        index().fit(X[:50], ids=range(50)).upsert(X[:1], [3])
