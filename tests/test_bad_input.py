"""Bad input works or raises a ValueError or TypeError that names the parameter; it never teaches.

After an error the forest is exactly as before, fitted or not: a batch with one bad row teaches
nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from conftest import REFUSED, STAGES, answers, ask, names, state, unchanged
from sklearn.exceptions import NotFittedError

from boundary_forest import BoundaryForestNeighbors

# scikit-learn tries whether NaN is an integer, and numpy says so before the error does.
pytestmark = pytest.mark.filterwarnings("ignore:invalid value encountered in cast")


# --- X --------------------------------------------------------------------------------------------


def with_last_value(X: np.ndarray, value: Any, dtype: Any = None) -> np.ndarray:
    X = X.astype(dtype or X.dtype)
    X[-1, 1] = value
    return X


BAD_X = {
    "nan": lambda X: with_last_value(X, np.nan),
    "nan in float32": lambda X: with_last_value(X, np.nan, np.float32),
    "infinity": lambda X: with_last_value(X, np.inf),
    "minus infinity": lambda X: with_last_value(X, -np.inf),
    "no rows": lambda X: X[:0],
    "no features": lambda X: X[:, :0],
    "an empty list": lambda X: [],
    "one row as a vector": lambda X: X[0],
    "three dimensions": lambda X: X[:, :, None],
    "a number": lambda X: 3.0,
    "None": lambda X: None,
    "ragged": lambda X: [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0]],
    "objects that are sequences": lambda X: with_last_value(X, [1, 2], object),
    "objects with None": lambda X: with_last_value(X, None, object),
    "objects with text": lambda X: with_last_value(X, "three", object),
    "text": lambda X: np.full(X.shape, "three"),
    "text of numbers": lambda X: X.astype(str),
    "bytes": lambda X: np.full(X.shape, b"three"),
    "complex": lambda X: X + 1j,
    "datetime64": lambda X: X.astype("datetime64[s]"),
    "timedelta64": lambda X: X.astype("timedelta64[s]"),
    "records": lambda X: np.zeros(len(X), dtype=[("a", int), ("b", float)]),
    "int64 beyond 2**53": lambda X: with_last_value(X, 2**53 + 1, np.int64),
    "int64 below -2**53": lambda X: with_last_value(X, -(2**53) - 1, np.int64),
    "uint64 beyond 2**53": lambda X: with_last_value(X, 2**64 - 1, np.uint64),
    "objects beyond 2**53": lambda X: with_last_value(X.astype(int), 2**53 + 1, object),
    "long doubles beyond float64": lambda X: with_last_value(X, "1e400", np.longdouble),
}
bad_X = pytest.mark.parametrize("spoil", BAD_X.values(), ids=BAD_X.keys())


@bad_X
def test_bad_X_is_refused_and_teaches_nothing(task, spoil):
    for stage in STAGES.values():
        forest = stage.forest(task)
        with unchanged(forest, task.queries), pytest.raises(REFUSED):
            stage.learn(forest, spoil(task.X_more), task.y_more)


@bad_X
def test_bad_queries_are_refused(task, spoil):
    forest = task.taught()
    for method in task.query_methods:
        X = spoil(task.queries)
        if X is None and isinstance(forest, BoundaryForestNeighbors) and method == "kneighbors":
            continue  # the stored examples
        with unchanged(forest, task.queries), pytest.raises(REFUSED):
            ask(forest, method, X)


@bad_X
def test_the_error_for_bad_X_names_X(classification, spoil):
    forest = classification.taught()
    with pytest.raises(REFUSED, match=names("X")):
        forest.partial_fit(spoil(classification.X_more), classification.y_more)
    with pytest.raises(REFUSED, match=names("X")):
        forest.predict(spoil(classification.queries))


@pytest.mark.parametrize("columns", [slice(0, 3), [0, 1, 2, 3, 3]], ids=["fewer", "more"])
def test_another_number_of_features_is_refused(task, columns):
    forest = task.taught()
    with unchanged(forest, task.queries), pytest.raises(REFUSED, match=names("X")):
        forest.partial_fit(task.X_more[:, columns], task.y_more)
    for method in task.query_methods:
        with pytest.raises(REFUSED, match=names("X")):
            ask(forest, method, task.queries[:, columns])


def test_fit_may_change_the_number_of_features(task):
    forest = task.taught().fit(task.X[:, :2], task.y)
    assert forest.n_features_in_ == 2
    assert len(forest.apply(task.queries[:, :2])) == len(task.queries)


def test_one_bad_row_far_down_a_long_batch_teaches_nothing(task):
    forest = task.taught()
    X, y = np.tile(task.X_more, (80, 1)), np.tile(task.y_more, 80)
    with unchanged(forest, task.queries), pytest.raises(ValueError, match=names("X")):
        forest.partial_fit(with_last_value(X, np.nan), y)
    forest.partial_fit(task.X_more, task.y_more)
    assert forest.fingerprint() == (
        task.taught().partial_fit(task.X_more, task.y_more).fingerprint()
    )


# --- Arrays that look odd but hold the same numbers -----------------------------------------------


def strided(X: np.ndarray) -> np.ndarray:
    wide = np.zeros((2 * len(X), 3 * X.shape[1]), dtype=X.dtype)
    wide[::2, ::3] = X
    return wide[::2, ::3]


def reversed_twice(X: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(X[::-1, ::-1])[::-1, ::-1]


def read_only(X: np.ndarray) -> np.ndarray:
    X = X.copy()
    X.setflags(write=False)
    return X


def byte_swapped(X: np.ndarray) -> np.ndarray:
    return X.astype(X.dtype.newbyteorder())


def unaligned(X: np.ndarray) -> np.ndarray:
    raw = np.zeros(X.nbytes + 1, dtype=np.uint8)
    raw[1:] = np.frombuffer(X.tobytes(), dtype=np.uint8)
    return raw[1:].view(X.dtype).reshape(X.shape)


LAYOUTS = {
    "strided": strided,
    "reversed": reversed_twice,
    "Fortran": np.asfortranarray,
    "read-only": read_only,
    "byte-swapped": byte_swapped,
    "unaligned": unaligned,
    "data frame": pd.DataFrame,
}
layouts = pytest.mark.parametrize("lay_out", LAYOUTS.values(), ids=LAYOUTS.keys())


@layouts
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int64", "float16", "float32", "float64"])
def test_layout_of_memory_changes_nothing(task, lay_out, dtype):
    X, X_more = task.X.astype(dtype), task.X_more.astype(dtype)
    plain = task.forest().fit(X, task.y).partial_fit(X_more, task.y_more)
    forest = task.forest().fit(lay_out(X), task.y).partial_fit(lay_out(X_more), task.y_more)
    assert forest.fingerprint() == plain.fingerprint()
    queries = task.queries.astype(dtype)
    assert answers(forest, lay_out(queries)) == answers(plain, queries)


@pytest.mark.parametrize("as_given", [lambda X: X.tolist(), lambda X: X.astype(object)])
def test_lists_and_objects_of_numbers_work_as_float64(task, as_given):
    forest = task.forest().fit(as_given(task.X), task.y)
    assert state(forest, as_given(task.queries)) == state(task.taught(), task.queries)


@pytest.mark.parametrize("lay_out", [strided, read_only, byte_swapped, np.ndarray.tolist])
def test_layout_of_y_changes_nothing(task, lay_out):
    y = task.y if lay_out is not strided else task.y[:, None]
    y = lay_out(y)[:, 0] if lay_out is strided else lay_out(y)
    assert task.forest().fit(task.X, y).fingerprint() == task.taught().fingerprint()


def test_learning_and_asking_leave_the_callers_arrays_alone(task):
    X, y, queries = task.X.copy(), task.y.copy(), task.queries.copy()
    answers(task.forest().fit(X, y).partial_fit(X, y), queries)
    assert [X.tolist(), y.tolist(), queries.tolist()] == [
        task.X.tolist(),
        task.y.tolist(),
        task.queries.tolist(),
    ]


# --- Values that the stored type cannot hold ------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "later"),
    [
        ("uint8", np.float64(0.5)),
        ("uint8", np.int64(256)),
        ("uint8", np.int64(-1)),
        ("uint8", np.int64(2**40)),
        ("float32", np.float64(0.1)),
        ("float32", np.float64(1e300)),
        ("float32", np.int64(2**24 + 1)),
        pytest.param(
            "float64",
            np.longdouble(1) / 3,
            marks=pytest.mark.skipif(
                np.finfo(np.longdouble).nmant == 52, reason="long double is float64 here"
            ),
        ),
    ],
)
def test_a_later_batch_that_would_lose_precision_is_a_type_error_naming_dtype(task, stored, later):
    forest = task.forest().fit(task.X.astype(stored), task.y)
    X = with_last_value(task.X_more, later, later.dtype)
    with unchanged(forest, task.queries), pytest.raises(TypeError, match="dtype="):
        forest.partial_fit(X, task.y_more)


@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_a_first_batch_that_dtype_cannot_hold_is_refused(task, method):
    forest = task.forest(dtype="uint8")
    with unchanged(forest, task.queries), pytest.raises(TypeError, match="dtype"):
        getattr(forest, method)(task.X + 0.5, task.y)


# --- y --------------------------------------------------------------------------------------------

BAD_LENGTHS = {
    "shorter": lambda y: y[:-1],
    "longer": lambda y: np.append(y, y[:1]),
    "empty": lambda y: y[:0],
}
BAD_TARGETS = {
    "nan": lambda y: np.append(y[:-1].astype(float), np.nan),
    "infinity": lambda y: np.append(y[:-1].astype(float), np.inf),
    "None": lambda y: None,
    "objects with None": lambda y: np.append(y[:-1], [None]),
    "a number": lambda y: 3,
    "complex": lambda y: y + 1j,
    "ragged": lambda y: [[1, 2]] + [[3]] * (len(y) - 1),
    "three dimensions": lambda y: y[:, None, None],
}
BAD_CLASSES = {
    **BAD_TARGETS,
    "two columns": lambda y: np.stack([y, y], axis=1),
    "fractions": lambda y: y + 0.5,
    "text and numbers": lambda y: np.append(y[:-1].astype(object), ["three"]),
}
BAD_REAL_TARGETS = {
    **BAD_TARGETS,
    "text": lambda y: np.full(len(y), "three"),
    "text among numbers": lambda y: np.append(y[:-1].astype(object), ["three"]),
    "no outputs": lambda y: np.zeros((len(y), 0)),
    "datetime64": lambda y: y.astype("datetime64[s]"),
}
BAD_Y = [
    pytest.param(name, spoil, id=f"{name}-{case}")
    for name, cases in [("classification", BAD_CLASSES), ("regression", BAD_REAL_TARGETS)]
    for case, spoil in {**BAD_LENGTHS, **cases}.items()
]
bad_y = pytest.mark.parametrize(("name", "spoil"), BAD_Y)


@bad_y
def test_bad_y_is_refused_and_teaches_nothing(request, stage, name, spoil):
    task = request.getfixturevalue(name)
    forest = stage.forest(task)
    with unchanged(forest, task.queries), pytest.raises(REFUSED):
        stage.learn(forest, task.X_more, spoil(task.y_more))


@bad_y
def test_the_error_for_bad_y_names_y(request, name, spoil):
    task = request.getfixturevalue(name)
    with pytest.raises(REFUSED, match=names("y")):
        task.taught().partial_fit(task.X_more, spoil(task.y_more))


def test_another_number_of_outputs_is_refused(regression):
    forest = regression.taught()
    two = np.stack([regression.y_more, regression.y_more], axis=1)
    with unchanged(forest, regression.queries), pytest.raises(ValueError, match=names("y")):
        forest.partial_fit(regression.X_more, two)


def test_labels_of_another_kind_are_refused_not_rewritten(classification):
    forest = classification.taught()
    with unchanged(forest, classification.queries), pytest.raises(REFUSED, match=names("y")):
        forest.partial_fit(classification.X_more, np.full(len(classification.X_more), "three"))


@pytest.mark.parametrize("stage", ["first partial_fit", "later partial_fit"], indirect=True)
@pytest.mark.parametrize(
    "classes",
    [[[0, 1], [2, 3]], 3, [0, 1, np.nan], [0, 1, None], ["a", "b"]],
    ids=["two dimensions", "a number", "nan", "None", "text"],
)
def test_bad_classes_are_refused(classification, stage, classes):
    forest = stage.forest(classification)
    with unchanged(forest, classification.queries), pytest.raises(REFUSED, match=names("classes")):
        forest.partial_fit(classification.X_more, classification.y_more, classes=classes)


# --- Parameters -----------------------------------------------------------------------------------


def first_gap(x: np.ndarray, y: np.ndarray) -> float:
    return abs(x[0] - y[0])


BAD_PARAMETERS = [
    ("max_children", {"max_children": 1}),
    ("max_children", {"max_children": 0}),
    ("max_children", {"max_children": -3}),
    ("max_children", {"max_children": 2.5}),
    ("n_estimators", {"n_estimators": 0}),
    ("n_estimators", {"n_estimators": -1}),
    ("n_estimators", {"n_estimators": "ten"}),
    ("metric", {"metric": "euclid"}),
    ("metric", {"metric": None}),
    ("metric", {"metric": 3}),
    ("metric_params", {"metric_params": 3}),
    ("metric_params", {"metric_params": {"p": 3}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {"q": 3}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {3: 3, "q": 3}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {"p": 0.5}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {"p": np.nan}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {"p": np.inf}}),
    ("metric_params", {"metric": "minkowski", "metric_params": {"p": "three"}}),
    ("metric_params", {"metric": first_gap, "metric_params": {"w": 1}}),
    ("dtype", {"dtype": "int64"}),
    ("n_jobs", {"n_jobs": 0}),
    ("n_jobs", {"n_jobs": "two"}),
    ("random_state", {"random_state": -1}),
    ("offline", {"offline": "yes"}),
]
bad_parameters = pytest.mark.parametrize(
    ("parameter", "params"),
    BAD_PARAMETERS,
    ids=[f"{parameter} {number}" for number, (parameter, _) in enumerate(BAD_PARAMETERS)],
)


@bad_parameters
@pytest.mark.parametrize("method", ["fit", "partial_fit"])
def test_bad_parameters_are_refused_by_the_first_learning_call(task, method, parameter, params):
    forest = task.forest(**params)
    before = state(forest, task.queries)
    with pytest.raises(REFUSED, match=names(parameter)):
        getattr(forest, method)(task.X, task.y)
    assert state(forest, task.queries) == before


@bad_parameters
def test_fit_with_bad_parameters_forgets_nothing(task, parameter, params):
    forest = task.taught()
    before = forest.get_params()
    with unchanged(forest, task.queries):
        with pytest.raises(REFUSED, match=names(parameter)):
            forest.set_params(**params).fit(task.X_more, task.y_more)
        forest.set_params(**before)


@pytest.mark.parametrize("epsilon", [-0.1, np.nan, np.inf, "small", None])
def test_bad_epsilon_is_refused(regression, epsilon):
    with pytest.raises(REFUSED, match=names("epsilon")):
        regression.forest(epsilon=epsilon).fit(regression.X, regression.y)


@pytest.mark.parametrize("name", ["classification", "regression"])
def test_inner_product_serves_no_vote_and_no_mean(request, name):
    task = request.getfixturevalue(name)
    forest = task.forest(metric="inner_product")
    with unchanged(forest, task.queries), pytest.raises(ValueError, match="inner_product"):
        forest.fit(task.X, task.y)


@pytest.mark.parametrize("n_neighbors", [0, -1, 41, 2.5, "three"])
def test_bad_n_neighbors_is_refused(retrieval, n_neighbors):
    forest = retrieval.taught()  # 40 examples are stored
    with pytest.raises(REFUSED, match=names("n_neighbors")):
        forest.kneighbors(retrieval.queries, n_neighbors)


def test_no_forest_has_more_neighbors_than_it_stores(task):
    forest = task.taught()
    stored = forest.stats()["examples_stored"]
    assert forest.kneighbors(task.queries, stored)[1].shape == (len(task.queries), stored)
    for n_neighbors in (0, stored + 1):
        with pytest.raises(ValueError, match=names("n_neighbors")):
            forest.kneighbors(task.queries, n_neighbors)


def test_asking_before_learning_is_a_not_fitted_error(task):
    calls = [lambda forest, m=m: ask(forest, m, task.queries) for m in task.query_methods]
    calls += [lambda forest: forest.stats(), lambda forest: forest.fingerprint()]
    if hasattr(task.estimator, "score"):
        calls.append(lambda forest: forest.score(task.X, task.y))
    for call in calls:
        with pytest.raises(NotFittedError, match="not fitted"):
            call(task.forest())
