"""The shapes of requests and responses, for each task."""

from __future__ import annotations

import io
import time

import numpy as np
import pyarrow as pa
import pytest
from served import in_process

from boundary_forest import BoundaryForestClassifier, load
from boundary_forest.service.settings import TASKS
from boundary_forest.service.snapshots import Snapshots

ROWS = [{"a": 1.5, "b": "x"}, {"a": 0.5, "b": "y"}]
EVERYWHERE = {"learn", "explain", "forget", "stats", "snapshot"}
BY_TASK = {
    "classification": {"predict", "label", "predict-then-learn"},
    "regression": {"predict", "label", "predict-then-learn"},
    "retrieval": {"neighbors", "upsert", "rows"},
}
ALL = EVERYWHERE.union(*BY_TASK.values())


def test_classes(tmp_path):
    with in_process(tmp_path) as service:
        empty = service.post("/v1/predict", {"rows": ROWS[:1]})
        assert empty.json == {"predictions": [None], "probabilities": [{}]}
        learned = service.post(
            "/v1/learn", {"rows": ROWS, "targets": ["yes", "no"], "ids": [1, "b"]}
        )
        assert learned.status == 200
        assert learned.json == {"learned": 2, "seen": 2, "ids": ["1", "b"]}
        predicted = service.post("/v1/predict", {"rows": ROWS}).json
        assert predicted["predictions"] == ["yes", "no"]
        assert predicted["probabilities"][0] == pytest.approx({"no": 0.003, "yes": 0.997}, abs=5e-4)
        both = service.post("/v1/predict-then-learn", {"rows": ROWS, "targets": ["yes", "no"]}).json
        forest = BoundaryForestClassifier.for_streams(columns="auto", random_state=0)
        forest.partial_fit(ROWS, ["yes", "no"], ids=["1", "b"])
        expected = forest.predict_then_learn(ROWS, ["yes", "no"], ids=both["ids"]).tolist()
        assert both["predictions"] == expected
        assert (both["learned"], both["seen"], len({*both["ids"]})) == (2, 4, 2)
        stats = service.get("/v1/stats").json
        assert stats["examples_seen"] == 4
        assert stats["fingerprint"] == forest.fingerprint()
        right = sum(a == b for a, b in zip(expected, ["yes", "no"], strict=True))
        assert stats["scores"]["accuracy"] == right / 2
        assert stats["scores"]["answers"] == 2
        explained = service.post("/v1/explain", {"rows": ROWS[:1]}).json
        assert explained["answer"] == "yes"
        assert service.post("/v1/forget", {"ids": ["b"]}).json == {"forgotten": 1, "seen": 4}


@pytest.mark.parametrize(
    ("targets", "predictions"), [([3, 4.0], [3, 4]), ([True, False], [True, False])]
)
def test_classes_come_back_as_they_were_given(tmp_path, targets, predictions):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", {"rows": ROWS, "targets": targets})
        assert service.post("/v1/predict", {"rows": ROWS}).json["predictions"] == predictions
        mixed = service.post("/v1/learn", {"rows": ROWS[:1], "targets": ["text"]})
        assert (mixed.status, mixed.code) == (422, "unprocessable")


def test_numbers(tmp_path):
    with in_process(tmp_path, task="regression") as service:
        service.post("/v1/learn", {"rows": [[0.0], [9.0]], "targets": [1, 2.5]})
        assert service.post("/v1/predict", {"rows": [[8.0]]}).json == {"predictions": [2.5]}
        both = service.post("/v1/predict-then-learn", {"rows": [[9.0]], "targets": [3.0]}).json
        assert both["predictions"] == [2.5]
        assert service.get("/v1/stats").json["scores"]["mae"] == 0.5


def test_retrieval(tmp_path):
    with in_process(tmp_path, task="retrieval") as service:
        assert service.post("/v1/neighbors", {"rows": [[0.0]]}).status == 409
        service.post("/v1/learn", {"rows": [[0.0], [3.0], [9.0]], "ids": ["a", "b", "c"]})
        query = {"rows": [[8.0]], "n_neighbors": 2}
        found = service.post("/v1/neighbors", query).json
        assert found == {"ids": [["c", "b"]], "distances": [[1.0, 5.0]]}
        found = service.post("/v1/neighbors", {**query, "allowed": ["a", "b"], "exact": True}).json
        assert found["ids"] == [["b", "a"]]
        upserted = service.post("/v1/upsert", {"rows": [[8.0], [5.0]], "ids": ["a", "d"]}).json
        assert upserted["upserted"] == 2
        assert service.get("/v1/rows?id=a&id=b").json["rows"] == [
            {"id": "a", "row": [8.0]},
            {"id": "b", "row": [3.0]},
        ]
        assert service.get("/v1/rows?id=z").status == 404
        pages, after = [], -1
        while after is not None:
            page = service.get(f"/v1/rows?limit=3&after={after}").json
            pages += [row["id"] for row in page["rows"]]
            after = page["next"]
        assert sorted(pages) == ["a", "b", "c", "d"]


@pytest.mark.parametrize("task", TASKS)
def test_a_task_has_its_endpoints_and_no_others(tmp_path, task):
    with in_process(tmp_path, task=task) as service:
        here = {name for name in ALL if service.get(f"/v1/{name}").status != 404}
        assert here == EVERYWHERE | BY_TASK[task]
        assert service.get("/v1").json["error"]["code"] == "not_found"


