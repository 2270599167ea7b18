"""A JSON array of objects as NDJSON: one object per line."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator

from boundary_forest.session.problems import StreamError
from boundary_forest.session.sources.lines import LONGEST_LINE

_BETWEEN = re.compile(r"[\s,]*")


def lines_of_array(name: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Yield the objects of a JSON array as blocks of lines, whatever the array's line ends."""
    decode, read = codecs.getincrementaldecoder("utf-8-sig")().decode, json.JSONDecoder().raw_decode
    text, ended = "", False
    for block in blocks:
        text += decode(block)
        if text.lstrip().startswith("["):
            text = text.lstrip()[1:]
        lines: list[str] = []
        begin = 0
        while not ended:
            begin = _next(name, text, begin)
            ended = text.startswith("]", begin)
            try:
                _, end = read(text, begin)
            except ValueError:  # it goes on in the next block
                break
            lines.append(text[begin:end].replace("\r", " ").replace("\n", " ") + "\n")
            begin = end
        text = text[begin:]
        if lines:
            yield "".join(lines).encode()
        if len(text) > LONGEST_LINE:
            raise StreamError(
                f"{name}: a JSON object does not end within {LONGEST_LINE:,} characters"
            )
    if not ended or text.strip() != "]":
        raise StreamError(f"{name} is not a valid JSON array: unexpected {text[:40]!r}")


def _next(name: str, text: str, begin: int) -> int:
    """Return where the next object begins, or the array ends."""
    between = _BETWEEN.match(text, begin)
    begin = begin if between is None else between.end()
    if begin < len(text) and text[begin] not in "{]":
        raise StreamError(
            f"{name} must be a JSON array of objects, got {text[begin : begin + 40]!r}"
        )
    return begin
