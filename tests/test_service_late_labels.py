"""Labels that come late: waiting rows, their ids, their expiry, and what forget erases."""

from __future__ import annotations

import time

import numpy as np
import pytest
from served import in_process

from boundary_forest import BoundaryForestClassifier
from boundary_forest.service.settings import Limits
from boundary_forest.service.tables import ServiceTables

FIRST = {"rows": [[0.0], [9.0]], "targets": ["a", "b"], "ids": ["first", "second"]}


@pytest.fixture
def service(tmp_path):
    with in_process(tmp_path) as found:
        found.post("/v1/learn", FIRST)
        yield found


def test_rows_are_learned_in_the_order_of_their_labels(tmp_path):
    with in_process(tmp_path) as service:
        for id, x in (("p", 1.0), ("q", 8.0), ("r", 4.0)):
            assert service.post("/v1/predict", {"rows": [[x]], "ids": [id]}).status == 200
        labelled = service.post("/v1/label", {"ids": ["r", "p"], "targets": ["b", "a"]})
        assert labelled.json == {"learned": 2, "seen": 2}
        service.post("/v1/label", {"ids": ["q"], "targets": ["b"]})
        fingerprint = service.get("/v1/stats").json["fingerprint"]
    forest = BoundaryForestClassifier.for_streams(random_state=0, columns="auto")
    forest.partial_fit(np.float32([[4.0], [1.0], [8.0]]), ["b", "a", "b"], ids=["r", "p", "q"])
    assert forest.fingerprint() == fingerprint


def test_the_accuracy_is_that_of_the_answers_given_at_the_time(service):
    assert service.post("/v1/predict", {"rows": [[8.0]], "ids": [7]}).json["predictions"] == ["b"]
    service.post("/v1/learn", {"rows": [[8.0]], "targets": ["a"]})  # now it would answer "a"
    assert service.post("/v1/predict", {"rows": [[8.0]]}).json["predictions"] == ["a"]
    service.post("/v1/label", {"ids": [7], "targets": ["a"]})
    scores = service.get("/v1/stats").json["scores"]
    assert (scores["answers"], scores["accuracy"]) == (1, 0.0)


def test_unknown_and_repeated_ids(service):
    service.post("/v1/predict", {"rows": [[1.0], [2.0]], "ids": ["p", "q"]})
    unknown = service.post("/v1/label", {"ids": ["p", "z"], "targets": ["a", "a"]})
    assert (unknown.status, unknown.json["error"]["where"]) == (404, "ids[1]")
    assert service.get("/v1/stats").json["examples_seen"] == 2  # one bad id: nothing is learned
    assert service.post("/v1/label", {"ids": ["p"], "targets": ["a"]}).status == 200
    assert service.post("/v1/label", {"ids": ["p"], "targets": ["a"]}).status == 409
    assert service.post("/v1/predict", {"rows": [[1.0]], "ids": ["p"]}).status == 409
    learn = {"rows": [[1.0]], "targets": ["a"]}
    assert service.post("/v1/learn", {**learn, "ids": ["first"]}).status == 409
    assert service.post("/v1/learn", {**learn, "ids": ["q"]}).status == 409  # it waits
    twice = service.post("/v1/predict", {"rows": [[1.0], [2.0]], "ids": ["s", "s"]})
    assert (twice.status, twice.code) == (409, "repeated_id")


def test_predicting_again_replaces_the_waiting_row(service):
    service.post("/v1/predict", {"rows": [[1.0]], "ids": ["p"]})
    service.post("/v1/predict", {"rows": [[5.0]], "ids": ["p"]})
    assert service.get("/v1/stats").json["waiting"]["rows"] == 1
    service.post("/v1/label", {"ids": ["p"], "targets": ["b"]})
    near = service.model.forest.kneighbors([[5.0]], 1)
    assert (near[0].item(), near[1].item()) == (0.0, "p")


def test_waiting_rows_are_bounded_by_number_and_age(tmp_path, monkeypatch):
    limits = Limits(waiting=3, waiting_seconds=3600.0)
    with in_process(tmp_path, limits=limits) as service:
        for i in range(5):
            service.post("/v1/predict", {"rows": [[float(i)]], "ids": [i]})
        service.post("/v1/learn", FIRST)  # the writer has looked after its house by then
        assert sorted(service.model.tables.waiting) == ["2", "3", "4"]
        assert service.post("/v1/label", {"ids": [0], "targets": ["a"]}).status == 410
        now = time.time()
        monkeypatch.setattr("boundary_forest.service.tables.time.time", lambda: now + 4000)
        service.post("/v1/learn", {"rows": [[1.0]], "targets": ["a"]})
        service.post("/v1/learn", {"rows": [[1.0]], "targets": ["a"]})
        assert service.post("/v1/label", {"ids": [4], "targets": ["a"]}).status == 410
        waiting = service.get("/v1/stats").json["waiting"]
        assert waiting == {
            "rows": 0,
            "most_rows": 3,
            "oldest_seconds": None,
            "most_seconds": 3600.0,
        }
        again = service.post("/v1/predict", {"rows": [[1.0]], "ids": [4]})
        assert again.status == 200


def test_waiting_rows_survive_a_restart(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", FIRST)
        service.post("/v1/predict", {"rows": [[8.0], [1.0]], "ids": ["p", "q"]})
        service.post("/v1/label", {"ids": ["q"], "targets": ["a"]})
    with in_process(tmp_path) as service:
        assert sorted(service.model.tables.waiting) == ["p"]
        assert service.get("/v1/stats").json["scores"]["answers"] == 1
        assert service.post("/v1/label", {"ids": ["p"], "targets": ["a"]}).json["seen"] == 4
        assert service.post("/v1/label", {"ids": ["q"], "targets": ["a"]}).status == 409
        assert service.get("/v1/stats").json["scores"]["accuracy"] == 0.5


def _bytes_in(folder):
    return b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())


