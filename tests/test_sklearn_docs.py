"""Every public docstring's examples run, and every public estimator and module has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil

import pytest

import boundary_forest

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(boundary_forest.__path__, "boundary_forest.")
    if not module.name.endswith(("_core", "__main__"))
)
PUBLIC = [
    getattr(boundary_forest, name)
    for name in boundary_forest.__all__
    if inspect.isclass(getattr(boundary_forest, name))
]
OPTIONAL = {"river", "pandas", "typer", "rich", "pyarrow", "matplotlib", "plotly"}


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
    ours = [base for base in estimator.__mro__ if base.__module__.startswith("boundary_forest")]
    names = {name for base in ours for name in vars(base) if not name.startswith("_")}
    for name in sorted(names):
        member = inspect.getattr_static(estimator, name)
        if not inspect.isfunction(member):
            continue
        text = inspect.getdoc(member)
        assert text, name
        for parameter in list(inspect.signature(member).parameters)[1:]:
            assert f"{parameter} :" in text, (name, parameter)
