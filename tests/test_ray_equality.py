"""On a cluster the forest and every answer are those of the estimator in one process."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster

X, Y = load_digits(return_X_y=True)
X = X.astype(np.uint8)
QUERIES = X[1700:]


def both(kind, n_actors, **params):
    name = f"BoundaryForest{kind}"
    params = {"random_state": 3, "n_estimators": 16, **params}
    on_actors = getattr(on_cluster, name)(n_actors=n_actors, num_cpus=0.1, **params)
    return getattr(boundary_forest, name)(**params), on_actors


def taught_and_asked(forest, y, sizes=(1, 7, 20, 100, 300, 900)):
    """Learn in batches and ask in between; return all answers."""
    said, begin = [], 0
    for n in sizes:
        forest.partial_fit(X[begin : begin + n], y[begin : begin + n])
        begin += n
        if hasattr(forest, "predict"):
            said.append(forest.predict(QUERIES))
            rows = slice(begin, begin + 5)
            answers, ends = forest.predict_then_learn(X[rows], y[rows], return_ends=True)
            said += [answers, ends.arrivals, ends.distances, ends.weights, ends.vectors]
            begin += 5
        if hasattr(forest, "predict_proba"):
            said.append(forest.predict_proba(QUERIES))
            rows = slice(begin, begin + 3)
            said.append(forest.predict_proba_then_learn(X[rows], y[rows]))
            begin += 3
        said.append(forest.apply(QUERIES))
        for n_neighbors in (1, 3):
            if forest.examples_seen >= 8:
                said += forest.kneighbors(QUERIES, n_neighbors)
    return said


def check_same(local, spread, y):
    for mine, others in zip(taught_and_asked(spread, y), taught_and_asked(local, y), strict=True):
        np.testing.assert_array_equal(mine, others)
    assert spread.fingerprint() == local.fingerprint()
    told, expected = spread.stats(), local.stats()
    for name in expected.keys() - {"bytes", "evaluations"}:
        assert told[name] == expected[name], name


TARGETS = np.stack([Y, Y**2], axis=1).astype(np.float64)

CASES = {
    "the paper's classifier": ("Classifier", Y, {}),
    "the paper's regressor": ("Regressor", Y.astype(np.float64), {}),
    "retrieval": ("Neighbors", Y, {"search": "paper"}),
    "samples, given weights, equal votes": (
        "Classifier",
        Y,
        {"max_samples": 0.3, "feature_weights": np.linspace(0.5, 2, 64), "weights": "uniform"},
    ),
    "votes that are chosen": ("Regressor", TARGETS, {"weights": "auto", "max_samples": 0.5}),
    "a bound on what is stored": ("Classifier", Y, {"max_stored": 300}),
    "learned weights": ("Classifier", Y, {"feature_weights": "learned", "weights": "auto"}),
    "trees that come and go": (
        "Classifier",
        Y,
        {"feature_weights": "learned", "weights": "auto", "forgetting": "auto", "max_samples": 0.4},
    ),
    "trees that come and go within a bound": (
        "Regressor",
        Y.astype(np.float64),
        {
            "feature_weights": "learned",
            "weights": "auto",
            "forgetting": [20, 200, None],
            "max_stored": 200,
        },
    ),
}


@pytest.mark.parametrize("n_actors", [1, 5])
@pytest.mark.parametrize("case", CASES)
def test_parts_of_the_trees_make_up_the_forest_of_one_process(case, n_actors, one_process):
    kind, y, params = CASES[case]
    check_same(*both(kind, n_actors, **params), y)


@pytest.mark.xdist_group("ray")
@pytest.mark.usefixtures("ray_cluster")
def test_actors_make_up_the_forest_of_one_process():
    kind, y, params = CASES["trees that come and go within a bound"]
    check_same(*both(kind, 2, **params), y)


def test_offline_and_then_online(one_process):
    for params in ({}, {"max_stored": 200}):
        local, spread = both("Classifier", 2, offline=True, **params)
        for forest in (local, spread):
            forest.fit(X[:600], Y[:600]).partial_fit(X[600:900], Y[600:900])
        assert spread.fingerprint() == local.fingerprint()


def test_ids_explanations_and_graphs(one_process):
    names = [f"row {i}" for i in range(400)]
    local, spread = both("Classifier", 2)
    for forest in (local, spread):
        forest.partial_fit(X[:400], Y[:400], ids=names)
    assert spread.explain(X[1000]).to_dict() == local.explain(X[1000]).to_dict()
    np.testing.assert_array_equal(
        spread.kneighbors(QUERIES, 30)[1], local.kneighbors(QUERIES, 30)[1]
    )
    for mine, others in zip(spread.trees(), local.trees(), strict=True):
        np.testing.assert_array_equal(mine, others)
    with pytest.raises(ValueError, match="row 7"):
        spread.partial_fit(X[:1], Y[:1], ids=["row 7"])


def test_searches_are_filtered_and_radius_neighbors_are_found(one_process):
    local, spread = both("Neighbors", 2, search="paper")
    for forest in (local, spread):
        forest.fit(X[:500])
    mask = np.arange(500) % 3 == 0
    for options in ({"allowed": mask}, {"exact": True}, {}):
        for n in (1, 4):
            for mine, others in zip(
                spread.kneighbors(QUERIES, n, **options),
                local.kneighbors(QUERIES, n, **options),
                strict=True,
            ):
                np.testing.assert_array_equal(mine, others)
        for mine, others in zip(
            spread.radius_neighbors(QUERIES, 30.0, **options),
            local.radius_neighbors(QUERIES, 30.0, **options),
            strict=True,
        ):
            for one, other in zip(mine, others, strict=True):
                np.testing.assert_array_equal(one, other)
    assert (spread.transform(QUERIES) != local.transform(QUERIES)).nnz == 0
    with pytest.raises(ValueError, match=r"500 \(the examples stored\), got 501"):
        spread.kneighbors(QUERIES, 501)
    assert spread.fingerprint() == local.fingerprint()
