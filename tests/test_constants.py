"""A constant stands once, in the engine; the copies that must be are held to it.

The reference knows numpy alone, and signatures show their defaults. Constants that Python does not
need otherwise are read from the engine's source: the reference is too slow for the rows by which
forests would differ.
"""

from __future__ import annotations

import inspect
import re
from itertools import chain
from pathlib import Path

import pytest

import boundary_forest
from boundary_forest import _core
from boundary_forest.reference import (
    depth,
    forgetting,
    graph,
    reservoir,
    stream_mixture,
    votes,
    weights,
)

river = pytest.importorskip("boundary_forest.river")


def test_the_references_constants_are_the_engines():
    assert list(votes.POWERS) == [power for power, *_ in _core.vote_rules(False)]
    assert _core.vote_rules(True) == forgetting.RULES
    assert votes.FIRST_DECISION == _core.FIRST_DECISION
    assert votes.PERIOD == _core.PERIOD
    assert votes.GROWING_STEPS == _core.GROWING_STEPS
    assert weights.WINDOW == _core.LONGEST_WINDOW
    assert reservoir.MOST_MEMBERS == _core.MOST_MEMBERS


IN_SOURCE = {
    "longest_trial": votes.LONGEST_TRIAL,
    "largest_error": forgetting.LARGEST_ERROR,
    "rule_memory": forgetting.RULE_MEMORY,
    "tree_memory": forgetting.TREE_MEMORY,
    "most_others": graph.MOST_OTHERS,
    "fewest_rows": weights.FEWEST_ROWS,
    "n_near": weights.NEIGHBOURS,
    "n_steps": weights.STEPS,
    "rows_per_step": weights.ROWS_PER_STEP,
    "first_step": weights.FIRST_STEP,
    "lowest": weights.LOWEST,
    "farthest": weights.FARTHEST,
    "reluctance": weights.RELUCTANCE,
    "most_log_weight": weights.MOST,
    "replay_period": reservoir.REPLAY_PERIOD,
    "early_period": reservoir.EARLY_PERIOD,
    "n_early": reservoir.EARLY,
    "most_recent": reservoir.MOST_RECENT,
    "least_overlap": reservoir.LEAST_OVERLAP,
    "least_overlap_of_streams": reservoir.LEAST_OVERLAP_OF_STREAMS,
    "rate_decay": stream_mixture.RATE_DECAY,
    "sharpness_decay": stream_mixture.SHARPNESS_DECAY,
    "rows_to_calibrate": stream_mixture.ROWS_TO_CALIBRATE,
    "class_prior": stream_mixture.CLASS_PRIOR,
    "label_prior": stream_mixture.LABEL_PRIOR,
    "largest_loss": stream_mixture.LARGEST_LOSS,
    "largest_share": stream_mixture.LARGEST_SHARE,
    "sixteenths_per_nat": stream_mixture.SIXTEENTHS_PER_NAT,
    "least_log": stream_mixture.LEAST_LOG,
    "recentre_period": stream_mixture.RECENTRE_PERIOD,
    "depth_period": depth.DEPTH_PERIOD,
    "longest_period": depth.LONGEST_PERIOD,
    "depth_stride": depth.DEPTH_STRIDE,
    "least_limit": depth.LEAST_LIMIT,
    "depth_per_doubling": depth.DEPTH_PER_DOUBLING,
}


def test_the_references_other_constants_are_those_of_the_engines_source():
    cpp = Path(__file__).parents[1] / "cpp"
    if not cpp.exists():
        pytest.skip("needs a clone")
    source = "".join(path.read_text() for path in cpp.rglob("*.[ch]pp"))
    for name, value in IN_SOURCE.items():
        (found,) = re.findall(rf"constexpr [\w:]+ {name} = ([^;]+);", source)
        assert eval(found, {"per_octave": _core.LOG_WEIGHTS_PER_OCTAVE}) == value, name


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
