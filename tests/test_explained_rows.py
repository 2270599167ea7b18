"""explain() shows the stored rows: values, what features contribute, HTML and pictures."""

from __future__ import annotations

import base64
import json
import re
import struct
import zlib

import numpy as np
import pandas as pd
import pytest
from conftest import make_task
from scipy.sparse import csr_matrix

from boundary_forest import (
    BoundaryForest,
    BoundaryForestClassifier,
    BoundaryForestNeighbors,
    BoundaryForestRegressor,
)
from boundary_forest.frames import FrameModel

RNG = np.random.default_rng(0)
X = np.abs(RNG.normal(size=(200, 5))) + 0.1
Y = (X[:, 0] > 0.8).astype(int)
QUERY = np.abs(RNG.normal(size=5)) + 0.1


@pytest.mark.parametrize("name", ["classifier", "regressor", "neighbors"])
def test_examples_have_the_rows_that_were_learned(name):
    task = make_task(name)
    explanation = task.taught(n_estimators=9, max_children=3).explain(task.queries[0] + 0.25)
    np.testing.assert_array_equal(explanation.query, task.queries[0] + 0.25)
    for example in explanation.examples:
        np.testing.assert_array_equal(example.values, task.X[example.arrival])
        squares = (example.values - explanation.query) ** 2
        assert example.contributions == pytest.approx(squares / squares.sum())


@pytest.mark.parametrize(
    ("metric", "params", "part"),
    [
        ("manhattan", None, lambda a, b: np.abs(a - b)),
        ("minkowski", {"p": 3}, lambda a, b: np.abs(a - b) ** 3),
        ("canberra", None, lambda a, b: np.abs(a - b) / (a + b)),
        ("hamming", None, lambda a, b: a != b),
        ("cosine", None, lambda a, b: (a / np.linalg.norm(a) - b / np.linalg.norm(b)) ** 2),
    ],
)
def test_contributions_are_shares_of_the_sum_that_the_metric_is(metric, params, part):
    forest = BoundaryForestClassifier(
        n_estimators=9, metric=metric, metric_params=params, random_state=0
    ).fit(X, Y)
    for example in forest.explain(QUERY).examples:
        parts = part(example.values, QUERY).astype(float)
        assert example.contributions == pytest.approx(parts / parts.sum())


@pytest.mark.parametrize("metric", ["chebyshev", lambda a, b: float(np.abs(a - b).sum())])
def test_a_distance_that_is_no_sum_over_features_has_no_contributions(metric):
    forest = BoundaryForestClassifier(n_estimators=5, metric=metric, random_state=0).fit(X, Y)
    explanation = forest.explain(QUERY)
    assert explanation.examples[0].contributions is None
    assert "differs in" not in str(explanation)
    assert explanation.to_dict()["examples"][0]["contributions"] is None
    assert "<table" in explanation.to_html()


def test_feature_weights_count_in_contributions():
    weights = np.array([4.0, 0.25, 1, 1, 1])
    forest = BoundaryForestClassifier(feature_weights=weights, random_state=0).fit(X, Y)
    example = forest.explain(QUERY).examples[0]
    parts = weights * (example.values - QUERY) ** 2
    assert parts.sum() == pytest.approx(example.distance**2)
    assert example.contributions == pytest.approx(parts / parts.sum())


def test_the_features_that_differ_most_are_printed_by_name():
    frame = pd.DataFrame({"near": [0.0, 0.0], "far": [0.0, 9.0]})
    forest = BoundaryForestClassifier(random_state=0).fit(frame, ["a", "b"])
    explanation = forest.explain(pd.DataFrame({"near": [1.0], "far": [7.0]}))
    line = "    differs in far (9, query 7: 80%), near (0, query 1: 20%)"
    assert line in str(explanation).splitlines()
    assert "    equal to the query" in str(forest.explain(frame.iloc[:1])).splitlines()


def test_many_outputs_the_general_form_and_sparse_rows_have_rows_too():
    both = BoundaryForestRegressor(n_estimators=5, random_state=0).fit(X, X[:, :2])
    general = BoundaryForest(n_estimators=5, random_state=0).fit(X, Y)
    sparse = BoundaryForestNeighbors(n_estimators=5, random_state=0).fit(csr_matrix(X))
    for forest in (both, general):
        example = forest.explain(QUERY).examples[0]
        np.testing.assert_array_equal(example.values, X[example.arrival])
        assert "<table" in forest.explain(QUERY).to_html()
    example = sparse.explain(csr_matrix(QUERY[None])).examples[0]
    np.testing.assert_array_equal(example.values, X[example.arrival])


