"""The panel of a stream fits its terminal and says the figures; so do lines and the summary."""

import gzip
import io
import math
import re
import sys

import pytest
from rich.console import Console
from rich.text import Text
from stream_histories import classified, regressed, regression, snapshot

from boundary_forest.cli import sparkline
from boundary_forest.cli.display import Display
from boundary_forest.cli.panel import Frame, LivePanel
from boundary_forest.cli.sparkline import Track
from boundary_forest.cli.summary import plain_line, summary
from boundary_forest.report import page as write_page
from boundary_forest.report.formatting import duration, number, percent, rate, short, size
from boundary_forest.session.history import History
from boundary_forest.session.scores import MEASURES
from boundary_forest.sources.text_blocks import about_lines

SIZES = [(80, 24), (160, 50), (40, 10), (24, 6), (10, 3), (200, 12)]
AWKWARD = {
    "source": "資料" * 60 + "\x1b[2J\n",
    "bad": 123_456_789,
    "unlabelled": 1_000_000,
    "unseen_categories": 7,
    "total_rows": 10**12,
    "choices": tuple(f"column {i}: [bold]{'x' * 70}\x07" for i in range(60)),
}


def shown(state, width, height, track=()):
    """The lines of a frame, as a terminal of this size shows them."""
    console = Console(width=width, height=height, file=io.StringIO(), force_terminal=True)
    lines = console.render_lines(Frame(state, track), pad=False)
    return ["".join(segment.text for segment in line) for line in lines], console


@pytest.mark.parametrize(("width", "height"), SIZES)
@pytest.mark.parametrize("make", [snapshot, regression])
@pytest.mark.parametrize("changes", [{}, AWKWARD], ids=["plain", "awkward"])
@pytest.mark.parametrize("n_errors", [0, 1, 500])
def test_the_panel_never_exceeds_the_terminal(width, height, make, changes, n_errors):
    track = [(i, 0.2 + 0.1 * math.sin(i / 9)) for i in range(n_errors)]
    lines, console = shown(make(**changes), width, height, track)
    assert len(lines) < height
    assert max(console.measure(line).maximum for line in lines) <= width
    assert not any(c in "".join(lines) for c in "\x1b\x07\n")


def test_the_panel_tells_all_where_there_is_room():
    state = snapshot(bad=3, unlabelled=12, unseen_categories=1)
    lines, _ = shown(state, 80, 24, [(1, 0.1), (1200, 0.2)])
    text = "\n".join(lines)
    for part in (
        "rows.csv",
        "classification",
        "1,200 of 4,000 rows",
        "30 %",
        "5.08 %",
        "1,230",
        "600",
        "480 kB",
        "50 trees of 240 nodes each",
        "accuracy 94.9 %",
        "majority class 12.5 %",
        "no change 6.25 %",
        "kappa 0.940",
        "F1 0.945",
        "log-loss 0.310, recent 0.290",
        "confidence 87.5 %",
        "3 bad",
        "12 unlabelled",
        "1 unseen categories",
    ):
        assert part in text
    assert state.choices[0] not in text  # they are printed once, above the panel


def test_a_small_terminal_keeps_rows_and_error():
    lines, _ = shown(snapshot(), 40, 10, [(1, 0.1), (1200, 0.2)])
    text = "\n".join(lines)
    assert "1,200 of 4,000" in text
    assert "5.08 %" in text


def test_without_a_known_end_there_is_no_bar():
    lines, _ = shown(snapshot(total_rows=None), 80, 24)
    text = "\n".join(lines)
    assert "1,200 rows" in text
    assert "━" not in text


def test_what_is_not_known_yet_is_a_dash():
    nothing = {
        "error": None,
        "recent_error": None,
        "rows": 0,
        "learned": 0,
        "trees": 0,
        "stored": 0,
        "seconds": 0.0,
        "rows_per_s": 0.0,
        "recent_rows_per_s": 0.0,
    }
    lines, _ = shown(snapshot(**nothing), 80, 24)
    assert re.search(r"-\s+-\s+0", "\n".join(lines))
    assert "no trees yet" in "\n".join(lines)
    lines, _ = shown(regression(mae=None, recent_mae=None, r2=math.nan, recent_r2=None), 80, 24)
    assert re.search(r"-\s+-\s+-\s+-", "\n".join(lines))


