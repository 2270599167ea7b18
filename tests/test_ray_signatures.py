"""Estimators on a cluster have the parameters and the docstrings of the local ones, and more."""

from __future__ import annotations

import inspect
import pydoc
import re

import pytest
from sklearn.base import clone

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster

CLUSTER = ["n_actors", "num_cpus", "resources", "checkpoint_dir", "checkpoint_rows"]
ADDED = {"Classifier": [*CLUSTER, "shard_by"], "Regressor": [*CLUSTER, "shard_by"]}
ADDED["Neighbors"] = CLUSTER
each_kind = pytest.mark.parametrize("kind", ADDED)


def classes(kind):
    name = f"BoundaryForest{kind}"
    return getattr(boundary_forest, name), getattr(on_cluster, name)


def documented(kind):
    """Return the text of each entry of a docstring's parameters."""
    section = inspect.cleandoc(kind.__doc__).partition("Parameters\n----------\n")[2]
    lines, entries = re.split(r"\n\n(?=\w+\n-)", section)[0].splitlines(), {}
    for line in filter(None, lines):
        if not line.startswith(" "):
            name = line.partition(" :")[0]
        entries[name] = [*entries.get(name, []), line.strip()]
    return entries


@each_kind
def test_the_signature_is_the_local_one_and_what_the_cluster_adds(kind):
    local, spread = (inspect.signature(one).parameters for one in classes(kind))
    assert list(spread) == [*local, *ADDED[kind]]
    differing = {name for name in local if spread[name] != local[name]}
    assert differing == ({"search"} if kind == "Neighbors" else set())
    assert classes(kind)[1]().get_params() == {name: p.default for name, p in spread.items()}


@each_kind
def test_the_docstring_describes_every_parameter(kind):
    local, spread = classes(kind)
    entries = documented(spread)
    assert list(entries) == list(inspect.signature(spread).parameters)
    for name, text in documented(local).items():
        assert entries[name] == text or name == "search"
    for section in ("Attributes", "Notes", "Examples"):
        assert spread.__doc__.count(f"\n{section}\n{'-' * len(section)}\n") == 1
    assert "on a Ray cluster" in pydoc.render_doc(spread)


@each_kind
def test_parameters_are_set_copied_and_refused_as_those_of_any_estimator(kind):
    _, spread = classes(kind)
    forest = spread(n_estimators=7, n_actors=3, checkpoint_rows=5)
    assert clone(forest).get_params() == forest.get_params()
    assert forest.set_params(num_cpus=2).num_cpus == 2
    assert "n_actors=3" in repr(forest)
    with pytest.raises(TypeError, match="n_actor"):
        spread(n_actor=3)


def test_neighbors_may_be_given_by_position_and_are_searched_for_by_the_papers_rule():
    index = on_cluster.BoundaryForestNeighbors(3)
    assert (index.n_neighbors, index.search) == (3, "paper")


def test_columns_that_are_not_numbers_are_refused_with_what_to_do():
    forest = on_cluster.BoundaryForestClassifier.for_tables()
    for X in ([["red"], ["blue"]], [[1.0], [float("nan")]]):
        with pytest.raises(ValueError, match="or learn in one process with columns='auto', which"):
            forest.fit(X, [0, 1])
