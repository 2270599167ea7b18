"""The report in a browser: no errors, no requests, no overflow, and values where one points."""

import html
import json
import re
import shutil
import subprocess

import pytest
from stream_histories import classified, forgetful, regressed

from boundary_forest.report import page

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

WIDTHS = (390, 1600)
# A script that is not the page's own, which the page forbids: it looks around and points at things.
PROBE = """<script>
  const plots = [...document.querySelectorAll("[data-hover]")];
  const said = () => plots.map((p) => p.closest("figure").querySelector(".at").textContent);
  const found = { width: innerWidth, wide: document.documentElement.scrollWidth, before: said() };
  const box = plots[0].querySelector(".area-of-plot").getBoundingClientRect();
  plots[0].dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + 0.5 * box.width }));
  found.pointed = said();
  plots[0].dispatchEvent(new PointerEvent("pointerleave"));
  plots[0].dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowLeft" }));
  found.left = said();
  plots[0].dispatchEvent(new Event("blur"));
  found.after = said();
  const cell = document.querySelector(".confusion td.w");
  if (cell) {
    cell.dispatchEvent(new PointerEvent("pointerover", { bubbles: true }));
    found.cell = cell.closest("figure").querySelector(".at").textContent;
  }
  const cells = [...document.querySelectorAll(".confusion.written td.r")];
  found.overflow = cells.filter((c) => c.scrollWidth > c.clientWidth).length;
  const area = document.querySelector(".scroller:has(.confusion.written)");
  found.cut = area && cells.length <= 10 ? area.scrollWidth - area.clientWidth : 0;
  found.small = [...document.querySelectorAll(".plot")].filter((p) => p.clientHeight < 100).length;
  parent.document.title += " found " + JSON.stringify(found);
</script>"""


class Visit:
    """What happened when the page was opened: its text then, console messages, requests, and what
    the probe found in frames, by their width."""

    def __init__(self, text, width, folder):
        file, log = folder / "report.html", folder / "net.json"
        file.write_text(text, encoding="utf-8")
        quiet = (
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--disable-extensions",
            "--disable-gpu",
            "--hide-scrollbars",
        )
        command = [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            *quiet,
            f"--window-size={width},1000",
            f"--user-data-dir={folder / 'profile'}",
            "--enable-logging=stderr",
            f"--log-net-log={log}",
            "--dump-dom",
            file.as_uri(),
        ]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert run.returncode == 0, run.stderr
        self.dom = run.stdout
        self.console = re.findall(r"CONSOLE.*", run.stderr)
        urls = set(re.findall(r'"url":"([^"]+)"', log.read_text(encoding="utf-8")))
        # The page is a file: whatever the browser asks for itself is none of the page's.
        own = {u for u in urls if re.search(r"google|gstatic|gvt1|chromium", u)}
        self.requests = {u for u in urls - own if not u.startswith(("data:", file.as_uri()))}
        title = re.search(r"<title>(.*?)</title>", self.dom)
        said = title[1].split("found ")[1:] if title else []
        self.found = {found["width"]: found for found in map(json.loads, said)}


@pytest.mark.parametrize("make", [classified, regressed, forgetful])
def test_the_page_opens_without_errors_or_requests(make, tmp_path):
    visit = Visit(page(make()), 390, tmp_path)
    assert visit.console == []
    assert visit.requests == set()
    assert "data-hover" in visit.dom


def test_how_a_forest_forgets_fits_and_is_pointed_at_with_the_rest(tmp_path):
    visit = in_frames(page(forgetful()), tmp_path)
    assert sorted(visit.found) == [390, 1600]
    for width, found in visit.found.items():
        assert found["wide"] <= width
        assert found["small"] == 0
        by_rows = [i for i, at in enumerate(found["before"]) if at.startswith("after")]
        assert len(by_rows) == 6
        assert {found["pointed"][i] for i in by_rows} == {"after 2,000 rows"}


def in_frames(text, folder):
    """A visit with the probe, in two frames, because no window is narrower than 500 pixels."""
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    inside = html.escape(text.replace("</body>", PROBE + "</body>"))
    frame = '<iframe width={} height=900 frameborder=0 srcdoc="{}"></iframe>'
    frames = "".join(frame.format(width, inside) for width in WIDTHS)
    return Visit(f"<title></title>{frames}", max(WIDTHS), folder)


@pytest.mark.parametrize("n_classes", [2, 10, 50, None])
def test_the_page_fits_and_tells_what_is_pointed_at(n_classes, tmp_path):
    history = classified(n_classes) if n_classes else regressed()
    history.confusion = {pair: 1000 * n for pair, n in history.confusion.items()}
    visit = in_frames(page(history), tmp_path)
    assert visit.console == []
    assert sorted(visit.found) == [390, 1600]
    for width, found in visit.found.items():
        assert found["wide"] <= width
        assert found["small"] == found["overflow"] == 0
        if n_classes == 2:
            assert found["cut"] == 0
        by_rows = [i for i, at in enumerate(found["before"]) if at.startswith("after")]
        said = {when: {found[when][i] for i in by_rows} for when in ("before", "pointed", "left")}
        assert said == {
            "before": {"after 4,000 rows"},
            "pointed": {"after 2,000 rows"},
            "left": {"after 3,900 rows"},
        }
        assert found["after"] == found["before"]
        if n_classes:
            assert re.fullmatch(r"true class \d+, predicted class \d+: [\d,]+", found["cell"])


def test_a_hostile_class_runs_nothing(tmp_path):
    breaking = "document.title='broken in'"
    hostile = f'<img src=x onerror="{breaking}"><script>{breaking}</script>'
    visit = Visit(page(classified(names=[hostile, "plain"])), 800, tmp_path)
    assert visit.console == []
    assert "<title>broken in" not in visit.dom
    assert visit.requests == set()


def test_these_tests_would_notice(tmp_path):
    bad = "<body><img src='http://127.0.0.1:9/x.png'><script>undefined.x</script></body>"
    visit = Visit(bad, 400, tmp_path)
    assert visit.requests == {"http://127.0.0.1:9/x.png"}
    assert any("TypeError" in message for message in visit.console)


def test_the_policy_of_the_page_stops_what_escaping_would_let_through(tmp_path):
    inserted = (
        "<script>document.title='broken in'</script><img src='http://127.0.0.1:9/x.png'></body>"
    )
    visit = Visit(page(classified()).replace("</body>", inserted), 400, tmp_path)
    assert "broken in</title>" not in visit.dom
    assert visit.requests == set()
    assert len(visit.console) == 2
