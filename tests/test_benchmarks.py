"""What the benchmarks conclude from what they measure; the measuring itself is ``make bench``."""

from __future__ import annotations

import io
import json

import numpy as np
import pytest

from benchmarks import contest, data, drift, harness, report, streaming
from benchmarks.__main__ import main
from benchmarks.harness import Settings
from benchmarks.sections import crossover, hypercube, mnist, prequential, streams
from paper import laws, timing

N = [round(n) for n in np.geomspace(1e4, 1e6, 9)]


def test_a_logarithm_is_distinguished_from_a_power_law():
    law = laws.judged(N, [15 * np.log(n) - 40 for n in N])
    assert law["factor"] > 1000
    assert law["log"]["a"] == pytest.approx(15)
    assert law["fitted"] == 5


def test_a_power_law_is_distinguished_from_a_logarithm():
    law = laws.judged(N, [2 * n**0.4 for n in N])
    assert law["factor"] < 0.001
    assert (law["power"]["c"], law["power"]["p"]) == pytest.approx((2, 0.4), rel=1e-4)


def test_three_points_are_too_few_to_judge():
    assert laws.judged(N[:3], [1.0, 2.0, 3.0]) is None


@pytest.mark.parametrize(
    ("ratios", "n", "exact"),
    [
        ([4, 2, 0.5, 0.25], 2000, True),  # half-way between 1,000 and 4,000 in logarithms
        ([0.9, 2, 0.5, 0.25], 2000, True),  # a first win that does not last is none
        ([0.9, 0.8, 0.5, 0.25], 250, False),
        ([4, 2, 0.5, 1.5], None, False),
        ([], None, False),
    ],
)
def test_crossing_is_where_the_ratio_stays_below_one(ratios, n, exact):
    measured = list(zip([250, 1000, 4000, 16000], ratios, strict=False))
    assert crossover.crossing(measured) == {"n": n, "exact": exact}


def test_contestants_take_turns_and_medians_are_returned():
    order = []

    def contestant(name):
        times = iter([3.0, 1.0, 2.0])

        def turn():
            order.append(name)
            return {"s": next(times)}

        return turn

    settings = Settings(smoke=True, repeat=3)
    medians = harness.take_turns({"a": contestant("a"), "b": contestant("b")}, settings, "")
    assert order == ["a", "b"] * 3
    assert medians == {"a": {"s": 2.0, "turns": 3}, "b": {"s": 2.0, "turns": 3}}


def test_quick_contestants_take_more_turns():
    medians = harness.take_turns({"a": lambda: {"s": 0.0}}, Settings(repeat=3), "")
    assert medians["a"]["turns"] == harness.MOST_ROUNDS


def test_the_plain_path_is_set_inside_only(monkeypatch):
    monkeypatch.delenv("BOUNDARY_FOREST_PATH", raising=False)
    with timing.plain_path():
        assert harness.os.environ["BOUNDARY_FOREST_PATH"] == "plain"
    assert "BOUNDARY_FOREST_PATH" not in harness.os.environ


@pytest.mark.parametrize("name", ["mnist", "letter", "pendigits", "dna", "covtype"])
def test_a_stand_in_has_a_name_of_its_own(name, monkeypatch):
    monkeypatch.delenv("BOUNDARY_FOREST_DATA", raising=False)
    stand_in = data.load(name, seed=0, smoke=True)
    assert not stand_in.is_real
    assert stand_in.name not in ("mnist", "letter", "pendigits", "dna", "covtype")
    assert len(stand_in.X_test) == len(stand_in.y_test) == 500


def test_data_come_from_the_folder_unless_smoke(tmp_path, monkeypatch):
    sizes = {"train": 10_500, "test": 5_000}
    rows = {f"X_{part}": np.zeros((n, 16), np.float32) for part, n in sizes.items()}
    labels = {f"y_{part}": (np.arange(n) % 26).astype(np.int16) for part, n in sizes.items()}
    np.savez(tmp_path / "letter.npz", **rows, **labels)
    monkeypatch.setenv("BOUNDARY_FOREST_DATA", str(tmp_path))
    monkeypatch.setenv("BOUNDARY_FOREST_CACHE", str(tmp_path / "cache"))
    assert data.load("letter", seed=0).sizes()["train"] == [10_500, 16]
    assert data.load("letter", seed=0).is_real
    assert not data.load("letter", seed=0, smoke=True).is_real
    assert not data.load("dna", seed=0).is_real


