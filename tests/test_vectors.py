"""Positions in tables of pyarrow: lists of every type, and columns of numbers."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from boundary_forest.frames.vector_columns import VectorColumns

KINDS = {
    "float16": pa.float16(),
    "float32": pa.float32(),
    "float64": pa.float64(),
    "uint8": pa.uint8(),
    "int8": pa.int8(),
    "int64": pa.int64(),
}
LISTS = {
    "list": lambda kind: pa.list_(kind),
    "large_list": lambda kind: pa.large_list(kind),
    "fixed_size_list": lambda kind: pa.list_(kind, 4),
}


@pytest.mark.parametrize("which", LISTS)
@pytest.mark.parametrize("dtype", KINDS)
def test_lists_of_any_type_keep_it_and_bad_ones_are_named(which, dtype):
    rows = [row.tolist() for row in np.arange(24).reshape(6, 4)]
    rows[2], rows[4][1] = None, None
    number = np.dtype(dtype).type
    typed = [r and [None if x is None else number(x) for x in r] for r in rows]
    vectors = pa.array(typed, LISTS[which](KINDS[dtype]))
    ids = pa.array(["a", "b", None, "d", "e", "f"]).dictionary_encode()
    table = pa.table({"v": vectors, "id": ids}).slice(1)  # as a batch of a file is
    read = VectorColumns(table.schema, id="id").read(table)
    assert read.X.dtype == dtype
    assert read.X.tolist() == [rows[1], rows[3], rows[5]]
    assert read.ids == ["b", "d", "f"]
    assert read.places.tolist() == [0, 2, 4]
    assert read.bad == {
        1: "column 'v' has no value",
        3: "column 'v' has a missing number",
    }


def test_rows_may_lack_a_column_that_earlier_rows_had():
    first = pa.table({"v": [[1.0, 2.0]], "id": [1]})
    columns = VectorColumns(first.schema, id="id")
    assert columns.read(first).X.tolist() == [[1.0, 2.0]]
    assert columns.read(pa.table({"v": [[1, 2]]})).bad == {
        0: "it has no id: column 'id' has no value"
    }
    assert columns.read(pa.table({"id": [3]})).bad == {0: "column 'v' has no value"}


def test_columns_of_several_types_have_the_type_that_holds_all():
    table = pa.table({"a": np.uint8([1, 2]), "b": np.float32([0.5, 1]), "c": ["3", ""]})
    bytes_alone = VectorColumns(table.schema, ["a"]).read(table)
    assert bytes_alone.X.dtype == np.uint8
    assert VectorColumns(table.schema, ["b", "a"]).read(table).X.dtype == np.float32
    read = VectorColumns(table.schema).read(table)
    assert read.X.tolist() == [[1.0, 0.5, 3.0]]
    assert read.bad == {1: "column 'c' has no value"}
