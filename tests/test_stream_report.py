"""The report of a stream is one page that needs nothing else, and shows what happened."""

import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import pytest
from stream_histories import classified, regressed, regression, snapshot

from boundary_forest.report import page, write_report
from boundary_forest.report.charts import axis, log_axis
from boundary_forest.report.hardest import picture
from boundary_forest.session import Session, SessionSettings
from boundary_forest.session.class_measures import Bin, ClassScore
from boundary_forest.session.history import History
from boundary_forest.session.vote_breakdown import VoteBreakdown, VotingExample

BOTH = pytest.mark.parametrize("make", [classified, regressed])
VOID = {"meta", "link"}
NASTY = "<script>alert(1)</script>\"'&<!--"


class Outline(HTMLParser):
    """What a page consists of; fails where its elements do not nest."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open, self.tags, self.attributes, self.texts = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, *a) for a in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self):
        return " ".join(t for tag, t in self.texts if tag not in ("script", "style"))

    def headings(self):
        return [t for tag, t in self.texts if tag in ("h2", "h3")]


@BOTH
def test_nothing_is_asked_of_the_net(make):
    text = page(make())
    assert not re.search(r"https?:|//\w+\.\w", text.replace("// The", ""))
    assert "@import" not in text
    assert "url(" not in text
    outline = Outline(text)
    links = [a for a in outline.attributes if a[1] in ("src", "href", "srcset", "action", "data")]
    assert links == [("link", "href", "data:,")]
    assert ("meta", "http-equiv", "Content-Security-Policy") in outline.attributes


def test_every_section_is_there_for_a_classification():
    outline = Outline(page(classified()))
    headings = outline.headings()
    for heading in (
        "Error",
        "By class",
        "Reliability",
        "10 classes",
        "Most frequent mistakes",
        "Throughput",
        "Memory",
        "Examples stored",
        "The forest",
        "Nodes at each depth",
        "Row 100",
        "Parameters",
        "Inferred from the data",
        "Run",
        "Summary",
    ):
        assert heading in headings
    assert "Differences" not in headings
    for said in (
        "majority 12.5 %, no change 6.25 %",
        "0.940",
        "class 3",
        "2026-01-02 03:04",
        "boundary-forest stream rows.csv",
        "model.bf",
        "euclidean",
        "task: classify, 10 distinct integers",
    ):
        assert said in outline.text()


def test_every_section_is_there_for_a_regression():
    outline = Outline(page(regressed()))
    headings = outline.headings()
    for heading in (
        "Mean absolute error",
        "R²",
        "Predicted and true",
        "Differences",
        "Throughput",
        "Examples stored",
        "Memory",
        "The forest",
        "Nodes at each depth",
        "Row 100",
        "Parameters",
        "Inferred from the data",
    ):
        assert heading in headings
    assert "Most frequent mistakes" not in headings
    assert "off by -3.750" in outline.text()


def test_all_that_comes_from_the_data_is_escaped():
    history = classified(names=[NASTY, "plain"])
    history.snapshots = [replace(s, source=NASTY, choices=(NASTY,)) for s in history.snapshots]
    history.hardest = [replace(e, features={NASTY: NASTY}) for e in history.hardest]
    history.parameters = history.summary = {NASTY: NASTY}
    text = page(history)
    outline = Outline(text)
    assert outline.tags.count("script") == 1
    assert "<script>alert" not in text
    assert outline.text().count(NASTY) >= 60
    assert not [a for a in outline.attributes if a[1].startswith("on")]


def test_hostile_columns_and_classes_of_a_stream_are_escaped():
    """From the rows to the page: names of columns, text in them, and classes."""
    rows = [
        {NASTY: i % 7, f"{NASTY} too": NASTY if i % 3 else "x", "y": NASTY if i % 2 else "plain"}
        for i in range(300)
    ]
    for i in range(0, 300, 10):
        rows[i]["y"] = NASTY
    with Session(SessionSettings(target="y", warmup=50), name=NASTY, recording=True) as session:
        session.take_rows(rows)
        text = page(session.history())
    outline = Outline(text)
    assert outline.tags.count("script") == 1
    assert "<script>alert" not in text
    assert outline.text().count(NASTY) > 50
    assert not [a for a in outline.attributes if a[1].startswith("on")]


def test_no_template_turns_escaping_off():
    templates = list(files("boundary_forest.report").joinpath("templates").iterdir())
    assert len([t for t in templates if t.name.endswith(".html")]) >= 8
    for template in templates:
        assert not re.search(r"safe\b|autoescape", template.read_text(encoding="utf-8"))


def test_a_card_shows_the_examples_that_decided():
    ends = (VotingExample(3, "b", 0.5, 40, 0.875), VotingExample(9, "a", 0.7, 10, 0.125))
    example = replace(classified().hardest[0], votes=VoteBreakdown(ends))
    text = Outline(page(classified(hardest=[example]))).text()
    assert "2 stored examples decided" in text
    assert "87.5 %" in text
    assert "12.5 %" in text
    number = replace(
        regressed().hardest[0], votes=VoteBreakdown((VotingExample(3, 1.5, 0.5, 50, 1.0),))
    )
    text = page(regressed(hardest=[number]))
    assert "1 stored example decided" in text
    assert 'title="1.500, weight 100.0 %"' in text
    many = tuple(VotingExample(i, "b", 0.5, 1, 0.1) for i in range(10))
    text = page(classified(hardest=[replace(example, votes=VoteBreakdown(many))]))
    assert "and 2 more, with a total weight of 20.0 %" in text


def test_text_that_utf8_cannot_hold_is_written_all_the_same(tmp_path):
    write_report(tmp_path / "r.html", classified(names=["half \ud800", "plain"]))
    assert "half ?" in (tmp_path / "r.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("n_classes", [1, 2, 10, 50])
def test_the_matrix_has_a_cell_for_each_pair_of_classes(n_classes):
    text = page(classified(n_classes))
    begin = text.index('<table class="confusion')
    table = text[begin : text.index("</table>", begin)]
    assert table.count("<tr>") == n_classes + 1
    assert table.count('scope="row"') == table.count('scope="col"') == n_classes
    assert table.count("<td") == 1 + n_classes * (n_classes + 1)


def test_the_matrix_of_a_resumed_stream_says_that_it_is_not_of_all_rows():
    history = classified()
    assert "one column per predicted class." in page(history)
    history.by_class = [replace(history.by_class[0], rows=10_000), *history.by_class[1:]]
    assert "one column per predicted class, counted since the stream was resumed." in page(history)


def test_classes_are_in_order_and_the_rest_comes_last():
    history = classified(confusion={(c, c): 1 for c in ("10", "9", "other", "b", "-1.5")})
    history.by_class = [ClassScore(c, 1, 1, 1.0, 1.0, 1.0) for c in ("b", "10", "other", "9")]
    by_class, matrix = page(history).split('<table class="confusion')
    rows = [re.findall(r'<th scope="row">([^<]*)', text) for text in (by_class, matrix)]
    assert rows == [["9", "10", "b", "other"], ["-1.5", "9", "10", "b", "other"]]


def test_few_pairs_are_points_and_many_are_a_density():
    few, many = page(regressed(n_pairs=100)), page(regressed(n_pairs=5000))
    assert few.count("<circle") == 100
    assert many.count("<circle") == 0
    cells = [
        int(n.replace(",", "")) for n in re.findall(r"predicted [^<]*: ([\d,]+)</title>", many)
    ]
    assert sum(cells) == 5000


def test_empty_histories_have_a_page():
    empty = History([], {}, [], [], [], {}, {})
    assert "ended before the first prediction" in Outline(page(empty)).text()


@pytest.mark.parametrize("state", [snapshot, regression])
def test_a_stream_of_one_row_has_a_page(state):
    nothing = dict.fromkeys(("error", "recent_error", "mae", "recent_mae", "r2", "recent_r2"))
    one = state(1, trees=0, nodes_per_tree=0.0, stored=1, total_rows=None, **nothing)
    text = Outline(page(History([one], {}, [], [], [], {}, {}))).text()
    assert "1 row in" in text
    assert "There are no trees yet" in text


@pytest.mark.parametrize(
    "pairs",
    [[(1.0, 1.0)], [(0.0, 0.0)] * 600, [(math.nan, 1.0)], [(1e300, -1e300)] * 2, [(0.0, 1e-300)]],
)
def test_odd_pairs_do_no_harm(pairs):
    text = page(regressed(pairs=pairs))
    Outline(text)
    assert "nan" not in re.sub(r"<style>.*?</style>|<script>.*?</script>", "", text, flags=re.S)


@BOTH
def test_the_page_stays_small(make, tmp_path):
    history = make(n_snapshots=500) if make is regressed else make(50, n_snapshots=500)
    write_report(tmp_path / "report.html", history)
    assert (tmp_path / "report.html").stat().st_size < 1_000_000


def test_rows_of_pixels_are_shown_as_pictures():
    digits = {f"pixel_{y}_{x}": str(x * y) for y in range(8) for x in range(8)}
    assert (picture(digits).width, picture(digits).height) == (8, 8)
    mnist = {f"pixel{i}": str(i) for i in range(1, 785)}
    assert (picture(mnist).width, picture(mnist).height) == (28, 28)
    drawn = page(classified(hardest=[replace(classified().hardest[0], features=digits)]))
    assert 'viewBox="0 0 8 8" class="picture"' in drawn
    for other in (
        {},
        {"a": "1"},
        digits | {"b": "1"},
        dict.fromkeys(digits, "x"),
        dict.fromkeys(digits, "1"),
        {f"pixel{i}": str(i) for i in range(20)},
        {f"pixel_{i}_{i + 9999}": str(i) for i in range(64)},
    ):
        assert picture(other) is None


def test_axes_end_at_round_numbers():
    assert axis([0.03, 0.97]).ticks() == pytest.approx([0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert axis([12, 480], zero=True).ticks() == [0, 100, 200, 300, 400, 500]
    assert axis([7, 7], tight=True).at(7) == 0
    assert axis([-7, -7], tight=True).high > -7.7
    assert axis([]).ticks()


def test_logarithmic_axes_end_at_round_numbers():
    scale = log_axis([0.0, 0.013, 0.9])
    assert (scale.low, scale.high) == pytest.approx((0.01, 1.0))
    assert scale.ticks() == pytest.approx([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0])
    assert scale.at(0.1) == pytest.approx(0.5)
    assert scale.at(0.0) < 0
    assert log_axis([1e-6, 1.0]).ticks() == pytest.approx([10.0**i for i in range(-6, 1)])
    assert log_axis([0.5]).high > log_axis([0.5]).low
    assert log_axis([]).ticks()


def test_errors_far_below_the_baselines_have_a_logarithmic_axis():
    far = page(classified())
    near = page(
        classified(
            snapshots=[
                snapshot(100 * i, majority_accuracy=0.85, no_change_accuracy=0.9)
                for i in range(1, 41)
            ]
        )
    )
    assert "The axis is logarithmic." in far
    assert "The axis is logarithmic." not in near


def test_reliability_has_a_dot_for_each_confidence():
    found = page(classified(reliability=[Bin(30, 0.55, 0.5), Bin(90, 0.95, 0.9)]))
    assert "confidence 55.0 %, right 50.0 %: 30 rows" in found
    assert "Mean gap: 5.00 %" in found
    assert found.count("<circle") == 2


def test_only_the_largest_classes_have_a_line():
    many = [ClassScore(f"c{i}", 100 + i, 1, 1.0, 0.5, 0.6) for i in range(60)]
    text = page(classified(by_class=many))
    assert "The largest 50 of 60 classes." in text
    assert ">c59<" in text
    assert ">c9<" not in text
