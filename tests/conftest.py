"""What the tests share: a small task for each estimator, what can be asked of it, real data."""

from __future__ import annotations

import re
import signal
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

# A shell's background jobs ignore Ctrl-C, and so would the processes that tests send it to.
ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
if ignored and threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)

# What tests need that only a clone has. Where the wheel is tested, outside one, they are skipped.
ROOT = Path(__file__).parents[1]
CLONE_ONLY = {
    ".ci": {"test_building"},
    "benchmarks": {"test_ann_benchmarks", "test_benchmarks", "test_recall_plot", "test_runbook"},
    "docs": {
        *("test_contributing", "test_figures", "test_page_commands", "test_pages"),
        "test_ray_pages",
    },
    "examples": {"test_ray_serve", "test_serve_examples"},
    "paper": {path.stem for path in Path(__file__).parent.glob("paper/test_*.py")},
}


class SkippedModule(pytest.Module):
    """A module of tests that has nothing to test here."""

    def collect(self) -> Any:
        pytest.skip("needs a clone")


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> Any:
    """Skip the modules whose folders are not there."""
    absent = {folder for folder in CLONE_ONLY if not (ROOT / folder).exists()}
    if any(module_path.stem in CLONE_ONLY[folder] for folder in absent):
        return SkippedModule.from_parent(parent, path=module_path)
    return None


QUERY_METHODS = ("apply", "kneighbors", "predict", "predict_proba")
FITTED_ATTRIBUTES = ("classes_", "feature_names_in_", "n_features_in_", "seed_")


@dataclass(frozen=True)
class Task:
    """An estimator, examples on a small grid to teach it, in two parts, and queries to ask."""

    estimator: type
    X: np.ndarray
    y: np.ndarray
    X_more: np.ndarray
    y_more: np.ndarray
    queries: np.ndarray

    def forest(self, **params: Any) -> Any:
        return self.estimator(**{"n_estimators": 5, "random_state": 0, **params})

    def taught(self, **params: Any) -> Any:
        return self.forest(**params).fit(self.X, self.y)

    @property
    def query_methods(self) -> list[str]:
        return [name for name in QUERY_METHODS if hasattr(self.estimator, name)]


def make_task(name: str) -> Task:
    rng = np.random.default_rng(3)
    X = rng.integers(0, 20, size=(90, 4)).astype(np.float64)
    estimator, y = {
        "classifier": (BoundaryForestClassifier, rng.integers(0, 3, size=90)),
        "regressor": (BoundaryForestRegressor, X.sum(axis=1)),
        "neighbors": (BoundaryForestNeighbors, None),
    }[name]
    y = np.zeros(90) if y is None else y
    return Task(estimator, X[:40], y[:40], X[40:80], y[40:80], X[70:90])


@pytest.fixture(params=["classifier", "regressor", "neighbors"])
def task(request) -> Task:
    return make_task(request.param)


@pytest.fixture
def classification() -> Task:
    return make_task("classifier")


@pytest.fixture
def regression() -> Task:
    return make_task("regressor")


@pytest.fixture
def retrieval() -> Task:
    return make_task("neighbors")


def ask(forest: Any, method: str, X: Any) -> list[Any]:
    """One query call's answer, in a form that compares with ==."""
    if method == "kneighbors":
        return [part.tolist() for part in forest.kneighbors(X, 3)]
    return getattr(forest, method)(X).tolist()


def answers(forest: Any, X: Any) -> dict[str, list[Any]]:
    """All that can be asked of a forest."""
    return {name: ask(forest, name, X) for name in QUERY_METHODS if hasattr(forest, name)}


def state(forest: Any, queries: Any) -> dict[str, Any]:
    """All that a user can see of a forest, fitted or not."""
    seen = {name: getattr(forest, name, None) for name in FITTED_ATTRIBUTES}
    seen = {name: np.asarray(value).tolist() for name, value in seen.items()}
    try:
        return {**seen, "fingerprint": forest.fingerprint(), **answers(forest, queries)}
    except NotFittedError:
        return {**seen, "fingerprint": "not fitted"}


@contextmanager
def unchanged(forest: Any, queries: Any):
    """Whatever happens inside, the forest is afterwards as it was before."""
    before = state(forest, queries)
    yield
    assert state(forest, queries) == before


# Bad input is refused with one of these, and the message names the parameter.
REFUSED = (ValueError, TypeError)


def names(parameter: str) -> str:
    return rf"\b{re.escape(parameter)}\b"


@dataclass(frozen=True)
class Stage:
    method: str
    fitted: bool

    def forest(self, task: Any, **params: Any) -> Any:
        return task.taught(**params) if self.fitted else task.forest(**params)

    def learn(self, forest: Any, X: Any, y: Any) -> Any:
        return getattr(forest, self.method)(X, y)


STAGES = {
    "fit": Stage("fit", fitted=False),
    "fit again": Stage("fit", fitted=True),
    "first partial_fit": Stage("partial_fit", fitted=False),
    "later partial_fit": Stage("partial_fit", fitted=True),
}


@pytest.fixture(params=STAGES)
def stage(request) -> Stage:
    return STAGES[request.param]


@pytest.fixture(scope="session")
def real_data():
    """real_data(name): a data set that this machine has; skips where it has not."""
    datasets = pytest.importorskip("paper.datasets", reason="paper/ is in a clone alone")

    def load(name: str) -> Any:
        try:
            return datasets.load(name, download=False)
        except datasets.DataAbsentError as absence:
            pytest.skip(str(absence).partition(" To get it:")[0])

    return load


@pytest.fixture(scope="session")
def ray_cluster():
    """Ray on this machine, for all tests of a session; skips where it is not installed."""
    ray = pytest.importorskip("ray")
    ray.init(
        num_cpus=2,
        include_dashboard=False,
        object_store_memory=256 << 20,
        log_to_driver=False,
        _node_ip_address="127.0.0.1",
    )
    yield ray
    ray.shutdown()


@pytest.fixture
def one_process(monkeypatch):
    """Forests on a cluster have their parts in this process."""
    pytest.importorskip("ray")
    from ray_in_one_process import OneProcess

    monkeypatch.setattr("boundary_forest.ray.lockstep.ActorGroup", OneProcess)
    monkeypatch.setattr("boundary_forest.ray.shards.ActorGroup", OneProcess)
    monkeypatch.setattr(OneProcess, "mortality", 0.0)
    return OneProcess


@pytest.fixture
def told(monkeypatch, capsys):
    """told("stream", ...): the exit code, and what was said on stdout and on stderr."""

    from boundary_forest.cli import main

    def run(*arguments):
        monkeypatch.setattr("sys.argv", ["boundary-forest", *map(str, arguments)])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return run
