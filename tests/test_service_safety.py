"""Requests that are wrong, large, slow or forged: the documented 4xx, and the service goes on."""

from __future__ import annotations

import json
import socket
import time

import pytest
from served import Process, in_process

from boundary_forest.service.settings import Limits

LEARN = {"rows": [[0.0, 1.0], [9.0, 1.0]], "targets": ["a", "b"]}
SMALL = (
    "import sys\n"
    "from boundary_forest.service import Limits, ServiceSettings, serve\n"
    "from pathlib import Path\n"
    "limits = Limits(body_bytes=20_000, connections=20, head_seconds=0.7, body_seconds=0.7,"
    " write_seconds=0.7)\n"
    "sys.exit(serve(ServiceSettings(Path(sys.argv[1]), port=0, seed=0, limits=limits)))\n"
)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    with in_process(tmp_path_factory.mktemp("safety"), limits=Limits(rows=5, columns=4)) as found:
        found.post("/v1/learn", LEARN)
        yield found
        assert found.post("/v1/predict", {"rows": [[1.0, 1.0]]}).status == 200  # it goes on
        assert found.failures.empty()


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"null", 400),
        (b"\xff\xfe", 400),
        (b"[" * 100_000, 400),
        (b'{"rows": [[NaN, 1]]}', 400),
        (b'{"rows": [[Infinity, 1]]}', 400),
        (b'{"rows": [["\\ud800", 1]]}', 400),
        (b'{"rows": [[' + b"9" * 5000 + b", 1]]}", 400),
        (b'{"rows": [[1e999, 1]]}', 422),
        (b'{"rows": [[1e300, 1]]}', 422),
        (b'{"rows": [[' + b"9" * 400 + b", 1]]}", 422),
        (b"{}", 422),
        (b'{"rows": null}', 422),
        (b'{"rows": {}}', 422),
        (b'{"rows": []}', 422),
        (b'{"rows": [1, 2]}', 422),
        (b'{"rows": [[]]}', 422),
        (b'{"rows": [[1]]}', 422),
        (b'{"rows": [[1, 2, 3]]}', 422),
        (b'{"rows": [[1, null]]}', 422),
        (b'{"rows": [[1, "2"]]}', 422),
        (b'{"rows": [[1, 2], {"a": 1}]}', 422),
        (b'{"rows": [{"a": 1, "b": 2}]}', 422),
        (b'{"rows": [{"a": {"b": 2}}]}', 422),
        (b'{"rows": [[1, 2]], "more": 1}', 422),
        (b'{"rows": [[1, 2]], "ids": "a"}', 422),
        (b'{"rows": [[1, 2]], "ids": [1.5]}', 422),
        (b'{"rows": [[1, 2]], "ids": [""]}', 422),
        (b'{"rows": [[1, 2]], "ids": [true]}', 422),
        (b'{"rows": [[1, 2]], "ids": ["a", "b"]}', 422),
        (b'{"rows": [[1, 2]], "ids": ["' + b"x" * 201 + b'"]}', 422),
        (b'{"rows": [[1, 2], [1, 2], [1, 2], [1, 2], [1, 2], [1, 2]]}', 422),
        (b'{"rows": [[1, 2, 3, 4, 5]]}', 422),
    ],
)
def test_bad_rows(service, body, status):
    answer = service.post("/v1/predict", body)
    assert (answer.status, {*answer.json}) == (status, {"error"})
    assert answer.headers["content-type"] == "application/json"
    assert "Traceback" not in answer.content.decode()


@pytest.mark.parametrize(
    "targets", [[None, "a"], [1.5, 2.5], ["a"], ["a", 1], [[1], [2]], [10**30, 1], [{}, {}], []]
)
def test_bad_targets(service, targets):
    seen = service.get("/v1/stats").json["examples_seen"]
    assert service.post("/v1/learn", {**LEARN, "targets": targets}).status == 422
    assert service.get("/v1/stats").json["examples_seen"] == seen


