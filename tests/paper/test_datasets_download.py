"""Downloads and the cache, against a server of the test's own on 127.0.0.1."""

from __future__ import annotations

import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import dataset_samples as samples
import numpy as np
import pytest

from paper import datasets
from paper.datasets import catalogue, fetching

pooch = pytest.importorskip("pooch")


class Site(ThreadingHTTPServer):
    """Serves what is in ``pages``, and remembers what it was asked for."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Page)
        self.pages: dict[str, bytes] = {}
        self.cut_off: set[str] = set()  # of these it sends half, and hangs up
        self.asked: list[str] = []

    def publish(self, ending: str = "") -> None:
        for part, name in (("train", "tiny"), ("test", "tiny.t")):
            self.pages[name + ending] = samples.COMPRESS[ending](samples.text(part))


class Page(BaseHTTPRequestHandler):
    timeout = 10

    def do_GET(self):
        name = self.path.removeprefix("/multiclass/vehicle/")
        self.server.asked.append(name)
        if name not in self.server.pages:
            self.send_error(404)
            return
        content = self.server.pages[name]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content[: len(content) // 2] if name in self.server.cut_off else content)

    def log_message(self, *arguments):
        pass


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, and no folder of the user's."""
    monkeypatch.delenv("BOUNDARY_FOREST_DATA", raising=False)
    monkeypatch.setenv("BOUNDARY_FOREST_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def site(cache, monkeypatch):
    server = Site()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(fetching, "SITE", f"http://127.0.0.1:{server.server_port}/multiclass/")
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny())
    yield server
    server.shutdown()
    server.server_close()
    thread.join(timeout=10)
    assert not thread.is_alive()


def files(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


@pytest.mark.parametrize("ending", ["", ".bz2", ".xz"])
def test_a_set_is_downloaded_once_and_then_read_from_the_cache(ending, site, cache, monkeypatch):
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny(ending))
    site.publish(ending)
    assert not datasets.available("tiny")
    assert site.asked == []  # looking is not asking
    samples.assert_is_tiny(datasets.load("tiny"))
    assert site.asked == [f"tiny{ending}", f"tiny.t{ending}"]
    assert files(cache) == sorted(["tiny.npz", *site.asked])

    site.pages.clear()
    assert datasets.available("tiny")
    again = datasets.load("tiny", download=False)
    samples.assert_is_tiny(again)
    assert again.source == str(cache / "tiny.npz")
    assert len(site.asked) == 2


def test_the_users_folder_comes_before_cache_and_site(site, cache, tmp_path, monkeypatch):
    site.publish()
    datasets.load("tiny")
    np.savez(tmp_path / "tiny.npz", **samples.arrays())
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(tmp_path))
    assert datasets.load("tiny").source == str(tmp_path / "tiny.npz")
    assert len(site.asked) == 2


def test_nothing_is_asked_for_when_a_download_is_not_wanted(site, cache):
    site.publish()
    with pytest.raises(datasets.DataAbsentError):
        datasets.load("tiny", download=False)
    assert site.asked == []


def test_a_page_that_is_gone_is_an_absent_set_and_the_rest_is_kept(site, cache):
    site.publish()
    gone = site.pages.pop("tiny.t")
    with pytest.raises(datasets.DataAbsentError, match=r"404 .*tiny\.t.* To get it"):
        datasets.load("tiny")
    assert files(cache) == ["tiny"]
    assert not datasets.available("tiny")

    site.pages["tiny.t"] = gone
    samples.assert_is_tiny(datasets.load("tiny"))
    assert site.asked == ["tiny", "tiny.t", "tiny.t"]


def test_no_connection_is_an_absent_set(site, cache, monkeypatch):
    monkeypatch.setattr(fetching, "SITE", "http://127.0.0.1:9/multiclass/")  # the port of discard
    with pytest.raises(datasets.DataAbsentError, match="tiny could not be downloaded"):
        datasets.load("tiny")
    assert files(cache) == []