def test_a_terminal_of_ascii_gets_ascii():
    out = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    console = Console(width=80, height=24, file=out, force_terminal=True)
    with LivePanel(console) as panel:
        for rows in range(100, 1000, 100):
            panel.update(snapshot(rows))
    summary(console, classified())
    assert b"rows.csv" in out.buffer.getvalue()


def test_updates_redraw_in_place_and_leave_nothing():
    out = io.StringIO()
    console = Console(width=80, height=24, file=out, force_terminal=True)
    with LivePanel(console) as panel:
        for rows in range(100, 1000, 100):
            panel.update(snapshot(rows))
    screen = Screen(80, 24)
    screen.write(out.getvalue())
    assert not "".join(screen.lines).strip()


def test_after_a_resize_the_panel_has_the_new_size():
    out = io.StringIO()
    console = Console(width=120, height=40, file=out, force_terminal=True)
    with LivePanel(console) as panel:
        panel.update(snapshot(100))
        console.size = (60, 20)
        out.seek(0)
        out.truncate()
        panel.update(snapshot(200))
        assert "\x1b[2J" in out.getvalue()  # the old frame's remains are wiped
        after = out.getvalue().split("\x1b[2J")[1]
    assert after.count("╭") == 1
    assert {len(line) for line in Text.from_ansi(after).plain.split("\n") if line} == {60}


def test_a_panel_that_was_shown_nothing_prints_nothing():
    out = io.StringIO()
    with LivePanel(Console(file=out, force_terminal=True)):
        pass
    assert out.getvalue() == ""


def test_what_goes_into_a_pipe_meanwhile_is_left_alone(capsys):
    out = io.StringIO()
    with LivePanel(Console(file=out, force_terminal=True)) as panel:
        panel.update(snapshot())
        print("an answer")
        print("a warning", file=sys.stderr)
    assert capsys.readouterr() == ("an answer\n", "a warning\n")
    assert "an answer" not in out.getvalue()


def test_plain_lines():
    assert plain_line(snapshot(bad=2, recent_error=0.0492)) == (
        "1,200 of 4,000 rows, 30 %, 2.8 s left  error 5.08 %, recent 4.92 %  kappa 0.940  "
        "600 stored  480 kB  1,230 rows/s  2 bad"
    )
    assert plain_line(regression(total_rows=None, recent_mae=0.4484)) == (
        "1,200 rows  MAE 0.5008, recent 0.4484  R2 0.600, recent 0.650  600 stored  480 kB  "
        "1,230 rows/s"
    )


@pytest.mark.parametrize("history", [classified(), regressed()], ids=["classify", "regress"])
def test_the_summary_tells_the_last_state_and_what_was_added(history):
    history.summary = {"saved to": "model [bold].bf"}
    for on_terminal in (True, False):
        out = io.StringIO()
        summary(Console(file=out, force_terminal=on_terminal, width=80), history)
        assert "4,000 in 4.0 s" in out.getvalue()
        assert "model [bold].bf" in out.getvalue()
        assert on_terminal or "\x1b" not in out.getvalue()


def test_the_summary_has_the_measures_of_its_task():
    texts = []
    for history in (classified(), regressed()):
        out = io.StringIO()
        summary(Console(file=out, width=120), history)
        texts.append(" ".join(out.getvalue().split()))
    for said in (
        "error 5.02 %; 3.32 % recently",
        "accuracy 95.0 %; majority class 12.5 %, no change 6.25 %",
        "kappa 0.940",
        "F1 0.945 on average; lowest 0.",
        "log-loss 0.310; 0.290 recently",
        "confidence 87.5 %; 89.0 % recently",
    ):
        assert said in texts[0]
        assert said.split()[0] not in texts[1]
    assert "MAE 0.5002; 0.4363 recently RMSE 0.7500 R2 0.600; 0.650 recently" in texts[1]