@pytest.mark.parametrize("key", ["", "x" * 201])
def test_bad_keys(service, key):
    assert service.post("/v1/learn", LEARN, idempotency_key=key).status == 422


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{}", "text/plain", 415),
        (b"{}", "application/x-www-form-urlencoded", 415),
        (b"{}", "multipart/form-data; boundary=x", 415),
        (b"x", "application/x-npy", 400),
        (b"", "application/x-npy", 400),
        (b"\x93NUMPY\x01\x00\x76\x00", "application/x-npy", 400),
        (
            b"\x93NUMPY\x01\x00F\x00{'descr': '<f8', 'fortran_order': False, "
            b"'shape': (99999999999, 9), }\n",
            "application/x-npy",
            400,
        ),
        (b"ARROW1", "application/vnd.apache.arrow.stream", 400),
        (
            b"\xff\xff\xff\xff\x10\x00\x00\x00" + b"\x7f" * 16,
            "application/vnd.apache.arrow.stream",
            400,
        ),
    ],
)
def test_content_types(service, body, kind, status):
    assert service.post("/v1/predict", body, content_type=kind).status == status


def test_compressed_bodies_are_refused(service):
    assert service.post("/v1/predict", b"{}", content_encoding="gzip").status == 415


@pytest.mark.parametrize(
    "path",
    [
        "//",
        "/v1/",
        "/v1/learn/",
        "//v1/learn",
        "/v1/../v1/learn",
        "/v1/snapshot/..%2fmodel.bf",
        "/v1/snapshot/../model.bf",
        "/v1/snapshot/model.bf",
        "/docs",
        "/redoc",
        "/v1/LEARN",
    ],
)
def test_path_tricks(service, path):
    assert service.get(path).status == 404


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "", "localhost@evil", "evil:8000"]
)
def test_forged_hosts(service, host):
    answer = service.get("/v1/stats", host=host)
    assert (answer.status, answer.code) == (403, "forbidden_host")


def test_origins(service):
    for origin in ("http://evil.example", "null", "http://127.0.0.1:9999", "file://"):
        answer = service.get("/v1/stats", origin=origin)
        assert (answer.status, answer.code) == (403, "forbidden_origin")
    assert service.get("/v1/stats", origin="http://127.0.0.1:8000").status == 200
    for host in ("localhost:1", "127.0.0.1", "[::1]:8000", "LOCALHOST"):
        assert service.get("/v1/stats", host=host).status == 200