def test_a_dict_has_the_rows_as_plain_lists():
    forest = BoundaryForestClassifier(random_state=0).fit(X, Y)
    plain = json.loads(json.dumps(forest.explain(QUERY).to_dict()))
    assert plain["query"] == QUERY.tolist()
    assert plain["feature_names"] == ["x0", "x1", "x2", "x3", "x4"]
    for example in plain["examples"]:
        assert example["values"] == X[example["arrival"]].tolist()
        assert sum(example["contributions"]) == pytest.approx(1)


def test_a_frame_model_shows_the_values_of_its_columns():
    rows = [
        {
            "size": i,
            "colour": ("red", "blue")[i % 2],
            "at": f"2024-06-{i + 1:02}",
            "is": "ab"[i % 2],
        }
        for i in range(20)
    ]
    model = FrameModel.from_rows(rows, target="is", random_state=0)
    explanation = model.explain([{"size": 7, "colour": "blue", "at": "2024-06-29"}])
    assert explanation.feature_names == ("size", "colour", "at")
    assert explanation.query == [7, "blue", "2024-06-29 00:00:00"]
    for example in explanation.examples:
        row = rows[example.arrival]
        assert example.values == [row["size"], row["colour"], row["at"] + " 00:00:00"]
        assert sum(example.contributions) == pytest.approx(1)


def test_html_is_escaped_and_has_neither_scripts_nor_links():
    evil = "<script>alert(1)</script>"
    frame = pd.DataFrame(X[:, :2], columns=[evil, "<b>"])
    forest = BoundaryForestClassifier(random_state=0).fit(
        frame, np.where(Y > 0, evil, "ok"), ids=[f"<i>{i}" for i in range(200)]
    )
    html = forest.explain(frame.iloc[3:4])._repr_html_()
    assert set(re.findall(r"<(\w+)", html)) == {"div", "b", "table", "tr", "th", "td"}
    assert "&lt;script&gt;" in html
    assert "http" not in html
    assert len(html) < 20_000


def pixels(uri):
    """Read back one of our PNG files."""
    file = base64.b64decode(uri)
    assert file[:8] == b"\x89PNG\r\n\x1a\n"
    width, height, _, kind = struct.unpack(">IIBB", file[16:26])
    lines = zlib.decompress(file[file.index(b"IDAT") + 4 : file.index(b"IEND") - 8])
    return np.frombuffer(lines, np.uint8).reshape(height, -1)[:, 1:], width, kind


def test_rows_that_look_like_images_are_drawn():
    images = RNG.integers(0, 256, size=(50, 64)).astype(np.uint8)
    images[0, :2] = 0, 255
    forest = BoundaryForestClassifier(random_state=0).fit(images, np.arange(50) % 3)
    explanation = forest.explain(images[0])
    drawn = re.findall(r'src="data:image/png;base64,([^"]+)"', explanation.to_html())
    assert len(drawn) == 1 + len(explanation.deciding)
    grey, width, kind = pixels(drawn[0])
    assert (width, kind) == (8, 0)
    np.testing.assert_array_equal(grey, images[0].reshape(8, 8))


def test_embeddings_tables_and_small_rows_are_not_drawn():
    embeddings = RNG.normal(size=(50, 64))
    table = pd.DataFrame(np.abs(embeddings), columns=[f"income {i}" for i in range(64)])
    for rows in (embeddings, table, np.abs(embeddings[:, :49])):
        forest = BoundaryForestClassifier(random_state=0).fit(rows, np.arange(50) % 3)
        assert "<img" not in forest.explain(rows[:1]).to_html()
    pictures = table.set_axis([f"pixel_{i // 8}_{i % 8}" for i in range(64)], axis=1)
    forest = BoundaryForestClassifier(random_state=0).fit(pictures, np.arange(50) % 3)
    assert "<img" in forest.explain(pictures[:1]).to_html()


def test_an_image_shape_draws_any_rows_and_must_fit_them():
    rows = RNG.normal(size=(50, 24))
    explanation = BoundaryForestClassifier(random_state=0).fit(rows, Y[:50]).explain(rows[0])
    (colour, *_) = re.findall(r'base64,([^"]+)"', explanation.to_html(image_shape=(2, 4, 3)))
    values, width, kind = pixels(colour)
    assert (values.shape, width, kind) == ((2, 12), 4, 2)
    with pytest.raises(ValueError, match=r"with 24 values.*got \(5, 5\)"):
        explanation.to_html(image_shape=(5, 5))