def test_forget_erases_every_byte(tmp_path):
    """But for the names of categories that were learned, which are statistics of the columns."""
    secret, number = "the-secret-value", 51234.5
    with in_process(tmp_path) as service:
        rows = [{"a": 1, "b": "x"}, {"a": 7, "b": "y"}]
        service.post("/v1/learn", {"rows": rows, "targets": ["m", "n"]})
        service.post("/v1/predict", {"rows": [{"a": 1, "b": secret}], "ids": ["waits"]})
        body = {"rows": rows[:1], "targets": ["m"], "ids": ["id-of-someone"]}
        service.post("/v1/learn", body, idempotency_key="key-1")
        service.post("/v1/predict", {"rows": [{"a": number, "b": "x"}], "ids": ["labelled"]})
        service.post("/v1/predict", {"rows": [{"a": 5, "b": secret}], "ids": ["more"]})
        service.post("/v1/label", {"ids": ["labelled"], "targets": ["m"]})
        assert secret.encode() in _bytes_in(tmp_path)
        assert np.float64(number).tobytes() in _bytes_in(tmp_path)
        assert b"51234.5" in _bytes_in(tmp_path)
        assert b"id-of-someone" in _bytes_in(tmp_path)
        ids = ["waits", "id-of-someone", "labelled", "more"]
        unknown = service.post("/v1/forget", {"ids": [*ids, "unknown"]})
        assert (unknown.status, unknown.json["error"]["where"]) == (404, "ids[4]")
        assert service.post("/v1/forget", {"ids": ids}).json["forgotten"] == 4
        assert secret.encode() not in _bytes_in(tmp_path)
        assert np.float64(number).tobytes() not in _bytes_in(tmp_path)
        assert b"51234.5" not in _bytes_in(tmp_path)
        assert b"id-of-someone" not in _bytes_in(tmp_path)
        assert service.post("/v1/learn", body, idempotency_key="key-1").status == 410
        assert service.post("/v1/label", {"ids": ["waits"], "targets": ["m"]}).status == 404
        assert service.post("/v1/learn", body).status == 200  # the id may be used again


def test_expiry_erases_every_byte(tmp_path, monkeypatch):
    secret = "the-secret-value"
    monkeypatch.setattr("boundary_forest.service.writer.ERASING", 0.0)
    with in_process(tmp_path, limits=Limits(waiting=1)) as service:
        service.post("/v1/predict", {"rows": [{"b": secret}], "ids": ["p"]})
        service.post("/v1/predict", {"rows": [{"b": "x"}], "ids": ["q"]})
        service.post("/v1/learn", {"rows": [{"b": "x"}], "targets": ["m"]})
        service.post("/v1/learn", {"rows": [{"b": "x"}], "targets": ["m"]})
        assert secret.encode() not in _bytes_in(tmp_path)


def test_remembered_ids_are_bounded(tmp_path):
    with in_process(tmp_path, limits=Limits(learned_ids=4)) as service:
        for i in range(8):
            service.post("/v1/learn", {"rows": [[float(i)]], "targets": ["a"], "ids": [i]})
        tables = service.model.tables
        known = [i for i in range(8) if ("learned", str(i)) in tables.ids]
        assert known == [3, 4, 5, 6, 7]  # the limit, and what was written with the oldest of them
        again = ServiceTables(service.model.forest.database, Limits(learned_ids=4))
        assert [i for i in range(8) if ("learned", str(i)) in again.ids] == known


def test_rows_that_the_forest_did_not_keep_are_erased_too(tmp_path):
    rows = [[float(x)] for x in (0, 9)] + [[8.5 + i / 1000] for i in range(150)]
    body = {"rows": rows, "targets": [0.0] + [1.0] * 151, "ids": [*range(152)]}
    with in_process(tmp_path, task="regression") as service:  # of classes there is a sample, too
        service.post("/v1/learn", body)
        service.request("POST", "/v1/snapshot")
        unkept = [id for id in map(str, range(152)) if not service.model.is_stored(id)]
        assert unkept  # it was answered right, and is only among the latest examples
        wanted = np.float32(rows[int(unkept[0])][0]).tobytes()
        assert wanted in _bytes_in(tmp_path)
        assert service.post("/v1/forget", {"ids": unkept[:1]}).status == 200
        assert wanted not in _bytes_in(tmp_path)
        assert service.post("/v1/forget", {"ids": unkept[:1]}).status == 404


def test_a_model_that_learned_without_ids_cannot_forget(tmp_path):
    forest = BoundaryForestClassifier.for_streams(random_state=0).partial_fit(
        [[0.0], [9.0]], [1, 2]
    )
    forest.save(tmp_path / "model.bf")
    with in_process(tmp_path / "served", load=tmp_path / "model.bf") as service:
        learned = service.post("/v1/learn", {"rows": [[5.0]], "targets": [2], "ids": ["p"]})
        assert learned.json == {"learned": 1, "seen": 3, "ids": ["p"]}
        refused = service.post("/v1/forget", {"ids": ["p"]})
        assert (refused.status, refused.code) == (409, "no_ids")
        service.post("/v1/predict", {"rows": [[5.0]], "ids": ["waits"]})
        assert service.post("/v1/forget", {"ids": ["waits"]}).status == 200
