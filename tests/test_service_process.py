"""The service as a process: signals, tokens, and kill -9 under load."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import time
from dataclasses import dataclass, field
from http.client import HTTPException

import numpy as np
import pytest
from served import Process, in_process, send

from boundary_forest import BoundaryForestClassifier
from boundary_forest.service.settings import ServiceSettings

KILLS = int(os.environ.get("BOUNDARY_FOREST_KILLS", "2"))
LEARN = {"rows": [[0.0], [9.0]], "targets": ["a", "b"]}
READER, WRITER = "reader-0123456789", "writer-0123456789"


def test_sigterm_drains_takes_a_snapshot_and_exits_0(tmp_path):
    with Process(tmp_path) as service:
        statuses = []

        def learn():
            try:
                for _ in range(200):
                    statuses.append(service.post("/v1/learn", LEARN).json["seen"])
            except (OSError, HTTPException):
                pass  # it has ended

        threads = [threading.Thread(target=learn) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        assert service.stop(signal.SIGTERM) == 0
        for thread in threads:
            thread.join(30)
        stopped = json.loads(service.lines[-1])
        assert stopped["event"] == "stopped"
        assert stopped["examples_seen"] >= max(statuses) > 0
        log = tmp_path / "journal.sqlite-wal"
        assert not log.exists() or log.stat().st_size == 0
    with in_process(tmp_path) as service:
        assert service.model.forest.journal_bytes == 0  # the snapshot has it all
        assert service.model.forest.examples_seen == stopped["examples_seen"]


def test_tokens(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"# comment\nread {READER}\nwrite {WRITER}\n")
    with Process(tmp_path / "model", "--token-file", str(tokens)) as service:
        reads, writes = {"authorization": f"Bearer {READER}"}, {"authorization": f"Bearer {WRITER}"}
        assert service.get("/v2/health/ready").status == 200
        for wrong in ({}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {WRITER}"}):
            answer = service.post("/v1/learn", LEARN, **wrong)
            assert (answer.status, answer.code) == (401, "unauthorized")
            assert answer.headers["www-authenticate"] == "Bearer"
            assert service.get("/v1/stats", **wrong).status == 401
            assert service.get("/metrics", **wrong).status == 401
        assert service.post("/v1/learn", LEARN, **reads).status == 403
        assert service.post("/v1/learn", LEARN, **writes).status == 200
        query = {"rows": [[1.0]]}
        assert service.post("/v1/predict", query, **reads).status == 200
        assert service.post("/v1/predict", {**query, "ids": [1]}, **reads).status == 403
        assert service.post("/v1/predict", {**query, "ids": [1]}, **writes).status == 200
        tokens.write_text("nonsense")
        service.process.send_signal(signal.SIGHUP)
        _wait_for(lambda: any("tokens not reloaded" in line for line in service.lines))
        assert service.get("/v1/stats", **reads).status == 200  # the old ones hold
        tokens.write_text("write another-0123456789")
        service.process.send_signal(signal.SIGHUP)
        _wait_for(lambda: any("tokens reloaded" in line for line in service.lines))
        assert service.get("/v1/stats", **reads).status == 401
        assert service.get("/v1/stats", authorization="Bearer another-0123456789").status == 200
        assert not any(READER in line or WRITER in line for line in service.lines)


def test_other_addresses_require_tokens(tmp_path):
    for host in ("0.0.0.0", "::", "192.0.2.1", "example.org"):
        with pytest.raises(ValueError, match="--token-file"):
            ServiceSettings(tmp_path, host=host).check()
    for host in ("127.0.0.1", "127.9.9.9", "::1", "localhost"):
        ServiceSettings(tmp_path, host=host).check()
    ServiceSettings(tmp_path, host="0.0.0.0", token_file=tmp_path / "tokens").check()


def _wait_for(condition):
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@dataclass
class Client:
    """A client that remembers what was acknowledged, and what may have been."""

    number: int
    learned: dict[str, tuple[int, float, str]] = field(default_factory=dict)  # seen, x, target
    waiting: dict[str, float] = field(default_factory=dict)
    unsure: dict[str, tuple[float, str]] = field(default_factory=dict)
    n: int = 0

    def run(self, service: Process, rng: random.Random) -> None:
        """Send requests until the service dies."""
        try:
            connection = service.connect()
            while True:
                self._send(connection, rng)
        except (TimeoutError, OSError, HTTPException):
            pass

    def _send(self, connection, rng):
        self.n += 1
        id, x = f"{self.number}-{self.n}", rng.random()
        target = "high" if x > 0.5 else "low"
        kind = rng.choice(["learn", "predict", "predict", "label", "predict-then-learn"])
        if kind == "predict":
            answer = send(connection, "POST", "/v1/predict", {"rows": [[x]], "ids": [id]})
            assert answer.status == 200
            self.waiting[id] = x
            return
        if kind == "label":
            if not self.waiting:
                return
            id = rng.choice(sorted(self.waiting))
            x = self.waiting.pop(id)
            target = "high" if x > 0.5 else "low"
            body = {"ids": [id], "targets": [target]}
        else:
            body = {"rows": [[x]], "targets": [target], "ids": [id]}
        self.unsure[id] = (x, target)
        answer = send(connection, "POST", f"/v1/{kind}", body, idempotency_key=f"key-{id}")
        assert answer.status == 200, answer.content
        del self.unsure[id]
        self.learned[id] = (answer.json["seen"], x, target)


def test_kill_9_loses_nothing_and_learns_nothing_twice(tmp_path):
    rng = random.Random(KILLS)
    clients = [Client(i) for i in range(6)]
    for _ in range(KILLS):
        with Process(tmp_path) as service:
            threads = [
                threading.Thread(target=c.run, args=(service, random.Random(rng.random())))
                for c in clients
            ]
            for thread in threads:
                thread.start()
            time.sleep(rng.uniform(0.05, 0.8))
            service.process.kill()
            for thread in threads:
                thread.join(60)
        _check(tmp_path, clients)
    assert sum(len(client.learned) for client in clients) > KILLS


def _check(folder, clients):
    """Compare what is on the disk with what was acknowledged."""
    with in_process(folder) as service:
        seen = service.model.forest.examples_seen
        learned = [x for client in clients for x in client.learned.items()]
        order = {n: (id, x, target) for id, (n, x, target) in learned}
        assert len(order) == len(learned)  # no two rows have the same place
        tables = service.model.tables
        for client in clients:
            for id, (x, target) in [*client.unsure.items()]:
                # Sent, and not answered: it was learned or not, as its key tells.
                body = {"rows": [[x]], "targets": [target], "ids": [id]}
                if ("learned", id) in tables.ids:
                    assert id not in tables.waiting
                    client.learned[id] = (_place(service, id, body), x, target)
                elif id in tables.waiting:
                    client.waiting[id] = x
                del client.unsure[id]
            for id in client.waiting:
                assert id in tables.waiting
        learned = {n: (id, x, t) for c in clients for id, (n, x, t) in c.learned.items()}
        assert sorted(learned) == [*range(1, seen + 1)]
        if not seen:
            return
        forest = BoundaryForestClassifier.for_streams(random_state=0, columns="auto")
        ids, X, y = zip(*(learned[n] for n in sorted(learned)), strict=True)
        forest.partial_fit(np.array(X, np.float32)[:, None], y, ids=ids)
        assert forest.fingerprint() == service.get("/v1/stats").json["fingerprint"]


def _place(service, id, body):
    """Return the ``seen`` of a request that was done, from the response to its key."""
    for path in ("/v1/learn", "/v1/predict-then-learn", "/v1/label"):
        if path == "/v1/label":
            body = {"ids": [id], "targets": body["targets"]}
        answer = service.post(path, body, idempotency_key=f"key-{id}")
        if answer.status == 200:
            return answer.json["seen"]
    raise AssertionError(f"{id} was learned, but its key is unknown")
