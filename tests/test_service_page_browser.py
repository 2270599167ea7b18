"""The page of a service in a browser: charts that move, the inspector, login, and no harm done.

Playwright drives the Chromium that is installed; it downloads none.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import threading

import numpy as np
import pytest
from served import Process

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed"),
    pytest.mark.xdist_group("browser"),
]
FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
READER, WRITER = "reader-0123456789", "writer-0123456789"
HOSTILE = "<img src=x onerror=\"document.title='broken in'\"><script>alert(1)</script>"
WAIT = 30_000  # milliseconds on a busy machine


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield found
        found.close()


@contextlib.contextmanager
def visited(browser, service, *, complains=False, **options):
    """Open the page; at the end, it must have complained of nothing and called nobody else."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 900}, **options})
    page = context.new_page()
    page.set_default_timeout(WAIT)
    messages, urls = [], []
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("request", lambda request: urls.append(request.url))
    address = f"http://127.0.0.1:{service.port}/"
    try:
        page.goto(address)
        yield page
        assert {url for url in urls if not url.startswith(("data:", address))} == set()
        assert complains or messages == []
    finally:
        context.close()


@contextlib.contextmanager
def streaming(service, rows, targets):
    """Predict and learn rows in the background, again and again."""
    stop = threading.Event()

    def work():
        while not stop.is_set():
            body = {"rows": rows, "targets": targets}
            assert service.post("/v1/predict-then-learn", body).status == 200
            service.post("/v1/predict", {"rows": rows[:1]})
            stop.wait(0.05)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_a_stream_moves_the_charts_and_a_row_is_explained(browser, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 16, (60, 64))
    y = [int(value) for value in X[:, 0] > 8]
    with Process(tmp_path / "images") as service, visited(browser, service) as page:
        page.wait_for_selector("#nothing:not([hidden])")
        with streaming(service, X.tolist(), y):
            line = page.wait_for_selector("[data-charts=quality] .line.blue", state="attached")
            before = line.get_attribute("d")
            page.wait_for_function(
                "d => document.querySelector('[data-charts=quality] .line.blue')"
                ".getAttribute('d').length > d.length",
                arg=before,
            )
            assert page.text_content("#state") == "live"
            tiles = page.locator("#tiles .tile").all_text_contents()
            assert any(tile.startswith("recent error") for tile in tiles)
            # Arrow keys go back in time, in all charts of the group.
            page.focus("[data-charts=quality] .plot")
            page.keyboard.press("ArrowLeft")
            said = page.locator("[data-charts=operation] .at").all_text_contents()
            assert all(text.endswith("ago") for text in said), said
            page.keyboard.press("Tab")
            page.click("#more-rows")
            page.click("#picks .pick")
            page.wait_for_selector("#explained .drawn .picture")
            assert page.text_content("#inspected").startswith("prediction ")
            assert page.locator("#explained h3").first.text_content() == "The answer"
            page.click("#explained summary")
            assert page.locator("#explained .path").count() > 10
            # What is typed wrongly is refused in words.
            page.fill("#row", "[1, 2")
            page.click("#inspect [type=submit]")
            assert "not JSON" in page.text_content("#inspect-error")
            page.click("#pause")
            assert page.text_content("#state") == "paused"


def test_the_page_fits_a_phone_in_the_dark(browser, tmp_path):
    with Process(tmp_path) as service:
        names = {"a long name of a column, longer than a phone is wide": 1.5, "b": "x" * 200}
        service.post("/v1/learn", {"rows": [names] * 3, "targets": ["y" * 300] * 3})
        service.post("/v1/predict-then-learn", {"rows": [names] * 3, "targets": ["z" * 300] * 3})
        phone = {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}
        with visited(browser, service, **phone) as page:
            page.wait_for_selector("[data-charts=quality] figure")
            page.click("#picks .pick")
            page.wait_for_selector("#explained .list")
            page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert max(map(int, background[4:-1].split(","))) < 60


def test_names_with_markup_run_nothing(browser, tmp_path):
    with Process(tmp_path / "m") as service:
        rows = [{HOSTILE: 1.0, "b": HOSTILE}, {HOSTILE: 9.0, "b": "x"}]
        body = {"rows": rows, "targets": [HOSTILE, "plain"], "ids": [HOSTILE, "two"]}
        assert service.post("/v1/learn", body).status == 200
        service.post("/v1/predict-then-learn", {"rows": rows, "targets": [HOSTILE, "plain"]})
        with visited(browser, service) as page:
            page.wait_for_selector("[data-charts=bars] tbody tr")
            page.fill("#row", json.dumps(rows[0]))
            page.click("#inspect [type=submit]")
            page.wait_for_selector("#explained .list")
            page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")
            assert HOSTILE[:40] in page.inner_text("#explained")
            assert HOSTILE[:12] in page.inner_text("[data-charts=bars]")
            assert page.evaluate("document.querySelectorAll('main img, main script').length") == 0
            assert page.title() == "m: a forest that learns"


