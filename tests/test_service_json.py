"""JSON is read by orjson, and what comes out is what json gives."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from boundary_forest.service import bodies
from boundary_forest.service.errors import ServiceError

# json keeps integers of any size, orjson makes numbers of those that have more than 64 bits.
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@pytest.fixture
def plain(monkeypatch):
    """Return a function that reads without orjson."""

    def read(content):
        with monkeypatch.context() as patch:
            patch.setattr(bodies, "orjson", None)
            return bodies.read_object(content)

    return read


@settings(max_examples=300, deadline=None)
@given(
    value=st.dictionaries(st.text(), VALUES, max_size=4),
    escaped=st.booleans(),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-32"]),
)
def test_objects_are_those_of_json(value, escaped, encoding):
    content = json.dumps(value, ensure_ascii=escaped).encode(encoding)
    found = bodies.read_object(content)
    assert repr(found) == repr(value)  # which tells 1 from 1.0 and from True


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[1]",
        b"{",
        b'{"a": NaN}',
        b'{"a": "\xff"}',
        b'{"a": "\\ud800"}',
        b'{"a": ' + b"[" * 100_000,
        b'{"a": ' + b"1" * 5_000 + b"}",
    ],
)
def test_what_is_refused_has_the_error_of_json(content, plain):
    errors = []
    for read in (bodies.read_object, plain):
        with pytest.raises(ServiceError) as caught:
            read(content)
        errors.append(caught.value.body())
    assert errors[0] == errors[1]


def test_numbers_that_json_reads_as_infinite_are_still_read(plain):
    assert bodies.read_object(b'{"a": 1e400}') == plain(b'{"a": 1e400}') == {"a": math.inf}


@pytest.mark.parametrize("name", ["ids", "allowed"])
def test_ids_of_more_than_64_bits_keep_their_digits(name):
    id = 2**127 + 1
    assert bodies.read_object(b'{"%s": [%d]}' % (name.encode(), id)) == {name: [id]}
