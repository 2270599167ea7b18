"""Files of every version of the format stay loadable: one of each kind is kept in tests/data."""

from __future__ import annotations

import hashlib
import json
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
from boundary_forest.files import VERSION, ModelFile
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
        "neighbors": BoundaryForestNeighbors(**params, search="paper", metric="manhattan").fit(
            X.astype(np.uint8)
        ),
        "general": BoundaryForest(**params, metric=gap, epsilon=2.0).fit(X, X[:, 1]),
        "buffered": BoundaryForestClassifier(random_state=7).fit(X[:4], [3, 1, 2, 1]),
        "columns": FrameModel.from_rows(raw_rows()[:40], "kind", **params),
        "learned": taught_weights(params),
    }


def taught_weights(params):
    """A forest that has learned weights, at 125 and 250 examples, and how to weigh its votes."""
    X = (np.arange(260)[:, None] * [7, 11, 13] % [17, 23, 29]).astype(np.float32)
    return BoundaryForestClassifier.for_tables(**params).fit(X, X[:, 0].astype(int) % 4)


def raw_rows():
    """The same numbers beside columns of other kinds."""
    return [
        {"size": x, "color": ("red", "blue")[y % 2], "round": z > 8, "kind": "xyz"[x % 3]}
        for x, y, z in rows().astype(int).tolist()
    ]


# Of the present formula, which is not that of the release that wrote version 1.
FINGERPRINTS = {
    "classifier-v1": "31d40e0b04cfc9c1874df77657135118",
    "regressor-v1": "3f8b51a845b28fefb61939137340fa96",
    "neighbors-v1": "e0d56471a7941b9b95f799fb2945acc8",
    "general-v1": "bfa4a3092cc15ed24046d6b9327cb70d",
    "buffered-v1": "28f0e69d3de754857a99c5e4aa3d4459",
    "columns-v1": "a8bd80b57f2563df3e235d1f8916496c",
    "learned-v1": "4ad8f41e9b370ca6dd8ea7ec08921ac6",
}

# What the release that wrote version 1 answered, as a hash; a later one must answer the same.
ANSWERS = {
    "classifier-v1": "dafe469b86745e5a",
    "regressor-v1": "030ff1bbe2036987",
    "neighbors-v1": "5d189f22083899aa",
    "general-v1": "29f918dca47bff00",
    "buffered-v1": "5f76d2841e213865",
    "columns-v1": "ea86d982f558c128",
    "learned-v1": "ce23bf19001c2e91",
}

KEPT = sorted(FOLDER.glob("*.bf"))

# Forests that would be others if they learned today: their rule, beyond the paper, was bettered.
LEARNED_OTHERWISE = {"learned-v1"}


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
    if path.stem in LEARNED_OTHERWISE:
        again = forest
    assert forest.fingerprint() == again.fingerprint() == FINGERPRINTS[path.stem]
    X = rows()[:, [0] * forest.n_features_in_] if kind == "columns" else rows()
    X = X.astype(forest.fitted.settings.element_type)
    assert hash_of_answers(forest, X) == hash_of_answers(again, X) == ANSWERS[path.stem]
    assert trees(forest) == trees(again) == trees_in_file(path)


def hash_of_answers(forest, X):
    """All that it answers, to the last bit."""
    distances, arrivals = forest.kneighbors(X, 2)
    answers = [forest.apply(X), arrivals, distances]
    answers += [
        getattr(forest, name)(X) for name in ("predict", "predict_proba") if hasattr(forest, name)
    ]
    text = json.dumps([exact(answer.tolist()) for answer in answers])
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def exact(value):
    if isinstance(value, list):
        return [exact(part) for part in value]
    return value.hex() if isinstance(value, float) else value


def trees(forest):
    return [(arrivals.tolist(), parents.tolist()) for arrivals, parents in forest.trees()]


def trees_in_file(path):
    """The same from the file's arrays alone."""
    with ModelFile(path) as file:
        arrivals = file.array("arrivals", "uint64")
        sizes, examples, parents = (
            file.array(name, "uint32") for name in ("tree_sizes", "node_examples", "node_parents")
        )
    ends = np.cumsum(sizes)[:-1]
    found = []
    for nodes, above in zip(np.split(examples, ends), np.split(parents, ends), strict=True):
        own = arrivals[nodes]
        found.append((own.tolist(), [-1] * (len(own) > 0) + own[above[1:]].tolist()))
    return found


def test_every_kind_of_this_version_is_kept():
    assert {path.stem for path in KEPT} >= {f"{kind}-v{VERSION}" for kind in taught()}
