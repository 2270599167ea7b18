"""The page of a service without a browser: its files, who may read, and what events say."""

from __future__ import annotations

import asyncio
import dataclasses
import gc
import json
import re
import signal
import time
import tracemalloc

import numpy as np
import pytest
from served import Process, in_process

from boundary_forest.service.page import routes
from boundary_forest.service.page.events import MOST_PAGES, Events
from boundary_forest.service.page.view import View, thinned

READER = "reader-0123456789"
ROWS = {"rows": [[0.0, 1.0], [9.0, 1.0], [1.0, 1.0]], "targets": ["a", "b", "a"]}


def test_the_page_and_its_files_ask_nothing_of_anyone_else(tmp_path):
    with in_process(tmp_path / "<b>model") as service:
        answer = service.get("/")
        html = answer.content.decode()
        assert "<b>model" not in html
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert answer.headers["content-security-policy"] == routes.POLICY
        assert "unsafe" not in routes.POLICY
        assert " style=" not in html  # the policy would refuse it
        assert not re.search(r"<script(?! src)|<style| on\w+=|https?:", html)
        names = re.findall(r'(?:src|href)="(page/[^"]+)"', html)
        assert len(names) == 5
        for name in names:
            file = service.get(f"/{name}")
            assert file.status == 200
            assert file.headers["x-content-type-options"] == "nosniff"
            text = file.content.decode()
            assert not re.search(r"https?:|innerHTML|insertAdjacentHTML|document\.write", text)


def cookie_of(answer):
    name, _, rest = answer.headers["set-cookie"].partition("=")
    return f"{name}={rest.partition(';')[0]}"


