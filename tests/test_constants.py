"""A constant stands once, in the engine; the copies that must be are held to it.

The reference knows numpy alone, and signatures show their defaults. What the reference has beyond
these is held to the engine by the forests that it grows.
"""

from __future__ import annotations

import inspect
from itertools import chain

import pytest

import boundary_forest
from boundary_forest import _core
from boundary_forest.reference import forgetting, votes, weights

river = pytest.importorskip("boundary_forest.river")


def test_the_references_constants_are_the_engines():
    assert list(votes.POWERS) == [power for power, *_ in _core.vote_rules(False)]
    assert _core.vote_rules(True) == forgetting.RULES
    assert votes.FIRST_DECISION == _core.FIRST_DECISION
    assert votes.PERIOD == _core.PERIOD
    assert votes.GROWING_STEPS == _core.GROWING_STEPS
    assert weights.WINDOW == _core.LONGEST_WINDOW


@pytest.mark.parametrize("n_T", [1, 50, 700])
def test_the_references_schedule_is_the_engines(n_T):
    driver = _core.Driver(
        n_estimators=n_T, label_length=1, estimator="shepard_vote", vote_weights="auto",
        learns_weights=True, lifetimes=[], max_stored=0,
    )  # fmt: skip
    reference = votes.Votes("auto", n_T, "shepard_vote")
    state = driver.state() | {"planted": True}
    decisions = [votes.FIRST_DECISION * 2**j for j in range(10)]
    trials, steps = 0, set()
    for seen in chain(*(range(max(d - 1010, d // 2), d + 1010) for d in decisions)):
        if seen < n_T:
            continue
        driver.restore(state | {"seen": seen})
        assert driver.wants_ends == reference.is_trial(seen)
        assert driver.growing_step == votes.growing_step(seen, n_T)
        trials += driver.wants_ends
        steps.add(driver.growing_step)
    assert trials > 0
    assert steps == set(range(votes.GROWING_STEPS + 1))


LEARNERS = [
    boundary_forest.BoundaryForest,
    boundary_forest.BoundaryForestClassifier,
    boundary_forest.BoundaryForestRegressor,
    river.BoundaryForestClassifier,
    river.BoundaryForestRegressor,
]


@pytest.mark.parametrize("learner", LEARNERS)
def test_defaults_that_signatures_show_are_the_engines(learner):
    parameters = inspect.signature(learner).parameters
    assert parameters["n_estimators"].default == _core.N_ESTIMATORS
    assert parameters["max_children"].default == _core.MAX_CHILDREN