def test_the_policy_stops_what_text_would_let_through(browser, tmp_path):
    with Process(tmp_path) as service, visited(browser, service, complains=True) as page:
        page.evaluate(
            "h => document.querySelector('main').insertAdjacentHTML('beforeend', h)", HOSTILE
        )
        page.evaluate(
            "() => { const s = document.createElement('script');"
            " s.textContent = \"document.title = 'broken in'\"; document.body.append(s); }"
        )
        page.wait_for_timeout(300)
        assert page.title() != "broken in"


def test_login_and_logout(browser, tmp_path):
    tokens = tmp_path / "tokens"
    tokens.write_text(f"read {READER}\nwrite {WRITER}\n")
    with Process(tmp_path / "model", "--token-file", str(tokens)) as service:
        writes = {"authorization": f"Bearer {WRITER}"}
        body = {"rows": [[0.0], [9.0]], "targets": ["a", "b"]}
        service.post("/v1/predict-then-learn", body, **writes)
        with visited(browser, service, complains=True) as page:  # of the 401 that it provokes
            page.wait_for_selector("#login:not([hidden])")
            assert page.is_hidden("#live")
            page.fill("#token", "wrong-0123456789")
            page.keyboard.press("Enter")
            page.wait_for_selector("#login-error:not(:empty)")
            page.fill("#token", READER)
            page.keyboard.press("Enter")
            page.wait_for_selector("#tiles .tile")
            cookie = page.context.cookies()[0]
            assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
            assert page.evaluate("document.cookie") == ""
            page.reload()
            page.wait_for_selector("#tiles .tile")  # the session lasts
            page.click("#logout")
            page.wait_for_selector("#login:not([hidden])")
            assert page.is_hidden("#tiles")
            assert page.context.cookies() == []
            page.reload()
            page.wait_for_selector("#login:not([hidden])")


def test_an_hour_of_events_keeps_the_page_flat(browser, tmp_path):
    """As many as come in an hour: figures every second, charts every other one."""
    with Process(tmp_path) as service:
        body = {"rows": [[0.0], [9.0]], "targets": ["a", "b"]}
        for _ in range(3):
            service.post("/v1/predict-then-learn", body)
        with visited(browser, service) as page:
            page.wait_for_selector("[data-charts=quality] figure")
            session = page.context.new_cdp_session(page)
            session.send("Performance.enable")

            def measured():
                session.send("HeapProfiler.collectGarbage")
                found = session.send("Performance.getMetrics")["metrics"]
                values = {one["name"]: one["value"] for one in found}
                return values["JSHeapUsedSize"], values["Nodes"], values["JSEventListeners"]

            page.click("#pause")
            page.evaluate(REPLAY, [1, 200])
            before = measured()
            page.evaluate(REPLAY, [200, 1800])
            after = measured()
            assert after[0] - before[0] < 1_000_000  # seen: 4,000 bytes
            assert after[1] <= before[1] + 50
            assert after[2] <= before[2] + 5


# Shows events of growing and shrinking charts, as showFigures and showCharts get them.
REPLAY = r"""async ([from, to]) => {
  const reader = (await fetch("page/events")).body.getReader();
  const events = {};
  let text = "";
  while (!events.charts || !events.figures) {
    text += new TextDecoder().decode((await reader.read()).value);
    for (const [, name, data] of text.matchAll(/event: (.*)\ndata: (.*)\n\n/g)) events[name] = data;
  }
  await reader.cancel();
  for (let i = from; i < to; i++) {
    const charts = JSON.parse(events.charts);
    for (const chart of [...charts.quality, ...charts.operation, ...charts.storage]) {
      const hover = JSON.parse(chart.hover);
      const n = 1 + (i % 200);
      const again = (values) => Array.from({ length: n }, (_, k) => values[k % values.length]);
      hover.x = again(hover.x);
      hover.at = again(hover.at);
      hover.y = hover.y.map(again);
      hover.text = hover.text.map(again);
      chart.hover = JSON.stringify(hover);
      chart.xs = chart.xs.slice(i % 4);
    }
    if (i % 8 === 0) charts.columns = charts.storage;
    showFigures(JSON.parse(events.figures));
    showCharts(charts);
    if (i % 100 === 0) await new Promise(requestAnimationFrame);
  }
}"""