@pytest.mark.parametrize("ending", ["", ".bz2"])
def test_a_connection_that_breaks_leaves_nothing_behind(ending, site, cache, monkeypatch):
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny(ending))
    site.publish(ending)
    site.cut_off.add(f"tiny{ending}")
    with pytest.raises((datasets.DataAbsentError, datasets.DataCorruptError)):
        datasets.load("tiny")
    assert files(cache) == []
    site.cut_off.clear()
    samples.assert_is_tiny(datasets.load("tiny"))


def test_an_interrupt_leaves_nothing_behind(site, cache, monkeypatch):
    def interrupted(url, output_file, pooch):
        with open(output_file, "wb") as file:
            file.write(b"1 1:")
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fetching, "_downloader", lambda pooch: interrupted)
        with pytest.raises(KeyboardInterrupt):
            datasets.load("tiny")
    assert files(cache) == []
    site.publish()
    samples.assert_is_tiny(datasets.load("tiny"))


@pytest.mark.parametrize(
    ("ending", "content"),
    [
        ("", b"<html>moved</html>\n"),
        ("", samples.text("train").replace(b":1", b":2", 1)),  # the right form, other values
        (".bz2", b"<html>moved</html>\n"),
        (".bz2", samples.COMPRESS[".bz2"](samples.text("train"))[:-10]),
        (".bz2", samples.COMPRESS[".bz2"](samples.text("test"))),  # too few rows
        (".xz", samples.COMPRESS[".xz"](samples.text("train"))[:-10]),
    ],
)
def test_a_corrupt_download_is_refused_and_not_kept(ending, content, site, cache, monkeypatch):
    monkeypatch.setitem(catalogue.CATALOGUE, "tiny", samples.tiny(ending))
    site.publish(ending)
    site.pages[f"tiny{ending}"] = content
    with pytest.raises(datasets.DataCorruptError, match=rf"tiny{ending} .*removed from the cache"):
        datasets.load("tiny")
    assert files(cache) == []
    assert not datasets.available("tiny")
    site.publish(ending)
    samples.assert_is_tiny(datasets.load("tiny"))


def test_what_went_bad_in_the_cache_is_thrown_out_and_had_anew(site, cache):
    site.publish()
    datasets.load("tiny")
    (cache / "tiny.npz").write_bytes(b"no zip file")
    with pytest.raises(datasets.DataCorruptError, match=r"tiny\.npz .*removed from the cache"):
        datasets.load("tiny")
    samples.assert_is_tiny(datasets.load("tiny", download=False))  # from the text beside it
    assert len(site.asked) == 2

    (cache / "tiny.npz").unlink()
    (cache / "tiny.t").write_bytes(samples.text("test").replace(b":1", b":2", 1))
    with pytest.raises(datasets.DataCorruptError, match="sha256"):
        datasets.load("tiny")
    samples.assert_is_tiny(datasets.load("tiny"))
    assert len(site.asked) == 4


def test_a_cache_that_cannot_be_written_is_no_crash(site, cache):
    site.publish()
    cache.write_text("a file where the folder should be")
    with pytest.raises(datasets.DataAbsentError, match="could not be downloaded"):
        datasets.load("tiny")


@pytest.mark.parametrize("on_terminal", [True, False])
def test_the_progress_bar_is_for_terminals(on_terminal, site, cache, capsys, monkeypatch):
    site.publish()
    monkeypatch.setattr(sys.stderr, "isatty", lambda: on_terminal)
    datasets.load("tiny")
    shown = capsys.readouterr()
    assert shown.out == ""
    assert ("100%" in shown.err) == on_terminal


def test_without_a_choice_the_cache_is_the_platforms(monkeypatch):
    monkeypatch.delenv("BOUNDARY_FOREST_CACHE", raising=False)
    assert fetching.cache_folder() == Path(pooch.os_cache("boundary-forest"))
