"""Text in UTF-8 is taken for text, whatever letters it ends with."""

from __future__ import annotations

import pytest

from boundary_forest.sources import open_source
from boundary_forest.sources.row_batch import StreamError


@pytest.mark.parametrize("last", ["x", "ü", "ü\n", '"ü"\n', "€", "€\r\n", "🌲", "🌲x\n"])
@pytest.mark.parametrize("rows", [1, 30_000])
def test_a_file_may_end_with_any_letter(tmp_path, last, rows):
    path = tmp_path / "rows.csv"
    path.write_text("a,kind\n" + "1,ä\n" * rows + "2," + last, encoding="utf-8", newline="")
    batches = list(open_source(str(path)).batches)
    assert sum(len(batch.table) for batch in batches) == rows + 1


def test_other_bytes_are_no_text(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,kind\n1,ü\n".encode("latin-1"))
    with pytest.raises(StreamError, match="neither UTF-8 text"):
        open_source(str(path))