def test_npy_and_arrow(tmp_path):
    X = np.array([[0.0, 1.0], [9.0, 2.0]], np.float32)
    body = io.BytesIO()
    for array in (X, np.array(["a", "b"]), np.array([7, 8])):
        np.save(body, array)
    table = pa.table({"x0": [1.0], "x1": [1.0]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    with in_process(tmp_path / "vectors") as service:
        learned = service.post("/v1/learn", body.getvalue(), content_type="application/x-npy")
        assert learned.json == {"learned": 2, "seen": 2, "ids": ["7", "8"]}
        body = io.BytesIO()
        np.save(body, np.asfortranarray(X))
        predicted = service.post("/v1/predict", body.getvalue(), content_type="application/x-npy")
        assert predicted.json["predictions"] == ["a", "b"]
    with in_process(tmp_path / "columns") as service:
        rows = [{"x0": 1.0, "x1": 1.0}, {"x0": 5.0, "x1": 1.0}]
        service.post("/v1/learn", {"rows": rows, "targets": ["a", "b"]})
        arrow = "application/vnd.apache.arrow.stream"
        predicted = service.post("/v1/predict", sink.getvalue(), content_type=arrow)
        assert predicted.json["predictions"] == ["a"]
        table = table.append_column("is", pa.array(["b"])).append_column("key", pa.array([5]))
        sink = io.BytesIO()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        path = "/v1/learn?target=is&id=key"
        learned = service.post(path, sink.getvalue(), content_type=arrow)
        assert learned.json == {"learned": 1, "seen": 3, "ids": ["5"]}


def test_columns_are_those_of_the_first_rows_learned(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", {"rows": ROWS, "targets": ["yes", "no"]})
        assert service.post("/v1/predict", {"rows": [{"a": 1.4}]}).json["predictions"] == ["yes"]
        unknown = service.post("/v1/predict", {"rows": [ROWS[0], {"a": 1, "c": 2}]})
        assert unknown.status == 422
        assert "'c'" in unknown.json["error"]["message"]
        assert unknown.json["error"]["where"] == "rows[1]"


def test_a_snapshot_is_made_listed_and_downloaded(tmp_path):
    with in_process(tmp_path) as service:
        assert service.request("POST", "/v1/snapshot").status == 409
        service.post("/v1/learn", {"rows": [[0.0], [9.0]], "targets": ["a", "b"], "ids": [1, 2]})
        made = service.request("POST", "/v1/snapshot").json
        assert service.get("/v1/snapshot").json == {"snapshots": [made]}
        downloaded = service.get(f"/v1/snapshot/{made['name']}")
        path = tmp_path / "downloaded.bf"
        path.write_bytes(downloaded.content)
        fingerprint = service.get("/v1/stats").json["fingerprint"]
        assert load(path).fingerprint() == fingerprint
        assert service.get("/v1/snapshot/other.bf").status == 404
        service.post("/v1/forget", {"ids": ["1"]})
        assert service.get("/v1/snapshot").json == {"snapshots": []}
    with in_process(tmp_path / "loaded", load=path) as service:
        assert service.get("/v1/stats").json["fingerprint"] == fingerprint
        assert service.post("/v1/predict", {"rows": [[8.0]]}).json["predictions"] == ["b"]
        again = service.post("/v1/learn", {"rows": [[5.0]], "targets": ["b"], "ids": ["2"]})
        assert again.status == 409


@pytest.mark.parametrize("most", [1, 2, 3])
def test_the_latest_snapshots_are_kept_though_the_clock_is_set_back(tmp_path, monkeypatch, most):
    forest = BoundaryForestClassifier(n_estimators=2)
    snapshots, made = Snapshots(tmp_path, most), []
    for seen, second in ((9, 8000), (10, 8000), (11, 8000), (12, 500), (13, 4000), (13, 60)):
        rows = np.arange(forest.examples_seen, seen)
        if len(rows):
            forest.partial_fit(rows[:, np.newaxis], ["a"] * len(rows))
        then = time.gmtime(second)
        with monkeypatch.context() as patched:
            patched.setattr(time, "gmtime", lambda then=then: then)
            made.append(snapshots.make(forest))
        # The last two are of one forest.
        assert made[-1] in snapshots.listed()
        assert {file["examples_seen"] for file in snapshots.listed()} <= {
            file["examples_seen"] for file in made[-most:]
        }
        assert len(snapshots.listed()) == min(most, len(made))


def test_health_metrics_and_the_document(tmp_path):
    with in_process(tmp_path) as service:
        assert service.get("/v2/health/live").json == {"live": True}
        assert service.get("/v2/health/ready").json == {"ready": True}
        service.post("/v1/learn", {"rows": [[0.0]], "targets": ["a"]})
        text = service.get("/metrics").content.decode()
        assert "boundary_forest_examples_seen 1.0" in text
        assert 'boundary_forest_requests_total{path="/v1/learn",status="200"} 1.0' in text
        document = service.get("/openapi.json").json
        assert {"/v1/learn", "/v1/predict", "/metrics"} <= document["paths"].keys()
        for path, methods in document["paths"].items():
            for name, operation in methods.items():
                contents = operation["responses"]["200"]["content"]
                assert contents, path
                if name == "post" and "requestBody" in operation:
                    assert operation["requestBody"]["content"]["application/json"]["example"]