def test_methods(service):
    for method in ("GET", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = service.request(method, "/v1/learn")
        assert (answer.status, answer.code) == (405, "method_not_allowed")


@pytest.fixture(scope="module")
def process(tmp_path_factory):
    with Process(tmp_path_factory.mktemp("limits"), code=SMALL) as found:
        found.post("/v1/learn", LEARN)
        yield found
        assert found.post("/v1/predict", {"rows": [[1.0, 1.0]]}).status == 200
        assert not any("Traceback" in line for line in found.lines)


def _talk(process, *parts, pause=0.0):
    """Send bytes, and return everything that comes back until the connection is closed."""
    with process.socket() as connection:
        for part in parts:
            try:
                connection.sendall(part)
            except OSError:  # closed by the other side
                break
            time.sleep(pause)
        got = b""
        while True:
            try:
                more = connection.recv(1 << 16)
            except ConnectionError:
                break
            if not more:
                break
            got += more
        return got


HEAD = b"POST /v1/predict HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"


def test_oversized_bodies(process):
    got = _talk(process, HEAD + b"Content-Length: 999999999\r\n\r\n")
    assert got.startswith(b"HTTP/1.1 413 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "too_large"
    chunk = b"1000\r\n" + b"x" * 0x1000 + b"\r\n"
    got = _talk(process, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *[chunk] * 8)
    assert got.startswith(b"HTTP/1.1 413 ")
    body = json.dumps({"rows": [[1.0, 1.0]]}).encode()
    chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    head = HEAD + b"Connection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
    assert _talk(process, head + chunked).startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(
    "head",
    [
        b"nonsense\r\n\r\n",
        b"CONNECT 127.0.0.1:80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
        b"GET /v1/stats HTTP/1.1\r\n\r\n",
        b"GET /v1/stats HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        HEAD + b"Content-Length: -5\r\n\r\n",
        HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n",
    ],
)
def test_what_is_not_http(process, head):
    got = _talk(process, head)
    assert got.startswith(b"HTTP/1.1 400 ")
    assert json.loads(got.partition(b"\r\n\r\n")[2])["error"]["code"] == "bad_request"


def test_an_endless_head(process):
    head = b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "
    got = _talk(process, head, *[b"x" * 100_000] * 10)
    assert not got or got.startswith(b"HTTP/1.1 400 ")  # a reset may overtake the response


def test_a_head_of_many_fields(process):
    fields = b"".join(b"X-%d: y\r\n" % i for i in range(10_000))
    got = _talk(process, b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n" + fields + b"\r\n")
    assert not got or got.startswith(b"HTTP/1.1 400 ")
    head = HEAD + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    got = _talk(process, head + fields + b"\r\n")  # after the body
    assert not got or got.startswith(b"HTTP/1.1 4")


def test_other_protocols_are_not_spoken(process):
    body = json.dumps({"rows": [[1.0, 1.0]]}).encode()
    upgrade = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AA\r\n"
    request = HEAD + upgrade + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with process.socket() as connection:
        for cut in (len(request), len(request), len(request) - 9, 40):
            connection.sendall(request[:cut])
            time.sleep(0.05)
            connection.sendall(request[cut:])
            assert connection.recv(1 << 16).startswith(b"HTTP/1.1 200 ")


def test_slow_heads_and_bodies(process):
    start = time.monotonic()
    for head in (b"", b"GET /v1/st", HEAD):  # and then nothing
        assert _talk(process, head).startswith(b"HTTP/1.1 408 ")
    dripping = [bytes([byte]) for byte in HEAD[:40]]
    assert _talk(process, *dripping, pause=0.1).startswith(b"HTTP/1.1 408 ")
    partial = HEAD + b"Content-Length: 100\r\n\r\n{"
    assert _talk(process, partial).startswith(b"HTTP/1.1 408 ")
    chunks = [b"1\r\nx\r\n"] * 40
    got = _talk(process, HEAD + b"Transfer-Encoding: chunked\r\n\r\n", *chunks, pause=0.1)
    assert got.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - start < 20


def test_a_second_slow_head_on_a_connection(process):
    first = b"GET /v2/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    got = _talk(process, first + b"GET /v2/hea")
    assert got.startswith(b"HTTP/1.1 200 ")
    assert b"HTTP/1.1 408 " in got


def test_half_open_clients_tie_up_nothing(process):
    idle = [process.socket() for _ in range(30)]  # more than may be connected
    try:
        time.sleep(1.2)
        assert process.post("/v1/predict", {"rows": [[1.0, 1.0]]}).status == 200
    finally:
        for connection in idle:
            connection.close()


def test_a_client_that_does_not_read_is_dropped(process):
    request = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    with process.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.settimeout(0.5)
        end, sent = time.monotonic() + 15, True
        while sent and time.monotonic() < end:
            try:
                connection.sendall(request * 50)
            except TimeoutError:
                continue
            except OSError:  # reset by the service
                sent = False
        assert not sent


def test_rows_are_never_logged(tmp_path):
    with Process(tmp_path, "--log-requests") as service:
        service.post("/v1/learn", {"rows": [{"a": "secret-1"}], "targets": ["secret-2"]})
        service.post("/v1/learn", {"rows": [{"b": "secret-3"}], "targets": ["secret-4"]})
        service.post("/v1/predict", {"rows": [["secret-5"]], "ids": ["secret-6"]})
        service.get("/v1/secret-7?id=secret-8")
        service.stop(15)
        events = [json.loads(line) for line in service.lines]
        assert [e["status"] for e in events if e["event"] == "request"] == [200, 422, 422, 404]
        assert not any("secret" in line for line in service.lines)
