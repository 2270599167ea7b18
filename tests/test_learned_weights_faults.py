"""What may go wrong around a decision: damaged files, metrics that fail, readers, new features."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import answers, state
from damaged_files import Parts
from test_damaged_files import change, document, drop, longer, shorten
from test_learned_weights import N, forest, stream, taught
from test_threads import while_reading

from boundary_forest import ModelFileError, _core, load


def columns(name, n):
    def apply(parts):
        parts.arrays[name] = np.ascontiguousarray(parts.arrays[name].reshape(-1, n))

    return apply


WRONG = {
    "a weight out of range": (change("log_weights", 1, 16 * 191), "log_weights"),
    "the least integer": (change("log_weights", 1, -(2**31)), "log_weights"),
    "a weight missing": (columns("log_weights", 1), "log_weights"),
    "no weights": (drop("log_weights"), "log_weights"),
    "weights that do not exist": (change("tree_weights", 1, 9), "tree_weights"),
    "a tree too few": (shorten("tree_weights"), "tree_weights"),
    "a tree too many": (longer("tree_weights"), "tree_weights"),
    "no trees": (drop("tree_weights"), "tree_weights"),
    "a row not a number": (change("window_positions", 7, np.nan), "window_positions: row 1"),
    "a row too few": (shorten("window_positions"), "window"),
    "narrow rows": (columns("window_positions", 1), "window_positions"),
    "no rows": (drop("window_positions"), "window_positions"),
    "a label not a number": (change("window_labels", 3, np.nan), "labels"),
    "a class that is none": (change("window_labels", 3, 77.0), "labels"),
    "a label too few": (shorten("window_labels"), "window"),
    "no labels": (drop("window_labels"), "window_labels"),
    "a member too few": (shorten("reservoir_arrivals"), "in no tree"),
    "a member too many": (longer("reservoir_arrivals"), "reservoir_arrivals"),
    "a member that never came": (change("reservoir_arrivals", 5, 400), "in no tree"),
    "members out of order": (change("reservoir_arrivals", 1, 0), "reservoir_arrivals"),
    "no members": (drop("reservoir_arrivals"), "reservoir_arrivals"),
    "neither replayed nor not": (document(2, "forest", "replays"), "replays"),
    "less than no error": (change("vote_errors", 0, -1.0), "vote_errors"),
    "an error not a number": (change("vote_errors", 0, np.nan), "vote_errors"),
    "an error too few": (shorten("vote_errors"), "vote_errors"),
    "no errors": (drop("vote_errors"), "vote_errors"),
    "an unknown vote": (document(4, "forest", "vote_power"), "vote_power"),
    "a vote that is text": (document("one", "forest", "vote_power"), "vote_power"),
}


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.bf"
    taught("classify", end=400).save(path)
    return path.read_bytes()


@pytest.mark.parametrize(("damage", "what"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_file_is_named(content, damage, what, tmp_path):
    parts, path = Parts(content), tmp_path / "model.bf"
    damage(parts)
    path.write_bytes(parts.content())
    for mmap in (False, True):
        with pytest.raises(ModelFileError, match=what):
            load(path, mmap=mmap)


class LabelMetric:
    """|a - b|, until `fuse` calls have been made."""

    fuse = np.inf

    def __call__(self, a, b):
        self.fuse -= 1
        if self.fuse < 0:
            raise ZeroDivisionError
        return float(abs(a - b).sum())


@pytest.mark.parametrize("fuse", [0, 1000, 1800, 2500, 4000, 6000])
def test_a_label_metric_that_fails_takes_the_call_back_whole(fuse):
    """Calls of a metric: about 4 a row, and those of trees that are grown anew at decisions."""
    X, y = stream("general")
    metric = LabelMetric()
    learner = forest("general", label_metric=metric).partial_fit(X[:120], y[:120])
    before = state(learner, X[N:])
    metric.fuse = fuse
    try:
        learner.partial_fit(X[120:N], y[120:N])
    except Exception:
        assert metric.fuse < 0
        assert state(learner, X[N:]) == before
        metric.fuse = np.inf
        learner.partial_fit(X[120:N], y[120:N])
    metric.fuse = np.inf
    other = forest("general", label_metric=LabelMetric()).partial_fit(X[:N], y[:N])
    assert learner.apply(X[N:]).tolist() == other.apply(X[N:]).tolist()
    assert learner.feature_weights_.tolist() == other.feature_weights_.tolist()


def test_readers_see_one_state_while_decisions_are_made():
    X, y = stream("classify")
    batches = [slice(begin, begin + 5) for begin in range(100, N, 5)]
    learner, frozen = (taught("classify", end=100) for _ in "ab")

    def read(one):
        return answers(one, X[N : N + 5])["predict_proba"], one.feature_weights_.tolist()

    shares, weights = zip(
        read(frozen), *(read(frozen.partial_fit(X[b], y[b])) for b in batches), strict=True
    )

    def write():
        for batch in batches:
            learner.partial_fit(X[batch], y[batch])

    seen = while_reading(lambda: read(learner), write)
    assert all(one in shares and other in weights for one, other in seen)
    assert learner.fingerprint() == frozen.fingerprint()


@pytest.mark.parametrize("cut", [2, 100, 130, 260])
def test_a_widened_forest_is_as_if_the_new_features_had_been_zero_from_the_start(cut):
    X, y = stream("outputs", "float64")
    wide = np.pad(X[:N], ((0, 0), (0, 3)))
    wide[cut:, 5:] = X[cut:N, :3]

    def engine(n_features):
        return _core.Forest(
            n_estimators=4, max_children=50, n_features=n_features, label_length=2, p=2.0,
            label_metric="euclidean", estimator="shepard_mean", epsilon=None, seed=5,
            element_type="float64", metric="euclidean", max_samples=0.5, vote_weights="auto",
            feature_weights="learned",
        )  # fmt: skip

    always, widened = engine(8), engine(5)
    always.learn(wide, y[:N], 1)
    widened.learn(X[:cut], y[:cut], 1)
    widened = widened.widened(8)
    widened.learn(wide[cut:], y[cut:N], 1)
    one, other = always.snapshot().state(), widened.snapshot().state()
    (comparisons, *_), (others, *_) = one.pop("counts"), other.pop("counts")
    assert comparisons == others  # evaluations depend on how rows go through trees together
    assert [name for name in one if not np.array_equal(one[name], other[name])] == []
