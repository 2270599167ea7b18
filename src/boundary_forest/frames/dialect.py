"""How text is written: what separates values, and how numbers look.

It is kept with the model, so that the next file is read as the first one was.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass, fields
from typing import Any, Self

from boundary_forest.frames.column_errors import ColumnError

THOUSANDS = (",", ".", "'", "_", " ")


@dataclass(frozen=True)
class Dialect:
    """The dialect of text; None where nothing was specified.

    Parameters
    ----------
    sep : str or None
        The character between the values of a CSV file; None: the first of comma, tab, semicolon
        and bar that is in the first line.
    header : bool or None
        Whether the first line of a CSV file names the columns; None: it does.
    encoding : str or None
        The encoding of a text file, by Python's name; None: UTF-8, or UTF-16 with a byte order
        mark.
    decimal : str or None
        The decimal point of numbers, "." or ","; None: ".".
    thousands : str or None
        What separates groups of three digits; None: nothing.
    """

    sep: str | None = None
    header: bool | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None

    def __post_init__(self) -> None:
        if self.sep is not None and (len(self.sep) != 1 or self.sep in '"\r\n'):
            raise ColumnError(f"sep must be one character, got {self.sep!r}")
        if self.decimal not in (None, ".", ","):
            raise ColumnError(f"decimal must be '.' or ',', got {self.decimal!r}")
        if self.thousands is not None and self.thousands not in THOUSANDS:
            raise ColumnError(f"thousands must be one of {THOUSANDS}, got {self.thousands!r}")
        if self.thousands == self.point:
            raise ColumnError(f"decimal and thousands must differ, got {self.point!r} for both")
        if self.encoding is not None:
            try:
                codecs.lookup(self.encoding)
            except LookupError:
                raise ColumnError(
                    f"unknown encoding {self.encoding!r}; common encodings are utf-8, utf-16, "
                    "latin-1 and cp1252"
                ) from None

    @property
    def point(self) -> str:
        """The decimal point."""
        return self.decimal or "."

    @property
    def is_plain(self) -> bool:
        """Whether numbers are written as in Python."""
        return self.point == "." and self.thousands is None

    def over(self, other: Dialect) -> Dialect:
        """Return this dialect, and the other one where nothing was specified."""
        both = {**other.to_json(), **self.to_json()}
        return Dialect(**both)

    def to_json(self) -> dict[str, Any]:
        """Return what was specified as plain JSON, which ``from_json`` reads."""
        return {name: value for name, value in self.__dict__.items() if value is not None}

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """Return the dialect in JSON; ValueError or TypeError if it is not one."""
        if not isinstance(content, dict):
            raise ValueError(f"its dialect must be an object, got {str(content)[:40]!r}")
        for field in fields(cls):
            kind = bool if field.name == "header" else str
            if not isinstance(content.get(field.name), kind | None):
                raise ValueError(
                    f"{field.name} has the invalid value {str(content[field.name])[:40]!r}"
                )
        return cls(**content)


PLAIN = Dialect()
