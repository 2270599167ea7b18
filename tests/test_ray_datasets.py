"""A ray.data.Dataset is learned in its order, as the same rows in arrays are."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits

import boundary_forest

pytest.importorskip("ray")

from boundary_forest import ray as on_cluster
from boundary_forest.ray import streaming

X, Y = load_digits(return_X_y=True)
X = X.astype(np.uint8)


class Dataset:
    """What is used of a dataset, without Ray."""

    def __init__(self, **columns):
        self._columns = columns
        self.context = type("Context", (), {})()
        self.context.execution_options = type("Options", (), {"preserve_order": False})()

    def iter_batches(self, *, batch_size, batch_format, prefetch_batches):
        assert batch_format == "numpy"
        assert self.context.execution_options.preserve_order
        n = len(next(iter(self._columns.values())))
        for begin in range(0, n, batch_size):
            yield {
                name: column[begin : begin + batch_size] for name, column in self._columns.items()
            }


Dataset.__module__ = "ray.data.dataset"


def forest(kind="Classifier", **params):
    params = {"n_estimators": 8, "n_actors": 2, "num_cpus": 0.1, "random_state": 0, **params}
    return getattr(on_cluster, f"BoundaryForest{kind}")(**params)


@pytest.fixture
def small_parts(monkeypatch, one_process):
    monkeypatch.setattr(streaming.parts_of, "__defaults__", (200,))


def test_a_column_of_arrays_has_the_positions(small_parts):
    names = np.array([f"row {i}" for i in range(len(X))])
    spread = forest().fit(Dataset(image=X, digit=Y, name=names), "digit", ids="name")
    local = boundary_forest.BoundaryForestClassifier(n_estimators=8, random_state=0, shuffle=False)
    assert spread.fingerprint() == local.fit(X, Y, ids=names).fingerprint()
    more = Dataset(image=X[:5], digit=Y[:5], name=names[:5])
    with pytest.raises(ValueError, match="row 0"):
        spread.partial_fit(more, "digit", ids="name")


def test_other_columns_are_features_by_name(small_parts):
    columns = {f"x{i}": X[:, i].astype(np.float64) for i in range(10, 30)}
    spread = forest("Regressor").partial_fit(Dataset(**columns, y=Y, z=Y**2), ["y", "z"])
    assert spread.feature_names_in_.tolist() == list(columns)
    local = boundary_forest.BoundaryForestRegressor(n_estimators=8, random_state=0, shuffle=False)
    local.fit(np.column_stack(list(columns.values())), np.column_stack([Y, Y**2]))
    assert spread.fingerprint() == local.fingerprint()


@pytest.mark.parametrize(
    ("columns", "y", "error", "what"),
    [
        ({"image": X, "digit": Y}, "label", ValueError, "no column 'label'"),
        ({"digit": Y}, "digit", ValueError, "no features"),
        ({"image": X, "digit": Y}, Y, TypeError, "must be column names"),
        ({"image": X[:0], "digit": Y[:0]}, "digit", ValueError, "without rows"),
    ],
)
def test_what_is_no_dataset_of_examples_is_refused(columns, y, error, what, one_process):
    with pytest.raises(error, match=what):
        forest().fit(Dataset(**columns), y)


def test_what_needs_all_rows_at_once_is_refused(one_process):
    dataset = Dataset(image=X, digit=Y)
    with pytest.raises(ValueError, match="offline=True"):
        forest(offline=True).fit(dataset, "digit")
    with pytest.raises(TypeError, match="Dataset"):
        forest().predict_then_learn(dataset, "digit")


@pytest.mark.xdist_group("ray")
def test_a_dataset_of_ray_is_learned_in_its_order(ray_cluster):
    data = pytest.importorskip("ray.data")
    dataset = data.from_items([{"image": X[i], "digit": int(Y[i])} for i in range(1000)])
    spread = forest(n_actors=1).fit(dataset, "digit")
    local = boundary_forest.BoundaryForestClassifier(n_estimators=8, random_state=0, shuffle=False)
    assert spread.fingerprint() == local.fit(X[:1000], Y[:1000]).fingerprint()
