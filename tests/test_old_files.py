"""Files of every version of the format stay loadable: one of each kind is kept in tests/data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
    load,
)
from boundary_forest.files import VERSION
from boundary_forest.files.loading import verify
from boundary_forest.frames import FrameModel

FOLDER = Path(__file__).parent / "data"


def gap(x, y):
    return float(np.abs(x - y).sum())


def rows():
    """Numbers that need no generator, which might change."""
    return (np.arange(60)[:, None] * [7, 11, 13] % 17).astype(np.float32)


def taught():
    """What the files hold: forests that learned the first 40 rows, but for one."""
    X = rows()[:40]
    params = {"n_estimators": 5, "max_children": 3, "random_state": 7}
    return {
        "classifier": BoundaryForestClassifier(**params).fit(
            X, np.where(X[:, 0] > 8, "high", "low"), ids=[f"row {i}" for i in range(40)]
        ),
        "regressor": BoundaryForestRegressor(**params).fit(X.astype(np.float64), X[:, :2]),
        "neighbors": BoundaryForestNeighbors(**params, metric="manhattan").fit(X.astype(np.uint8)),
        "general": BoundaryForest(**params, metric=gap, epsilon=2.0).fit(X, X[:, 1]),
        "buffered": BoundaryForestClassifier(random_state=7).fit(X[:4], [3, 1, 2, 1]),
        "columns": FrameModel.from_rows(raw_rows()[:40], "kind", **params),
    }


def raw_rows():
    """The same numbers beside columns of other kinds."""
    return [
        {"size": x, "color": ("red", "blue")[y % 2], "round": z > 8, "kind": "xyz"[x % 3]}
        for x, y, z in rows().astype(int).tolist()
    ]


# What the release that wrote version 1 said; a later one must say the same.
FINGERPRINTS = {
    "classifier-v1": "51fbbd8f9bfc40956cda59bfb26d0d4e",
    "regressor-v1": "0a3ab230c16d63976325a3dc5fa5fbcb",
    "neighbors-v1": "ea2bc4fa27df25c43635239bd67b6111",
    "general-v1": "6ee88a5f6e44b303fa4a50c52d76c08f",
    "buffered-v1": "bac96c9fa14575b06d060c08065f05e0",
    "columns-v1": "55f04f2b832f5f438f9cc9aca1893266",
}

KEPT = sorted(FOLDER.glob("*.bf"))


@pytest.mark.parametrize("mmap", [False, True], ids=["read", "mapped"])
@pytest.mark.parametrize("path", KEPT, ids=lambda path: path.stem)
def test_a_kept_file_is_the_forest_that_was_saved(path, mmap):
    verify(path)
    kind = path.stem.partition("-")[0]
    functions = {"metric": gap} if kind == "general" else {}
    forest, again = load(path, mmap=mmap, **functions), taught()[kind]
    assert type(forest) is type(again)
    if kind == "columns":
        assert forest.columns == again.columns
        assert forest.predict(raw_rows()).tolist() == again.predict(raw_rows()).tolist()
        forest, again = forest.forest, again.forest
    assert forest.get_params() == again.get_params()
    assert forest.fingerprint() == again.fingerprint() == FINGERPRINTS[path.stem]
    X = rows()[:, [0] * forest.n_features_in_] if kind == "columns" else rows()
    X = X.astype(forest.fitted.settings.element_type)
    assert forest.apply(X).tolist() == again.apply(X).tolist()
    assert forest.kneighbors(X, 2)[1].tolist() == again.kneighbors(X, 2)[1].tolist()


def test_every_kind_of_this_version_is_kept():
    assert {path.stem for path in KEPT} >= {f"{kind}-v{VERSION}" for kind in taught()}
