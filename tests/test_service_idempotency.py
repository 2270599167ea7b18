"""An acknowledged request is done once, whatever is repeated and wherever the process dies."""

from __future__ import annotations

import json
import sqlite3
import threading

import pytest
from served import in_process

from boundary_forest.service.bodies import read_body
from boundary_forest.service.jobs import Job
from boundary_forest.service.learning import GroupLearner
from boundary_forest.service.settings import Limits

LEARN = {"rows": [[0.0], [9.0]], "targets": ["a", "b"]}


@pytest.mark.parametrize("path", ["/v1/learn", "/v1/predict-then-learn"])
def test_a_key_learns_once_after_a_restart_too(tmp_path, path):
    with in_process(tmp_path) as service:
        first = service.post(path, LEARN, idempotency_key="k")
        assert service.post(path, LEARN, idempotency_key="k").content == first.content
        both = service.requests([("POST", path, LEARN, None, {"idempotency-key": "m"})] * 4)
        assert {answer.content for answer in both} == {both[0].content}
    with in_process(tmp_path) as service:
        assert service.post(path, LEARN, idempotency_key="k").content == first.content
        assert service.get("/v1/stats").json["examples_seen"] == 4


def test_a_key_with_another_request_is_refused(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN, idempotency_key="k")
        other = {"rows": [[1.0]], "targets": ["a"]}
        assert service.post("/v1/learn", other, idempotency_key="k").status == 422
        assert service.post("/v1/predict-then-learn", LEARN, idempotency_key="k").status == 422
        assert service.get("/v1/stats").json["examples_seen"] == 2


def test_a_refused_request_does_not_use_its_key_up(tmp_path):
    with in_process(tmp_path) as service:
        bad = {"rows": [[0.0], [9.0, 1.0]], "targets": ["a", "b"]}
        assert service.post("/v1/learn", bad, idempotency_key="k").status == 422
        assert service.post("/v1/learn", LEARN, idempotency_key="k").status == 200


def test_keys_are_bounded(tmp_path):
    with in_process(tmp_path, limits=Limits(keys=2)) as service:
        for i in range(4):
            body = {"rows": [[float(i)]], "targets": ["a"]}
            service.post("/v1/learn", body, idempotency_key=f"k{i}")
        service.post("/v1/learn", LEARN)
        ((n,),) = service.model.forest.database.rows("SELECT count(*) FROM service_responses")
        assert n == 2


class Killed(BaseException):
    """Stands for the end of the process."""


def _crash(monkeypatch, owner, name):
    def killed(*_args, **_more):
        raise Killed

    monkeypatch.setattr(owner, name, killed)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_what_was_learned_but_not_answered_is_taken_back(tmp_path, monkeypatch):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN)
        service.post("/v1/predict", {"rows": [[3.0]], "ids": ["p"]})
        before = service.get("/v1/stats").json
        learner = service._service._writer._learner
        body = {"rows": [[4.0], [5.0]], "targets": ["c", "c"], "ids": ["x", "y"]}
        with monkeypatch.context() as patch:
            _crash(patch, GroupLearner, "_answer")
            wanted = [
                ("POST", "/v1/label", {"ids": ["p"], "targets": ["a"]}, None, {}),
                ("POST", "/v1/predict-then-learn", body, None, {"idempotency-key": "k"}),
            ]
            jobs = _jobs(service, wanted)
            with pytest.raises(Killed):
                learner.run(jobs)
        assert service.model.forest.examples_seen == 5
    with in_process(tmp_path) as service:
        after = service.get("/v1/stats").json
        assert after["fingerprint"] == before["fingerprint"]
        assert after["scores"] == before["scores"]
        assert after["waiting"]["rows"] == 1
        answered = service.post("/v1/predict-then-learn", body, idempotency_key="k")
        assert (answered.status, answered.json["seen"]) == (200, 4)
        assert service.post("/v1/label", {"ids": ["p"], "targets": ["a"]}).json["seen"] == 5


def _jobs(service, wanted):
    """Return jobs that nobody waits for."""

    async def made():
        found = []
        for _, path, body, _, headers in wanted:
            content = json.dumps(body).encode()
            key = headers.get("idempotency-key")
            kind = path.rpartition("/")[2]
            parsed = read_body(content, "application/json", {})
            parsed.check(Limits(), tuple(body))
            found.append(Job(kind, parsed, key and key.encode(), key and content))
        return found

    return service._await(made())


