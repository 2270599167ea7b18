"""The picture of recall against time, and its tables, from the figures of a run."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.indexes import CONTESTANTS
from benchmarks.recall_plot import LINES, drawn, time_at, write

pytest.importorskip("matplotlib")


def section():
    def row(key, i):
        widths = [10] if key == "faiss_flat" else [10, 40, 160]
        curve = [{"width": w, "recall": 1 - 1 / w**1.5, "us": w * (i + 1.0)} for w in widths]
        it = {"index": key, "title": CONTESTANTS[key].title, "installed": key != "usearch"}
        return it | {"build_s": 1.0, "bytes": 100.0, "curve": curve}

    rows = [row(key, i) for i, key in enumerate(CONTESTANTS)]
    return {
        "parts": [{"data": name, "shape": [9, 2], "indexes": rows} for name in ("mnist", "else")]
    }


def test_every_index_is_drawn_and_told(tmp_path):
    assert LINES.keys() == CONTESTANTS.keys()
    files = write(section(), tmp_path / "recall")
    assert [file.suffix for file in files] == [".md", ".svg"]
    assert all(file.stat().st_size > 100 for file in files)
    told = files[0].read_text()
    assert "| MNIST, bytes: 9 rows of 2 | build s |" in told
    assert told.count("\n| hnswlib, ef_construction 200 | 1.0 | 100 |") == 2
    assert "USearch" not in told  # not installed
    again = write(section(), tmp_path / "again")
    assert files[1].read_bytes() == again[1].read_bytes()


def test_a_line_ends_where_all_is_found():
    """Wider beams would stand above each other at the end of the axis."""
    figure = drawn(section()["parts"])
    lines = {line.get_label(): line for line in figure.axes[0].get_lines()}
    assert len(lines) == len(CONTESTANTS) - 1
    forest = lines["boundary forest, 30 trees"]
    np.testing.assert_allclose(forest.get_xdata(), [1 - 1 / 10**1.5, 1 - 1 / 40**1.5, 0.9995])


def test_times_between_widths_are_interpolated():
    curve = [{"recall": 0.9, "us": 10.0}, {"recall": 1.0, "us": 30.0}]
    assert time_at(curve, 0.95) == pytest.approx(20.0)
    assert time_at(curve, 0.8) == 10.0
    assert time_at(curve[:1], 0.95) is None