def test_rows_are_standardised_by_those_that_are_learned():
    X = np.random.default_rng(0).normal(3, 5, size=(300, 2))
    X[:, 1] = 7  # constant: no division by zero
    scaled = data.standardised("x", X, np.arange(300), seed=0, sizes=(200, 50))
    assert scaled.X_test.shape == (50, 2)
    assert scaled.X_train.mean(axis=0) == pytest.approx([0, 0], abs=1e-5)
    assert scaled.X_train.std(axis=0) == pytest.approx([1, 0], abs=1e-5)
    assert set(scaled.y_train).isdisjoint(scaled.y_test)


def printed(show, *arguments):
    file = io.StringIO()
    show(*arguments, report.make_console(file))
    return file.getvalue()


def row(peer, title, total_s, **more):
    ratio = {"forest": 2.0 / total_s}
    times = {"fit_s": total_s / 2, "predict_s": total_s / 2, "total_s": total_s, "ratio": ratio}
    base = {"peer": peer, "title": title, "threads": 1, "installed": True, **times}
    return {**base, "error": 0.0225, "memory_mib": 12.3, **more}


def test_the_table_shows_ratios_and_who_is_not_installed():
    absent = {"peer": "hnswlib", "title": "hnswlib", "threads": 1, "installed": False}
    rows = [row("forest", "boundary forest", 2.0), row("faiss", "FAISS", 8.0), absent]
    text = printed(report.print_comparison, "a title", rows)
    lines = {line.split("  ")[1].strip(): line.split() for line in text.splitlines() if "1" in line}
    assert lines["FAISS"][-1] == "0.250"
    assert lines["FAISS"][-3:-1] == ["2.25", "12"]
    assert lines["hnswlib"][-2:] == ["not", "installed"]
    assert "\x1b" not in text


def test_a_missed_target_is_reported_and_a_wrong_answer_is_shown():
    aims = [harness.target("slow", 0.7, at_most=0.5), harness.target("fast", 2.0, at_least=1.7)]
    found = [harness.check("the same forest", False, "1 and 2"), harness.check("error", True)]
    text = printed(report.print_verdicts, {"targets": aims, "checks": found})
    assert "missed" in text
    assert "met" in text
    assert "WRONG: the same forest (1 and 2)" in text
    assert "1 of 2 checks hold" in text


def test_mnist_targets_leave_out_absent_peers():
    rows = [row("forest", "", 2.0), row("forest_f32", "", 3.0), row("faiss", "", 8.0, error=0.03)]
    values = {aim["what"]: aim["value"] for aim in mnist.targets(rows)}
    assert values["uint8: (fit + predict) / FAISS search"] == 0.5
    assert values["error / FAISS's error"] == pytest.approx(0.75)
    assert len(values) == 3


def test_a_wrong_forest_is_found(monkeypatch):
    """The checks can fail: here every forest has a seed of its own."""
    seeds = iter(range(100))
    honest = contest.forest
    monkeypatch.setattr(contest, "forest", lambda threads, seed: honest(threads, next(seeds)))
    small = data.load("mnist", seed=0, smoke=True).first(300, 50)
    found = contest.forest_checks(small, Settings(smoke=True), ceiling=0.0)
    wrong = {check["what"] for check in found if not check["ok"]}
    assert "digits: the same forest by two threads" in wrong
    assert "digits: the same answers by the plain path" in wrong
    assert "digits: error at most 0.0%" in wrong


def test_a_right_forest_passes():
    small = data.load("mnist", seed=0, smoke=True).first(300, 50)
    assert all(check["ok"] for check in contest.forest_checks(small, Settings(smoke=True), 0.2))


def test_memory_is_judged_by_growth_only_where_there_is_enough():
    point = {"n": 10, "bytes_share": 0.9, "resident_share": 1.5, "promised_bytes": 2**20}
    assert hypercube.memory_check(point)["ok"]
    assert not hypercube.memory_check({**point, "promised_bytes": 2**30})["ok"]
    assert not hypercube.memory_check({**point, "bytes_share": 1.01})["ok"]