def test_a_process_that_dies_after_the_commit_has_learned(tmp_path, monkeypatch):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN)
        jobs = _jobs(
            service, [("POST", "/v1/learn", {"rows": [[4.0]], "targets": ["a"]}, None, {})]
        )
        with monkeypatch.context() as patch:
            _crash(patch, type(service.recorder), "learned")
            with pytest.raises(Killed):
                service._service._writer._learner.run(jobs)
    with in_process(tmp_path) as service:
        assert service.get("/v1/stats").json["examples_seen"] == 3


def test_a_call_that_cannot_be_learned_ends_the_service_and_is_taken_back(tmp_path, monkeypatch):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN)
        before = service.get("/v1/stats").json["fingerprint"]

        def no_memory(*_args, **_more):
            raise MemoryError

        with monkeypatch.context() as patch:
            patch.setattr("boundary_forest.estimators.learning.train_engine", no_memory)
            body = {"rows": [[4.0]], "targets": ["a"], "ids": ["x"]}
            failed = service.post("/v1/learn", body, idempotency_key="k")
        assert failed.status == 503
        assert service.failures.get(timeout=10) is not None
        assert service.get("/v2/health/ready").status == 503
        assert service.post("/v1/learn", LEARN).status == 503
        assert service.post("/v1/predict", {"rows": [[4.0]]}).status == 200
    with in_process(tmp_path) as service:
        assert service.get("/v1/stats").json["fingerprint"] == before
        answered = service.post("/v1/learn", body, idempotency_key="k")
        assert answered.json["seen"] == 3


def test_a_full_disk_is_reported_and_nothing_is_learned(tmp_path, monkeypatch):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN)
        write = type(service.model.tables).write
        full = sqlite3.OperationalError("database or disk is full")

        def fails(tables, changes):
            write(tables, changes)
            raise full

        with monkeypatch.context() as patch:
            patch.setattr(type(service.model.tables), "write", fails)
            body = {"rows": [[4.0]], "targets": ["a"], "ids": ["x"]}
            assert service.post("/v1/learn", body).status == 503
            assert service.post("/v1/predict", {"rows": [[4.0]], "ids": ["w"]}).status == 503
        assert service.get("/v1/stats").json["examples_seen"] == 2
        assert service.post("/v1/learn", body).json["seen"] == 3
        assert service.post("/v1/label", {"ids": ["w"], "targets": ["a"]}).status == 404


def test_concurrent_requests_share_commits_and_one_bad_one_harms_no_other(tmp_path):
    with in_process(tmp_path) as service:
        service.post("/v1/learn", LEARN)
        before = service._service._writer.groups
        wanted = [
            ("POST", "/v1/learn", {"rows": [[float(i)]], "targets": ["a"], "ids": [i]}, None, {})
            for i in range(60)
        ]
        wanted[30] = ("POST", "/v1/learn", {"rows": [[1.0, 2.0]], "targets": ["a"]}, None, {})
        wanted[40] = (
            "POST",
            "/v1/learn",
            {"rows": [[1.0]], "targets": ["a"], "ids": [3]},
            None,
            {},
        )
        answers = service.requests(wanted)
        statuses = [answer.status for answer in answers]
        assert statuses.count(200) == 58
        assert (statuses[30], statuses[40]) == (422, 409)
        assert sorted(a.json["seen"] for a in answers if a.status == 200) == [*range(3, 61)]
        assert service._service._writer.groups - before < 20


def test_a_full_queue_is_a_429(tmp_path):
    with in_process(tmp_path, limits=Limits(queue=3)) as service:
        service.post("/v1/learn", LEARN)
        with service.model.forest.learning_paused():
            wanted = [("POST", "/v1/learn", LEARN, None, {})] * 12
            answers = []
            thread = threading.Thread(target=lambda: answers.extend(service.requests(wanted)))
            thread.start()
            thread.join(0.5)
        thread.join(30)
        statuses = [answer.status for answer in answers]
        assert {*statuses} == {200, 429}
        refused = next(answer for answer in answers if answer.status == 429)
        assert refused.headers["retry-after"] == "1"
        assert refused.code == "queue_full"
