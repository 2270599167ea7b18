"""A forest on a cluster becomes one file or one pickle, and comes from a local one."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster

pytestmark = pytest.mark.usefixtures("one_process")

X, Y = load_digits(return_X_y=True)


def spread_classifier(**params):
    return on_cluster.BoundaryForestClassifier(
        n_estimators=8, random_state=0, n_actors=2, num_cpus=0.1, **params
    )


def test_save_gathers_one_file_that_goes_on_locally_and_back_on_actors(tmp_path):
    params = {"feature_weights": "learned", "weights": "auto", "forgetting": "auto"}
    spread = spread_classifier(**params).partial_fit(X[:700], Y[:700], ids=np.arange(700))
    spread.save(tmp_path / "model.bf")
    local = boundary_forest.load(tmp_path / "model.bf")
    assert type(local) is boundary_forest.BoundaryForestClassifier
    assert local.fingerprint() == spread.fingerprint()
    again = on_cluster.BoundaryForestClassifier.from_local(local, n_actors=3, num_cpus=0.1)
    assert again.fingerprint() == spread.fingerprint()
    for forest in (local, spread, again):
        forest.partial_fit(X[700:], Y[700:], ids=np.arange(700, len(X)))
    assert local.fingerprint() == spread.fingerprint() == again.fingerprint()
    assert again.stats()["comparisons"] == local.stats()["comparisons"]


def test_a_forest_that_awaits_its_first_examples_moves_too():
    spread = spread_classifier().partial_fit(X[:5], Y[:5])
    local = spread.to_local()
    again = on_cluster.BoundaryForestClassifier.from_local(local, n_actors=2, num_cpus=0.1)
    for forest in (spread, local, again):
        forest.partial_fit(X[5:50], Y[5:50])
    assert local.fingerprint() == spread.fingerprint() == again.fingerprint()


def test_forests_that_were_one_learn_on_apart():
    spread = spread_classifier().partial_fit(X[:100], Y[:100])
    local = spread.to_local()
    again = on_cluster.BoundaryForestClassifier.from_local(local, n_actors=2, num_cpus=0.1)
    lone = boundary_forest.BoundaryForestClassifier(n_estimators=8, random_state=0)
    lone.partial_fit(X[:100], Y[:100])
    for number, forest in enumerate((local, again, spread)):
        forest.partial_fit(X[100:103], [50 + number, 40 + number, 30 + number])
    lone.partial_fit(X[100:103], [52, 42, 32])
    assert spread.fingerprint() == lone.fingerprint()
    assert spread.classes_.tolist() == lone.classes_.tolist()
    assert local.classes_.tolist()[-3:] == [30, 40, 50]
    assert again.classes_.tolist()[-3:] == [31, 41, 51]


def test_pickles_and_clones():
    spread = spread_classifier().partial_fit(X[:100], Y[:100])
    assert pickle.loads(pickle.dumps(spread)).fingerprint() == spread.fingerprint()
    assert clone(spread).get_params() == spread.get_params()
    assert clone(spread).examples_seen == 0


@pytest.mark.parametrize(
    ("params", "what"),
    [
        ({"n_actors": 9}, "n_actors must be at most .* got 9"),
        ({"n_actors": 0}, "n_actors"),
        ({"num_cpus": -1}, "num_cpus"),
        ({"metric": lambda x, y: 0.0}, "metric"),
        (
            {"feature_weights": "learned", "forgetting": [10, 10, 10, 10, None, None, None, None]},
            "n_actors",
        ),
    ],
)
def test_what_cannot_be_done_is_refused(params, what):
    forest = spread_classifier().set_params(**params)
    with pytest.raises(ValueError, match=what):
        forest.fit(X[:20], Y[:20])


def test_only_the_estimator_of_the_same_name_is_spread_out():
    with pytest.raises(TypeError, match="BoundaryForestRegressor"):
        on_cluster.BoundaryForestClassifier.from_local(boundary_forest.BoundaryForestRegressor())