def test_login_and_logout(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {READER}")
    with in_process(tmp_path / "model", token_file=tokens) as service:
        paths = ("/page/rows", "/page/events")
        assert service.get("/").status == 200  # it has no data
        assert service.get("/page/session").json == {"required": True, "logged_in": False}
        for path in paths:
            assert service.get(path).status == 401
        assert service.post("/page/explain", {"rows": [[0.0]]}).status == 401
        assert service.post("/page/login", {"token": "wrong-0123456789"}).status == 401
        assert service.post("/page/login", {"token": 5}).status == 422
        assert service.post("/page/login", {}).status == 422
        login = service.post("/page/login", {"token": READER})
        assert login.status == 200
        flags = login.headers["set-cookie"].split("; ")[1:]
        assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= {*flags}
        assert "Secure" not in flags
        assert READER not in login.headers["set-cookie"]
        over_tls = service.post("/page/login", {"token": READER}, origin="https://127.0.0.1:8000")
        assert "Secure" in over_tls.headers["set-cookie"]
        cookie = cookie_of(login)
        assert service.get("/page/session", cookie=cookie).json["logged_in"]
        assert service.get("/page/rows", cookie=cookie).status == 200
        assert service.get("/v1/stats", cookie=cookie).status == 401  # the API takes tokens alone
        elsewhere = service.get("/page/rows", cookie=cookie, origin="https://example.org")
        assert elsewhere.status == 403
        assert service.get("/page/rows", authorization=f"Bearer {READER}").status == 200
        logout = service.post("/page/logout", {}, cookie=cookie)
        assert "Max-Age=0" in logout.headers["set-cookie"]
        assert service.get("/page/rows", cookie=cookie).status == 401


def test_a_session_ends_with_its_token(tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {READER}")
    with in_process(tmp_path / "model", token_file=tokens) as service:
        cookie = cookie_of(service.post("/page/login", {"token": READER}))
        tokens.write_text("read another-0123456789")
        service._service._page._sessions._tokens.reload()
        assert service.get("/page/rows", cookie=cookie).status == 401


def events_of(process, seconds=6.0):
    """Read the first event of each kind."""
    found = {}
    connection = process.connect()
    connection.request("GET", "/page/events")
    response = connection.getresponse()
    assert response.status == 200
    assert response.getheader("content-type").startswith("text/event-stream")
    end = time.monotonic() + seconds
    name = None
    while {*found} != {"figures", "charts"} and time.monotonic() < end:
        line = response.readline().decode().rstrip("\n")
        if line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            found[name] = json.loads(line[6:])
    return found, connection


def test_events_have_the_figures_and_the_reports_charts(tmp_path):
    with Process(tmp_path) as service:
        service.post("/v1/learn", ROWS)
        service.post("/v1/predict-then-learn", ROWS)
        service.post("/v1/predict", {"rows": [[1.0, 1.0]], "ids": ["w"]})
        time.sleep(1.2)
        found, connection = events_of(service)
        tiles = {tile["name"]: tile["value"] for tile in found["figures"]["tiles"]}
        assert tiles["overall error"].endswith("%")
        assert tiles["waiting labels"] == "1"
        assert "predict latency" in tiles
        charts = found["charts"]
        titles = [chart["title"] for name in charts if name != "bars" for chart in charts[name]]
        assert {"Error", "Throughput", "Waiting labels", "Memory"} <= {*titles}
        assert charts["bars"][0]["title"] == "Class balance"
        assert [bar["name"] for bar in charts["bars"][0]["bars"]] == ["a", "b"]
        # An open page does not hold the end of the process back.
        begin = time.monotonic()
        assert service.stop(signal.SIGTERM) == 0
        assert time.monotonic() - begin < 15
        connection.close()


def test_a_row_is_explained(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 16, (40, 64))
    with in_process(tmp_path / "images") as service:
        assert service.get("/page/rows").json == {"rows": []}
        assert service.post("/page/explain", {"rows": [[1.0]]}).status == 409
        targets = [int(value) for value in X[:, 0] > 8]
        service.post("/v1/learn", {"rows": X.tolist(), "targets": targets})
        service.post("/v1/predict", {"rows": X[:2].tolist(), "ids": ["one", "two"]})
        rows = service.get("/page/rows").json["rows"]
        assert [row["name"] for row in rows[:2]] == ["waiting: two", "waiting: one"]
        assert json.loads(rows[0]["row"]) == X[1].tolist()
        assert all(row["picture"] for row in rows)
        found = service.post("/page/explain", {"rows": X[:1].tolist()}).json
        assert found["answer"] == str(targets[0])
        assert found["picture"]["width"] == 8
        assert found["examples"][0]["picture"] is not None
        assert len(found["trees"]) > 10
        assert service.post("/page/explain", {"rows": X[:2].tolist()}).status == 422
        assert service.post("/page/explain", {"rows": [[1.0]]}).status == 422
    with in_process(tmp_path / "columns", task="regression") as service:
        named = [{"size": 1.5, "<i>kind": "x"}, {"size": 9.0, "<i>kind": "y"}]
        service.post("/v1/learn", {"rows": named, "targets": [1.0, 2.0]})
        found = service.post("/page/explain", {"rows": [{"size": 9.0}]}).json
        assert found["picture"] is None
        columns = found["columns"]["rows"]
        values = {row["name"]: row["values"][0] for row in columns}
        assert {*values} == {"size", "<i>kind"}
        assert values["size"] == "9"
    with in_process(tmp_path / "vectors", task="retrieval") as service:
        service.post("/v1/learn", {"rows": ROWS["rows"], "ids": ["a", "b", "c"]})
        found = service.post("/page/explain", {"rows": [[9.0, 1.0]]}).json
        assert found["title"] == "nearest stored row"
        assert found["examples"][0]["name"] == "b"


class _Numbered:
    def __init__(self, number):
        self.number = number


def test_an_hour_of_moments_is_thinned_without_flicker():
    moments = [_Numbered(n) for n in range(1, 3601)]
    found = thinned(moments)
    assert len(found) <= 201
    assert found[-1] is moments[-1]
    later = thinned([*moments[1:], _Numbered(3601)])
    assert {m.number for m in found[1:-1]} <= {m.number for m in later}


class _Reader:
    async def query(self, function):
        return function()


class _View:
    def __init__(self):
        self.made = 0

    def figures(self):
        self.made += 1
        return {"n": self.made}

    def charts(self):
        return {"n": self.made}


def test_events_are_made_once_for_all_pages_and_not_for_none():
    async def run():
        view = _View()
        events = Events(view, _Reader())
        await asyncio.sleep(0.05)
        assert view.made == 0
        streams = [events.stream(lambda: True) for _ in range(20)]
        seen = []
        for stream in streams:
            assert await anext(stream) == b"retry: 2000\n\n"
            seen.append(await anext(stream))
        assert events.pages == 20
        assert view.made <= 2
        assert len({*seen[1:]}) == 1
        for stream in streams:
            await stream.aclose()
        assert events.pages == 0
        made = view.made
        await asyncio.sleep(1.3)
        assert view.made <= made + 1  # it ends with the last page
        expired = events.stream(lambda: False)
        await anext(expired)
        assert b"expired" in await anext(expired)
        events.pages = MOST_PAGES
        with pytest.raises(Exception, match="pages are open"):
            events.check_room()
        events.stop()

    asyncio.run(run())


class _Recorded:
    """A recorder that has an hour of moments, and then another one."""

    def __init__(self, moments):
        self.moments, self.n = moments, 0

    def since(self, number):
        return [moment for moment in self.moments[: self.n] if moment.number > number][-3600:]

    def importances(self):
        return []


def test_hours_of_moments_keep_the_server_flat(tmp_path):
    """Charts of the second hour take no more memory, and no more bytes, than those of the first."""
    with in_process(tmp_path) as service:
        service.post("/v1/learn", ROWS)
        for _ in range(10):
            service.post("/v1/predict-then-learn", ROWS)
        end = time.monotonic() + 20
        while service.model.scores.rows < 30 or not service.recorder.since(0):
            assert time.monotonic() < end
            time.sleep(0.05)
        first = service.recorder.since(0)[-1]
        moments = [
            dataclasses.replace(first, number=n, at=1e9 + n, seen=n) for n in range(1, 10_801)
        ]
        recorded = _Recorded(moments)
        view = View(service.model, recorded)
        sizes, memory = [], []
        tracemalloc.start()
        try:
            for n in range(1200, 10_801, 1200):
                recorded.n = n
                sizes.append(len(json.dumps(view.charts())))
                gc.collect()
                memory.append(tracemalloc.get_traced_memory()[0])
        finally:
            tracemalloc.stop()
        assert max(sizes) < 150_000
        assert max(sizes[3:]) < 1.1 * min(sizes[3:])  # since the first hour
        assert max(memory[3:]) - memory[2] < 100_000
