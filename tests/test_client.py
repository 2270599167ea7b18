"""The client of a service: every kind of rows, refusals, and kill -9 in the middle of all of it."""

from __future__ import annotations

import os
import random
import signal
import threading
import time

import numpy as np
import pytest
from served import Process

pytest.importorskip("httpx", reason="the serve extra is not installed")

import httpx

from boundary_forest import Client, RequestError

KILLS = int(os.environ.get("BOUNDARY_FOREST_KILLS", "2"))
X = np.array([[0.0, 1.0], [9.0, 1.0], [1.0, 1.0]])
COLUMNS = {"size": [0.0, 9.0, 1.0], "kind": ["x", "y", "x"]}


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with Process(tmp_path_factory.mktemp("client")) as found:
        yield found


def client_of(service, **options):
    return Client(f"http://{service.host}:{service.port}", **options)


def test_arrays_lists_and_late_labels(tmp_path):
    with Process(tmp_path) as service, client_of(service) as client:
        assert client.is_ready()
        before = client.predict(X)
        assert before.values.tolist() == [None] * 3
        assert before.probabilities.shape == (3, 0)
        learned = client.learn(X, np.array(["low", "high", "low"]), ids=[1, 2, 3])
        assert (learned.learned, learned.seen, learned.ids) == (3, 3, ("1", "2", "3"))
        for rows in (X, X.astype(np.float32), X.tolist()):
            found = client.predict(rows)
            assert found.values.tolist() == ["low", "high", "low"]
            assert found.probabilities.shape == (3, 2)
            best = found.classes[found.probabilities.argmax(axis=1)]
            assert best.tolist() == found.values.tolist()
        assert found.to_arrow().column_names[0] == "prediction"
        assert found.to_arrow().num_columns == 3
        client.predict(X[:2], ids=["a", "b"])
        assert client.label(["b", "a"], np.array(["high", "low"])).seen == 5
        both = client.predict_then_learn(X[:1], ["low"])
        assert (both.predictions.values.tolist(), both.seen) == (["low"], 6)
        assert client.explain(X[0])["answer"] == "low"
        assert client.forget(["a", 3]) == 2
        name = client.snapshot()["name"]
        assert len(client.download(name)) > 1000
        assert client.stats()["examples_seen"] == 6


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(library, tmp_path):
    frames = pytest.importorskip(library)
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    frame = getattr(frames, make)(COLUMNS)
    many = getattr(frames, make)({name: values * 20 for name, values in COLUMNS.items()})
    targets, ids = ["no", "yes", "no"] * 20, tuple(map(str, range(60)))
    with Process(tmp_path) as service, client_of(service) as client:
        assert client.learn(many, targets, ids=ids).ids == ids
        assert client.predict(frame).values.tolist() == ["no", "yes", "no"]
        one = [{"size": 9.0, "kind": "y"}]
        assert client.predict(one).values.tolist() == ["yes"]
        assert client.explain(one[0])["answer"] == "yes"


def test_regression_and_retrieval(tmp_path):
    with (
        Process(tmp_path / "a", "--task", "regression") as service,
        client_of(service) as client,
    ):
        assert np.isnan(client.predict(X).values).all()
        client.learn(X, [1.0, 2.0, 3.0])
        found = client.predict(X)
        assert found.values.tolist() == [1.0, 2.0, 3.0]
        assert found.probabilities is None
    with Process(tmp_path / "b", "--task", "retrieval") as service, client_of(service) as client:
        assert client.learn(X, ids=["a", "b", "c"]).seen == 3
        assert client.upsert(X[:1] + 1, ["a"]) == 4
        distances, ids = client.neighbors(X[1:2], n_neighbors=1)
        assert (distances.tolist(), ids) == ([[0.0]], [["b"]])
        assert client.rows(["a"]) == [[1.0, 2.0]]


def test_a_refusal_says_what_and_where(service):
    with client_of(service) as client:
        client.learn([[0.0], [9.0]], ["a", "b"])
        with pytest.raises(RequestError, match="takes rows of 1 numbers, got 2") as refused:
            client.predict([[1.0, 2.0]])
        assert (refused.value.status, refused.value.code) == (422, "unprocessable")
        assert refused.value.where == "rows[0]"
        with pytest.raises(RequestError) as refused:
            client.label(["nobody"], ["a"])
        assert refused.value.status == 404


def test_an_absent_service_is_told_when_patience_ends():
    with Client("http://127.0.0.1:9", patience=0.3) as client:
        begin = time.monotonic()
        assert not client.is_ready()
        with pytest.raises(httpx.TransportError):
            client.stats()
        assert 0.3 <= time.monotonic() - begin < 10


def test_kill_9_of_the_service_loses_nothing_and_repeats_nothing(tmp_path):
    """Threads learn and label while the service is killed and started again on its port."""
    service = Process(tmp_path)
    port, rng = service.port, random.Random(0)
    sent: list[str] = []
    failures: list[BaseException] = []
    stop = threading.Event()

    def work(number: int) -> None:
        try:
            with Client(f"http://127.0.0.1:{port}", timeout=20, patience=600) as client:
                while not stop.is_set():
                    names = [f"{number}-{len(sent)}-{i}-{random.random()}" for i in range(2)]
                    rows = np.random.default_rng().random((2, 3))
                    if number % 2:
                        client.predict(rows, ids=names)
                        client.label(names, ["a", "b"])
                    else:
                        assert client.learn(rows, ["a", "b"], ids=names).ids == tuple(names)
                    sent.extend(names)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.4, 0.9))
            service.stop(signal.SIGKILL)
            service = Process(tmp_path, "--port", str(port))
        time.sleep(0.3)
    finally:
        stop.set()
        for thread in threads:
            thread.join(120)
    with service, Client(f"http://127.0.0.1:{port}") as client:
        assert failures == []
        assert len(sent) > 20
        # Each call was finished, so what was learned is exactly what was sent.
        assert client.stats()["examples_seen"] == len(sent)
        with pytest.raises(RequestError) as refused:
            client.learn([[0.0, 0.0, 0.0]], ["a"], ids=[sent[0]])
        assert refused.value.code == "repeated_id"