def test_a_terminal_that_is_to_be_quiet_is_shown_how_good_answers_were():
    unjudged = snapshot(**dict.fromkeys(MEASURES))
    for states, on_terminal in (([snapshot()], True), ([snapshot()], False), ([unjudged], True)):
        out = io.StringIO()
        console = Console(file=out, force_terminal=on_terminal, width=80)
        with Display(console, quiet=True) as display:
            display.end(History(snapshots=states))
        if on_terminal and states != [unjudged]:
            assert "accuracy" in out.getvalue()
            assert "94.9 %" in out.getvalue()
            assert "stored" not in out.getvalue()
        else:
            assert out.getvalue() == ""


def test_where_nothing_is_predicted_nothing_is_said_of_errors():
    state = snapshot(predicting=False, **dict.fromkeys(MEASURES))
    lines, _ = shown(state, 80, 24)
    out = io.StringIO()
    summary(Console(file=out, width=120), History(snapshots=[state]))
    for text in ("\n".join(lines), plain_line(state), out.getvalue()):
        assert "600" in text
        assert not re.search(r"error|recent|accuracy|kappa|F1| - ", text)


def test_the_summary_of_nothing():
    out = io.StringIO()
    summary(Console(file=out), History([], {}, [], [], [], {}, {}))
    assert out.getvalue() == "no rows\n"


def test_a_track_stays_short_and_keeps_the_whole_run():
    track = Track()
    for i in range(100_000):
        track.add(i, float(i))
    assert len(track.points) < sparkline.MOST
    assert track.points[0] < (1000, 1000.0)
    assert track.points[-1] > (99_000, 99_000.0)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
