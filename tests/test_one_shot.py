"""Promise 4, and the paper's claim of immediate one-shot learning: learn (x, c), ask x, get c."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

pytestmark = pytest.mark.kernels


@st.composite
def streams(draw):
    """Distinct rows, so that none was stored before with another label; some tie on a grid."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 120))
    if draw(st.booleans()):
        X = np.unique(rng.integers(0, 4, size=(n, 4)), axis=0)
        X = rng.permutation(X).astype(draw(st.sampled_from(["uint8", "float32", "float64"])))
    else:
        X = rng.normal(size=(n, 3)).astype(draw(st.sampled_from(["float32", "float64"])))
    return X, rng


FORESTS = st.fixed_dictionaries(
    {
        "n_estimators": st.sampled_from([1, 2, 10, 50]),
        "max_children": st.sampled_from([2, 3, 50, None]),
        "metric": st.sampled_from(["euclidean", "manhattan", "chebyshev", "canberra", "hamming"]),
        "random_state": st.integers(0, 1000),
    }
)


@settings(max_examples=80, deadline=None, derandomize=True)
@given(streams(), FORESTS)
def test_a_class_just_learned_is_given_back(case, params):
    X, rng = case
    y = rng.integers(0, 3, size=len(X))
    forest = BoundaryForestClassifier(**params)
    for i in range(len(X)):
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
        assert forest.predict(X[i : i + 1])[0] == y[i]


@settings(max_examples=80, deadline=None, derandomize=True)
@given(streams(), FORESTS, st.sampled_from([0.0, 0.3]))
def test_a_target_just_learned_is_given_back_within_epsilon(case, params, epsilon):
    X, rng = case
    y = rng.normal(size=len(X))
    forest = BoundaryForestRegressor(epsilon=epsilon, **params)
    for i in range(len(X)):
        forest.partial_fit(X[i : i + 1], y[i : i + 1])
        assert abs(forest.predict(X[i : i + 1])[0] - y[i]) <= epsilon + 1e-12
