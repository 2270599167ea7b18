"""A row that is learned right after it was asked alone takes the way that the answer took.

The engine remembers that way instead of going it again; the forest must not change by it.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

pytestmark = pytest.mark.kernels

FORESTS = {
    "paper": lambda: BoundaryForestClassifier(n_estimators=5, random_state=0),
    "sampled": lambda: BoundaryForestClassifier(n_estimators=5, max_samples=0.5, random_state=0),
    "streams": lambda: BoundaryForestClassifier.for_streams(
        n_estimators=6, forgetting=[4, 16, None], random_state=0
    ),
    "bounded": lambda: BoundaryForestClassifier(n_estimators=3, max_stored=20, random_state=0),
    "regressor": lambda: BoundaryForestRegressor.for_streams(
        n_estimators=6, forgetting=[4, 16, None], random_state=0
    ),
}


def rows(seed, n, dtype):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 6, size=(n, 3)).astype(dtype)  # so that rows recur and distances tie
    return X, (X[:, 0] > X[:, 1]).astype(int) + (rng.random(n) < 0.1)


@pytest.mark.parametrize("kind", FORESTS)
@settings(max_examples=15, deadline=None)
@given(
    seed=st.integers(0, 1000),
    dtype=st.sampled_from(["uint8", "float32", "float64"]),
    asked=st.lists(st.sampled_from(["this", "another", "both", "no"]), min_size=1, max_size=9),
    forgets=st.booleans(),
)
def test_the_forest_is_the_same_whether_rows_were_asked_before_or_not(
    kind, seed, dtype, asked, forgets
):
    X, y = rows(seed, 90, dtype)
    ids = np.arange(90)
    forest, silent = FORESTS[kind](), FORESTS[kind]()
    classes = {} if kind == "regressor" else {"classes": np.unique(y)}
    for one in (forest, silent):
        one.partial_fit(X[:8], y[:8], ids=ids[:8], **classes)
    for i in range(8, 90):
        how = asked[i % len(asked)]
        if how in ("another", "both"):
            forest.predict(X[i - 1 : i])
        if how in ("this", "both"):
            forest.predict(X[i : i + 1])
        if forgets and i == 40:
            stored = np.unique(forest.apply(X[:5]))[:1]
            forest.forget(ids[stored])
            silent.forget(ids[stored])
        for one in (forest, silent):
            one.partial_fit(X[i : i + 1], y[i : i + 1], ids=ids[i : i + 1])
    assert forest.fingerprint() == silent.fingerprint()
    np.testing.assert_array_equal(forest.apply(X), silent.apply(X))
    counts = [one.stats()["comparisons"]["learn"] for one in (forest, silent)]
    assert counts[0] == counts[1]


def test_no_distance_is_computed_again_to_learn_a_row_that_was_just_asked():
    X, y = rows(0, 200, "float64")
    forest = BoundaryForestClassifier(n_estimators=5, random_state=0).fit(X[:150], y[:150])
    before = forest.stats()["evaluations"]["learn"]
    forest.predict(X[150:151])
    forest.partial_fit(X[150:151], y[150:151])
    assert forest.stats()["evaluations"]["learn"] == before
    forest.partial_fit(X[151:152], y[151:152])
    assert forest.stats()["evaluations"]["learn"] > before
