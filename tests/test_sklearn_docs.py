"""Every public docstring's examples run, and every public estimator and module has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import boundary_forest
from boundary_forest.estimators.explanation import Explanation

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(boundary_forest.__path__, "boundary_forest.")
    if not module.name.endswith(("_core", "__main__"))
)
PUBLIC = [
    getattr(boundary_forest, name)
    for name in boundary_forest.__all__
    if name.startswith("BoundaryForest")
]
RIVER = ["BoundaryForestClassifier", "BoundaryForestEngine", "BoundaryForestRegressor"]
OPTIONAL = {"river", "ray", "pandas", "typer", "rich", "pyarrow", "matplotlib"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(name):
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name in OPTIONAL:
            pytest.skip(f"{error.name} is not installed")
        raise
    failed, _ = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert failed == 0


@pytest.mark.parametrize("estimator", PUBLIC)
def test_every_estimator_shows_how_good_it_is(estimator):
    (shown,) = doctest.DocTestFinder(recurse=False).find(estimator)
    judged = [one for one in shown.examples if " > " in one.source or " < " in one.source]
    assert "True\n" in [one.want for one in judged]


@pytest.mark.parametrize("estimator", PUBLIC)
def test_every_public_method_is_documented_with_its_parameters(estimator):
    for name, member in public_methods(estimator).items():
        text = inspect.getdoc(member)
        assert text, name
        for parameter in list(inspect.signature(member).parameters)[1:]:
            assert f"{parameter} :" in text, (name, parameter)


@pytest.mark.parametrize("described", [*PUBLIC, Explanation])
def test_every_public_method_has_an_example(described):
    assert public_methods(described)
    assert without_example(described) == []


@pytest.mark.parametrize("name", RIVER)
def test_every_public_method_for_river_has_an_example(name):
    pytest.importorskip("river", reason="river is not installed")
    river = importlib.import_module("boundary_forest.river")
    assert sorted(river.__all__) == RIVER
    described = getattr(river, name)
    assert public_methods(described)
    assert without_example(described) == []


def public_methods(described):
    """The class's own public methods and those it has from our classes, by name."""
    ours = [base for base in described.__mro__ if base.__module__.startswith("boundary_forest")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    members = {name: inspect.getattr_static(described, name) for name in sorted(names)}
    return {name: member for name, member in members.items() if inspect.isfunction(member)}


def without_example(described):
    parser = doctest.DocTestParser()
    return [
        name
        for name, member in public_methods(described).items()
        if not any(one.want for one in parser.get_examples(inspect.getdoc(member) or ""))
    ]
