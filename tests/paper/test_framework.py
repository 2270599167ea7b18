"""Items of the paper: what a run writes, how it resumes, and how verdicts follow from rows."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("paper._cover_tree", reason="make paper builds it")

from paper import page, plots, registry, runner, tasks
from paper.__main__ import main
from paper.context import Context, file_name
from paper.datasets import DataAbsentError
from paper.item import (
    BETTER,
    DATA_ABSENT,
    DIFFERS,
    FAILED,
    MEASURED,
    PACKAGE_ABSENT,
    REPRODUCED,
    Item,
    Result,
    Row,
    Table,
    close,
    summed_up,
)
from paper.report import markdown_table, shown

ROOT = Path(__file__).parents[2]
FIELDS = {
    "schema": int,
    "name": str,
    "title": str,
    "where": str,
    "chapter": str,
    "rule": str,
    "data": list,
    "verdict": str,
    "rows": list,
    "tables": list,
    "remark": str,
    "figures": dict,
    "error": str,
    "scale": str,
    "seed": int,
    "n_jobs": int,
    "seconds": float,
    "finished": str,
    "machine": dict,
    "plots": list,
}


def measure(context):
    context.expect(2)
    values = [context.step(f"part {i}", lambda i=i: {"value": i}) for i in range(2)]
    total = sum(v["value"] for v in values)
    table = Table("all", ("i", "value"), [[0, 0], [1, 1]])
    rows = [Row("sum", 1.0, total, close(total, 1.0), unit="s"), Row("free", None, "so | so")]
    return Result(rows, {"values": values}, [table], remark="as it was")


def draw(figures):
    figure, (ax,) = plots.panels(["values"])
    ax.plot([v["value"] for v in figures["values"]], label="value")
    return figure


ITEM = Item("sum", "A sum", "Table 0", "Scaling", "equal", measure, plots={"": draw})


@pytest.fixture
def run(tmp_path):
    """run(item, **settings): what its JSON file has, and the folder."""

    def run(item, **more):
        settings = runner.Settings(tmp_path, "tiny", **more)
        (told,) = runner.run_items([item], settings)
        written = json.loads((tmp_path / f"{item.name}.json").read_text())
        assert written["verdict"] == told["verdict"]
        return written

    return run


@pytest.fixture
def command(monkeypatch, capsys):
    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["paper", *arguments])
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return run


def test_a_run_writes_json_markdown_and_a_plot(run, tmp_path):
    record = run(ITEM)
    assert {name: type(record[name]) for name in FIELDS} == FIELDS
    assert set(record) == set(FIELDS)
    assert record["verdict"] == REPRODUCED
    assert record["machine"]["versions"]["numpy"]
    assert {"cpu", "cpus", "instruction_set"} <= set(record["machine"])
    text = (tmp_path / "sum.md").read_text()
    assert "| sum | 1 s | 1 s | reproduced |" in text
    assert "Rule: equal" in text
    assert "so \\| so" in text
    assert (tmp_path / "sum.svg").stat().st_size > 1000


def test_the_same_figures_are_the_same_svg(run, tmp_path):
    run(ITEM)
    before = (tmp_path / "sum.svg").read_bytes()
    run(ITEM)
    assert (tmp_path / "sum.svg").read_bytes() == before


def test_a_stopped_run_resumes_from_what_is_done(run):
    calls, stops = [], []

    def stopping(context):
        for i in range(3):
            context.step(f"part {i}", calls.append, i)
            if calls == [0, 1] and i == 1 and not stops:
                stops.append(i)
                raise KeyboardInterrupt
        return Result([Row("parts", 3, len(calls))])

    item = replace(ITEM, run=stopping, plots={})
    with pytest.raises(KeyboardInterrupt):
        run(item)
    assert calls == [0, 1]
    run(item)
    assert calls == [0, 1, 2]
    run(item, fresh=True)
    assert calls == [0, 1, 2, 0, 1, 2]


@pytest.mark.parametrize("other", [{"seed": 1}, {"scale": "quick"}])
def test_steps_of_another_seed_or_scale_are_not_taken(tmp_path, other):
    calls = []

    def counting(context):
        context.step("one", calls.append, 1)
        return Result([])

    item = replace(ITEM, run=counting, plots={})
    settings = runner.Settings(tmp_path, "tiny")
    for each in (settings, settings, replace(settings, **other)):
        runner.run_items([item], each)
    assert len(calls) == 2


def test_a_damaged_step_is_computed_again(tmp_path):
    context = Context(tmp_path)
    assert context.step("x", lambda: 1) == 1
    (tmp_path / file_name("x")).write_text('{"key": "x", "val')
    assert context.step("x", lambda: 2) == 2


def test_a_fresh_step_gives_what_a_resumed_one_gives(tmp_path):
    import numpy as np

    fresh = Context(tmp_path).step("x", lambda: {"a": (1, np.float32(0.5)), 2: np.arange(2)})
    assert fresh == Context(tmp_path).step("x", lambda: None)
    assert fresh == {"a": [1, 0.5], "2": [0, 1]}


def test_keys_that_read_alike_have_files_of_their_own():
    assert file_name("k=10 N=5") != file_name("k=10,N=5")
    assert "/" not in file_name("a/b")


def test_a_step_that_json_cannot_hold_is_refused(tmp_path):
    with pytest.raises(TypeError, match="JSON"):
        Context(tmp_path).step("x", lambda: object())
    with pytest.raises(ValueError, match="JSON"):
        Context(tmp_path).step("x", lambda: float("nan"))


def test_absent_data_is_reported(run, tmp_path):
    def absent(context):
        raise DataAbsentError("seismic is not here")

    record = run(replace(ITEM, run=absent))
    assert record["verdict"] == DATA_ABSENT
    assert record["plots"] == []
    text = (tmp_path / "sum.md").read_text()
    assert "not run: data absent" in text
    assert "seismic is not here" in text


def test_a_missing_package_is_reported(run):
    record = run(replace(ITEM, needs=("no_such_package",)))
    assert record["verdict"] == PACKAGE_ABSENT
    assert "no_such_package" in record["remark"]


def test_a_failing_item_does_not_keep_others_from_running(tmp_path):
    def failing(context):
        raise FileNotFoundError("some file of its own")  # not a data set

    items = [replace(ITEM, name="bad", run=failing), ITEM]
    records = runner.run_items(items, runner.Settings(tmp_path, "tiny"))
    assert [record["verdict"] for record in records] == [FAILED, REPRODUCED]
    assert "FileNotFoundError" in records[0]["error"]


def test_without_matplotlib_all_but_the_plots_is_written(run, tmp_path, monkeypatch):
    monkeypatch.setattr(plots, "is_installed", lambda: False)
    assert run(ITEM)["plots"] == []
    assert (tmp_path / "sum.md").is_file()


@pytest.mark.parametrize(
    ("ours", "how", "verdict"),
    [
        (10.4, {"relative": 0.05}, REPRODUCED),
        (10.6, {"relative": 0.05}, DIFFERS),
        (9.0, {"absolute": 0.5, "better": "lower"}, BETTER),
        (11.0, {"absolute": 0.5, "better": "lower"}, DIFFERS),
        (11.0, {"absolute": 0.5, "better": "higher"}, BETTER),
    ],
)
def test_close(ours, how, verdict):
    assert close(ours, 10.0, **how) == verdict


@pytest.mark.parametrize(
    ("rows", "verdict"),
    [
        ([REPRODUCED, DIFFERS, BETTER], DIFFERS),
        ([REPRODUCED, BETTER, DATA_ABSENT], BETTER),
        ([REPRODUCED, MEASURED, DATA_ABSENT], REPRODUCED),
        ([DATA_ABSENT, DATA_ABSENT], DATA_ABSENT),
        ([MEASURED], MEASURED),
        ([], MEASURED),
    ],
)
def test_an_items_verdict_follows_from_its_rows(rows, verdict):
    assert summed_up(rows) == verdict


def test_words_that_are_no_verdict_are_refused():
    with pytest.raises(ValueError, match="verdict"):
        Row("x", 1, 1, "fine")


def test_numbers_are_shown_to_four_digits():
    assert shown(1234567) == "1,234,567"
    assert shown(0.123456) == "0.1235"
    assert shown(None) == "–"
    assert markdown_table(["a", "b"], [["x", 1]]).splitlines()[1] == "|---|---:|"


def test_items_are_complete_and_in_the_papers_order():
    known = registry.all_items()
    assert len(known) >= 9
    for name, item in known.items():
        assert name == item.name == name.lower().replace(" ", "-")
        assert item.title
        assert item.where
        assert item.rule.endswith("."), name
        assert item.plots or name in ("data-sets", "hog-metric")  # numbers alone


def test_all_is_every_item_and_no_item_runs_twice():
    assert [item.name for item in registry.chosen(["all"])] == list(registry.all_items())
    assert len(registry.chosen(["artificial-tree", "artificial-tree"])) == 1


def test_the_page_has_every_item_with_its_verdict_and_plots(run, tmp_path, monkeypatch):
    run(ITEM)
    monkeypatch.setattr(page, "all_items", lambda: {"sum": ITEM})
    text = page.page(tmp_path, tmp_path.parent / "page.md")
    assert "### A sum" in text
    assert f"]({tmp_path.name}/sum.svg)" in text
    assert "as it was" in text
    assert "Slips" in text


def test_where_the_cover_tree_is_not_built_one_line_says_what_to_run():
    script = (
        "import sys; sys.modules['paper._cover_tree'] = None; import paper.__main__ as p; p.main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "_cover_tree" in done.stderr
    assert "make paper" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_the_command_lists_items(command):
    code, out, _ = command("list")
    assert code == 0
    for name in registry.all_items():
        assert name in out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("run", "artificial-tre"), "did you mean artificial-tree?"),
        (("run", "nothing"), "'nothing'"),
        (("page", "no/such/folder"), "no/such/folder"),
    ],
)
def test_a_wrong_name_is_one_clear_line(command, arguments, said):
    code, out, error = command(*arguments)
    assert (code, out) == (2, "")
    assert said in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    ("option", "value"), [("--scale", "huge"), ("--n-jobs", "0"), ("--seed", "-1")]
)
def test_a_bad_option_is_refused_by_name(command, option, value):
    code, _, error = command("run", "all", option, value)
    assert code == 2
    assert option in error


def test_the_command_runs_an_item_and_makes_the_page(command, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "all_items", lambda: {"sum": ITEM})
    monkeypatch.setattr(page, "all_items", lambda: {"sum": ITEM})
    out = tmp_path / "out"
    code, said, _ = command("run", "sum", "--out", str(out))
    assert code == 0
    assert said.splitlines()[0].startswith("sum: reproduced, ")
    assert json.loads((out / "sum.json").read_text())["scale"] == "quick"
    code, _, _ = command("page", str(out), "--to", str(tmp_path / "paper.md"))
    assert code == 0
    assert "(out/sum.svg)" in (tmp_path / "paper.md").read_text()


def test_a_failed_item_fails_the_command(command, tmp_path, monkeypatch):
    def failing(context):
        raise RuntimeError("broken")

    bad = replace(ITEM, run=failing)
    monkeypatch.setattr(registry, "all_items", lambda: {"sum": bad})
    code, said, _ = command("run", "sum", "--out", str(tmp_path))
    assert code == 1
    assert "RuntimeError: broken" in said


def test_a_stop_says_that_the_same_command_resumes(command, tmp_path, monkeypatch):
    def stopped(context):
        raise KeyboardInterrupt

    monkeypatch.setattr(registry, "all_items", lambda: {"sum": replace(ITEM, run=stopped)})
    code, said, _ = command("run", "sum", "--out", str(tmp_path))
    assert code == 130
    assert "resumes" in said


def test_a_shared_step_is_measured_once_for_all_items(tmp_path):
    measured = []

    def item(name):
        def run(context):
            context.step("common", lambda: measured.append(name), shared=True)
            return Result([Row("all", None, 1)])

        return Item(name, "title", "where", "Claims in the text", "none", run)

    items = [item("one"), item("two")]
    runner.run_items(items, runner.Settings(tmp_path, "tiny"))
    assert measured == ["one"]
    runner.run_items(items, runner.Settings(tmp_path, "tiny", fresh=True))
    assert measured == ["one", "one"]


def test_digits_is_always_at_hand_and_absent_data_makes_rows(tmp_path, monkeypatch):
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    context = Context(tmp_path, "tiny")
    (digits,) = tasks.present(context)
    assert (digits.name, len(digits.X_train), len(digits.X_test)) == ("digits", 1_000, 797)
    assert digits.whole
    assert digits.error(digits.y_test) == 0
    part = tasks.task(context, "digits", 100)
    assert (part.title, part.whole) == ("digits, 100 rows", False)
    rows = tasks.absent_rows(context, "{}: error", {"letter": 5.4, "digits": None}, unit="%")
    assert rows == [Row("letter: error", 5.4, None, DATA_ABSENT, unit="%")]