def test_slices_cut_all_rows():
    assert list(prequential.slices(5, 2)) == [slice(0, 2), slice(2, 4), slice(4, 5)]


@pytest.mark.parametrize("name", drift.GENERATED)
def test_a_stream_that_drifts_has_the_same_rows_for_the_same_seed(name):
    pytest.importorskip("river")
    once, again, other = (drift.generated(name, 60, seed) for seed in (1, 1, 2))
    assert np.array_equal(once.X, again.X)
    assert np.array_equal(once.y, again.y)
    assert not np.array_equal(once.X, other.X)


@pytest.mark.parametrize("name", ["SEA", "Agrawal"])
def test_a_second_concept_repeats_no_row_of_the_first(name):
    pytest.importorskip("river")
    assert len(np.unique(drift.generated(name, 400, 1).X, axis=0)) == 400


def test_the_first_row_is_a_mistake_and_later_ones_are_answered_before_they_are_learned():
    class Last:
        y = None

        def partial_fit(self, X, y):
            self.y = y[-1]

        def predict_then_learn(self, X, y):
            answers = np.concatenate([[self.y], y[:-1]])
            self.y = y[-1]
            return answers

    stream = drift.Stream("five", np.zeros((5, 1)), np.array([0, 0, 1, 1, 1]))
    losses, _ = streaming.by_forest(Last(), stream, lambda row: None)
    assert losses.tolist() == [1, 0, 1, 0, 0]


def test_targets_of_streams_compare_with_the_run_of_the_same_learner():
    def part(ours, never, arf):
        rows = {
            streams.OURS: {"loss": ours, "rows_s": 42.0},
            streams.NEVER: {"loss": never, "rows_s": 42.0},
            streams.ARF: {"loss": arf, "rows_s": 2.0},
            streams.RIVER: {"loss": ours, "rows_s": 14.0},
        }
        return {"is_real": True, "rows": rows}

    names = (*drift.GENERATED, *drift.REAL, drift.SQUARES)
    drifting = {name: part(0.08, 0.2, 0.2) for name in names}
    drifting["SEA"] = part(0.22, 0.2, 0.2)
    long = {"rows_s_end": 9.0, "rows_s_at": 10.0, "growth": 0.06}
    result = {"drifting": drifting, "shuffled": {}, "regression": {}, "long": long}
    met = {aim["what"]: aim["met"] for aim in streams.targets(result, Settings())}
    assert met == {
        "mean accuracy - ARF's": True,
        "the same where it is least": False,
        "for_streams(): least rows/s / ARF's": True,
        "through River: least rows/s / ARF's": False,
        "SEA: accuracy": False,
        "Hyperplane: accuracy": True,
        "electricity: accuracy": True,
        "moving squares: accuracy": False,
        "covtype: accuracy": False,
        "long run: growth of memory": False,
        "long run: rows/s, end / first tenth": True,
    }
    assert streams.targets(result, Settings(smoke=True)) == []


def test_the_exit_code_is_that_of_the_answers(tmp_path, monkeypatch, capsys):
    result = {"checks": [harness.check("x", True)], "targets": [harness.target("t", 9, at_most=1)]}
    monkeypatch.setattr(mnist, "measure", lambda settings: dict(result))
    monkeypatch.setattr(mnist, "report", lambda result, console: None)
    out = tmp_path / "new" / "out.json"
    command = ["mnist", "--smoke", "--out", str(out), "--threads", "1", "--seed", "3"]
    assert main(command) == 0  # a missed target is no failure
    written = json.loads(out.read_text())
    assert written["settings"] == {"smoke": True, "repeat": 1, "threads": [1], "seed": 3}
    assert written["machine"]["versions"]["numpy"] == np.__version__
    result["checks"].append(harness.check("y", False))
    assert main(command) == 1
    assert "WRONG: y" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [(["nothing"], "no section"), (["--repeat", "0"], "at least 1"), (["--threads", "0"], "1,2")],
)
def test_bad_arguments_are_refused(command, message, capsys):
    with pytest.raises(SystemExit):
        main(command)
    assert message in capsys.readouterr().err
