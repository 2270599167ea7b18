"""Tables of very many columns: time grows with their number, and a run can be stopped."""

from __future__ import annotations

import gc
import os
import signal
import time

import numpy as np
import pyarrow as pa
import pytest
from stream_rows import write

from boundary_forest import BoundaryForestNeighbors, load
from boundary_forest.cli import index_io
from boundary_forest.session import warmup
from boundary_forest.sources import binary_formats, open_source, text_blocks

RATIO = 8  # of the times with four times as many columns; 16 if each looks at all others


def wide(n_columns: int, n_rows: int = 5) -> pa.Table:
    """Integers below 3."""
    values = (7 * np.arange(n_columns)[:, np.newaxis] + np.arange(n_rows)) % 3
    return pa.table({f"c{i}": column for i, column in enumerate(values)})


@pytest.mark.parametrize("suffix", ["csv", "ndjson", "parquet", "arrow"])
@pytest.mark.parametrize("command", ["index", "stream"])
def test_the_time_grows_with_the_number_of_columns_and_not_with_its_square(
    told, tmp_path, command, suffix
):
    target = ["--target", "c0"] if command == "stream" else []

    def seconds(n: int) -> float:
        """The least of three runs: the collector may walk through what other tests left."""
        source = write(wide(n), tmp_path / f"{n}.{suffix}")
        times = []
        for i in range(3):
            gc.collect()
            start = time.process_time()
            assert told(command, source, "--save", tmp_path / f"{i}.bf", "--json", *target)[0] == 0
            times.append(time.process_time() - start)
        return min(times)

    few, many = seconds(2_000), seconds(8_000)
    assert many <= RATIO * few, (few, many)


def test_batches_of_wide_rows_are_short_but_not_of_single_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(binary_formats, "BATCH_VALUES", 1 << 10)
    lengths = {}
    for n_columns in (2, 8, 400):
        path = write(wide(n_columns, 600), tmp_path / f"{n_columns}.arrow")
        lengths[n_columns] = [len(batch.table) for batch in open_source(str(path)).batches]
    assert max(lengths[2]) == 512
    assert max(lengths[8]) == 128
    assert max(lengths[400]) == 64


def test_long_lines_of_a_file_are_read_many_at_once(tmp_path, monkeypatch):
    rows = wide(400, 50)
    path = write(rows, tmp_path / "rows.csv")
    monkeypatch.setattr(text_blocks, "BLOCK_BYTES", 1_000)
    by_line = [batch.table for batch in open_source(str(path)).batches]
    monkeypatch.setattr(text_blocks, "LONG_LINE", 100)
    together = [batch.table for batch in open_source(str(path)).batches]
    assert len(by_line) > 30
    assert len(together) <= 2
    assert pa.concat_tables(by_line).equals(pa.concat_tables(together))


def test_an_index_of_wide_rows_can_be_stopped_within_a_batch(told, tmp_path, monkeypatch):
    path = write(wide(50, 400), tmp_path / "rows.parquet")
    monkeypatch.setattr(index_io, "SEVERAL_VALUES", 500)
    learn = BoundaryForestNeighbors.partial_fit

    def stop_after(forest, *arguments, **options):
        learn(forest, *arguments, **options)
        os.kill(os.getpid(), signal.SIGTERM)
        return forest

    monkeypatch.setattr(BoundaryForestNeighbors, "partial_fit", stop_after)
    code, out, _ = told("index", path, "--save", tmp_path / "index.bf")
    assert code == 128 + signal.SIGTERM
    assert "after row 10" in out
    assert load(tmp_path / "index.bf").examples_seen == 10


@pytest.mark.parametrize("saved", [False, True])
def test_a_stream_of_wide_rows_stops_at_the_decision_that_the_signal_finds(
    told, tmp_path, monkeypatch, saved
):
    path = write(wide(50, 400), tmp_path / "rows.parquet")
    choose, decisions = warmup.choose, []

    def stop_after_the_second(table, options):
        decisions.append(len(table))
        if len(decisions) == 2:
            os.kill(os.getpid(), signal.SIGTERM)
        return choose(table, options)

    monkeypatch.setattr(warmup, "choose", stop_after_the_second)
    save = ["--save", tmp_path / "model.bf"] if saved else []
    code, out, _ = told("stream", path, "--target", "c0", *save)
    assert code == 128 + signal.SIGTERM
    assert "after row 1" in out
    # From one row, from two, and only if a model is to be saved from the one that was answered.
    assert decisions == [1, 2, 1][: 2 + saved]
    assert (tmp_path / "model.bf").exists() == saved
