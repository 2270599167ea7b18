"""The fingerprint tells apart whatever gives other answers, and nothing else."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)
from boundary_forest.estimators.copying import put_together, taken_apart

rng = np.random.default_rng(1)
X = rng.integers(-3, 4, size=(60, 3)).astype(np.float64)
Y = rng.integers(0, 3, size=60)
SMALL = {"n_estimators": 4, "max_children": 4, "random_state": 0}


def classifier(**params):
    return BoundaryForestClassifier(**{**SMALL, **params}).fit(X, Y)


def regressor(**params):
    return BoundaryForestRegressor(**{**SMALL, "epsilon": 0.0, **params}).fit(X, Y + 0.5)


def general(**params):
    return BoundaryForest(**{**SMALL, **params}).fit(X, Y + 0.5)


def gap(x, y):
    return float(np.abs(x - y).sum())


def taxi(x, y):
    return float(np.abs(x - y).sum())


DIFFERENT = {
    "n_estimators": lambda: (classifier(), classifier(n_estimators=5)),
    "max_children": lambda: (classifier(max_children=50), classifier(max_children=49)),
    "unlimited children": lambda: (classifier(max_children=50), classifier(max_children=None)),
    "metric": lambda: (classifier(), classifier(metric="manhattan")),
    "p": lambda: tuple(
        classifier(metric="minkowski", metric_params={"p": p}) for p in (2.0, 2.0000001)
    ),
    "a function of another name": lambda: (classifier(metric=gap), classifier(metric=taxi)),
    "epsilon": lambda: (regressor(), regressor(epsilon=1e-300)),
    "epsilon auto": lambda: (regressor(), regressor(epsilon="auto")),
    "label metric": lambda: (general(), general(label_metric="manhattan")),
    "E": lambda: (general(), general(estimator="nearest")),
    "a callable E": lambda: (
        general(estimator="nearest"),
        general(estimator=lambda y, nodes: nodes[0].label),
    ),
    "seed": lambda: (classifier(), classifier(random_state=1)),
    "dtype": lambda: (classifier(), classifier(dtype="float32")),
    "the task": lambda: (regressor(), general()),
    "more seen, none of it stored": lambda: (
        classifier(),
        classifier().partial_fit(X[:1], Y[:1]),
    ),
    "names of classes": lambda: (
        classifier(),
        BoundaryForestClassifier(**SMALL).fit(X, np.array(["a", "b", "c"])[Y]),
    ),
    "kinds of classes": lambda: (
        classifier(),
        BoundaryForestClassifier(**SMALL).fit(X, Y.astype(str)),
    ),
    "classes exchanged": lambda: (
        classifier(),
        BoundaryForestClassifier(**SMALL).fit(X, np.array([1, 0, 2])[Y]),
    ),
}


@pytest.mark.parametrize("make", DIFFERENT.values(), ids=DIFFERENT.keys())
def test_it_tells_apart_what_was_given(make):
    one, other = make()
    assert one.fingerprint() != other.fingerprint()


def with_state(forest, change):
    """The forest whose engine has this state instead."""
    state = forest.fitted.engine.snapshot().state()
    for name, value in state.items():
        state[name] = value.copy() if isinstance(value, np.ndarray) else value
    change(state)
    forest.fitted = put_together(forest.label_policy, taken_apart(forest.fitted, state))
    return forest


def one_position_bit(state):
    row = state["positions"][-1].view(np.uint64)
    row[-1] ^= 1


def one_label(state):
    state["labels"][5] = state["labels"][5] + 1e-12


def one_class(state):
    state["labels"][5] = (state["labels"][5] + 1) % 3


def one_arrival(state):
    state["arrivals"][-1] += 1
    state["seen"] += 1


def one_parent(state):
    """The last node of the first tree under another that has room and came before."""
    size = int(state["tree_sizes"][0])
    parents = state["node_parents"][:size]
    counts = np.bincount(parents[1:].astype(int), minlength=size)
    free = [v for v in range(size - 1) if counts[v] < 4 and v != parents[-1]]
    parents[-1] = free[0]


def two_trees(state):
    """The first two trees change places."""
    a, b = state["tree_sizes"][:2].astype(int)
    for name in ("node_examples", "node_parents"):
        nodes = state[name]
        state[name] = np.concatenate([nodes[a : a + b], nodes[:a], nodes[a + b :]])
    state["tree_sizes"][:2] = b, a


CHANGES = {
    "one position bit": (classifier, one_position_bit),
    "one label": (regressor, one_label),
    "one class": (classifier, one_class),
    "one arrival": (classifier, one_arrival),
    "one parent": (classifier, one_parent),
    "two trees": (classifier, two_trees),
}


@pytest.mark.parametrize(("make", "change"), CHANGES.values(), ids=CHANGES.keys())
def test_it_tells_apart_what_was_learned(make, change):
    assert with_state(make(), lambda state: None).fingerprint() == make().fingerprint()
    assert with_state(make(), change).fingerprint() != make().fingerprint()


def test_two_examples_that_exchange_their_labels_are_told_apart():
    def exchange(state):
        i, j = 0, int(np.flatnonzero(state["labels"][:, 0] != state["labels"][0, 0])[0])
        state["labels"][[i, j]] = state["labels"][[j, i]]

    assert with_state(classifier(), exchange).fingerprint() != classifier().fingerprint()


def test_before_there_are_trees_examples_count_too():
    one, other = (BoundaryForestNeighbors(random_state=0).fit(X[:3] + i) for i in (0, 1))
    assert one.fingerprint() != other.fingerprint()
    assert one.fingerprint() == BoundaryForestNeighbors(random_state=0).fit(X[:3]).fingerprint()


def test_minus_zero_is_zero():
    positive = BoundaryForestNeighbors(**SMALL).fit(np.abs(X))
    negative = BoundaryForestNeighbors(**SMALL).fit(np.where(X == 0, -0.0, np.abs(X)))
    assert (X == 0).any()
    assert positive.fingerprint() == negative.fingerprint()


@pytest.mark.parametrize("cuts", [[1], [7, 8, 30], list(range(1, 60))])
def test_neither_batches_nor_threads_matter(cuts):
    forest = BoundaryForestClassifier(**SMALL, n_jobs=2)
    for rows in np.split(np.arange(60), cuts):
        forest.partial_fit(X[rows], Y[rows])
    assert forest.fingerprint() == classifier(shuffle=False).fingerprint()


def test_neither_ids_nor_feature_names_nor_codes_of_classes_matter():
    import pandas as pd

    in_order = {**SMALL, "shuffle": False}
    ids = BoundaryForestClassifier(**in_order).fit(X, Y, ids=np.arange(60))
    names = BoundaryForestClassifier(**in_order).fit(pd.DataFrame(X, columns=["a", "b", "c"]), Y)
    coded = BoundaryForestClassifier(**SMALL).partial_fit(X, Y, classes=[9, 2, 1, 0])
    plain = classifier(shuffle=False)
    assert {one.fingerprint() for one in (ids, names, coded)} == {plain.fingerprint()}


def test_integers_and_floats_of_the_same_value_are_the_same_parameter():
    assert regressor(epsilon=1).fingerprint() == regressor(epsilon=1.0).fingerprint()
    assert classifier(max_children=np.int64(4)).fingerprint() == classifier().fingerprint()


def test_settings_alone_do_not_tell_of_ids():
    fitted = BoundaryForestClassifier(**SMALL).fit(X, Y, ids=np.arange(60)).fitted
    assert replace(fitted.settings, ids="none") == classifier().fitted.settings
