"""Rows as people have them: text, dates, booleans and missing values, by the names of columns."""

from __future__ import annotations

import datetime
import io

import numpy as np
import pyarrow as pa
import pytest
from served import in_process

from boundary_forest import BoundaryForestClassifier, BoundaryForestRegressor

UTC = datetime.UTC
ROWS = [
    {"size": 1.5, "kind": "x", "at": "2026-01-31T12:00:00Z", "new": True},
    {"size": None, "kind": "y", "at": "2026-02-01"},
    {"kind": None, "size": 3, "new": False, "at": None},
    {"size": 9.5, "kind": "a new kind", "at": "2026-02-03T00:00:00+02:00", "new": None},
] * 30
TARGETS = ["yes", "no", "yes", "no"] * 30
DATES = {
    "2026-01-31T12:00:00Z": datetime.datetime(2026, 1, 31, 12, tzinfo=UTC),
    "2026-02-01": datetime.datetime(2026, 2, 1),
    "2026-02-03T00:00:00+02:00": datetime.datetime(2026, 2, 2, 22, tzinfo=UTC),
}
ARROW = "application/vnd.apache.arrow.stream"


def _dated(rows):
    return [{**row, "at": DATES.get(row.get("at"))} for row in rows]


@pytest.mark.parametrize(
    ("task", "forest", "targets"),
    [
        ("classification", BoundaryForestClassifier, TARGETS),
        ("regression", BoundaryForestRegressor, [float(len(y)) for y in TARGETS]),
    ],
)
def test_the_forest_is_the_library_s_whatever_the_requests(tmp_path, task, forest, targets):
    ids = [f"row-{i}" for i in range(len(ROWS))]
    expected = forest.for_streams(columns="auto", random_state=0)
    expected.partial_fit(_dated(ROWS), targets, ids=ids)
    with in_process(tmp_path, task=task) as service:
        at = 0
        for n in (2, 1, 40, 7, 70):
            body = {"rows": ROWS[at : at + n], "targets": targets[at : at + n]}
            learned = service.post("/v1/learn", {**body, "ids": ids[at : at + n]})
            assert learned.status == 200, learned.content
            at += n
        assert service.get("/v1/stats").json["fingerprint"] == expected.fingerprint()
        found = service.post("/v1/predict", {"rows": ROWS[:4]}).json["predictions"]
        assert found == expected.predict(_dated(ROWS[:4])).tolist()
    with in_process(tmp_path) as service:  # the journal has the rows as they came
        assert service.get("/v1/stats").json["fingerprint"] == expected.fingerprint()
        assert service.post("/v1/predict", {"rows": [ROWS[0]]}).json["predictions"] == found[:1]


def test_late_labels_are_learned_with_their_text_and_dates(tmp_path):
    expected = BoundaryForestClassifier.for_streams(columns="auto", random_state=0)
    expected.partial_fit(_dated(ROWS[:8]), TARGETS[:8], ids=[str(i) for i in range(8)])
    with in_process(tmp_path) as service:
        service.post("/v1/predict", {"rows": ROWS[:4], "ids": [0, 1, 2, 3]})  # before all
        service.post("/v1/label", {"ids": [0, 1, 2, 3], "targets": TARGETS[:4]})
        service.post("/v1/predict", {"rows": ROWS[4:8], "ids": [4, 5, 6, 7]})
        service.post("/v1/label", {"ids": [4, 5, 6, 7], "targets": TARGETS[4:8]})
        assert service.get("/v1/stats").json["fingerprint"] == expected.fingerprint()


def test_requests_at_the_same_time_are_learned_together_or_refused_apart(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", {"rows": ROWS[:4], "targets": TARGETS[:4]})
        rows = [*ROWS[:3], {"size": "not a number"}, *ROWS[:3], {"at": "yesterday"}, {"z": 1}]
        bodies = [{"rows": [row], "targets": ["yes"]} for row in rows]
        answers = service.requests([("POST", "/v1/learn", body, None, {}) for body in bodies])
        assert [a.status for a in answers] == [200, 200, 200, 422, 200, 200, 200, 422, 422]
        wrong, date, unknown = (answers[i].json["error"] for i in (3, 7, 8))
        assert "'size'" in wrong["message"]
        assert "'not a number'" in wrong["message"]
        assert (date["where"], unknown["where"]) == ("rows[0].at", "rows[0]")
        assert "'z'" in unknown["message"]
        assert service.get("/v1/stats").json["examples_seen"] == 10
        queries = [("POST", "/v1/predict", {"rows": [row]}, None, {}) for row in rows]
        statuses = [answer.status for answer in service.requests(queries)]
        assert statuses == [200, 200, 200, 422, 200, 200, 200, 422, 422]


def test_a_table_of_arrow_has_its_types(tmp_path):
    table = pa.Table.from_pylist(_dated(ROWS))
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, table.append_column("y", pa.array(TARGETS)).schema) as stream:
        stream.write_table(table.append_column("y", pa.array(TARGETS)))
    with in_process(tmp_path) as service:
        learned = service.post("/v1/learn?target=y", sink.getvalue(), content_type=ARROW)
        assert learned.json["learned"] == len(ROWS)
        dates = service.model.forest.model.fitted.encoder.layout.kinds
        assert sorted(dates) == ["boolean", "date", "number", "text"]
        assert service.post("/v1/predict", {"rows": ROWS[:1]}).status == 200


def test_lists_are_values_in_the_order_of_the_first_columns(tmp_path):
    with in_process(tmp_path) as service:
        named = [{"b": 1.0, "a": 9.0}, {"b": 7.0, "a": 2.0}]
        service.post("/v1/learn", {"rows": named, "targets": ["p", "q"]})
        assert service.post("/v1/predict", {"rows": [[7.0, 2.0]]}).json["predictions"] == ["q"]
        body = io.BytesIO()
        np.save(body, np.array([[1.0, 9.0]]))
        answer = service.post("/v1/predict", body.getvalue(), content_type="application/x-npy")
        assert answer.json["predictions"] == ["p"]
        assert service.post("/v1/predict", {"rows": [[7.0]]}).status == 422
        assert service.post("/v1/explain", {"rows": named[:1]}).json["answer"] == "p"


def test_a_saved_model_keeps_its_columns(tmp_path):
    forest = BoundaryForestClassifier.for_streams(columns="auto", random_state=0)
    forest.partial_fit(_dated(ROWS), TARGETS, ids=[str(i) for i in range(len(ROWS))])
    forest.save(tmp_path / "model.bf")
    with in_process(tmp_path / "served", load=tmp_path / "model.bf") as service:
        assert service.post("/v1/predict", {"rows": [{"unknown": 1}]}).status == 422
        learned = service.post("/v1/learn", {"rows": ROWS[:2], "targets": TARGETS[:2]})
        forest.partial_fit(_dated(ROWS[:2]), TARGETS[:2], ids=learned.json["ids"])
        assert service.get("/v1/stats").json["fingerprint"] == forest.fingerprint()
