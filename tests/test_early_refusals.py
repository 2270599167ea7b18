"""What is too large, or cannot be right, is refused before it is read."""

from __future__ import annotations

import json
import math
import time
import zlib
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from stream_rows import job

from boundary_forest import BoundaryForestClassifier, ModelFileError, load
from boundary_forest.cli.job import run
from boundary_forest.files.layout import DTYPES
from boundary_forest.session import StreamError

SECONDS = 5.0  # each takes a few milliseconds, and took half a minute and more


@contextmanager
def refused_soon(error, match):
    begin = time.monotonic()
    with pytest.raises(error, match=match):
        yield
    assert time.monotonic() - begin < SECONDS


@pytest.fixture
def model(tmp_path):
    X, y = np.random.default_rng(0).random((50, 4)), np.arange(50) % 3
    path = tmp_path / "model.bf"
    BoundaryForestClassifier(n_estimators=3, random_state=0).fit(X, y).save(path)
    return path


def header_of(path) -> dict:
    content = path.read_bytes()
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])


def with_header(path, header: dict) -> None:
    """A file of this header, whose arrays are holes."""
    text = json.dumps(header).encode()
    text += b" " * (-(8 + len(text)) % 64)
    end = max(e["data_offsets"][1] for name, e in header.items() if name != "__metadata__")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + end)


@pytest.mark.parametrize(
    "name",
    [
        "positions",
        "labels",
        "arrivals",
        "spread",
        "tree_sizes",
        "node_examples",
        "node_parents",
        "classes",
        "class_codes",
        "class_declared",
    ],
)
def test_an_array_of_4_gb_that_does_not_fit_the_others(model, name, monkeypatch):
    """Though all checksums are right, as whoever makes such a file can make them."""
    header = header_of(model)
    entry = header[name]
    row = DTYPES[entry["dtype"]].itemsize * math.prod(entry["shape"][1:])
    entry["shape"][0] = 2**32 // row
    start = 0
    for key, one in sorted(header.items(), key=lambda item: item[1].get("data_offsets", [-1])):
        if key != "__metadata__":
            end = start + DTYPES[one["dtype"]].itemsize * math.prod(one["shape"])
            one["data_offsets"], start = [start, end], end
    with_header(model, header)
    monkeypatch.setattr("boundary_forest.files.reading.ModelFile.array", _unread)
    with refused_soon(ModelFileError, r"model\.bf: \w+: it (has|must)"):
        load(model)


def _unread(self, name, dtype, n_dimensions=1):
    raise AssertionError(f"{name} was read")


def test_a_header_of_many_arrays(tmp_path):
    metadata = {"format": "boundary-forest", "version": "1", "model": "{}"}
    metadata["checksum"] = f"{zlib.crc32(b'{}'):08x}"
    array = {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]}
    path = tmp_path / "many.bf"
    with_header(path, {"__metadata__": metadata, **{f"a{i}": array for i in range(100_000)}})
    with refused_soon(ModelFileError, "its header is longer than"):
        load(path)


def test_nothing_is_saved_that_would_not_be_loaded(model, tmp_path):
    forest = load(model)
    attachments = {f"a{i}": 0 for i in range(60_000)}
    with pytest.raises(ValueError, match="take"):
        forest.save(tmp_path / "other.bf", attachments=attachments)
    assert not (tmp_path / "other.bf").exists()


@pytest.mark.parametrize("repeated", [True, False])
def test_a_small_parquet_file_of_very_long_texts(tmp_path, repeated):
    texts = [letter * 60_000_000 for letter in ("xxx" if repeated else "xyz")]
    path = tmp_path / "rows.parquet"
    pa.parquet.write_table(pa.table({"text": texts, "y": [0, 1, 0]}), path, compression="zstd")
    assert path.stat().st_size < 100_000
    before = pa.total_allocated_bytes()
    with refused_soon(StreamError, "rows take"):
        run(job(path, target="y", quiet=True))
    assert pa.total_allocated_bytes() <= before
