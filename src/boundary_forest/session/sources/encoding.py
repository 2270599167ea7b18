"""Text in other encodings or with other line ends, as UTF-8 with line feeds."""

from __future__ import annotations

import codecs
from collections.abc import Callable

from boundary_forest.session.problems import StreamError

HINT = "set the encoding, for example to latin-1, cp1252 or utf-16"
_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Utf8:
    """The bytes of a source as UTF-8, in which lines end with a feed: call it until it has none.

    Parameters
    ----------
    read : callable
        Returns the next bytes; none at the end.
    name : str
        Of the source, for errors.
    encoding : str or None
        The encoding; None: UTF-8, unless a mark says that it is UTF-16.
    """

    def __init__(self, read: Callable[[], bytes], name: str, encoding: str | None) -> None:
        self._read = read
        self._name = name
        self._start: bytes | None = read()
        if encoding is None:
            encoding = "utf-16" if self._start.startswith(_MARKS) else "utf-8"
        self._encoding = encoding
        self._converts = codecs.lookup(encoding).name != "utf-8"
        self._decoder = codecs.getincrementaldecoder(encoding)()
        self._returns: bool | None = None  # whether lines end with a carriage return alone
        self._held = b""  # a return that a feed may follow

    def __call__(self) -> bytes:
        """Return the next bytes, at least one; none at the end."""
        while True:
            more = self._decoded() if self._converts else self._next()
            text, self._held = self._held + more, b""
            if self._returns is None and (b"\n" in text or b"\r" in text[:-1]):
                self._returns = b"\n" not in text
            if self._returns is None and more and text.endswith(b"\r"):
                text, self._held = text[:-1], b"\r"
            if text or not more:
                return text.replace(b"\r", b"\n") if self._returns else text

    def _next(self) -> bytes:
        start, self._start = self._start, None
        return self._read() if start is None else start

    def _decoded(self) -> bytes:
        try:
            while True:
                raw = self._next()
                text = self._decoder.decode(raw, final=not raw)
                if text or not raw:  # else it is a part of a character
                    return text.encode()
        except UnicodeDecodeError as error:
            raise StreamError(
                f"{self._name} is not valid {self._encoding} text ({error.reason}): {HINT}"
            ) from error
