"""Figures of the pages are those of docs/figures, and a run of make bench replaces them."""

from __future__ import annotations

import json
import re

import pytest

from docs import write_figures

RUN = {
    "date": "2026-01-02T03:04:05+00:00",
    "commit": "abc1234",
    "machine": {"cpu": "a processor"},
    "settings": {"smoke": False},
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder of figures that has those of the project."""
    for file in write_figures.FIGURES.glob("*.json"):
        (tmp_path / file.name).write_text(file.read_text())
    monkeypatch.setattr(write_figures, "FIGURES", tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", write_figures.pages(), ids=lambda page: page.name)
def test_the_figures_of_a_page_are_those_of_the_json_files(page):
    text = page.read_text()
    assert write_figures.filled(text) == text


@pytest.mark.parametrize("page", write_figures.pages(), ids=lambda page: page.name)
def test_no_line_begins_with_a_figure(page):
    """Markdown would take it for a block of HTML, and end the paragraph."""
    assert re.findall(r"^<!--(?:fig|run) .*", page.read_text(), re.M) == []


@pytest.mark.parametrize("name", ["learned", "retrieval", "streams"])
def test_a_file_names_its_run(name):
    run = write_figures.load(name)["run"]
    assert {"command", "commit", "date", "processor"} <= set(run)


def test_a_page_with_another_number_is_noticed():
    number = "<!--fig error learned/score/dna/for_tables()-->99.9<!--/-->"
    assert "99.9" not in write_figures.filled(number)


def test_a_run_replaces_the_figures_and_names_itself(folder):
    row = {"mean": 0.123, "sd": 0.01, "median_s": 4.0}
    parts = {"dna": {"rows": {"for_tables()": row}}}
    run = folder / "run"
    run.write_text(json.dumps({**RUN, "sections": {"learned": {"parts": parts}}}))
    write_figures.take(run)
    shown = write_figures.filled(
        "<!--fig error learned/score/dna/for_tables()-->?<!--/--> <!--run learned-->?<!--/-->"
    )
    assert ">12.3<" in shown
    assert "2026-01-02, a processor, commit abc1234" in shown


def test_streams_and_indexes_are_taken_too(folder):
    rows = {"for_streams()": {"loss": 0.25, "rows_s": 10.0}}
    keys = ("drifting", "regression", "shuffled", "bounded")
    index = {"title": "flat", "installed": True, "build_s": 1.0, "bytes": 2.0}
    curve = [{"recall": 0.8, "us": 10.0}, {"recall": 1.0, "us": 30.0}]
    sections = {
        "streams": {key: {"SEA": {"rows": rows}} for key in keys},
        "retrieval": {"parts": [{"data": "mnist", "indexes": [{**index, "curve": curve}]}]},
    }
    run = folder / "run"
    run.write_text(json.dumps({**RUN, "sections": sections}))
    write_figures.take(run)
    assert write_figures.value("streams/accuracy/mean/for_streams()") == 0.75
    assert write_figures.value("retrieval/mnist/flat/us at 0.90") == pytest.approx(20)


def test_the_sections_of_the_page_on_speed_are_taken_too(folder):
    def row(peer, total, error, **more):
        times = {"fit_s": total / 2, "predict_s": total / 2, "total_s": total}
        return {"peer": peer, "installed": True, "threads": 1, "error": error, **times, **more}

    peers = {"forest": 1.0, "forest_f32": 2.0, "faiss": 8.0, "hnswlib": 10.0}
    parts = {
        name: {"rows": [row(p, 1.0, 0.1, ratio={"forest": 0.5}) for p in ("forest", *others)]}
        for name, others in {
            "letter": ["random_forest"],
            "pendigits": ["random_forest"],
            "dna": ["random_forest"],
            "covtype": ["random_forest", "knn_brute"],
        }.items()
    }
    crossings = [
        {"peer": "knn_brute", "threads": 1, "n": 4_849},
        {"peer": "faiss", "threads": 1, "n": None},
    ]
    last = {"rows": [row("faiss", 1.0, 0.1, ratio={"forest": 1.25})]}
    part = {"points": [last], "crossings": crossings}
    points = [
        {"n": n, "grown": {"comparisons": 10.0, "us_alone": 20.0, "us_in_batch": 30.0}}
        for n in (10, 100, 1_000)
    ]
    batches = {"mnist": {"rows": [{"batch": 1_000, "threads": 1, "ratio": 0.25}]}}
    sections = {
        "mnist": {"rows": [row(peer, total, 0.02) for peer, total in peers.items()]},
        "tables": {"parts": parts},
        "crossover": {"parts": {"mnist": part, "covtype": part}},
        "hypercube": {"points": points},
        "prequential": {"batches": batches},
    }
    run = folder / "run"
    run.write_text(json.dumps({**RUN, "sections": sections}))
    write_figures.take(run)
    assert write_figures.value("mnist/ratio/faiss/forest") == 0.25
    assert write_figures.value("prequential/ratio/mnist/1000") == 0.25
    assert "| N = 4,800 | beyond 100,000, where the ratio is 1.2 |" in table("crossover/crossings")
    assert "| 0.10 | 2.0 %, 2.0 % |" in table("mnist/times")
    assert table("tables/times").count("| 0.50 | 10.0 %, 10.0 % |") == 5
    assert "| 1,000 | 10.0 | 20 | 30.0 |" in table("hypercube/growth")


def test_a_number_of_the_paper_is_read_from_its_item():
    assert write_figures.number("ratio", "paper/errors/mnist, BF") == "2.37"


def table(name):
    return write_figures.filled(f"<!--table {name}-->\n<!--/table-->")


def test_a_smoke_run_is_refused(tmp_path):
    run = tmp_path / "run.json"
    run.write_text(json.dumps({**RUN, "settings": {"smoke": True}, "sections": {}}))
    with pytest.raises(SystemExit, match="smoke"):
        write_figures.take(run)
