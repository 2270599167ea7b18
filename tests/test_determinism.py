"""Promise 2: the forest is a function of (examples in order, parameters, seed), and of no more."""

import os
import subprocess
import sys

import numpy as np
import pytest

from boundary_forest import (
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)

pytestmark = pytest.mark.kernels

N = 2500


def stream(dtype):
    """Rows with ties and duplicates, and labels for either task."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 4, size=(N, 12)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        X += rng.normal(scale=0.1, size=X.shape).astype(dtype)
    return X, rng.integers(0, 4, size=N)


ESTIMATORS = {
    "classify": lambda **p: BoundaryForestClassifier(n_estimators=12, **p),
    "regress": lambda **p: BoundaryForestRegressor(n_estimators=12, **p),
    "retrieve": lambda **p: BoundaryForestNeighbors(n_estimators=12, max_children=6, **p),
}
DTYPES = [np.uint8, np.int8, np.float16, np.float32, np.float64]


def fingerprint_of(task, dtype, batch, n_jobs):
    X, y = stream(dtype)
    forest = ESTIMATORS[task](n_jobs=n_jobs, random_state=3, dtype=np.dtype(dtype).name)
    for begin in range(0, N, batch):
        forest.partial_fit(X[begin : begin + batch], y[begin : begin + batch])
    return forest.fingerprint()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("task", ESTIMATORS)
def test_same_fingerprint_for_any_threads_and_batches(task, dtype):
    expected = fingerprint_of(task, dtype, batch=N, n_jobs=1)
    for n_jobs, batch in ((1, 1), (1, 1000), (2, 7), (2, N), (8, 1000)):
        assert fingerprint_of(task, dtype, batch, n_jobs) == expected


def test_fit_in_the_order_given_is_one_partial_fit():
    X, y = stream(np.float32)
    forest = ESTIMATORS["classify"](random_state=3, shuffle=False).fit(X, y)
    assert forest.fingerprint() == fingerprint_of("classify", np.float32, N, 1)


def test_same_fingerprint_and_answers_for_every_instruction_set():
    program = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from test_determinism import *\n"
        "print([fingerprint_of(t, d, 1000, 2) for t in ESTIMATORS for d in DTYPES])\n"
        "X, y = stream(np.float32)\n"
        "f = ESTIMATORS['regress'](random_state=1, metric='cosine').fit(X, y)\n"
        "print(f.fingerprint(), f.predict(X[:50] * 0.9).tolist())\n"
    )
    printed = {
        isa: subprocess.run(
            [sys.executable, "-c", program, os.path.dirname(__file__)],
            env={**os.environ, "BOUNDARY_FOREST_ISA": isa},
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        for isa in ("scalar", "")  # and the best that this processor has
    }
    assert printed["scalar"] == printed[""]
    assert len(printed["scalar"]) > 300


def test_an_instruction_set_the_processor_lacks_is_refused_by_name():
    program = "from boundary_forest import _core; print(_core.instruction_set())"
    run = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "BOUNDARY_FOREST_ISA": "mmx9"},
        capture_output=True,
        text=True,
    )
    assert run.returncode != 0
    assert "BOUNDARY_FOREST_ISA must be one of " in run.stderr
    assert "got 'mmx9'" in run.stderr
    assert "scalar" in run.stderr


def test_fingerprint_depends_on_what_the_forest_is():
    X, y = stream(np.float32)
    prints = {
        ESTIMATORS["classify"](random_state=3).fit(X, y).fingerprint(),
        ESTIMATORS["classify"](random_state=4).fit(X, y).fingerprint(),
        ESTIMATORS["classify"](random_state=3).fit(X[:-1], y[:-1]).fingerprint(),
        ESTIMATORS["classify"](random_state=3).fit(X[::-1], y[::-1]).fingerprint(),
        ESTIMATORS["classify"](random_state=3, max_children=7).fit(X, y).fingerprint(),
        ESTIMATORS["classify"](random_state=3, offline=True).fit(X, y).fingerprint(),
        ESTIMATORS["classify"](random_state=3).fit(X.astype(np.float64), y).fingerprint(),
        ESTIMATORS["classify"](random_state=3).fit(X, y + 1).fingerprint(),
        ESTIMATORS["classify"](random_state=3, metric="manhattan").fit(X, y).fingerprint(),
    }
    assert len(prints) == 9


def test_declaring_classes_changes_no_forest():
    X, y = stream(np.float32)
    plain = ESTIMATORS["classify"](random_state=3).partial_fit(X, y)
    declared = ESTIMATORS["classify"](random_state=3).partial_fit(X, y, classes=[9, 3, 2, 1, 0])
    assert plain.fingerprint() == declared.fingerprint()
    assert declared.predict_proba(X[:5])[:, :4].tolist() == plain.predict_proba(X[:5]).tolist()
