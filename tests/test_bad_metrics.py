"""Metrics that fail, or return what is no distance: refused by name, and the call is taken back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import REFUSED, ask, names, state, unchanged

# scikit-learn tries whether NaN is an integer, and numpy says so before the error does.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")


class Metric:
    """The squared distance, until `fuse` calls have been made; then whatever `then` does."""

    def __init__(self, then: Any) -> None:
        self.then = then
        self.fuse: float = np.inf

    def __call__(self, x: np.ndarray, y: np.ndarray) -> Any:
        self.fuse -= 1
        return float(((x - y) ** 2).sum()) if self.fuse >= 0 else self.then(x, y)


def divide_by_zero(x: Any, y: Any) -> float:
    return 1 / 0


FAILURES = {
    "returns nan": lambda x, y: np.nan,
    "returns text": lambda x, y: "3",
    "returns None": lambda x, y: None,
    "returns an array": lambda x, y: x - y,
    "returns complex": lambda x, y: 1 + 1j,
    "returns an integer beyond floats": lambda x, y: 10**400,
    "raises": divide_by_zero,
    "takes one argument": lambda x: 0.0,
}


failures = pytest.mark.parametrize("then", FAILURES.values(), ids=FAILURES.keys())


@failures
def test_a_metric_that_fails_is_refused_by_name(task, then):
    metric = Metric(then)
    forest = task.taught(metric=metric)
    metric.fuse = 300
    with pytest.raises(REFUSED, match=names("metric")):
        forest.partial_fit(task.X_more, task.y_more)
    for method in task.query_methods:
        metric.fuse = 20
        with pytest.raises(REFUSED, match=names("metric")):
            ask(forest, method, task.queries)


@pytest.mark.parametrize("then", [lambda x, y: np.nan, divide_by_zero], ids=["nan", "raises"])
@pytest.mark.parametrize("fuse", [0, 100, 20_000])
def test_a_metric_that_fails_takes_the_whole_call_back(task, stage, then, fuse):
    metric = Metric(then)
    forest = stage.forest(task, metric=metric)
    before = state(forest, task.queries)
    metric.fuse = fuse
    X, y = np.tile(task.X_more, (30, 1)), np.tile(task.y_more, 30)
    with pytest.raises((*REFUSED, ZeroDivisionError)):
        stage.learn(forest, X, y)
    metric.fuse = np.inf
    assert state(forest, task.queries) == before


def test_a_failed_call_leaves_no_trace_in_what_is_learned_later(task):
    metric = Metric(divide_by_zero)
    forest = task.taught(metric=metric)
    metric.fuse = 300
    with pytest.raises((*REFUSED, ZeroDivisionError)):
        forest.partial_fit(task.X_more[::-1], task.y_more[::-1])
    metric.fuse = np.inf
    forest.partial_fit(task.X_more, task.y_more)
    other = task.taught(metric=Metric(divide_by_zero)).partial_fit(task.X_more, task.y_more)
    assert state(forest, task.queries) == state(other, task.queries)


def test_what_a_metric_raised_is_told(classification):
    forest = classification.forest(metric=divide_by_zero)
    with pytest.raises(REFUSED) as caught:
        forest.fit(classification.X, classification.y)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupt_inside_a_metric_stays_an_interrupt(task):
    def interrupted(x, y):
        raise KeyboardInterrupt

    metric = Metric(interrupted)
    forest = task.taught(metric=metric)
    before = state(forest, task.queries)
    metric.fuse = 300
    with pytest.raises(KeyboardInterrupt):
        forest.partial_fit(task.X_more, task.y_more)
    metric.fuse = np.inf
    assert state(forest, task.queries) == before


@pytest.mark.parametrize("name", ["classification", "regression"])
def test_a_negative_metric_serves_no_vote_and_no_mean(request, stage, name):
    task = request.getfixturevalue(name)
    metric = Metric(lambda x, y: -1.0)
    forest = stage.forest(task, metric=metric)
    before = state(forest, task.queries)
    metric.fuse = 100
    with pytest.raises(ValueError, match=names("metric")):
        stage.learn(forest, task.X_more, task.y_more)
    metric.fuse = np.inf
    assert state(forest, task.queries) == before


def test_a_negative_metric_serves_retrieval(retrieval):
    forest = retrieval.taught(metric=lambda x, y: -float(x @ y))
    distances, arrivals = forest.kneighbors(retrieval.queries, 40)
    products = -(retrieval.queries @ retrieval.X.T)
    assert distances.tolist() == np.sort(products).tolist()
    assert np.take_along_axis(products, arrivals, axis=1).tolist() == distances.tolist()


def test_a_compiled_metric_that_returns_nan_takes_the_whole_call_back(task):
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(CPointer(float64), CPointer(float64), int64)")
    def nan_beyond_100(x, y, n):
        return np.nan if x[0] > 100 or y[0] > 100 else abs(x[0] - y[0])

    forest = task.taught(metric=nan_beyond_100)
    X = task.X_more.copy()
    X[-1, 0] = 101
    with unchanged(forest, task.queries), pytest.raises(ValueError, match=names("metric")):
        forest.partial_fit(X, task.y_more)
    with unchanged(forest, task.queries), pytest.raises(ValueError, match=names("metric")):
        forest.apply(X)


@pytest.mark.parametrize(
    ("signature", "function"),
    [
        ("float64(float64, float64)", lambda x, y: 0),
        ("float64(CPointer(float64), CPointer(float64))", lambda x, y: 0),
        ("float64(CPointer(float32), CPointer(float32), int64)", lambda x, y, n: 0),
        ("int64(CPointer(float64), CPointer(float64), int64)", lambda x, y, n: 0),
    ],
)
def test_a_compiled_metric_of_another_signature_is_refused(classification, signature, function):
    """Called all the same it would read what is not there, and might end the process."""
    numba = pytest.importorskip("numba")
    forest = classification.forest(metric=numba.cfunc(signature)(function))
    with pytest.raises(REFUSED, match=names("metric")):
        forest.fit(classification.X, classification.y)


def test_a_compiled_metric_takes_no_metric_params(classification):
    numba = pytest.importorskip("numba")

    @numba.cfunc("float64(CPointer(float64), CPointer(float64), int64)")
    def compiled(x, y, n):
        return abs(x[0] - y[0])

    forest = classification.forest(metric=compiled, metric_params={"w": 1})
    with pytest.raises(REFUSED, match=names("metric_params")):
        forest.fit(classification.X, classification.y)


@pytest.mark.parametrize("reenter", ["fit", "partial_fit", "apply", "kneighbors"])
def test_a_metric_that_calls_its_own_forest_is_refused(task, reenter):
    def call_back(x, y):
        arguments = (task.X, task.y) if "fit" in reenter else (task.X,)
        return getattr(forest, reenter)(*arguments)

    metric = Metric(call_back)
    forest = task.taught(metric=metric)
    before = state(forest, task.queries)
    for learn in (forest.partial_fit, forest.fit, lambda X, y: forest.apply(X)):
        metric.fuse = 100
        with pytest.raises((RuntimeError, *REFUSED), match=names("metric")):
            learn(task.X_more, task.y_more)
    metric.fuse = np.inf
    assert state(forest, task.queries) == before