@pytest.mark.parametrize("rows", [(1, 1200), (1, 2, 3, 1200), range(1, 1201)])
def test_the_curve_fills_the_width_and_has_an_axis(width, height, rows):
    lines, _ = shown(snapshot(), width, height, [(row, 0.1 + row / 9000) for row in rows])
    first = rows[len(rows) // 10]
    (axis,) = (line for line in lines if f"└row {first} " in line)
    begin, end = axis.index("└"), axis.index("1,200") + len("1,200")
    curve = [line[begin + 1 : end] for line in lines if re.search("[┤│].*[\u2801-\u28ff]", line)]
    assert len(curve) > 2
    for i in (0, -1):
        assert any("\u2801" <= line[i] <= "\u28ff" for line in curve)
    assert end > 40


@pytest.mark.parametrize(("width", "height"), [(80, 24), (160, 50)])
def test_a_curve_that_falls_begins_in_its_box(width, height):
    """The first tenth, in which nearly every answer is wrong, is left out with its rows."""
    lines, _ = shown(snapshot(), width, height, [(row, 1 / row) for row in range(1, 1201)])
    (axis,) = (line for line in lines if "└row 121 " in line)
    (top,) = (line for line in lines if "0.83 % ┤" in line)
    assert "\u2801" <= top[axis.index("└") + 1] <= "\u28ff"


def test_the_speed_of_a_paced_run_is_without_its_waiting():
    state = snapshot(pace=150.0)
    assert "19 s left" in plain_line(state)
    text = "\n".join(shown(state, 80, 24)[0])
    assert "slowed down to 150 rows/s" in text
    assert "1,230" in text
    out = io.StringIO()
    summary(Console(file=out, width=120), History(snapshots=[state]))
    assert "1,200 in 1.2 s, 1,000 per second without waiting" in out.getvalue()
    page = write_page(History(snapshots=[state]))
    assert "slowed down to 150 to be watched" in page


def test_values_are_stretched_by_their_rows():
    points = [(0, 0.0), (10, 1.0), (40, 4.0)]
    assert sparkline.stretched(points, 5) == pytest.approx([0.0, 1.0, 2.0, 3.0, 4.0])
    assert sparkline.stretched([(7, 3.0)], 4) == [3.0] * 4


def test_files_of_text_have_a_percentage_and_a_time_to_go():
    state = snapshot(total_rows=None, about_rows=4123)
    assert plain_line(state).startswith("1,200 of about 4,120 rows, 29 %, 2.9 s left  error")
    text = "\n".join(shown(state, 80, 24)[0])
    assert "1,200 of about 4,120 rows" in text
    assert "29 %  2.9 s left" in text
    late = snapshot(4500, total_rows=None, about_rows=4123)
    assert plain_line(late).startswith("4,500 of about 4,500 rows, 100 %  error")


def test_a_resumed_stream_is_as_far_from_its_end_as_its_speed_says():
    state = snapshot(3000, seconds=0.5, rows_per_s=2000.0)
    assert plain_line(state).startswith("3,000 of 4,000 rows, 75 %, 0.5 s left")


@pytest.mark.parametrize("n", [1, 100, 40_000])
def test_the_lines_of_a_file_are_about_counted(tmp_path, n):
    path = tmp_path / "rows.csv"
    path.write_text("".join(f"{i},{'x' * (i % 90)}\n" for i in range(n)))
    assert about_lines(path) == pytest.approx(n, rel=0.02)
    (tmp_path / "empty").touch()
    assert about_lines(tmp_path / "empty") is None
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert about_lines(path) is None


def test_figures_become_bars_and_curves():
    assert sparkline.bars([0.0, 1.0, 2.0, 9.0], 0.0, 2.0, 9, 2, False) == [" ▁██", "▁███"]
    assert sparkline.bars([0.0, 1.0, 2.0, 9.0], 0.0, 2.0, 2, 1, True) == ["-@"]
    assert sparkline.curve([0.0, 1.0, 1.0, 0.0], 0.0, 1.0, 9, 1) == ["⡸⢱"]
    assert sparkline.curve([9.0, 9.0, 0.0, 0.0], 0.0, 1.0, 9, 1) == ["⠉⣆"]
    assert sparkline.curve([5.0], 5.0, 5.0, 9, 2) == [" ", "⡀"]


def test_figures_are_written_for_people():
    assert [percent(v) for v in (0, 0.0225, 0.0999, 0.1, 1)] == [
        "0.00 %",
        "2.25 %",
        "9.99 %",
        "10.0 %",
        "100.0 %",
    ]
    assert [number(v) for v in (0, 1, 0.123456, 1234567.8, 9.99996, 1e-7, -3e12)] == [
        "0",
        "1.000",
        "0.1235",
        "1,235,000",
        "10.00",
        "1.000e-07",
        "-3.000e+12",
    ]
    assert [size(v) for v in (0, 999, 1000, 12_345_678, 10**15)] == [
        "0 B",
        "999 B",
        "1.00 kB",
        "12.3 MB",
        "1,000 TB",
    ]
    assert [duration(v) for v in (0.04, 9.96, 61, 3599.9, 7620)] == [
        "0.0 s",
        "10 s",
        "1 min 01 s",
        "1 h 00 min",
        "2 h 07 min",
    ]
    assert [short(v) for v in (0, 0.25, 500, 1500, 2e6)] == ["0", "0.25", "500", "1.5k", "2M"]
    assert rate(23_456.7) == "23,500"


class Screen:
    """A terminal that knows what the panel uses: lines, erasing a line, and going up."""

    def __init__(self, width, height):
        self.lines, self.row, self.column = [" " * width] * height, 0, 0

    def write(self, text):
        for code, char in re.findall(r"\x1b\[([?\d;]*[A-Za-z])|(.|\n)", text):
            if code.endswith("A"):
                self.row -= int(code[:-1] or 1)
            elif code == "2K":
                self.lines[self.row] = " " * len(self.lines[self.row])
            elif char == "\n":
                self.row, self.column = self.row + 1, 0
            elif char == "\r":
                self.column = 0
            elif char:
                line = self.lines[self.row]
                self.lines[self.row] = line[: self.column] + char + line[self.column + 1 :]
                self.column += 1
